//! A client for tests: says the same thing in every revision, and keeps what it heard.

use crate::lines::Lines;
use linchpin_core::Features;
use linchpin_types::error::ErrorObject;
use linchpin_types::version::Revision;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

type Answer = Box<dyn FnMut(&Value) -> Value + Send>;

/// A client of one revision over a stream of lines.
///
/// What differs between revisions is its business: the handshake, the `_meta` of stateless requests, and whether
/// the server's questions come as requests or as rounds of `input_required`. Both are answered by what [`TestClient::answer`]
/// was given. It is made for tests: what cannot be, panics with a sentence about it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use linchpin::prelude::*;
/// use linchpin::types::version::Revision;
/// use linchpin_testing::TestClient;
///
/// let server = Server::new("s", "1").tool("hello", || "Hello!");
/// let (transport, stream) = memory();
/// tokio::spawn(server.serve(transport));
/// let mut client = TestClient::new(stream, Revision::V2026_07_28);
/// client.open().await;
/// let result = client.request("tools/call", serde_json::json!({ "name": "hello" })).await.unwrap();
/// assert_eq!(result["content"][0]["text"], "Hello!");
/// # }
/// ```
pub struct TestClient<T> {
    lines: Lines<T>,
    features: &'static Features,
    capabilities: Map<String, Value>,
    meta: Map<String, Value>,
    answers: BTreeMap<&'static str, Answer>,
    heard: Vec<Value>,
    replies: VecDeque<Value>,
    questions: Vec<String>,
    next_id: u64,
    wait: Duration,
}

impl<T: AsyncRead + AsyncWrite> TestClient<T> {
    /// A client of `revision` that has no capabilities yet. Nothing is sent before [`TestClient::open`].
    pub fn new(stream: T, revision: Revision) -> TestClient<T> {
        TestClient {
            lines: Lines::new(stream),
            features: Features::of(revision),
            capabilities: Map::new(),
            meta: Map::new(),
            answers: BTreeMap::new(),
            heard: Vec::new(),
            replies: VecDeque::new(),
            questions: Vec::new(),
            next_id: 1,
            wait: Duration::from_secs(10),
        }
    }

    /// Declares a capability, for example `"elicitation"` with `{}`.
    pub fn capability(mut self, name: &str, settings: Value) -> TestClient<T> {
        self.capabilities.insert(name.to_owned(), settings);
        self
    }

    /// Answers a question of the server (`elicitation/create`, `sampling/createMessage`, `roots/list`) with what `f` makes
    /// of its params. Declares the capability that goes with it, unless it is declared already.
    pub fn answer(mut self, method: &'static str, f: impl FnMut(&Value) -> Value + Send + 'static) -> TestClient<T> {
        let capability = method.split('/').next().unwrap_or_default();
        self.capabilities.entry(capability).or_insert_with(|| json!({}));
        self.answers.insert(method, Box::new(f));
        self
    }

    /// Adds a member to the `_meta` of every request from now on, for example a log level where requests are stateless.
    pub fn set_meta(&mut self, key: &str, value: Value) {
        self.meta.insert(key.to_owned(), value);
    }

