//! Serves the conformance fixtures: `--stdio`, `--http PORT` (path `/mcp`), `--sse PORT` (also `/sse`) or `--guarded PORT`
//! (like `--http`, behind a guard, with an access token added to each request). After `--tasks FILE` tasks are kept there.

use http::{HeaderValue, header::AUTHORIZATION, request};
use linchpin::guard::{Guard, JwkSet, TrustedIssuer};
use linchpin::prelude::*;
use linchpin::store::Store;
use linchpin::transport::{Admit, Gate, Page, Refusal};
use linchpin::{BoxError, Principal, Tasks};
use linchpin_oauth::{Alg, Signer};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const USAGE: &str = "usage: conformance-server [--tasks FILE] --stdio | --http PORT | --sse PORT | --guarded PORT";

/// A guard, with the token that the suite cannot send.
struct WithToken(Guard, HeaderValue);

impl WithToken {
    fn new() -> Result<WithToken, BoxError> {
        const SERVER: &str = "https://mcp.example.com/mcp";
        const ISSUER: &str = "https://login.example.com";
        let signer = Signer::generate(Alg::Es256).0.kid("suite");
        let end = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 3600;
        let claims = serde_json::json!({
            "iss": ISSUER, "aud": SERVER, "sub": "suite", "client_id": "suite", "scope": "mcp", "exp": end,
        });
        let token = HeaderValue::try_from(format!("Bearer {}", signer.sign("at+jwt", &claims)))?;
        let issuer = TrustedIssuer::new(ISSUER).keys(JwkSet::from_iter([signer.jwk()]));
        Ok(WithToken(Guard::new(SERVER).issuer(issuer).require(["mcp"]), token))
    }
}

impl Gate for WithToken {
    fn admit(&self, head: &request::Parts, peer: Option<SocketAddr>) -> Admit {
        let mut head = head.clone();
        head.headers.insert(AUTHORIZATION, self.1.clone());
        self.0.admit(&head, peer)
    }

    fn missing(&self, path: &str, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        self.0.missing(path, principal, scopes)
    }

    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        self.0.page(path)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    let at = |port: &str| port.parse::<u16>().map(|port| http(format!("127.0.0.1:{port}")));
    let mut server = linchpin_conformance::server();
    if let ["--tasks", file, ..] = args[..] {
        let store = match Store::sqlite(file) {
            Ok(store) => store,
            Err(why) => {
                eprintln!("conformance-server: {why}");
                return ExitCode::FAILURE;
            }
        };
        server = server.tasks(Tasks::at(store));
        args.drain(..2);
    }
    let served: Result<(), BoxError> = match args[..] {
        ["--stdio"] => {
            eprintln!("conformance-server ready on stdio");
            server.serve(stdio().with_graceful_shutdown(shutdown_signal())).await.map_err(Into::into)
        }
        [way @ ("--http" | "--sse" | "--guarded"), port] => match at(port) {
            Ok(place) => {
                let place = match way {
                    "--sse" => place.with_sse(),
                    "--guarded" => place.guard(WithToken::new().expect("a token can be signed")),
                    _ => place,
                };
                let place = place.with_graceful_shutdown(shutdown_signal());
                let end = if way == "--sse" { "sse" } else { "mcp" };
                server
                    .serve(place.on_ready(move |addr| eprintln!("conformance-server ready on http://{addr}/{end}")))
                    .await
                    .map_err(Into::into)
            }
            Err(_) => Err(format!("`{port}` is not a port; {USAGE}").into()),
        },
        _ => Err(USAGE.into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("conformance-server: {why}");
            ExitCode::FAILURE
        }
    }
}
