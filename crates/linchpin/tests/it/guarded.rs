//! A whole server behind a guard. Rows have the numbers of the attacks in the design of authorization.

#![cfg(feature = "guard")]

use crate::access::Caller;
use crate::common::MODERN;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use linchpin::guard::{Guard, JwkSet, Keys, Scopes, TrustedIssuer};
use linchpin::prelude::*;
use linchpin::transport::{Gate, HttpOptions, HttpService};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SERVER: &str = "https://mcp.example.com/mcp";

/// A guard that knows Ada, who may read, and Bob, who may do all; and their credentials.
fn guard() -> (Guard, [&'static str; 2]) {
    let people = [("ada", "mcp files:read"), ("bob", "mcp files")];
    let mut guard = Guard::new(SERVER)
        .issuer(TrustedIssuer::new("https://login.example.com").keys(JwkSet::default()))
        .require(["mcp"])
        .implies("files", ["files:read", "files:write"]);
    let credentials = people.map(|(name, scopes)| {
        let (keys, token) = Keys::once(name, Scopes::parse(scopes));
        guard = guard.clone().keys(keys);
        &*format!("Bearer {}", token.expose()).leak()
    });
    (guard, credentials)
}

fn served(runs: &Arc<AtomicUsize>, guard: Guard, sse: bool) -> HttpService {
    let runs = runs.clone();
    let server = Server::new("files", "1")
        .tool("who", |cx: &Cx| cx.principal().map_or("nobody", |who| who.subject()).to_owned())
        .tool(Tool::new("move", "").scopes(["files:read", "files:write"]), move || {
            runs.fetch_add(1, Ordering::Relaxed);
            "moved"
        })
        .tool("overwrite", async |cx: &Cx, q: Overwrite| {
            if q.says {
                cx.progress(0.0, None);
            }
            match q.force {
                true => cx.need_scopes(["files:read", "files:write"]).map(|()| "overwritten"),
                false => Ok("written"),
            }
        })
        .tool(Tool::new("secret", "").visible_to(|viewer| viewer.has_scope("files:write")), || "shown");
    let options = HttpOptions::default().with(|options| {
        options.gate = Some(Arc::new(guard) as Arc<dyn Gate>);
        options.sse_2024 = sse;
    });
    server.into_service_with(options).unwrap()
}

#[derive(Deserialize, JsonSchema)]
struct Overwrite {
    force: bool,
    says: bool,
}

#[tokio::test]
async fn a_handler_demands_scopes_that_only_some_arguments_need() {
    let (guard, [ada, bob]) = guard();
    let service = served(&Arc::default(), guard, false);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN] {
        let overwrite = |force: bool| json!({ "name": "overwrite", "arguments": { "force": force, "says": false } });
        let mut reader = Caller::new(&service, revision, ada).await;
        assert_eq!(reader.ask("tools/call", overwrite(false)).await.status, 200, "{revision}");
        let refused = reader.ask("tools/call", overwrite(true)).await;
        let challenge = refused.challenge.unwrap();
        assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!(403)), "{revision}");
        assert!(challenge.contains("scope=\"mcp files:read files:write\""), "{challenge}");
        assert_eq!(refused.body["error"]["data"]["requiredScopes"], json!(["files:read", "files:write"]));
        let mut writer = Caller::new(&service, revision, bob).await;
        assert_eq!(writer.ask("tools/call", overwrite(true)).await.status, 200, "{revision}");
    }
}

#[tokio::test]
async fn refusals_are_logged_without_the_token() {
    let (guard, [ada, _]) = guard();
    let service = served(&Arc::default(), guard, false);
    let logged = crate::common::Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    assert_eq!(get(&service, "/mcp", "localhost", "Bearer canary").await.0, 401);
    let mut reader = Caller::new(&service, MODERN, ada).await;
    assert_eq!(reader.ask("tools/call", json!({ "name": "move" })).await.status, 403);
    let text = logged.text();
    for refused in ["status=401", "status=403"] {
        let line = text.lines().find(|line| line.contains("refused a request") && line.contains(refused));
        assert!(line.is_some_and(|line| line.contains("INFO")), "{refused}: {text}");
    }
    assert!(!text.contains("canary"), "{text}");
}

