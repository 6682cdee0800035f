//! A complete server on stdio: one tool that returns at once and one that waits.

use linchpin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    /// For how many milliseconds.
    ms: u64,
}

async fn greet(q: Greet) -> String {
    format!("Hello, {}!", q.name)
}

async fn wait(q: Wait) -> &'static str {
    tokio::time::sleep(std::time::Duration::from_millis(q.ms)).await;
    "waited"
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    Server::new("hello", "1.0")
        .tool(Tool::new("greet", "Greets somebody.").read_only(), greet)
        .tool(Tool::new("wait", "Waits.").read_only(), wait)
        .serve(stdio().with_graceful_shutdown(shutdown_signal()))
        .await
}
