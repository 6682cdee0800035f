//! Scenarios about calls, and what happens during them.

use crate::{Outcome, Task};
use linchpin::client::{Connection, RawCallToolResult};
use linchpin::types::root::Root;
use serde_json::{Value, json};

/// Connects, lists the tools, and goes.
pub(crate) async fn list(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    for tool in connection.tools().await? {
        eprintln!("tool {}", tool.name);
    }
    connection.close().await;
    Ok(())
}

/// Calls a tool that must not fail.
async fn call(connection: &Connection, tool: &str, arguments: Value) -> Outcome<RawCallToolResult> {
    let result = connection.call(tool, arguments).await?.ok()?;
    eprintln!("{tool}: {}", result.text());
    Ok(result)
}

pub(crate) async fn tools_call(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    connection.tools().await?;
    call(&connection, "add_numbers", json!({ "a": 5, "b": 3 })).await?;
    connection.close().await;
    Ok(())
}

/// The user agrees to a form as it stands.
pub(crate) async fn form_defaults(task: &Task) -> Outcome {
    let host = task.host().on_elicitation(async |form| form.accept_defaults());
    let connection = task.connect_as(host).await?;
    call(&connection, "test_client_elicitation_defaults", json!({})).await?;
    connection.close().await;
    Ok(())
}

/// The stream of the call is closed by the server and has to be resumed.
pub(crate) async fn reconnection(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    connection.tools().await?;
    call(&connection, "test_reconnection", json!({})).await?;
    connection.close().await;
    Ok(())
}

/// A host that can do everything says so in every request.
pub(crate) async fn metadata(task: &Task) -> Outcome {
    let host = task
        .host()
        .on_elicitation(async |form| form.accept_defaults())
        .on_sampling(async |_| Err("there is no model here".into()))
        .roots(vec![Root::new("file:///work")]);
    let connection = task.connect_as(host).await?;
    for tool in connection.tools().await? {
        call(&connection, &tool.name, json!({})).await?;
    }
    connection.close().await;
    Ok(())
}

/// Calls that ask for input, while another one does not.
pub(crate) async fn rounds(task: &Task) -> Outcome {
    let host = task.host().on_elicitation(async |form| form.accept(json!({ "confirmed": true })));
    let connection = task.connect_as(host).await?;
    connection.tools().await?;
    let (first, unrelated) = tokio::join!(
        call(&connection, "test_mrtr_echo_state", json!({})),
        call(&connection, "test_mrtr_unrelated", json!({})),
    );
    first.and(unrelated)?;
    call(&connection, "test_mrtr_no_state", json!({})).await?;
    call(&connection, "test_mrtr_no_result_type", json!({})).await?;
    connection.close().await;
    Ok(())
}

/// Shows the server the schema it sent, as it arrived.
pub(crate) async fn schema_preserved(task: &Task) -> Outcome {
    let connection = task.connect().await?;
    let tools = connection.tools().await?;
    let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool").ok_or("the tool is not listed")?;
    let arguments = json!({ "schema": tool.input_schema });
    call(&connection, "json_schema_echo", arguments).await?;
    connection.close().await;
    Ok(())
}
