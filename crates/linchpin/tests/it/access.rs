//! Who may do what: scopes over HTTP with and without a gate, and where they are not looked at.

#![cfg(feature = "http")]

use crate::common::{MODERN, Peer};
use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, request};
use http_body_util::{BodyExt, Full};
use linchpin::prelude::*;
use linchpin::transport::{Admit, Gate, HttpBody, HttpOptions, HttpService, Refusal};
use linchpin::{Completion, Principal};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Tokens are `NAME` or `NAME:SCOPE,SCOPE`; `brief` expires in a minute; without one, a request is anonymous.
struct Names;

impl Gate for Names {
    fn admit(&self, head: &request::Parts, _: Option<SocketAddr>) -> Admit {
        let Some(token) = head.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap_or_default()) else {
            return Admit::Open;
        };
        let (name, scopes) = token.split_once(':').unwrap_or((token, ""));
        let principal = Principal::new(name).with_scopes(scopes.split(',').filter(|scope| !scope.is_empty()));
        Admit::Yes(match name {
            "brief" => principal.with_expiry(SystemTime::now() + Duration::from_secs(60)),
            _ => principal,
        })
    }

    fn missing(&self, _: &str, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        Refusal::missing(principal, scopes).with_header(http::header::RETRY_AFTER, HeaderValue::from_static("1"))
    }
}

/// A client over HTTP.
pub(crate) struct Caller {
    service: HttpService,
    token: &'static str,
    revision: &'static str,
    session: Option<HeaderValue>,
    next: u64,
    /// The last body as it was received.
    pub(crate) text: String,
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) challenge: Option<String>,
    pub(crate) body: Value,
}

impl Caller {
    pub(crate) async fn new(service: &HttpService, revision: &'static str, token: &'static str) -> Caller {
        let mut caller =
            Caller { service: service.clone(), token, revision, session: None, next: 0, text: String::new() };
        if revision != MODERN {
            let info = json!({ "name": "t", "version": "0" });
            let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": info });
            assert_eq!(caller.ask("initialize", params).await.status, 200);
            assert!(caller.session.is_some());
        }
        caller
    }

    /// The same principal with another token.
    pub(crate) fn set_token(&mut self, token: &'static str) {
        self.token = token;
    }

