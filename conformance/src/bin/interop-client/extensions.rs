//! The checks of tasks and skills.

use crate::Outcome;
use crate::checks::{count, told};
use crate::table::Expect;
use linchpin::client::{Connection, ErrorKind, Progress, RawCallToolResult, Task};
use linchpin::skills::{Error, LoadedSkill, SkillsExt as _};
use linchpin::types::task::TaskStatus;
use std::sync::{Arc, Mutex, PoisonError};

/// Calls a tool whose calls are tasks.
async fn start(conn: &Connection, tool: &str) -> Outcome<(Task, String)> {
    let task = conn.call(tool, ()).detached().await.map_err(told)?;
    let id = task.id().ok_or("the call did not become a task")?.to_owned();
    Ok((task, id))
}

pub(crate) async fn task(conn: &Connection, tool: &str, message: Option<&str>, want: &str) -> Outcome {
    let (task, id) = start(conn, tool).await?;
    let state = task.state().await.map_err(told)?;
    if state.task.task_id != id || state.task.status.is_terminal() {
        return Err(format!("{id} is {} at first", state.task.status));
    }
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let hearing = heard.clone();
    let hear = move |progress: Progress| {
        hearing.lock().unwrap_or_else(PoisonError::into_inner).extend(progress.message);
    };
    holds(task.on_progress(hear).await, want)?;
    // Whoever has the identifier gets the same.
    holds(conn.task(&id).await, want)?;
    let state = conn.task(&id).state().await.map_err(told)?;
    if state.task.status != TaskStatus::Completed {
        return Err(format!("{id} is {} at the end", state.task.status));
    }
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    match message.is_none_or(|message| heard.iter().any(|text| text.contains(message))) {
        true => Ok(()),
        false => Err(format!("its messages were {heard:?}")),
    }
}

fn holds(answer: linchpin::client::Result<RawCallToolResult>, want: &str) -> Outcome {
    let said = answer.and_then(RawCallToolResult::ok).map_err(told)?.text();
    if said.contains(want) { Ok(()) } else { Err(format!("no `{want}` in: {said}")) }
}

pub(crate) async fn task_fails(conn: &Connection, tool: &str, want: &str) -> Outcome {
    let (task, _) = start(conn, tool).await?;
    match task.await.and_then(RawCallToolResult::ok) {
        Ok(result) => Err(format!("it did not fail: {}", result.text())),
        Err(why) if matches!(why.kind(), ErrorKind::Tool | ErrorKind::Rpc) && why.to_string().contains(want) => Ok(()),
        Err(why) => Err(format!("no `{want}` in: {why}")),
    }
}

pub(crate) async fn task_cancel(conn: &Connection, tool: &str, stopped: Option<&str>) -> Outcome {
    let before = count(conn, stopped).await?;
    let (task, id) = start(conn, tool).await?;
    task.cancel().await.map_err(told)?;
    match task.await {
        Err(why) if why.kind() == ErrorKind::TaskCancelled => {}
        other => return Err(format!("{other:?} of a cancelled task")),
    }
    let status = conn.task(&id).state().await.map_err(told)?.task.status;
    if status != TaskStatus::Cancelled {
        return Err(format!("{id} is {status}"));
    }
    match (stopped, count(conn, stopped).await? - before) {
        (None, _) | (Some(_), 1) => Ok(()),
        (Some(_), n) => Err(format!("{n} were stopped")),
    }
}

pub(crate) async fn task_unknown(conn: &Connection) -> Outcome {
    match conn.task("never-was").await {
        Err(why) if why.kind() == ErrorKind::TaskLost => Ok(()),
        other => Err(format!("{other:?} of a task that never was")),
    }
}

pub(crate) async fn skills(conn: &Connection, have: &[String]) -> Outcome {
    let listed = conn.skills().await.map_err(|why| why.to_string())?;
    if let Some(refused) = listed.refused.first() {
        return Err(format!("`{}` was refused: {}", refused.name, refused.why));
    }
    let names: Vec<&str> = listed.iter().map(|skill| skill.name()).collect();
    match names == have {
        true => Ok(()),
        false => Err(format!("the skills are {}", names.join(", "))),
    }
}

pub(crate) async fn skill(
    conn: &Connection,
    uri: &str,
    file: Option<&(String, String)>,
    verified: bool,
    expect: &Expect,
) -> Outcome {
    let loaded = match load(conn, uri).await {
        Ok(_) if expect.fails => return Err("it did not fail".to_owned()),
        Ok(loaded) => loaded,
        Err(why) if expect.fails => {
            let said = why.to_string();
            let missing = expect.text.iter().find(|part| !said.contains(part.as_str()));
            return missing.map_or(Ok(()), |missing| Err(format!("no `{missing}` in: {said}")));
        }
        Err(why) => return Err(why.to_string()),
    };
    if loaded.verified() != verified {
        return Err(format!("verified: {}", loaded.verified()));
    }
    if let Some(missing) = expect.text.iter().find(|part| !loaded.body().contains(part.as_str())) {
        return Err(format!("no `{missing}` in: {}", loaded.body()));
    }
    let Some((path, text)) = file else { return Ok(()) };
    let bytes = loaded.file(path).await.map_err(|why| why.to_string())?;
    let said = String::from_utf8_lossy(&bytes);
    if !said.contains(text) {
        return Err(format!("no `{text}` in: {said}"));
    }
    match loaded.file("no/such/file").await {
        Err(Error::Unlisted(_)) => Ok(()),
        other => Err(format!("{other:?} of a file that is not listed")),
    }
}

async fn load(conn: &Connection, uri: &str) -> Result<LoadedSkill, Error> {
    conn.skill(uri).await?.load().await
}

pub(crate) async fn skill_directory(conn: &Connection, uri: &str, have: &[String]) -> Outcome {
    let children = conn.skill_directory(uri).await.map_err(|why| why.to_string())?;
    let mut uris: Vec<&str> = children.iter().map(|child| child.uri.as_str()).collect();
    uris.sort_unstable();
    match uris == have {
        true => Ok(()),
        false => Err(format!("the children are {}", uris.join(", "))),
    }
}
