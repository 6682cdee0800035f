//! What a client that is asked for its roots may answer, by every policy, in both eras.

use linchpin::transport::memory;
use linchpin::{Cx, Server, Tool};
use linchpin_kit::{ROOTS_WAIT, RootsPolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

const POLICIES: [(RootsPolicy, &str); 4] = [
    (RootsPolicy::Ignore, "ignore"),
    (RootsPolicy::Narrow, "narrow"),
    (RootsPolicy::Use, "use"),
    (RootsPolicy::Replace, "replace"),
];

#[derive(Deserialize, JsonSchema)]
struct Which {
    policy: String,
}

async fn ask(_: &(), cx: &Cx, which: Which) -> linchpin::Result<String> {
    let policy = RootsPolicy::parse(&which.policy, &POLICIES.map(|(policy, _)| policy))?;
    Ok(policy.ask(cx, ROOTS_WAIT).await?.map_or("as configured".to_owned(), |roots| roots.join(" ")))
}

/// What a client says to `roots/list`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    /// It never said that it has roots.
    Undeclared,
    /// These.
    Roots(&'static [&'static str]),
    /// An error.
    Refused,
    /// What are no roots.
    Garbage,
    Nothing,
}

impl Says {
    fn result(self) -> Option<Value> {
        match self {
            Self::Roots(roots) => {
                Some(json!({ "roots": roots.iter().map(|uri| json!({ "uri": uri })).collect::<Vec<_>>() }))
            }
            Self::Garbage => Some(json!({ "roots": "x" })),
            _ => None,
        }
    }
}

struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
    says: Says,
    /// How often it was asked.
    asked: usize,
}

impl Peer {
    fn new(says: Says) -> Self {
        let (place, stream) = memory();
        tokio::spawn(Server::new("test", "0").tool(Tool::new("ask", "Asks."), ask).serve(place));
        let (input, out) = tokio::io::split(stream);
        Self { lines: BufReader::new(input).lines(), out, says, asked: 0 }
    }

    fn capabilities(&self) -> Value {
        if self.says == Says::Undeclared { json!({}) } else { json!({ "roots": {} }) }
    }

    async fn send(&mut self, message: Value) {
        self.out.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The result of a request; questions of the server are answered in between.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        loop {
            let line = self.lines.next_line().await.unwrap().expect("the server is there");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "roots/list" {
                self.asked += 1;
                match (self.says, self.says.result()) {
                    (Says::Refused, _) => {
                        let error = json!({ "code": -32603, "message": "no".repeat(1_000) });
                        self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })).await;
                    }
                    (_, Some(result)) => {
                        self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
                    }
                    _ => {}
                }
            } else if message["id"] == 1 && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }
}

/// The answer of a tool as text, and whether it is an error.
fn told(result: &Value) -> (String, bool) {
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text in {result}"));
    (text.to_owned(), result["isError"] == true)
}

fn call(policy: &str) -> Value {
    json!({ "name": "ask", "arguments": { "policy": policy } })
}

const CLIENTS: [(Says, Result<&str, &str>); 6] = [
    (Says::Undeclared, Ok("as configured")),
    (Says::Roots(&["file:///a", "/b"]), Ok("file:///a /b")),
    (Says::Roots(&[]), Ok("")),
    (Says::Refused, Err("the client refused roots/list: nono")),
    (Says::Garbage, Err("the client's answer to roots/list is malformed: ")),
    (Says::Nothing, Err("the client did not answer roots/list within 10 s\n")),
];

/// The clock stands still: it moves on where everything waits for it.
#[tokio::test(start_paused = true)]
async fn in_a_session_a_client_that_has_roots_and_does_not_tell_them_is_refused_in_time() {
    for (policy, word) in POLICIES {
        for (says, expected) in CLIENTS {
            let mut peer = Peer::new(says);
            let hello = json!({
                "protocolVersion": "2025-11-25", "capabilities": peer.capabilities(), "clientInfo": { "name": "t", "version": "0" }
            });
            peer.request("initialize", hello).await;
            peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
            let begun = tokio::time::Instant::now();
            let (text, is_error) = told(&peer.request("tools/call", call(word)).await);
            assert!(begun.elapsed() < ROOTS_WAIT * 2, "{word} {says:?}");
            let is_asked = policy != RootsPolicy::Ignore && says != Says::Undeclared;
            assert_eq!(peer.asked, usize::from(is_asked), "{word} {says:?}: asked");
            match expected {
                _ if !is_asked => assert_eq!((text.as_str(), is_error), ("as configured", false), "{word} {says:?}"),
                Ok(roots) => assert_eq!((text.as_str(), is_error), (roots, false), "{word} {says:?}"),
                Err(why) => {
                    assert!(is_error, "{word} {says:?}: {text}");
                    let words = format!("Error: the roots of this client are unknown: {why}");
                    assert!(text.starts_with(&words), "{word} {says:?}: {text}");
                    assert!(text.contains("\nHint: ") && text.contains("--roots ignore") && text.len() < 700, "{text}");
                }
            }
        }
    }
}

#[tokio::test]
async fn where_requests_stand_alone_nothing_is_answered_before_the_roots_are_known() {
    for (policy, word) in POLICIES {
        for (says, expected) in CLIENTS {
            let mut peer = Peer::new(says);
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": peer.capabilities()
            });
            let mut params = call(word);
            params["_meta"] = meta;
            let is_asked = policy != RootsPolicy::Ignore && says != Says::Undeclared;
            // A client that answers nothing, or what are no roots, is asked again and gets nothing.
            for round in 0..4 {
                let result = peer.request("tools/call", params.clone()).await;
                let knows = !is_asked || expected.is_ok() && round > 0;
                if knows {
                    let roots = expected.ok().filter(|_| is_asked).unwrap_or("as configured");
                    assert_eq!(told(&result), (roots.to_owned(), false), "{word} {says:?}");
                    break;
                }
                assert_eq!(result["resultType"], "input_required", "{word} {says:?} {round}: {result}");
                assert_eq!(result["inputRequests"]["roots"]["method"], "roots/list");
                assert!(result.get("content").is_none(), "{result}");
                params["requestState"] = result["requestState"].clone();
                params["inputResponses"] = says.result().map_or(json!({}), |roots| json!({ "roots": roots }));
            }
            assert_eq!(peer.asked, 0, "such a client is never sent a request");
        }
    }
}