    /// Opens the stream of the session.
    pub(crate) async fn listen(&self) -> HttpBody {
        let request = Request::get("/mcp").header("host", "localhost").header("accept", "text/event-stream");
        let request =
            request.header(AUTHORIZATION, self.token).header("mcp-session-id", self.session.as_ref().unwrap());
        let response = self.service.handle(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body()
    }

    pub(crate) async fn ask(&mut self, method: &str, mut params: Value) -> Answer {
        self.next += 1;
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !self.token.is_empty() {
            request = request.header(AUTHORIZATION, self.token);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if self.revision == MODERN {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {}
            });
            request = request.header("mcp-protocol-version", MODERN).header("mcp-method", method);
            if let Some(about) = params["name"].as_str().or(params["uri"].as_str()) {
                request = request.header("mcp-name", about);
            }
        }
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        let response = self.service.handle(request.body(Full::new(Bytes::from(message.to_string()))).unwrap()).await;
        let (head, body) = response.unwrap().into_parts();
        if let Some(session) = head.headers.get("mcp-session-id") {
            self.session = Some(session.clone());
        }
        let challenge = head.headers.get(WWW_AUTHENTICATE).map(|value| value.to_str().unwrap().to_owned());
        let body = body.collect().await.unwrap().to_bytes();
        self.text = String::from_utf8(body.to_vec()).unwrap();
        Answer { status: head.status.as_u16(), challenge, body: serde_json::from_slice(&body).unwrap_or_default() }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Day {
    day: String,
}

fn diary() -> Server {
    counted(&Arc::default())
}

/// The server, and how often something of it ran that demands scopes.
fn counted(runs: &Arc<AtomicUsize>) -> Server {
    let (runs, completes) = (runs.clone(), runs.clone());
    let ran = move || {
        runs.fetch_add(1, Ordering::Relaxed);
        "done"
    };
    let on_day = ran.clone();
    let days = move |asked: Completion| {
        completes.fetch_add(1, Ordering::Relaxed);
        async move { asked.filter(["monday"]) }
    };
    Server::new("diary", "1")
        .tool("today", || "a fine day")
        .tool(Tool::new("purge", "Deletes.").scopes(["diary:read", "diary:write"]), ran.clone())
        .resource(Resource::new("diary://all").scopes(["diary:read"]), ran.clone())
        .resource(Resource::new("diary://{day}").scopes(["diary:read"]).complete("day", days), move |day: Day| {
            on_day();
            day.day
        })
        .prompt(Prompt::new("sum_up", "").scopes(["diary:read"]), ran)
}

pub(crate) fn served(server: Server, gate: bool) -> HttpService {
    let gate = gate.then(|| Arc::new(Names) as Arc<dyn Gate>);
    server.into_service_with(HttpOptions::default().with(|options| options.gate = gate)).unwrap()
}

/// Requests that demand `diary:read`.
fn reads() -> [(&'static str, Value); 4] {
    let template = json!({ "type": "ref/resource", "uri": "diary://{day}" });
    [
        ("resources/read", json!({ "uri": "diary://all" })),
        ("resources/read", json!({ "uri": "diary://monday" })),
        ("prompts/get", json!({ "name": "sum_up" })),
        ("completion/complete", json!({ "ref": template, "argument": { "name": "day", "value": "" } })),
    ]
}

#[tokio::test]
async fn a_request_without_its_scopes_gets_the_gates_challenge_and_runs_nothing() {
    for (gate, revision) in [(true, MODERN), (true, "2025-11-25"), (true, "2025-06-18"), (false, MODERN)] {
        let runs = Arc::default();
        let service = served(counted(&runs), gate);
        for (token, status, challenge) in [
            ("", 401, r#"Bearer scope="diary:read""#),
            ("eve", 403, r#"Bearer error="insufficient_scope", scope="diary:read""#),
            ("eve:diary:write", 403, r#"Bearer error="insufficient_scope", scope="diary:read""#),
        ] {
            let (status, challenge, token) =
                if gate { (status, challenge, token) } else { (401, r#"Bearer scope="diary:read""#, "") };
            let mut caller = Caller::new(&service, revision, token).await;
            for (method, params) in reads() {
                let answer = caller.ask(method, params).await;
                assert_eq!((answer.status, answer.challenge.as_deref()), (status, Some(challenge)), "{method} {token}");
                let error = json!({
                    "code": 403, "message": "missing scope: diary:read", "data": { "requiredScopes": ["diary:read"] }
                });
                assert_eq!((&answer.body["error"], &answer.body["id"]), (&error, &caller.next.into()), "{method}");
            }
            assert_eq!(caller.ask("tools/call", json!({ "name": "today" })).await.status, 200, "it demands none");
            let listed = caller.ask("tools/list", json!({})).await;
            assert_eq!(listed.body["result"]["tools"].as_array().unwrap().len(), 2, "scopes can be asked for");
        }
        assert_eq!(runs.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn a_challenge_names_all_scopes_and_the_error_those_that_are_missing() {
    let service = served(diary(), true);
    for revision in [MODERN, "2025-11-25"] {
        let mut reader = Caller::new(&service, revision, "ann:diary:read").await;
        let answer = reader.ask("tools/call", json!({ "name": "purge" })).await;
        assert_eq!(answer.challenge.unwrap(), r#"Bearer error="insufficient_scope", scope="diary:read diary:write""#);
        assert_eq!(answer.body["error"]["message"], "missing scope: diary:write");
        for (method, params) in reads() {
            assert_eq!(reader.ask(method, params).await.status, 200, "{method}");
        }
        let mut writer = Caller::new(&service, revision, "ann:diary:read,diary:write").await;
        assert_eq!(
            writer.ask("tools/call", json!({ "name": "purge" })).await.body["result"]["content"][0]["text"],
            "done"
        );
    }
}

#[tokio::test]
async fn subscriptions_demand_the_scopes_of_their_resource() {
    let service = served(diary(), true);
    let mut stranger = Caller::new(&service, "2025-11-25", "eve").await;
    for uri in ["diary://all", "diary://monday"] {
        assert_eq!(stranger.ask("resources/subscribe", json!({ "uri": uri })).await.status, 403, "{uri}");
    }
    let mut stranger = Caller::new(&service, MODERN, "eve").await;
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["diary://all"] } });
    assert_eq!(stranger.ask("subscriptions/listen", wanted).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn a_listen_stream_ends_with_the_authentication_of_its_reader() {
    let service = served(diary(), true);
    let mut caller = Caller::new(&service, MODERN, "brief").await;
    let start = tokio::time::Instant::now();
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let stream = tokio::time::timeout(Duration::from_secs(9_000), caller.ask("subscriptions/listen", wanted));
    let stream = stream.await.expect("it ends");
    assert_eq!(stream.status, 200);
    assert!((59..62).contains(&start.elapsed().as_secs()));
    assert!(caller.text.contains("\"result\""), "it ends with its response: {}", caller.text);
}

#[tokio::test]
async fn scopes_are_not_looked_at_where_no_stranger_comes() {
    for revision in [MODERN, "2025-11-25"] {
        let mut peer = Peer::plain(diary(), revision).await;
        let answer = peer.ask("tools/call", json!({ "name": "purge" })).await;
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    }
}

#[tokio::test]
async fn a_server_that_demands_scopes_does_not_listen_without_a_gate() {
    let refused = diary().serve(http("127.0.0.1:0")).await.unwrap_err().to_string();
    assert!(refused.contains("add a gate"), "{refused}");
}

#[test]
fn a_scope_that_no_header_can_carry_is_refused_at_start() {
    let server = Server::new("diary", "1").tool(Tool::new("a", "").scopes(["two words"]), || "");
    let problem = server.into_service().unwrap_err().to_string();
    assert!(problem.contains(r#"tool `a`"#) && problem.contains(r#"scope "two words""#), "{problem}");
}

#[tokio::test]
async fn what_an_issuer_says_of_a_principal_reaches_handlers() {
    #[derive(Deserialize)]
    struct Claims {
        #[serde(default)]
        groups: Vec<String>,
    }
    let groups = |cx: &Cx| -> Result<String> {
        let principal = cx.principal().expect("somebody");
        let claims: Claims = principal.claims()?;
        Ok(format!("{} {}", principal.subject(), claims.groups.join(",")))
    };
    let server = || Server::new("s", "1").tool("groups", groups);
    let ada = Principal::new("ada").with_claims(json!({ "groups": ["staff", "admins"], "iat": 1 }));
    let service = server().into_service().unwrap();
    for (principal, expected) in [(ada, "ada staff,admins"), (Principal::new("bob"), "bob ")] {
        let inside = in_process(server()).with_principal(principal.clone());
        let connection = Client::new("c", "1").connect(inside).await.unwrap();
        assert_eq!(connection.call("groups", ()).await.unwrap().text(), expected);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "groups", "_meta": meta } });
        let request = Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream").header("mcp-name", "groups");
        let request = request.header("mcp-protocol-version", MODERN).header("mcp-method", "tools/call");
        let request = request.extension(principal).body(Full::new(Bytes::from(call.to_string()))).unwrap();
        let body = service.handle(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(crate::common::text(&answer), expected);
    }
}
