//! Tools whose calls become tasks.

use linchpin::prelude::*;
use std::time::Duration;

/// Adds them.
pub(crate) fn add(server: Server) -> Server {
    let fixture = |name: &str, title: &str, description: &str| {
        Tool::new(name, description).title(title).read_only().open_world(false)
    };
    server
        .tool(
            fixture("failing_job", "Failing job", "A task that ends with an error of the tool.").task_required(),
            failing_job,
        )
        .tool(
            fixture("protocol_error_job", "Failing call", "A task that ends with an error of the protocol.").task(),
            protocol_error_job,
        )
        .tool(
            Tool::new("confirm_delete", "Pretends to delete a file, after asking.")
                .title("Confirm deletion")
                .destructive()
                .open_world(false)
                .task_required(),
            confirm_delete,
        )
        .tool(
            fixture("multi_input", "Two questions", "A task with two questions at once.").task_required(),
            multi_input,
        )
        .tool(
            fixture("test_tool_with_task", "Round, then task", "Asks in a round, and then becomes a task.")
                .task_later(),
            round_then_task,
        )
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

async fn failing_job(_: NoArgs) -> Result<String> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(Error::tool("This job always fails."))
}

async fn protocol_error_job(_: NoArgs) -> Result<String> {
    // Longer than calls are answered directly.
    tokio::time::sleep(Duration::from_millis(500)).await;
    Err(Error::protocol(-32603, "This job always fails with an error of the protocol."))
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    /// The file to pretend to delete.
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    confirm: bool,
}

async fn confirm_delete(_: &(), cx: &Cx, q: Delete) -> Result<String> {
    let sure: Sure = cx.elicit("confirm", &format!("Delete {}?", q.filename)).await?;
    Ok(if sure.confirm { format!("Deleted {} (not really).", q.filename) } else { format!("Kept {}.", q.filename) })
}

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// The suite answers with a name, whatever it is asked.
    name: String,
}

async fn multi_input(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let (a, b) = tokio::join!(
        cx.elicit::<Input>("input-a", "The first value?"),
        cx.elicit::<Input>("input-b", "The second value?"),
    );
    Ok(format!("{} and {}", a?.name, b?.name))
}

async fn round_then_task(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let user: Greet = cx.elicit("user_name", "What is your name?").await?;
    cx.become_task().await;
    Ok(format!("Hello, {}, from a task!", user.name))
}
