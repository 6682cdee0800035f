//! Scenarios about what HTTP repeats in headers.

use crate::{Outcome, Task};
use serde::Deserialize;
use serde_json::{Value, json};

/// One of everything that names something.
pub(crate) async fn standard(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    for tool in connection.tools().await? {
        connection.call(&tool.name, json!({})).await?;
    }
    for resource in connection.resources().await? {
        connection.read(&resource.uri).await?;
    }
    for prompt in connection.prompts().await? {
        connection.prompt(&prompt.name, ()).await?;
    }
    connection.close().await;
    Ok(())
}

/// Exactly the calls that the scenario wants.
pub(crate) async fn custom(task: &Task) -> Outcome {
    #[derive(Deserialize)]
    struct Wanted {
        name: String,
        arguments: Value,
    }
    let calls: Vec<Wanted> = serde_json::from_value(task.context["toolCalls"].clone())?;
    let connection = task.connect().await?;
    connection.tools().await?;
    for wanted in calls {
        connection.call(&wanted.name, &wanted.arguments).await?.ok()?;
    }
    connection.close().await;
    Ok(())
}

/// Tools with annotations that break the rules are not there; the others are.
pub(crate) async fn invalid_tools(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    let tools = connection.tools().await?;
    for refusal in &tools.refused {
        eprintln!("refused {}: {}", refusal.name, refusal.why);
        if connection.call(&refusal.name, json!({ "region": "north" })).await.is_ok() {
            return Err(format!("{} was refused and can be called", refusal.name).into());
        }
    }
    for tool in tools {
        connection.call(&tool.name, json!({ "region": "north" })).await?.ok()?;
    }
    connection.close().await;
    Ok(())
}
