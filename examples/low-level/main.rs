//! A server of plain methods: each is a function of the request, and its result is JSON.
//!
//! `cargo run -p linchpin-examples --example low-level`

use linchpin::LowLevelServer;
use linchpin::prelude::*;
use serde_json::json;

#[derive(Deserialize)]
struct Get {
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    LowLevelServer::new("example-server", "1.0")
        .capabilities(json!({ "prompts": {} }))
        .method("prompts/list", async |_, _| {
            let argument = json!({ "name": "arg1", "description": "What it is about", "required": true });
            let prompt = json!({ "name": "example-prompt", "description": "Asks for a poem", "arguments": [argument] });
            Ok(json!({ "prompts": [prompt] }))
        })
        .method("prompts/get", async |request, _| {
            let Get { name } = request.decode()?;
            if name != "example-prompt" {
                return Err(Error::invalid_params("unknown prompt"));
            }
            let content = json!({ "type": "text", "text": "Write a poem." });
            Ok(json!({ "description": "A poem", "messages": [{ "role": "user", "content": content }] }))
        })
        .serve(stdio())
        .await
}
