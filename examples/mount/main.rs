//! A server mounted beside other routes of an axum program: MCP at `/mcp`, a page at `/`.

use axum::Router;
use axum::routing::get;
use linchpin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[tokio::main]
async fn main() -> linchpin::Result<()> {
    let mcp = Server::new("greeter", "1.0")
        .tool(
            Tool::new("greet", "Greets somebody.").read_only(),
            |q: Greet| async move { format!("Hello, {}!", q.name) },
        )
        .into_service()?;
    let app = Router::new().route("/", get(|| async { "MCP is at /mcp" })).route_service("/mcp", mcp);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8931").await?;
    axum::serve(listener, app).await?;
    Ok(())
}
