//! A client that logs in if a server requires it.
//!
//!     cargo run -p linchpin-examples --example login -- https://mcp.example.com/mcp
//!
//! The first request gets status 401, the browser opens, and the call continues when the user has agreed. Tokens are kept in a
//! file that only its owner can read, so the next run needs no login. Without a URL it prints its usage.

use linchpin::auth::OAuth;
use linchpin::auth::login::Browser;
use linchpin::auth::store::FileStore;
use linchpin::prelude::*;
use std::io::Write;

type Error = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut out = std::io::stdout();
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: login URL");
        std::process::exit(2);
    };
    let oauth = OAuth::new()
        .client_name("Linchpin login example")
        .login(Browser::new().notice(|url| eprintln!("If no browser opens, go to {url}")))
        .store(FileStore::standard()?);
    let server = Client::new("login", "1.0").connect(remote(&url)?.auth(oauth)).await?;
    for tool in server.tools().await? {
        writeln!(out, "{}: {}", tool.name, tool.description.unwrap_or_default())?;
    }
    server.close().await;
    Ok(())
}
