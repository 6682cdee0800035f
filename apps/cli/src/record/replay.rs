//! Serves a transcript: recorded requests get their recorded responses.
//!
//! Requests are matched by method and params, without `_meta`, input responses and request state. A repeated request gets its
//! responses in the recorded order, and then the last one again. Clients of either era are served, whatever was recorded:
//! members that an era lacks are removed, and members that it requires are added.

use crate::fail::Failure;
use crate::record::redact::Redactor;
use crate::record::transcript::{Line, Transcript};
use linchpin::transport::{IntoService, Service};
use linchpin::types::error::{ErrorObject, code};
use linchpin::types::meta::key::SERVER_INFO;
use linchpin::{Cx, Error, LowLevelServer, Request, Server};
use linchpin_core::Method;
use linchpin_core::exact;
use linchpin_proto::era;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A message before a response.
#[derive(Clone, Debug)]
enum Said {
    Notification { method: String, params: Value },
    Question { method: &'static str, params: Value },
}

/// A recorded request and its outcome.
#[derive(Debug)]
struct Played {
    said: Vec<Said>,
    outcome: Result<Map<String, Value>, Value>,
    /// The state it was sent with, when it continued an earlier one.
    state: Option<String>,
}

/// How many were played already, and all.
type Queue = (usize, Vec<Arc<Played>>);

/// The recorded server's information.
#[derive(Debug, Default)]
struct Card {
    info: Value,
    capabilities: Value,
    instructions: Option<Value>,
}

/// See the module's documentation.
struct Replay {
    target: String,
    card: Card,
    /// By [`key`].
    all: Mutex<HashMap<String, Queue>>,
    methods: Vec<String>,
    redactor: Redactor,
}

/// Returns the server of a transcript.
pub(crate) fn service(transcript: Transcript) -> Result<Arc<dyn Service>, Failure> {
    let replay = Arc::new(Replay::new(transcript));
    // What was recorded was within the limits of its server.
    let unlimited =
        Server::new("replay", env!("CARGO_PKG_VERSION")).limits(|l| l.messages.result_bytes_max = usize::MAX);
    let handler = || {
        let replay = replay.clone();
        move |request, cx| {
            let replay = replay.clone();
            async move { replay.answer(request, cx).await }
        }
    };
    let mut server = LowLevelServer::from(unlimited.hide_server_info()).fallback(handler());
    for method in OWN {
        server = server.method(method, handler());
    }
    // One that was not recorded stays open, and tells nothing.
    if replay.methods.iter().any(|recorded| recorded == "subscriptions/listen") {
        server = server.method("subscriptions/listen", handler());
    }
    server.into_shared().map_err(Failure::new)
}

/// Methods of every server, recorded or not.
const OWN: [&str; 6] =
    ["initialize", "server/discover", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Methods whose answers have cache hints where requests are stateless.
const CACHED: [&str; 6] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover"];

/// Returns the key that matches requests.
fn key(method: &str, params: &Value) -> String {
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        for member in ["_meta", "inputResponses", "requestState"] {
            members.remove(member);
        }
        // Nothing and an empty object are the same arguments.
        if members.get("arguments").is_some_and(|a| a.as_object().is_some_and(Map::is_empty)) {
            members.remove("arguments");
        }
    }
    if params.is_null() {
        params = json!({});
    }
    params.sort_all_objects();
    format!("{method} {}", exact::text(&params))
}

/// A request without a response yet, while a transcript is read.
struct Pending {
    id: Value,
    method: String,
    params: Value,
    said: Vec<Said>,
}

impl Replay {
    fn new(transcript: Transcript) -> Replay {
        let mut replay = Replay {
            target: transcript.target,
            card: Card::default(),
            all: Mutex::default(),
            methods: Vec::new(),
            redactor: Redactor::default(),
        };
        let mut pending: Vec<Pending> = Vec::new();
        for line in transcript.lines {
            let (sent, messages) = match line {
                Line::Sent(Value::Array(batch)) => (true, batch),
                Line::Heard(Value::Array(batch)) => (false, batch),
                Line::Sent(one) => (true, vec![one]),
                Line::Heard(one) => (false, vec![one]),
            };
            for message in messages {
                match sent {
                    true => sent_one(&mut pending, message),
                    false => replay.heard_one(&mut pending, message),
                }
            }
        }
        replay
    }

