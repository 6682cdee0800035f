//! A server that users log in to, for clients and providers of others: `login-server PORT HOW`.
//!
//! HOW is `users` (an issuer with a user ada, whose password is pw), `upstream URL [RULE]` (an issuer over the provider there, for
//! those whom the rule admits), or `guard URL` (the provider is the issuer itself; with `introspect`, it is asked about tokens).
//! `LOGIN_LIFE_S` is how long access tokens of an issuer last.

use linchpin::BoxError;
use linchpin::guard::{Guard, Introspection, TrustedIssuer};
use linchpin::issuer::{Client, Issuer, Upstream, Users};
use linchpin::prelude::*;
use linchpin::transport::Gate;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const USAGE: &str = "usage: login-server PORT users | upstream URL [RULE] | guard URL [introspect]";
/// The hash of "pw", quickly compared: this guards nothing.
const HASH: &str = "$argon2id$v=19$m=64,t=1,p=1$bG9naW4tc2VydmVyLXB3$3BD5TXWUCQ1fZapySW9Sa+bm6Pq8JLbxZcVrgphXsKI";
/// The redirect URIs of clients that do not register themselves, on any port.
const REDIRECTS: [&str; 3] =
    ["http://127.0.0.1/callback", "http://localhost/callback", "http://127.0.0.1/oauth/callback"];

fn server() -> Server {
    Server::new("login-server", "1.0")
        .tool(("whoami", "Says who calls."), |cx: &Cx| cx.principal().map_or("nobody", |who| who.subject()).to_owned())
        .tool(Tool::new("write", "Needs another scope.").scopes(["notes:write"]), || "written")
}

fn issuer(url: &str) -> Issuer {
    let life = std::env::var("LOGIN_LIFE_S").ok().and_then(|text| text.parse().ok()).unwrap_or(900);
    let redirects = |client: Client| REDIRECTS.into_iter().fold(client, Client::redirect_uri);
    Issuer::new(url)
        .name("Notes")
        .scope("notes:read", "read your notes")
        .scope("notes:write", "change your notes")
        .require(["notes:read"])
        .client(redirects(Client::new("public")))
        .client(redirects(Client::new("confidential").secret("s3cret")))
        .device(true)
        .access_life(Duration::from_secs(life))
}

/// A file with one user, which ends with the system's temporary files.
fn users(port: u16) -> Result<Users, BoxError> {
    let path = std::env::temp_dir().join(format!("linchpin-login-server-{port}.toml"));
    std::fs::write(&path, format!("[ada]\npassword = \"{HASH}\"\nname = \"Ada\"\n"))?;
    Ok(Users::file(&path)?)
}

fn gate(port: u16, how: &[&str]) -> Result<Arc<dyn Gate>, BoxError> {
    let (own, resource) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{port}/mcp"));
    Ok(match how {
        ["users"] => Arc::new(issuer(&own).users(users(port)?)),
        ["upstream", url, rule @ ..] => {
            let rule = rule.first().copied().unwrap_or("@acme.example");
            Arc::new(issuer(&own).upstream(Upstream::oidc(*url, "linchpin", "our-secret")).allow(rule))
        }
        ["guard", url, more @ ..] => {
            let trusted = TrustedIssuer::new(*url);
            let trusted = match more {
                ["introspect"] => trusted.introspection(Introspection::secret("linchpin", "our-secret")),
                _ => trusted,
            };
            Arc::new(Guard::new(resource).issuer(trusted).require(["notes:read"]))
        }
        _ => return Err(USAGE.into()),
    })
}

async fn serve(args: &[&str]) -> Result<(), BoxError> {
    let [port, how @ ..] = args else { return Err(USAGE.into()) };
    let port: u16 = port.parse().map_err(|_| USAGE)?;
    let place = http(format!("127.0.0.1:{port}")).guard(gate(port, how)?);
    let place = place.on_ready(|addr| eprintln!("login-server ready on http://{addr}/mcp"));
    Ok(server().serve(place.with_graceful_shutdown(shutdown_signal())).await?)
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match serve(&args.iter().map(String::as_str).collect::<Vec<_>>()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("login-server: {why}");
            ExitCode::FAILURE
        }
    }
}
