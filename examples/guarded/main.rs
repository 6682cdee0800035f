//! A server that lets in who has an access token of an authorization server, and demands a scope for one tool.
//!
//! ```sh
//! cargo run -p linchpin-examples --example guarded
//! linchpin auth check http://127.0.0.1:8931/mcp
//! ```

use linchpin::guard::Guard;
use linchpin::prelude::*;

struct Notes;

#[register]
impl Notes {
    /// Removes all notes.
    #[tool(destructive, scopes = ["notes:write"])]
    async fn clear(&self, cx: &Cx) -> String {
        format!("removed by {}", cx.principal().map_or("nobody", |who| who.subject()))
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let guard =
        Guard::new("http://127.0.0.1:8931/mcp").issuer("https://login.example.com/realms/main").require(["mcp"]);
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8931".to_owned());
    let transport = http(address).guard(guard).on_ready(|address| eprintln!("http://{address}/mcp"));
    Server::new("notes", "1.0").with(Notes).serve(transport).await
}