    fn heard_one(&mut self, pending: &mut Vec<Pending>, mut message: Value) {
        let (id, method) =
            (message.get("id").cloned(), message.get("method").and_then(Value::as_str).map(str::to_owned));
        let params = message.get_mut("params").map(Value::take).unwrap_or(Value::Null);
        match (id, method) {
            (Some(id), None) => {
                let Some(at) = pending.iter().position(|p| p.id == id) else { return };
                let done = pending.remove(at);
                let outcome = match message.get_mut("result").map(Value::take) {
                    Some(Value::Object(result)) => Ok(result),
                    _ => Err(message.get_mut("error").map(Value::take).unwrap_or(Value::Null)),
                };
                self.keep(done, outcome);
            }
            (Some(_), Some(method)) => {
                let known = ["elicitation/create", "sampling/createMessage", "roots/list"];
                if let (Some(method), Some(last)) = (known.into_iter().find(|k| *k == method), pending.last_mut()) {
                    last.said.push(Said::Question { method, params });
                }
            }
            (None, Some(method)) => {
                // Of a call: progress by its token, log messages by being the call that runs.
                let token = params.get("progressToken");
                let of = match token {
                    Some(token) => pending.iter_mut().find(|p| p.params.pointer("/_meta/progressToken") == Some(token)),
                    None if method == "notifications/message" => pending.last_mut(),
                    None => None,
                };
                if let Some(of) = of {
                    of.said.push(Said::Notification { method, params });
                }
            }
            (None, None) => {}
        }
    }

    fn keep(&mut self, done: Pending, outcome: Result<Map<String, Value>, Value>) {
        if let "initialize" | "server/discover" = done.method.as_str() {
            // A refused opening only showed the era, and this serves both.
            let Ok(result) = &outcome else { return };
            let info = result.get("serverInfo").or_else(|| result.get("_meta")?.get(SERVER_INFO));
            self.card = Card {
                info: info.cloned().unwrap_or(Value::Null),
                capabilities: result.get("capabilities").cloned().unwrap_or_else(|| json!({})),
                instructions: result.get("instructions").cloned(),
            };
            return;
        }
        if !self.methods.contains(&done.method) {
            self.methods.push(done.method.clone());
        }
        let state = done.params.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let played = Arc::new(Played { said: done.said, outcome, state });
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key(&done.method, &done.params)).or_default().1.push(played);
    }

    /// What was recorded for a request. Also the questions of earlier rounds, for callers who are asked directly.
    fn find(&self, method: &str, params: &Value, rounds: bool) -> Option<(Vec<Said>, Arc<Played>)> {
        let mut params = params.clone();
        // What the recording cannot have had in it, for it was written as dots.
        self.redactor.value(&mut params);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, played) = all.get_mut(&key(method, &params))?;
        if rounds {
            let state = params.get("requestState").and_then(Value::as_str);
            let fits = |p: &&Arc<Played>| p.state.as_deref() == state;
            let found = played.iter().skip(*next).find(fits).or_else(|| played.iter().rev().find(fits))?.clone();
            *next = played.iter().position(|p| Arc::ptr_eq(p, &found)).map_or(*next, |at| at + 1);
            return Some((found.said.clone(), found));
        }
        let mut said = Vec::new();
        let from = if *next < played.len() { *next } else { last_start(played) };
        for (at, one) in played.iter().enumerate().skip(from) {
            *next = at + 1;
            said.extend(one.said.iter().cloned());
            match &one.outcome {
                Ok(result) if is_input_required(result) && at + 1 < played.len() => said.extend(questions(result)),
                _ => return Some((said, one.clone())),
            }
        }
        None
    }

    async fn answer(&self, request: Request, cx: Cx) -> Result<Box<RawValue>, Error> {
        let (method, rounds) = (request.method.as_str(), request.caller.features().multi_round_trip);
        let params = exact::read(request.params_text()).unwrap_or_default();
        let Some((said, played)) = self.find(method, &params, rounds) else {
            return self.unheard(&request, &params);
        };
        let token = request.progress_token.map(|span| request.text(span));
        for said in said {
            match said {
                Said::Notification { method, params } => {
                    let Some(params) = notification(params, token) else { continue };
                    cx.notify(&method, exact::raw(&params))?;
                    // It is sent before the next one, so that none is dropped.
                    tokio::task::yield_now().await;
                }
                // A call in rounds carries its server requests in its result.
                Said::Question { .. } if rounds => {}
                // The replay continues as recorded, whatever the response.
                Said::Question { method, params } => {
                    let _ = cx.request::<IgnoredAny>("", method, exact::raw(&params)).await;
                }
            }
        }
        match &played.outcome {
            Ok(result) => Ok(self.result(&request, result.clone())),
            Err(error) => Err(refused(error).into()),
        }
    }

    /// Converts a recorded result to the caller's revision.
    fn result(&self, request: &Request, mut result: Map<String, Value>) -> Box<RawValue> {
        if request.caller.features().result_types {
            result.entry("resultType").or_insert_with(|| "complete".into());
            if CACHED.contains(&request.method.as_str()) {
                result.entry("ttlMs").or_insert_with(|| 0.into());
                result.entry("cacheScope").or_insert_with(|| "private".into());
            }
            if !self.card.info.is_null()
                && let Some(meta) = result.entry("_meta").or_insert_with(|| json!({})).as_object_mut()
            {
                meta.entry(SERVER_INFO).or_insert_with(|| self.card.info.clone());
            }
        } else {
            for member in ["resultType", "ttlMs", "cacheScope"] {
                result.remove(member);
            }
            let empty = result.get_mut("_meta").and_then(Value::as_object_mut).is_some_and(|meta| {
                meta.remove(SERVER_INFO);
                meta.is_empty()
            });
            if empty {
                result.remove("_meta");
            }
        }
        exact::raw(&Value::Object(result))
    }

    /// Responds to the handshake and to methods of every server, recorded or not.
    fn unheard(&self, request: &Request, params: &Value) -> Result<Box<RawValue>, Error> {
        let ok = |members: Value| {
            let members = members.as_object().cloned().unwrap_or_default();
            Ok(self.result(request, members))
        };
        let mut about = json!({ "capabilities": self.card.capabilities });
        if let Some(instructions) = &self.card.instructions {
            about["instructions"] = instructions.clone();
        }
        match request.known() {
            Some(Method::Initialize) => {
                about["protocolVersion"] = request.caller.features().revision.as_str().into();
                about["serverInfo"] = match &self.card.info {
                    Value::Null => json!({ "name": "replay", "version": env!("CARGO_PKG_VERSION") }),
                    info => info.clone(),
                };
                ok(about)
            }
            Some(Method::ServerDiscover) => {
                about["supportedVersions"] = era::served().collect();
                ok(about)
            }
            Some(
                Method::Ping | Method::LoggingSetLevel | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe,
            ) => ok(json!({})),
            _ => {
                let method = request.method.as_str();
                let shown = crate::show::out::shorten(&self.redactor.message(&params_shown(params)), 300);
                let why = if self.methods.iter().any(|m| m == method) {
                    format!("this {method} was not recorded: {shown}")
                } else {
                    format!("no {method} was recorded, only: {}", self.methods.join(", "))
                };
                let unknown = request.known().is_none() || method.ends_with("/list");
                let code = if unknown { code::METHOD_NOT_FOUND } else { code::INVALID_PARAMS };
                Err(ErrorObject::new(code, why).with_data(exact::raw(&json!({ "replay": self.target }))).into())
            }
        }
    }
}

