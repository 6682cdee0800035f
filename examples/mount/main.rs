//! A server mounted beside other routes of an axum application: MCP at `/mcp`, a page at `/`. Ctrl-C and SIGTERM shut it
//! down gracefully, subscriptions and sessions included.

use axum::Router;
use axum::routing::get;
use linchpin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mcp = Server::new("greeter", "1.0")
        .tool(
            Tool::new("greet", "Greets somebody.").read_only(),
            |q: Greet| async move { format!("Hello, {}!", q.name) },
        )
        .on_shutdown(|| async { eprintln!("the server has ended") })
        .into_service()?;
    let app = Router::new().route("/", get(|| async { "MCP is at /mcp" })).route_service("/mcp", mcp.clone());
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8931".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    // axum waits for open responses, and those of subscriptions end only when the service shuts down.
    let shutdown = async move {
        shutdown_signal().await;
        mcp.shutdown().await;
    };
    axum::serve(listener, app).with_graceful_shutdown(shutdown).await?;
    Ok(())
}
