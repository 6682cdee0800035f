//! A server of plain methods: each is a function of the request, and its result is JSON.
//!
//! ```sh
//! cargo run -p linchpin-examples --example low-level
//! ```

use linchpin::LowLevelServer;
use linchpin::prelude::*;
use serde_json::json;

#[derive(Deserialize)]
struct Call {
    arguments: Add,
}

#[derive(Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    LowLevelServer::new("adder", "1.0")
        .capabilities(json!({ "tools": {} }))
        .method("tools/list", async |_, _| {
            let schema = json!({ "type": "object", "required": ["a", "b"] });
            Ok(json!({ "tools": [{ "name": "add", "description": "Adds two numbers.", "inputSchema": schema }] }))
        })
        .method("tools/call", async |request, _| {
            let Call { arguments: Add { a, b } } = request.decode()?;
            Ok(json!({ "content": [{ "type": "text", "text": (a + b).to_string() }] }))
        })
        .serve(stdio())
        .await
}
