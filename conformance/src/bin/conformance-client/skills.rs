//! Scenarios about skills: what a host reads, and what it refuses.

use crate::{Outcome, Task};
use linchpin::skills::SkillsExt;

/// Lists the skills, and reads none of them.
pub(crate) async fn list(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    for skill in connection.skills().await? {
        eprintln!("skill {}", skill.uri);
    }
    connection.close().await;
    Ok(())
}

/// Loads every skill, which fails where it is not what its entry says.
pub(crate) async fn load(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    for skill in connection.skills().await? {
        eprintln!("loaded {}", skill.load().await?.entry().uri);
    }
    connection.close().await;
    Ok(())
}
