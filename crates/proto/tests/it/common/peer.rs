//! A driver of the engine that believes nothing: it applies any sequence of events, keeps its own small account of what
//! was asked and answered, and panics as soon as the engine breaks a promise. Shared by the property tests and `fuzz/`.

use linchpin_core::message::Message;
use linchpin_core::service::{CallEvent, Cancel, ServerRequest, ServerRequestError};
use linchpin_core::{Features, Id, Limits, Method, Reply, ReplyKind, ResultWriter, Stamps};
use linchpin_proto::driver::Out;
use linchpin_proto::frame::{self, Frame};
use linchpin_proto::{Engine, Event};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One thing that happens to an engine. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The client opens a session: id, version.
    Initialize(u8, u8),
    /// The client sends a request of the sessions era: id, method.
    Legacy(u8, u8),
    /// The client sends a stateless request: id, method.
    Modern(u8, u8),
    /// The client cancels an id.
    Cancel(u8),
    /// The client answers a question: its number, how.
    Answer(u8, u8),
    /// The client sends some notification, or several messages at once.
    Notify(u8),
    /// The client sends something that is no message in order.
    Garbage(Vec<u8>),
    /// A running call ends.
    Finish(u8),
    /// A running call asks the client something.
    ServerRequest(u8),
    /// A call that was cancelled asks something all the same, and ends.
    Late(u8),
    /// Another process goes on with the session, under ids of its own.
    Move(u8),
    /// The connection ends.
    Close,
}

impl Op {
    /// Reads operations from bytes, for a fuzzer: three bytes each, garbage takes more.
    pub(crate) fn decode_all(mut bytes: &[u8]) -> Vec<Op> {
        let mut ops = Vec::new();
        while let [op, a, b, rest @ ..] = bytes {
            bytes = rest;
            ops.push(match op % 16 {
                0 => Op::Initialize(*a, *b),
                1..=3 => Op::Legacy(*a, *b),
                4..=6 => Op::Modern(*a, *b),
                7 => Op::Cancel(*a),
                8 => Op::Answer(*a, *b),
                9 => Op::Notify(*a),
                10 => {
                    let (garbage, rest) = bytes.split_at(bytes.len().min(usize::from(*a)));
                    bytes = rest;
                    Op::Garbage(garbage.to_vec())
                }
                11 | 12 => Op::Finish(*a),
                13 => Op::ServerRequest(*a),
                14 => Op::Late(*a),
                _ if *a == 0 => Op::Close,
                _ if *a % 8 == 1 => Op::Move(*b),
                _ => Op::ServerRequest(*b),
            });
        }
        ops
    }
}

const NOTICE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;

fn done(id: &Id, features: &'static Features) -> Reply {
    ResultWriter::new(id, features, &Arc::new(Stamps::default()), 4096).finish(ReplyKind::Complete)
}

struct Call {
    id: Id,
    features: &'static Features,
    cancel: Option<Arc<Flag>>,
}

struct Flag(AtomicUsize);

impl Cancel for Flag {
    fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The engine and the account that is kept of it.
pub(crate) struct Peer {
    engine: Engine,
    limits: Arc<Limits>,
    running: Vec<Call>,
    cancelled: Vec<Id>,
    /// Requests received and answers sent, by id.
    received: HashMap<String, usize>,
    answered: HashMap<String, usize>,
    /// How often each question was answered; the place is its number less one.
    asks: Arc<Mutex<Vec<usize>>>,
    closed: bool,
}

const IDS: [&str; 5] = ["1", "2", "\"1\"", "\"a\"", "\"an id that does not fit inline at all\""];
const CALLS_MAX: usize = 3;
const LISTENERS_MAX: usize = 1;

impl Peer {
    /// A peer that has said nothing yet.
    pub(crate) fn new() -> Peer {
        let limits = Arc::new(Limits::default().with(|limits| {
            limits.calls.per_peer_max = CALLS_MAX;
            limits.subscriptions.streams_per_peer_max = LISTENERS_MAX;
        }));
        Peer {
            engine: Engine::new(limits.clone()),
            limits,
            running: Vec::new(),
            cancelled: Vec::new(),
            received: HashMap::new(),
            answered: HashMap::new(),
            asks: Arc::default(),
            closed: false,
        }
    }

