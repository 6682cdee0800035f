//! An OAuth proxy: users log in at GitHub (callback URL `https://mcp.example.com/callback`), clients get tokens of this server only.
//! `LINCHPIN_CLIENT_ID=… LINCHPIN_CLIENT_SECRET=… cargo run -p linchpin-examples --example oauth-proxy -- https://mcp.example.com acme`

use linchpin::BoxError;
use linchpin::issuer::{Issuer, Store, Upstream};
use linchpin::prelude::*;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(organization)) = (args.next(), args.next()) else {
        eprintln!("usage: oauth-proxy URL ORGANIZATION [ADDRESS]");
        std::process::exit(2);
    };
    let (id, secret) = (std::env::var("LINCHPIN_CLIENT_ID")?, std::env::var("LINCHPIN_CLIENT_SECRET")?);
    let issuer = Issuer::new(&url)
        .upstream(Upstream::github(id, secret))
        .allow(&format!("org:{organization}"))
        .store(Store::sqlite("auth.db")?);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8931".to_owned());
    let host = url.trim_start_matches("https://").to_owned();
    let server = Server::new("proxied", "1.0").tool(("whoami", "Says who calls."), whoami);
    let transport = http(address).guard(issuer).allow_host(host).on_ready(|address| eprintln!("http://{address}/mcp"));
    server.serve(transport).await?;
    Ok(())
}

async fn whoami(cx: &Cx) -> String {
    cx.principal().map_or_else(|| "nobody".to_owned(), |who| who.subject().to_owned())
}
