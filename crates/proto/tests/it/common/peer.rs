//! A driver of the engine that believes nothing: it applies any sequence of events, keeps its own small account of what
//! was asked and answered, and panics as soon as the engine breaks a promise. Shared by the property tests and `fuzz/`.

use linchpin_core::message::{Kind, Message, MethodName, Notification, Request};
use linchpin_core::service::{
    CallEvent, CallStart, Cancel, HeaderParam, RequestContext, RunningCall, ServerRequest, ServerRequestError, Service,
};
use linchpin_core::{
    Budget, CallEnd, CallInfo, Caller, Features, Id, Limits, Method, Observer, Reply, ReplyKind, ResultWriter, Session,
    Stamps, SubscriptionHandle,
};
use linchpin_proto::Engine;
use linchpin_proto::driver::{self, Out, Received, Started};
use linchpin_proto::frame::{self, Frame};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

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
    /// The client sends a notification that the specification does not have, of its session or with claims of its own.
    Custom(u8),
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
                _ if *a % 8 == 2 => Op::Custom(*b),
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
    work: Box<dyn RunningCall>,
    script: Arc<Script>,
    is_attached: bool,
}

/// What a call of the service does next, and how often it was cancelled.
#[derive(Default)]
struct Script {
    events: Mutex<VecDeque<CallEvent>>,
    cancelled: Flag,
}

/// A call that does what its script says.
struct Scripted(Arc<Script>);

impl RunningCall for Scripted {
    fn poll_event(&mut self, _: &mut Context<'_>) -> Poll<CallEvent> {
        self.0.events.lock().unwrap().pop_front().map_or(Poll::Pending, Poll::Ready)
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.0.clone()
    }
}