/// There is no status any more that could say it.
#[tokio::test]
async fn a_handler_that_has_sent_something_demands_scopes_with_an_error() {
    let (guard, [ada, _]) = guard();
    let service = served(&Arc::default(), guard, false);
    let mut reader = Caller::new(&service, "2025-11-25", ada).await;
    let arguments = json!({ "force": true, "says": true });
    let params = json!({ "name": "overwrite", "arguments": arguments, "_meta": { "progressToken": 1 } });
    assert_eq!(reader.ask("tools/call", params).await.status, 200);
    assert!(
        reader.text.contains("notifications/progress") && reader.text.contains("requiredScopes"),
        "{}",
        reader.text
    );
}

#[tokio::test]
async fn every_revision_stands_behind_the_same_guard() {
    let (guard, [ada, bob]) = guard();
    let runs = Arc::default();
    let service = served(&runs, guard, false);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN] {
        let mut reader = Caller::new(&service, revision, ada).await;
        let who = reader.ask("tools/call", json!({ "name": "who" })).await;
        assert_eq!(who.body["result"]["content"][0]["text"], "key:ada", "{revision}");
        let refused = reader.ask("tools/call", json!({ "name": "move" })).await;
        let challenge = refused.challenge.unwrap();
        assert_eq!(refused.status, 403, "51, 52");
        assert!(
            challenge.contains("scope=\"mcp files:read files:write\"") && challenge.contains("resource_metadata="),
            "{challenge}"
        );
        let hidden = reader.ask("tools/call", json!({ "name": "secret" })).await;
        let unknown = reader.ask("tools/call", json!({ "name": "no_such" })).await;
        let text = |body: &Value| body["error"].to_string().replace("no_such", "secret");
        assert_eq!((hidden.status, text(&hidden.body)), (unknown.status, text(&unknown.body)), "53");
        let mut writer = Caller::new(&service, revision, bob).await;
        let before = runs.load(Ordering::Relaxed);
        assert_eq!(writer.ask("tools/call", json!({ "name": "move" })).await.status, 200);
        assert_eq!(runs.load(Ordering::Relaxed), before + 1);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 5, "it ran for the one who may, only");
}

#[tokio::test]
async fn a_session_is_its_owners_and_goes_on_with_another_token_of_the_same_person() {
    let (guard, [ada, bob]) = guard();
    let service = served(&Arc::default(), guard, false);
    let mut caller = Caller::new(&service, "2025-11-25", ada).await;
    caller.set_token(bob);
    assert_eq!(caller.ask("tools/list", json!({})).await.status, 404, "35");
    caller.set_token("Bearer lp_ada_guessed");
    assert_eq!(caller.ask("tools/list", json!({})).await.status, 401);
    caller.set_token(ada);
    assert_eq!(caller.ask("tools/list", json!({})).await.status, 200, "35: it is unharmed");
}

