//! A server that lets in who has an access token of an authorization server, and demands a scope for one tool.
//!
//! ```sh
//! cargo run -p linchpin-examples --example guarded -- https://login.example.com/realms/main
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
    let mut args = std::env::args().skip(1);
    let issuer = args.next().unwrap_or_else(|| "https://login.example.com/realms/main".to_owned());
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8931".to_owned());
    let guard = Guard::new(format!("http://{address}/mcp")).issuer(issuer).require(["mcp"]);
    let transport = http(address).guard(guard).on_ready(|address| eprintln!("http://{address}/mcp"));
    Server::new("notes", "1.0").with(Notes).serve(transport).await
}