impl Cancel for Script {
    fn cancel(&self) {
        self.cancelled.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A service whose calls are scripted, and what it is told.
struct Scripts {
    limits: Arc<Limits>,
    budget: Arc<Budget>,
    observer: Arc<dyn Observer>,
    started: Mutex<Option<Arc<Script>>>,
    /// The notifications it got that the specification does not have.
    custom: AtomicUsize,
    feeds: AtomicUsize,
}

impl Service for Scripts {
    fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    fn start(&self, _: Arc<Request>, _: Arc<RequestContext>, _: &mut Context<'_>) -> CallStart {
        let script = Arc::<Script>::default();
        *self.started.lock().unwrap() = Some(script.clone());
        CallStart::Running(Box::new(Scripted(script)))
    }

    fn defines(&self, method: &str) -> bool {
        method == CUSTOM
    }

    fn header_params(&self, _: &str, _: &Caller, _: &RequestContext) -> Option<Arc<[HeaderParam]>> {
        None
    }

    fn open_feed(&self, _: &Caller, _: &RequestContext) -> Option<SubscriptionHandle> {
        self.feeds.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn observer(&self) -> Option<&Arc<dyn Observer>> {
        Some(&self.observer)
    }

    fn notified(&self, told: Notification, _: Arc<RequestContext>) {
        assert_eq!(told.caller.session().is_none(), told.caller.features().stateless);
        assert!(linchpin_proto::era::defines_notification(told.caller.features(), told.method.as_str()));
        self.custom.fetch_add(usize::from(told.method.as_str() == CUSTOM), Ordering::Relaxed);
    }

    fn close(&self) {}
}

/// What an observer was told: starts and ends of calls and of sessions.
#[derive(Default)]
struct Told([AtomicUsize; 4]);

impl Told {
    fn count(&self, at: usize) -> usize {
        self.0[at].load(Ordering::Relaxed)
    }

    fn add(&self, at: usize) {
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }
}

impl Observer for Told {
    fn call_started(&self, _: &CallInfo) {
        self.add(0);
    }

    fn call_ended(&self, _: &CallInfo, _: &CallEnd) {
        self.add(1);
        assert!(self.count(1) <= self.count(0), "a call ends once");
    }

    fn session_opened(&self, _: &Session) {
        self.add(2);
    }

    fn session_closed(&self, _: &Session) {
        self.add(3);
        assert!(self.count(3) <= self.count(2), "a session ends once");
    }
}

#[derive(Default)]
struct Flag(AtomicUsize);

/// The engine and the account that is kept of it.
pub(crate) struct Peer {
    engine: Engine,
    service: Arc<Scripts>,
    told: Arc<Told>,
    limits: Arc<Limits>,
    running: Vec<Call>,
    cancelled: Vec<Call>,
    /// Sessions that were opened.
    sessions: usize,
    /// The ids under which questions were sent, and what they are the ids of, the latest.
    sent_asks: Vec<String>,
    asked_as: HashMap<String, usize>,
    /// Requests received and answers sent, by id.
    received: HashMap<String, usize>,
    answered: HashMap<String, usize>,
    /// How often each question was answered; the place is its number less one.
    asks: Arc<Mutex<Vec<usize>>>,
    closed: bool,
}

const IDS: [&str; 5] = ["1", "2", "\"1\"", "\"a\"", "\"an id that does not fit inline at all\""];
const METHOD_NOT_FOUND: i32 = -32_601;
const CUSTOM: &str = "example.com/custom";
const CALLS_MAX: usize = 3;
const LISTENERS_MAX: usize = 1;

impl Peer {
    /// A peer that has said nothing yet.
    pub(crate) fn new() -> Peer {
        let limits = Arc::new(Limits::default().with(|limits| {
            limits.calls.per_peer_max = CALLS_MAX;
            limits.subscriptions.streams_per_peer_max = LISTENERS_MAX;
        }));
        let told = Arc::<Told>::default();
        let service = Arc::new(Scripts {
            limits: limits.clone(),
            budget: Budget::new(1 << 20),
            observer: told.clone(),
            started: Mutex::default(),
            custom: AtomicUsize::new(0),
            feeds: AtomicUsize::new(0),
        });
        Peer {
            engine: Engine::for_service(&*service, 7),
            service,
            told,
            limits,
            running: Vec::new(),
            cancelled: Vec::new(),
            sessions: 0,
            sent_asks: Vec::new(),
            asked_as: HashMap::new(),
            received: HashMap::new(),
            answered: HashMap::new(),
            asks: Arc::default(),
            closed: false,
        }
    }

    /// Lets one thing happen and checks every promise.
    pub(crate) fn apply(&mut self, op: &Op) {
        let id = |n: u8| IDS[usize::from(n) % IDS.len()];
        let method = |n: u8| match usize::from(n) % (Method::ALL.len() + 2) {
            n if n < Method::ALL.len() => Method::ALL[n].as_str(),
            n if n == Method::ALL.len() => CUSTOM,
            _ => "unknown/method",
        };
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
                // The id of a question, of an earlier process too; or any.
                let number = match self.sent_asks.len() {
                    len if len > 0 && how & 64 == 0 => self.sent_asks[usize::from(*n) % len].clone(),
                    _ if *how < 128 => (n % 8).to_string(),
                    _ => format!("\"{}\"", n % 8),
                };
                self.bytes(format!(r#"{{"jsonrpc":"2.0","id":{number},{body}}}"#).as_bytes());
            }
            Op::Notify(n) => self.bytes(match n % 4 {
                0 => br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                1 => br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
                2 => br#"[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}},{"jsonrpc":"2.0","method":"x"},1,[]]"#,
                _ => br#"{"jsonrpc":"2.0","method":"ping"}"#,
            }),
            Op::Custom(n) => self.custom(*n),
            Op::Garbage(bytes) => self.bytes(bytes),
            Op::Finish(n) if !self.running.is_empty() => {
                let mut call = self.running.remove(usize::from(*n) % self.running.len());
                let out = self.drive(&mut call, CallEvent::Notify(NOTICE.into()), false);
                assert!(matches!(out[..], [Out::Notice(_)]), "a running call may notify");
                let end = CallEvent::Done(done(&call.id, call.features));
                let out = self.drive(&mut call, end, true);
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
                let mut call = self.running.remove(usize::from(*n) % self.running.len());
                let ask = self.ask();
                let out = self.drive(&mut call, CallEvent::ServerRequest(ask), false);
                assert_eq!(out.len(), usize::from(!call.features.stateless), "only callers inside a session are asked");
                for out in out {
                    let Out::Request(frame) = out else { panic!("a request is sent as one") };
                    self.sent(&frame, Some(&call));
                }
                self.running.push(call);
            }
            Op::Late(n) if !self.cancelled.is_empty() => {
                let mut call = self.cancelled.swap_remove(usize::from(*n) % self.cancelled.len());
                let ask = self.ask();
                let mut out = self.drive(&mut call, CallEvent::ServerRequest(ask), false);
                out.extend(self.drive(&mut call, CallEvent::Notify(NOTICE.into()), false));
                let end =
                    if *n < 128 { CallEvent::Done(done(&call.id, call.features)) } else { CallEvent::Cancelled };
                out.extend(self.drive(&mut call, end, true));
                assert!(out.is_empty(), "nothing is sent for a cancelled request");
            }
            Op::Finish(_) | Op::ServerRequest(_) | Op::Late(_) => {}
            Op::Move(nonce) if !self.closed && self.engine.session().is_some() => self.go_on(*nonce),
            Op::Move(_) => {}
            Op::Close => self.close(),
        }
        self.check();
    }

    /// A notification that the specification does not have reaches the service once, if its caller is known.
    fn custom(&mut self, n: u8) {
        let key = "io.modelcontextprotocol/";
        let (params, is_stateless) = match n % 3 {
            0 => (String::new(), false),
            1 => (r#","params":{"n":1}"#.to_owned(), false),
            _ => (
                format!(
                    r#","params":{{"_meta":{{"{key}protocolVersion":"2026-07-28","{key}clientCapabilities":{{}}}}}}"#
                ),
                true,
            ),
        };
        let is_known = !self.closed && (is_stateless || self.engine.session().is_some());
        let before = self.service.custom.load(Ordering::Relaxed);
        self.bytes(format!(r#"{{"jsonrpc":"2.0","method":"{CUSTOM}"{params}}}"#).as_bytes());
        let received = self.service.custom.load(Ordering::Relaxed) - before;
        assert_eq!(received, usize::from(is_known), "a notification reaches the service once");
    }

    /// What the engine sends for an event of a call.
    fn drive(&mut self, call: &mut Call, event: CallEvent, ends: bool) -> Vec<Out> {
        let before = self.told.count(1);
        call.script.events.lock().unwrap().push_back(event);
        let Poll::Ready(event) = call.work.poll_event(&mut Context::from_waker(Waker::noop())) else {
            panic!("a call passes on what it does");
        };
        assert_eq!(self.told.count(1) - before, usize::from(ends), "the observer learns of the end");
        let mut out = Vec::new();
        let ended = self.engine.send(&call.id, event, |message| out.push(message));
        assert_eq!(ended, ends, "a call ends with its last event");
        out
    }

    /// Another process goes on with what is recorded of the session; the calls of this one end.
    fn go_on(&mut self, nonce: u8) {
        let session = self.engine.session().cloned().expect("a session");
        let record = session.record().expect("a session can be recorded");
        let stored = serde_json::to_string(&record).expect("a record is JSON");
        self.close();
        let record = serde_json::from_str(&stored).expect("a record is read as it was written");
        let engine = Engine::for_service(&*self.service, 7).resume(&record, u32::from(nonce));
        self.engine = engine.expect("a recorded session goes on");
        self.closed = false;
        let resumed = self.engine.session().expect("the session goes on");
        assert_eq!(resumed.features().revision, session.features().revision);
        assert_eq!(resumed.public_id(), session.public_id());
    }

    /// Ends the connection and checks that nothing is left.
    pub(crate) fn close(&mut self) {
        let attached = self.running.iter().filter(|call| call.is_attached).count();
        let cancels = self.engine.close();
        assert_eq!(cancels.len(), attached, "every running call can be ended");
        cancels.iter().for_each(|cancel| cancel.cancel());
        for call in self.running.drain(..) {
            let cancelled = call.script.cancelled.0.load(Ordering::Relaxed);
            assert_eq!(cancelled, usize::from(call.is_attached), "each call is ended once");
        }
        self.cancelled.clear();
        self.closed = true;
        self.check();
        assert_eq!(self.engine.asked(), 0, "no question is left");
        assert!(self.asks.lock().unwrap().iter().all(|answers| *answers == 1), "every question has an answer");
        assert_eq!(self.told.count(0), self.told.count(1), "the observer learns of the end of every call");
        assert_eq!(self.told.count(2), self.told.count(3), "the observer learns of the end of every session");
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
            Err(unreadable) => self.refused(bytes, &unreadable.reply),
            Ok(Frame::One(message)) => self.message(message),
            Ok(Frame::Batch(parts)) if self.engine.batches() => {
                for part in parts {
                    match frame::message(part.clone(), &self.limits) {
                        Err(unreadable) => self.refused(&part, &unreadable.reply),
                        Ok(message) => self.message(message),
                    }
                }
            }
            Ok(Frame::Batch(_)) => {}
        }
    }

    fn message(&mut self, message: Message) {
        let id = match &message.kind {
            Kind::Request { id, .. } => Some(id.as_json().to_owned()),
            _ => None,
        };
        if let Some(id) = id.filter(|_| !self.closed) {
            *self.received.entry(id).or_default() += 1;
        }
        let (answers, was_open) = (self.asks.lock().unwrap().clone(), self.engine.session().is_some());
        let event = driver::receive(&mut self.engine, &*self.service, &RequestContext::default(), &message);
        if !was_open && self.engine.session().is_some() {
            self.sessions += 1;
        }
        assert_eq!(self.service.feeds.load(Ordering::Relaxed), self.sessions, "each new session opens its feed once");
        let mut withdrawn = Vec::new();
        let received = event.deliver(&*self.service, &Arc::default(), |_, frame| withdrawn.push(frame.to_vec()));
        match received {
            Received::Nothing => {
                self.answered_only(&message, &answers);
                self.cancelled(&withdrawn);
            }
            Received::Call(request) => {
                let known = request.known();
                assert!(
                    known.is_none_or(|method| linchpin_proto::era::defines(request.caller.features(), method)),
                    "{known:?} is not of this era"
                );
                let taken = self.running.iter().chain(&self.cancelled).any(|call| call.id == request.id);
                assert!(!taken, "an id is used once at a time");
                assert_eq!(request.caller.session().is_none(), request.caller.features().stateless);
                let (id, features) = (request.id.clone(), request.caller.features());
                let mut cx = Context::from_waker(Waker::noop());
                let before = self.told.count(0);
                let started = driver::start(&*self.service, request, Arc::default(), Instant::now, &mut cx);
                assert_eq!(self.told.count(0), before + 1, "the observer learns of the start");
                let script = self.service.started.lock().unwrap().take().expect("the service starts it");
                // A call may be cancelled before the engine learns that it runs.
                let is_attached = !self.received.len().is_multiple_of(3);
                let work = match started {
                    CallStart::Running(work) if !is_attached => work,
                    started => match self.engine.started(id.clone(), started) {
                        Started::Running(_, work, _) => work,
                        Started::Ended(_) => panic!("the calls of this service run"),
                    },
                };
                self.running.push(Call { id, features, work, script, is_attached });
            }
            Received::Reply(reply) => {
                let ReplyKind::Error(code) = reply.kind() else { panic!("the engine answers only with errors") };
                if let Kind::Request { method: MethodName::Other(name), .. } = &message.kind {
                    assert_ne!(code, METHOD_NOT_FOUND, "{name} is the service's, whether it has it or not");
                }
                self.sent(&reply.frame(), None);
            }
        }
    }

    /// Checks that a message that leads to nothing has at most answered the question whose id it has.
    fn answered_only(&mut self, message: &Message, before: &[usize]) {
        let asks = self.asks.lock().unwrap().clone();
        let answered: Vec<usize> = (0..before.len()).filter(|n| asks[*n] != before[*n]).collect();
        if let Kind::Response { id, .. } = &message.kind
            && !answered.is_empty()
        {
            let known = self.asked_as.get(id.as_json()).copied();
            assert_eq!(answered, Vec::from_iter(known), "an answer reaches the question that was sent with its id");
        }
    }

    /// Takes note of a call that is cancelled, if one is, and checks what was sent before.
    fn cancelled(&mut self, withdrawn: &[Vec<u8>]) {
        let cancelled = |call: &Call| !self.engine.may_send(&call.id);
        let Some(at) = self.running.iter().position(cancelled) else {
            return assert!(withdrawn.is_empty(), "only questions of a cancelled call are withdrawn");
        };
        let call = self.running.remove(at);
        let cancels = call.script.cancelled.0.load(Ordering::Relaxed);
        assert_eq!(cancels, usize::from(call.is_attached), "a call that is attached is cancelled once");
        withdrawn.iter().for_each(|frame| self.sent(frame, Some(&call)));
        self.cancelled.push(call);
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
            if let Some(id) = frame.get("id").map(Value::to_string) {
                let latest = self.asks.lock().unwrap().len() - 1;
                self.asked_as.insert(id.clone(), latest);
                self.sent_asks.push(id);
            }
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