fn params_shown(params: &Value) -> String {
    let mut params = params.clone();
    params.as_object_mut().map(|members| members.remove("_meta"));
    exact::text(&params)
}

fn sent_one(pending: &mut Vec<Pending>, mut message: Value) {
    let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else { return };
    let params = message.get_mut("params").map(Value::take).unwrap_or(Value::Null);
    match message.get("id") {
        Some(id) => pending.push(Pending { id: id.clone(), method, params, said: Vec::new() }),
        None if method == "notifications/cancelled" => pending.retain(|p| Some(&p.id) != params.get("requestId")),
        None => {}
    }
}

fn is_input_required(result: &Map<String, Value>) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Where the last request with all its rounds begins.
fn last_start(played: &[Arc<Played>]) -> usize {
    played.iter().rposition(|p| p.state.is_none()).unwrap_or(0)
}

/// What a result asks for, as questions of their own.
fn questions(result: &Map<String, Value>) -> Vec<Said> {
    let asked = result.get("inputRequests").and_then(Value::as_object).into_iter().flatten();
    asked
        .filter_map(|(_, asked)| {
            let known = ["elicitation/create", "sampling/createMessage", "roots/list"];
            let method = known.into_iter().find(|k| asked["method"] == **k)?;
            Some(Said::Question { method, params: asked.get("params").cloned().unwrap_or_else(|| json!({})) })
        })
        .collect()
}

/// The parameters of a notification, with the token of the request that runs now; `None` when nobody asked for progress.
fn notification(params: Value, token: Option<&str>) -> Option<Value> {
    let mut members = if let Value::Object(members) = params { members } else { Map::new() };
    if members.contains_key("progressToken") {
        members.insert("progressToken".to_owned(), exact::read(token?).ok()?);
    }
    Some(Value::Object(members))
}

fn refused(error: &Value) -> ErrorObject {
    let code = error["code"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(code::INTERNAL_ERROR);
    let refused = ErrorObject::new(code, error["message"].as_str().unwrap_or("an error was recorded"));
    match error.get("data") {
        Some(data) => refused.with_data(exact::raw(data)),
        None => refused,
    }
}