async fn get(service: &HttpService, path: &str, host: &str, token: &str) -> (u16, String) {
    let mut request = Request::get(path).header("host", host).header("accept", "text/event-stream, application/json");
    if !token.is_empty() {
        request = request.header("authorization", token);
    }
    let response = service.handle(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let text = match body.frame().await {
        Some(Ok(frame)) => frame.into_data().map(|data| String::from_utf8(data.to_vec()).unwrap()).unwrap_or_default(),
        _ => String::new(),
    };
    (status, text)
}

#[tokio::test]
async fn http_and_sse_of_2024_is_behind_the_guard_too() {
    let (guard, [ada, bob]) = guard();
    let service = served(&Arc::default(), guard.also_at("https://mcp.example.com/sse"), true);
    assert_eq!(get(&service, "/sse", "localhost", "").await.0, 401);
    let request = Request::get("/sse").header("host", "localhost").header("authorization", ada);
    let response = service.handle(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut stream = response.into_body();
    let first = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let place = first.split("data: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let post = async |token: &str| {
        let request = Request::post(&place).header("host", "localhost").header("content-type", "application/json");
        let request = if token.is_empty() { request } else { request.header("authorization", token) };
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        service.handle(request.body(Full::new(body)).unwrap()).await.unwrap().status().as_u16()
    };
    assert_eq!((post("").await, post(bob).await, post(ada).await), (401, 404, 202), "35");
}

#[tokio::test]
async fn documents_are_for_those_who_may_reach_this_host_and_never_name_another() {
    let (guard, _) = guard();
    let service = served(&Arc::default(), guard, false);
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource", "/mcp"] {
        let (status, text) = get(&service, path, "evil.example", "").await;
        assert!(status == 403 && !text.contains("evil"), "50: {path} {text}");
    }
    let (status, text) = get(&service, "/.well-known/oauth-protected-resource/mcp", "localhost", "").await;
    assert_eq!((status, serde_json::from_str::<Value>(&text).unwrap()["resource"].as_str()), (200, Some(SERVER)));
}

#[cfg(feature = "issuer")]
#[tokio::test]
async fn pages_of_an_issuer_are_for_those_who_may_reach_this_host_and_never_name_another() {
    use linchpin::issuer::{Issuer, Users};
    let issuer = Issuer::new("https://mcp.example.com").users(Users::once_with(|_| ()));
    let options = HttpOptions::default().with(|options| options.gate = Some(Arc::new(issuer) as Arc<dyn Gate>));
    let service = Server::new("files", "1").tool("who", || "").into_service_with(options).unwrap();
    let paths =
        ["/.well-known/oauth-authorization-server", "/jwks.json", "/authorize?client_id=x", "/login", "/consent"];
    for path in paths {
        let (status, text) = get(&service, path, "evil.example", "").await;
        assert!(status == 403 && !text.contains("evil"), "50: {path} {text}");
        let (_, text) = get(&service, path, "localhost", "").await;
        assert!(!text.contains("localhost"), "50: {path} {text}");
    }
    let (status, text) = get(&service, paths[0], "localhost", "").await;
    let metadata: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, metadata["issuer"].as_str()), (200, Some("https://mcp.example.com")));
}

#[tokio::test]
async fn a_guard_that_lets_nobody_in_does_not_listen() {
    let transport = http("127.0.0.1:0").guard(Guard::new(SERVER));
    let refused = Server::new("files", "1").serve(transport).await.unwrap_err().to_string();
    assert!(refused.contains("add .issuer(URL)"), "109: {refused}");
}

#[tokio::test]
async fn tools_get_scopes_by_what_they_do() {
    let (guard, [ada, _]) = guard();
    let server = Server::new("files", "1")
        .tool(Tool::new("list", "").read_only(), || "")
        .tool("remove", || "")
        .tool(Tool::new("own", "").scopes(["own"]), || "")
        .tool("later", || "");
    server.tools().disable("later").unwrap();
    let server =
        server.scopes_for_tools(|name, reads| vec![format!("{name}:{}", if reads { "read" } else { "write" })]);
    server.tools().enable("later").unwrap();
    let options = HttpOptions::default().with(|options| options.gate = Some(Arc::new(guard)));
    let service = server.into_service_with(options).unwrap();
    let mut caller = Caller::new(&service, MODERN, ada).await;
    for (tool, scope) in [("list", "list:read"), ("remove", "remove:write"), ("own", "own"), ("later", "later:write")] {
        let answer = caller.ask("tools/call", json!({ "name": tool })).await;
        assert_eq!(answer.body["error"]["data"]["requiredScopes"], json!([scope]), "{answer:?}");
    }
}
