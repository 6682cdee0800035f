//! A client for tests: sends the same requests in every revision, and records notifications.

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
/// It hides the differences between revisions: the handshake, the `_meta` of stateless requests, and whether the server
/// sends requests or returns `input_required`. Both are answered by the functions passed to [`TestClient::answer`]. It is made
/// for tests: it panics with a description when something unexpected happens.
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
    /// Creates a client of `revision` without capabilities. It sends nothing before [`TestClient::open`].
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

    /// Answers requests of the server with this method (`elicitation/create`, `sampling/createMessage`, `roots/list`):
    /// `f` returns the result for the request's params. Declares the corresponding capability, unless it is declared
    /// already.
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

    /// Sets how long to wait for a message before the test fails. Default 10 seconds.
    pub fn set_wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// Returns the features of the client's revision.
    pub fn features(&self) -> &'static Features {
        self.features
    }

    /// Performs the handshake of the client's revision, and returns its result: that of `initialize`, or of `server/discover`.
    ///
    /// # Panics
    /// If the server rejects the handshake, or negotiates another revision.
    pub async fn open(&mut self) -> Value {
        if !self.features.has_sessions {
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

    /// Sends a request and returns its id, without waiting for the response.
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

    /// Waits for the response to a request, and answers the server's requests meanwhile. An `input_required` result is
    /// returned as it is; see [`TestClient::request`].
    ///
    /// # Errors
    /// The JSON-RPC error of the server.
    ///
    /// # Panics
    /// If no message arrives in time.
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

    /// Sends a request and waits for its final response. Requests of the server and `input_required` results
    /// are answered.
    ///
    /// # Errors
    /// The JSON-RPC error of the server.
    ///
    /// # Panics
    /// If no message arrives in time, or the server sends a request without a function to answer it.
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
    /// The JSON-RPC error of the server. If the tool itself fails, the result has `isError` instead.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, ErrorObject> {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Subscribes to a resource, whose changes arrive as `notifications/resources/updated`. Where requests are stateless, this
    /// opens a stream, which stays open as long as the connection.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use linchpin::prelude::*;
    /// use linchpin::types::version::Revision;
    /// use linchpin_testing::TestClient;
    ///
    /// for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
    ///     let server = Server::new("notes", "1").resource("note://today", || "Buy milk.");
    ///     let handle = server.handle();
    ///     let (transport, stream) = memory();
    ///     tokio::spawn(server.serve(transport));
    ///     let mut client = TestClient::new(stream, revision);
    ///     client.open().await;
    ///     client.subscribe("note://today").await.unwrap();
    ///     handle.resource_updated("note://today");
    ///     let told = client.expect("notifications/resources/updated").await;
    ///     assert_eq!(told["params"]["uri"], "note://today");
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// The JSON-RPC error of the server.
    ///
    /// # Panics
    /// If no message arrives in time, or the server's stream is not about the resource.
    pub async fn subscribe(&mut self, uri: &str) -> Result<(), ErrorObject> {
        if !self.features.listens {
            return self.request("resources/subscribe", json!({ "uri": uri })).await.map(drop);
        }
        let wanted = json!({ "notifications": { "resourceSubscriptions": [uri] } });
        let id = self.start("subscriptions/listen", wanted.clone()).await;
        let begins = |n: &Value| {
            n["method"] == "notifications/subscriptions/acknowledged"
                && n["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id
        };
        loop {
            if let Some(at) = self.heard.iter().position(begins) {
                let granted = self.heard.remove(at);
                assert_eq!(granted["params"]["notifications"], wanted["notifications"], "the server's stream");
                return Ok(());
            }
            if self.answered(id) {
                return self.finish(id).await.map(drop);
            }
            let wait = self.wait;
            assert!(self.take(wait).await, "no answer to request {id} within {wait:?}");
        }
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a message unchanged.
    ///
    /// # Panics
    /// If the server has disconnected.
    pub async fn send(&mut self, message: &Value) {
        self.lines.write(&message.to_string()).await.expect("the server reads");
    }

    /// Waits for a notification with this method, and removes it from the recorded ones.
    ///
    /// # Panics
    /// If it does not arrive in time.
    pub async fn expect(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(|n| n["method"] == method) {
                return self.heard.remove(at);
            }
            let wait = self.wait;
            assert!(self.take(wait).await, "no {method} within {wait:?}");
        }
    }

    /// Receives messages until none arrives for `quiet`, then returns and removes all recorded notifications.
    pub async fn drain(&mut self, quiet: Duration) -> Vec<Value> {
        while self.take(quiet).await {}
        std::mem::take(&mut self.heard)
    }

    /// Returns the recorded notifications.
    pub fn heard(&self) -> &[Value] {
        &self.heard
    }

    /// Returns the methods of the server's requests, in order, including those of `input_required` results.
    pub fn questions(&self) -> &[String] {
        &self.questions
    }

    /// Returns whether the response to a request has arrived.
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
