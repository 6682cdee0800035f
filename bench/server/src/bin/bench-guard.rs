//! What a guard costs: microseconds and allocations of one request, in process, without a wire.
//!
//!     bench-guard             a table
//!     bench-guard --json      one JSON object per line
//!
//! `echo` rows are whole calls of the tool `echo` through the HTTP service, whose difference is the guard; `admit` rows are
//! the decision alone.

use bytes::Bytes;
use http::{Request, request};
use http_body_util::{BodyExt as _, Full};
use linchpin::guard::{Dpop, Guard, Keys, Scopes};
use linchpin::transport::{Admit, Gate, HttpExt as _, HttpOptions, HttpService};
use linchpin::{Error, Result};
use linchpin_bench::counting::{Counting, Counts};
use linchpin_bench::tokens::{Issuer, SERVER, now};
use linchpin_oauth::Alg;
use linchpin_oauth::dpop::DpopKey;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const REVISION: &str = "2026-07-28";
const ECHOES: u32 = 20_000;
const ADMISSIONS: u32 = 20_000;
/// First sights are verified, and each needs a token of its own.
const FIRST_SIGHTS: u32 = 500;

/// One row.
struct Cost {
    case: &'static str,
    calls: u32,
    us: f64,
    allocs: f64,
}

fn measured(case: &'static str, calls: u32, mut call: impl FnMut(u32)) -> Cost {
    let (counts, start) = (Counts::now(), Instant::now());
    (0..calls).for_each(&mut call);
    let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(calls);
    Cost { case, calls, us, allocs: Counts::now().since(counts).allocs as f64 / f64::from(calls) }
}

fn head(scheme: &str, token: &str, proof: Option<&str>) -> request::Parts {
    let mut request = Request::post("/mcp").header("authorization", format!("{scheme} {token}"));
    if let Some(proof) = proof {
        request = request.header("dpop", proof);
    }
    request.body(()).expect("headers are valid").into_parts().0
}

fn admits(guard: &Guard, head: &request::Parts) {
    assert!(matches!(guard.admit(head, None), Admit::Yes(_)));
}

fn first_sights(case: &'static str, alg: Alg) -> Cost {
    let issuer = Issuer::new(alg);
    let guard = issuer.guard();
    let heads: Vec<_> = (0..FIRST_SIGHTS).map(|id| head("Bearer", &issuer.token(id, None), None)).collect();
    measured(case, FIRST_SIGHTS, |n| admits(&guard, &heads[n as usize]))
}

fn admissions() -> Vec<Cost> {
    let issuer = Issuer::new(Alg::Es256);
    let guard = issuer.guard();
    let remembered = head("Bearer", &issuer.token(0, None), None);
    admits(&guard, &remembered);
    let (keys, key) = Keys::once("bench", Scopes::parse("mcp"));
    let keyed = Guard::for_keys().keys(keys).require(["mcp"]);
    let with_key = head("Bearer", key.expose(), None);
    let (bound, proofs) = (DpopKey::generate(), issuer.guard().dpop(Dpop::Required));
    let token = issuer.token(1, Some(&bound));
    let proven = |_| head("DPoP", &token, Some(&bound.proof("POST", SERVER, None, Some(&token), now())));
    admits(&proofs, &proven(0));
    let proven: Vec<_> = (0..FIRST_SIGHTS).map(proven).collect();
    vec![
        measured("admit, remembered token", ADMISSIONS, |_| admits(&guard, &remembered)),
        measured("admit, key", ADMISSIONS, |_| admits(&keyed, &with_key)),
        first_sights("admit, first sight, ES256", Alg::Es256),
        first_sights("admit, first sight, EdDSA", Alg::EdDsa),
        measured("admit, remembered token, new DPoP proof", FIRST_SIGHTS, |n| admits(&proofs, &proven[n as usize])),
    ]
}

fn service(guard: Option<Guard>) -> Result<HttpService> {
    let options =
        HttpOptions::default().with(|options| options.gate = guard.map(|guard| Arc::new(guard) as Arc<dyn Gate>));
    linchpin_bench::server(5).into_service_with(options).map_err(|e| Error::tool(e.to_string()))
}

fn echoes(case: &'static str, service: &HttpService, token: &str) -> Result<Cost> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| Error::tool(e.to_string()))?;
    let body = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "echo", "arguments": { "message": "Quick brown fox 0123456789" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let body = Bytes::from(body.to_string());
    let once = |_| {
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", "echo")
            .header("authorization", token)
            .body(Full::new(body.clone()))
            .expect("headers are valid");
        let answer = runtime.block_on(async {
            let response = service.handle(request).await.unwrap_or_else(|never| match never {});
            (response.status(), response.into_body().collect().await.map(http_body_util::Collected::to_bytes))
        });
        assert_eq!(answer.0, 200, "{:?}", answer.1);
    };
    (0..200).for_each(once);
    Ok(measured(case, ECHOES, once))
}

fn main() -> Result<()> {
    let issuer = Issuer::new(Alg::Es256);
    let token = format!("Bearer {}", issuer.token(0, None));
    let mut costs = vec![
        echoes("echo, no guard", &service(None)?, &token)?,
        echoes("echo, remembered token", &service(Some(issuer.guard()))?, &token)?,
    ];
    costs.extend(admissions());
    let mut out = String::new();
    let json = std::env::args().any(|word| word == "--json");
    for Cost { case, calls, us, allocs } in costs {
        let _ = match json {
            true => {
                writeln!(out, "{}", serde_json::json!({ "case": case, "calls": calls, "us": us, "allocs": allocs }))
            }
            false => writeln!(out, "{case:42} {us:9.2} µs {allocs:8.1} allocations"),
        };
    }
    std::io::stdout().write_all(out.as_bytes()).map_err(|e| Error::tool(e.to_string()))
}
