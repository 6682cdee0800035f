//! The smallest server: one tool, on standard input and output.

use linchpin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

async fn add(q: Add) -> String {
    (q.a + q.b).to_string()
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    // Without `with_graceful_shutdown` Ctrl-C and SIGTERM end the process at once.
    Server::new("adder", "1.0")
        .tool(Tool::new("add", "Adds two numbers.").read_only(), add)
        .serve(stdio().with_graceful_shutdown(shutdown_signal()))
        .await
}