    /// How long to wait for a message before the test fails. Default 10 seconds.
    pub fn set_wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// What the client's revision has.
    pub fn features(&self) -> &'static Features {
        self.features
    }

    /// Introduces the client in its revision's way, and gives back what the server said about itself: the result of
    /// `initialize`, or of `server/discover`.
    ///
    /// # Panics
    /// The server refuses, or agrees on another revision.
    pub async fn open(&mut self) -> Value {
        if self.features.stateless {
            return self.request("server/discover", json!({})).await.expect("the server describes itself");
        }
        let version = self.features.revision.as_str();
        let info = json!({ "name": "linchpin-testing", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": version, "capabilities": self.capabilities, "clientInfo": info });
        let result = self.request("initialize", params).await.expect("the server accepts the client");
        assert_eq!(result["protocolVersion"], version, "the server agreed on another revision");
        self.notify("notifications/initialized", json!({})).await;
        result
    }

    /// Sends a request and gives back its id, without waiting for the answer.
    pub async fn start(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut params = params;
        let mut meta = params["_meta"].as_object().cloned().unwrap_or_default();
        meta.extend(self.meta.clone());
        if self.features.stateless {
            let prefixed = |name: &str| format!("io.modelcontextprotocol/{name}");
            meta.insert(prefixed("protocolVersion"), self.features.revision.as_str().into());
            meta.insert(prefixed("clientCapabilities"), self.capabilities.clone().into());
            meta.insert(
                prefixed("clientInfo"),
                json!({ "name": "linchpin-testing", "version": env!("CARGO_PKG_VERSION") }),
            );
        }
        if !meta.is_empty() {
            params["_meta"] = meta.into();
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Waits for the answer to a request, answering the server's questions meanwhile. Rounds of `input_required` are not
    /// gone through here, see [`TestClient::request`].
    ///
    /// # Errors
    /// The error the server answered with.
    ///
    /// # Panics
    /// No message comes in time.
    pub async fn finish(&mut self, id: u64) -> Result<Value, ErrorObject> {
        loop {
            if let Some(at) = self.replies.iter().position(|reply| reply["id"] == id) {
                let mut reply = self.replies.remove(at).unwrap_or_default();
                return match reply.get_mut("error") {
                    None => Ok(reply["result"].take()),
                    Some(error) => Err(serde_json::from_value(error.take()).expect("an error object")),
                };
            }
            let wait = self.wait;
            assert!(self.take(wait).await, "no answer to request {id} within {wait:?}");
        }
    }

    /// Sends a request and waits for its final answer: questions of the server are answered, as requests or in rounds.
    ///
    /// # Errors
    /// The error the server answered with.
    ///
    /// # Panics
    /// No message comes in time, or the server asks what no answer was given for.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        let mut params = params;
        loop {
            let id = self.start(method, params.clone()).await;
            let result = self.finish(id).await?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            let mut responses = Map::new();
            for (key, asked) in result["inputRequests"].as_object().into_iter().flatten() {
                let method = asked["method"].as_str().unwrap_or_default();
                responses.insert(key.clone(), self.reply_to(method, &asked["params"]));
            }
            params["inputResponses"] = responses.into();
            if let Some(state) = result.get("requestState") {
                params["requestState"] = state.clone();
            }
        }
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// The error the server answered with. A tool that fails is not one: look at `isError`.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, ErrorObject> {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a message as it is.
    ///
    /// # Panics
    /// The server is gone.
    pub async fn send(&mut self, message: &Value) {
        self.lines.write(&message.to_string()).await.expect("the server reads");
    }

    /// Waits for a notification of this method, and takes it from what was heard.
    ///
    /// # Panics
    /// It does not come in time.
    pub async fn expect(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(|n| n["method"] == method) {
                return self.heard.remove(at);
            }
            let wait = self.wait;
            assert!(self.take(wait).await, "no {method} within {wait:?}");
        }
    }

    /// Takes everything that comes until nothing has come for `quiet`; then all notifications heard and not taken yet.
    pub async fn drain(&mut self, quiet: Duration) -> Vec<Value> {
        while self.take(quiet).await {}
        std::mem::take(&mut self.heard)
    }

    /// Notifications that came so far and were not taken.
    pub fn heard(&self) -> &[Value] {
        &self.heard
    }

    /// Methods the server asked for, in order, whichever way.
    pub fn questions(&self) -> &[String] {
        &self.questions
    }

    /// Whether the answer to a request came already.
    pub fn answered(&self, id: u64) -> bool {
        self.replies.iter().any(|reply| reply["id"] == id)
    }

    /// Takes one message and sorts it. `false` if none comes in time.
    async fn take(&mut self, wait: Duration) -> bool {
        let Some(message) = self.lines.read(wait).await.expect("the server writes") else { return false };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => {
                let result = self.reply_to(method, &message["params"]);
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
            }
            (Some(_), None) => self.heard.push(message),
            (None, _) => self.replies.push_back(message),
        }
        true
    }

    fn reply_to(&mut self, method: &str, params: &Value) -> Value {
        self.questions.push(method.to_owned());
        let answer = self
            .answers
            .get_mut(method)
            .unwrap_or_else(|| panic!("the server asked {method}, which the test did not expect"));
        answer(params)
    }
}

impl<T> fmt::Debug for TestClient<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClient").field("revision", &self.features.revision).finish_non_exhaustive()
    }
}