    /// Lets one thing happen and checks every promise.
    pub(crate) fn apply(&mut self, op: &Op) {
        let id = |n: u8| IDS[usize::from(n) % IDS.len()];
        let method =
            |n: u8| Method::ALL.get(usize::from(n) % (Method::ALL.len() + 1)).map_or("unknown/method", |m| m.as_str());
        match op {
            Op::Initialize(n, version) => {
                let version = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "x"][usize::from(*version) % 6];
                self.request(id(*n), "initialize", &format!(r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#));
            }
            Op::Legacy(n, m) => self.request(id(*n), method(*m), "{}"),
            Op::Modern(n, m) => {
                let version = if m % 16 == 15 { "2025-11-25" } else { "2026-07-28" };
                let key = "io.modelcontextprotocol/";
                self.request(id(*n), method(*m), &format!(r#"{{"_meta":{{"{key}protocolVersion":"{version}","{key}clientCapabilities":{{}}}}}}"#));
            }
            Op::Cancel(n) => {
                self.bytes(format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#, id(*n)).as_bytes());
            }
            Op::Answer(n, how) => {
                let body = [r#""result":{}"#, r#""error":{"code":-1,"message":"no"}"#, r#""error":7"#, r#""result":null"#][usize::from(how % 4)];
                let number = if *how < 128 { (n % 8).to_string() } else { format!("\"{}\"", n % 8) };
                self.bytes(format!(r#"{{"jsonrpc":"2.0","id":{number},{body}}}"#).as_bytes());
            }
            Op::Notify(n) => self.bytes(match n % 4 {
                0 => br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                1 => br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
                2 => br#"[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}},{"jsonrpc":"2.0","method":"x"},1,[]]"#,
                _ => br#"{"jsonrpc":"2.0","method":"ping"}"#,
            }),
            Op::Garbage(bytes) => self.bytes(bytes),
            Op::Finish(n) if !self.running.is_empty() => {
                let call = self.running.remove(usize::from(*n) % self.running.len());
                let out = self.drive(&call.id, CallEvent::Notify(NOTICE.into()), false);
                assert!(matches!(out[..], [Out::Notice(_)]), "a running call may notify");
                let out = self.drive(&call.id, CallEvent::Done(done(&call.id, call.features)), true);
                let (reply, withdrawn) = out.split_last().expect("a running call is answered");
                for frame in withdrawn {
                    let Out::Request(frame) = frame else { panic!("only withdrawals precede the response") };
                    self.sent(frame, Some(&call));
                }
                let Out::Reply(reply) = reply else { panic!("the response is the last") };
                self.sent(&reply.frame(), Some(&call));
                assert!(!self.engine.may_send(&call.id), "the id is free after its answer");
            }
            Op::ServerRequest(n) if !self.running.is_empty() => {
                let call = self.running.remove(usize::from(*n) % self.running.len());
                let ask = self.ask();
                let out = self.drive(&call.id, CallEvent::ServerRequest(ask), false);
                assert_eq!(out.len(), usize::from(!call.features.stateless), "only callers inside a session are asked");
                for out in out {
                    let Out::Request(frame) = out else { panic!("a request is sent as one") };
                    self.sent(&frame, Some(&call));
                }
                self.running.push(call);
            }
            Op::Late(n) if !self.cancelled.is_empty() => {
                let id = self.cancelled.swap_remove(usize::from(*n) % self.cancelled.len());
                let ask = self.ask();
                let features = Features::all().next().expect("a revision");
                let mut out = self.drive(&id, CallEvent::ServerRequest(ask), false);
                out.extend(self.drive(&id, CallEvent::Notify(NOTICE.into()), false));
                let end = if *n < 128 { CallEvent::Done(done(&id, features)) } else { CallEvent::Cancelled };
                out.extend(self.drive(&id, end, true));
                assert!(out.is_empty(), "nothing is sent for a cancelled request");
            }
            Op::Finish(_) | Op::ServerRequest(_) | Op::Late(_) => {}
            Op::Move(nonce) if !self.closed && self.engine.session().is_some() => self.go_on(*nonce),
            Op::Move(_) => {}
            Op::Close => self.close(),
        }
        self.check();
    }

    /// What the engine sends for an event of a call.
    fn drive(&mut self, id: &Id, event: CallEvent, ends: bool) -> Vec<Out> {
        let mut out = Vec::new();
        assert_eq!(self.engine.send(id, event, |message| out.push(message)), ends, "a call ends with its last event");
        out
    }

    /// Another process goes on with what is recorded of the session; the calls of this one end.
    fn go_on(&mut self, nonce: u8) {
        let session = self.engine.session().cloned().expect("a session");
        let record = session.record().expect("a session can be recorded");
        let stored = serde_json::to_string(&record).expect("a record is JSON");
        self.close();
        let record = serde_json::from_str(&stored).expect("a record is read as it was written");
        let engine = Engine::new(self.limits.clone()).resume(&record, u32::from(nonce));
        self.engine = engine.expect("a recorded session goes on");
        self.closed = false;
        let resumed = self.engine.session().expect("the session goes on");
        assert_eq!(resumed.features().revision, session.features().revision);
        assert_eq!(resumed.public_id(), session.public_id());
    }

    /// Ends the connection and checks that nothing is left.
    pub(crate) fn close(&mut self) {
        let attached = self.running.iter().filter(|call| call.cancel.is_some()).count();
        let cancels = self.engine.close();
        assert_eq!(cancels.len(), attached, "every running call can be ended");
        cancels.iter().for_each(|cancel| cancel.cancel());
        for call in self.running.drain(..) {
            assert!(call.cancel.is_none_or(|flag| flag.0.load(Ordering::Relaxed) == 1), "each call is ended once");
        }
        self.cancelled.clear();
        self.closed = true;
        self.check();
        assert_eq!(self.engine.asked(), 0, "no question is left");
        assert!(self.asks.lock().unwrap().iter().all(|answers| *answers == 1), "every question has an answer");
    }

    fn check(&self) {
        let known = self.running.len() + self.cancelled.len();
        assert_eq!(self.engine.running(), known, "the engine's table and ours agree");
        assert!(known <= CALLS_MAX + LISTENERS_MAX);
        let asks = self.asks.lock().unwrap();
        assert!(asks.iter().all(|answers| *answers <= 1), "a question is answered once");
        assert_eq!(self.engine.asked(), asks.iter().filter(|answers| **answers == 0).count(), "open questions");
        for id in IDS.iter().filter_map(|id| Id::from_json(id)) {
            assert_eq!(self.engine.may_send(&id), self.running.iter().any(|call| call.id == id), "{id}");
        }
    }

    fn request(&mut self, id: &str, method: &str, params: &str) {
        self.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match frame::read(bytes.to_vec().into(), &self.limits) {
            Err(reply) => self.refused(bytes, &reply),
            Ok(Frame::One(message)) => self.message(message),
            Ok(Frame::Batch(parts)) if self.engine.batches() => {
                for part in parts {
                    match frame::message(part.clone(), &self.limits) {
                        Err(reply) => self.refused(&part, &reply),
                        Ok(message) => self.message(message),
                    }
                }
            }
            Ok(Frame::Batch(_)) => {}
        }
    }

    fn message(&mut self, message: Message) {
        let id = match &message.kind {
            linchpin_core::message::Kind::Request { id, .. } => Some(id.as_json().to_owned()),
            _ => None,
        };
        if let Some(id) = id.filter(|_| !self.closed) {
            *self.received.entry(id).or_default() += 1;
        }
        match self.engine.receive(&message) {
            Event::Nothing => return,
            Event::Call(request) => {
                let known = request.known();
                assert!(
                    known.is_none_or(|method| linchpin_proto::era::defines(request.caller.features(), method)),
                    "{known:?} is not of this era"
                );
                let taken = self.running.iter().map(|call| &call.id).chain(&self.cancelled).any(|id| *id == request.id);
                assert!(!taken, "an id is used once at a time");
                assert_eq!(request.caller.session().is_none(), request.caller.features().stateless);
                let cancel = (!self.received.len().is_multiple_of(3)).then(|| Arc::new(Flag(AtomicUsize::new(0))));
                if let Some(cancel) = &cancel {
                    self.engine.attach(&request.id, cancel.clone());
                }
                self.running.push(Call { id: request.id.clone(), features: request.caller.features(), cancel });
            }
            Event::Reply(reply) => {
                assert!(matches!(reply.kind(), ReplyKind::Error(_)));
                self.sent(&reply.frame(), None);
            }
            Event::Cancel(cancel, frames) => {
                let cancelled: Vec<usize> =
                    (0..self.running.len()).filter(|n| !self.engine.may_send(&self.running[*n].id)).collect();
                assert_eq!(cancelled.len(), 1, "one call is cancelled");
                let call = self.running.remove(cancelled[0]);
                assert_eq!(cancel.is_some(), call.cancel.is_some());
                frames.iter().for_each(|frame| self.sent(frame, Some(&call)));
                self.cancelled.push(call.id);
            }
            Event::Answer(ask, answer) => (ask.answer)(answer),
            Event::Notified(told) => {
                assert_eq!(told.caller.session().is_none(), told.caller.features().stateless);
                assert!(linchpin_proto::era::defines_notification(told.caller.features(), told.method.as_str()));
            }
        }
        assert!(!self.closed, "nothing happens after the end");
    }

    /// An error for a frame that was not read. It may carry only an id that stands in the frame.
    fn refused(&mut self, bytes: &[u8], reply: &Reply) {
        let frame: Value = serde_json::from_slice(&reply.frame()).expect("an answer is JSON");
        assert!(frame["error"]["code"].is_i64());
        // Text that broke off after the id is not valid JSON any more, but the id was read.
        if let (Some(id), Ok(sent)) = (frame.get("id"), serde_json::from_slice::<Value>(bytes)) {
            assert_eq!(sent.get("id"), Some(id), "an error carries no other id than that of its frame");
            let answers = sent.get("method").is_none() && (sent.get("result").is_some() || sent.get("error").is_some());
            assert!(!answers, "a broken answer is not answered with its id");
        }
    }

    /// Checks a frame on its way to the client.
    fn sent(&mut self, frame: &[u8], call: Option<&Call>) {
        assert!(!self.closed, "nothing is sent after the end");
        let frame: Value = serde_json::from_slice(frame).expect("a frame is JSON");
        assert_eq!(frame["jsonrpc"], "2.0");
        if let Some(method) = frame.get("method") {
            let call = call.expect("questions and their withdrawals belong to a call");
            assert!(!call.features.stateless, "{method} to a caller that is stateless");
            return;
        }
        let Some(id) = frame.get("id").map(Value::to_string) else { return };
        let answered = self.answered.entry(id.clone()).or_default();
        *answered += 1;
        assert!(
            *answered <= self.received.get(&id).copied().unwrap_or(0),
            "more answers than requests with the id {id}"
        );
        if let (Some(result), Some(call)) = (frame.get("result"), call) {
            assert_eq!(result.get("resultType").is_some(), call.features.stateless, "`resultType` is of one era");
        }
    }

    fn ask(&mut self) -> ServerRequest {
        let asks = self.asks.clone();
        let number = {
            let mut asks = asks.lock().unwrap();
            asks.push(0);
            asks.len() - 1
        };
        let answer = move |_: Result<String, ServerRequestError>| asks.lock().unwrap()[number] += 1;
        ServerRequest { method: "elicitation/create".into(), params: "{}".into(), answer: Box::new(answer) }
    }
}
