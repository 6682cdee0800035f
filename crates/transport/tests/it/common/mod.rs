//! A scripted service and a raw HTTP client, for tests of the transports.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub(crate) mod certificate;
pub mod wire;

use linchpin_core::service::{HeaderParam, HeaderParamKind};
use linchpin_core::subscription::Filter;
use linchpin_core::*;
use linchpin_proto::engine::Engine;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A service whose calls do what their `arguments.do` says, word by word:
///
/// `note` sends a notification, `note:N` one of about N bytes, `ask` asks the client and waits for its answer, `pause:N`
/// hangs up, `answer:N` makes the answer one of N bytes, `gate:X` waits until the test opens X, `hear` waits for changes for ever, `error:C` answers with an error,
/// `hold:X` keeps the first poll from ending until X is open (for tests with several threads), `panic` panics,
/// `done` (or the end) answers with the tool's name and what was answered to `ask`. Without words it is ready at once.
pub struct Fake {
    limits: Arc<Limits>,
    budget: Arc<Budget>,
    hub: Arc<ChangeBus>,
    stamps: Arc<Stamps>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    inner: Mutex<Inner>,
    changed: tokio::sync::Notify,
}

#[derive(Default)]
struct Inner {
    open: HashSet<String>,
    waiting: HashMap<String, Vec<Waker>>,
    log: Vec<String>,
}

impl State {
    fn log(&self, entry: String) {
        self.inner.lock().unwrap().log.push(entry);
        self.changed.notify_waiters();
    }
}

impl Fake {
    pub fn new() -> Arc<Fake> {
        Fake::with(|_| {})
    }

    pub fn with(limits: impl FnOnce(&mut Limits)) -> Arc<Fake> {
        let limits = Arc::new(Limits::default().with(limits));
        let budget = Budget::new(limits.connections.memory_bytes_max);
        Arc::new(Fake { limits, budget, hub: Arc::default(), stamps: Arc::default(), state: Arc::default() })
    }

    /// Lets everybody through who waits at this gate now or later.
    pub fn open_gate(&self, gate: &str) {
        let mut inner = self.state.inner.lock().unwrap();
        inner.open.insert(gate.to_owned());
        inner.waiting.remove(gate).into_iter().flatten().for_each(Waker::wake);
    }

    /// Waits until something has happened: `started X`, `dropped X`, `cancelled X`, `finished X`, `closed`, …
    pub async fn until(&self, entry: &str) {
        let wait = async {
            loop {
                let changed = self.state.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if self.happened(entry) {
                    return;
                }
                changed.await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(20), wait).await.is_err() {
            panic!("{entry:?} never happened, only {:?}", self.state.inner.lock().unwrap().log);
        }
    }

    pub fn happened(&self, entry: &str) -> bool {
        self.state.inner.lock().unwrap().log.iter().any(|e| e == entry)
    }

    pub fn changes(&self) -> &Arc<ChangeBus> {
        &self.hub
    }

    fn finish(&self, request: &Request, body: &str) -> Reply {
        let mut w = ResultWriter::new(
            &request.id,
            request.caller.features(),
            &self.stamps,
            self.limits.messages.result_bytes_max,
        );
        w.key("v");
        w.string(body);
        w.finish(ReplyKind::Complete)
    }
}

impl Service for Fake {
    fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    fn start(&self, request: Arc<Request>, context: Arc<RequestContext>, cx: &mut Context<'_>) -> CallStart {
        let name = match request.known() {
            Some(Method::ToolsCall) => request.string(request.params.name).map_or("?".into(), |n| n.into_owned()),
            _ => request.method.as_str().to_owned(),
        };
        self.state.log(format!("started {name}"));
        if let Some(principal) = &context.principal {
            self.state.log(format!("principal {}", principal.identity()));
        }
        if let Some(value) = context.headers.get("x-test") {
            self.state.log(format!("x-test {}", value.to_str().unwrap()));
        }
        let args = request.params.arguments.map(|a| request.text(a)).unwrap_or("{}");
        let args: serde_json::Value = serde_json::from_str(args).unwrap();
        let mut words: Vec<String> =
            args["do"].as_str().unwrap_or_default().split_whitespace().rev().map(String::from).collect();
        if request.known().is_none() {
            let why = format!("method not found: {}", request.method);
            let code = linchpin_types::error::code::METHOD_NOT_FOUND;
            return CallStart::Done(Reply::error(Some(&request.id), code, &why, None));
        }
        if request.known() == Some(Method::SubscriptionsListen) {
            words = vec!["hear".into(), "note".into()];
        }
        if request.known() == Some(Method::Initialize) && request.params_text().contains("\"refused\"") {
            words = vec!["error:-32000".into()];
        }
        let text = if request.known() == Some(Method::ToolsCall) {
            name.clone()
        } else {
            request.caller.features().revision.as_str().to_owned()
        };
        let mut play = Play {
            reply: Some(self.finish(&request, &text)),
            feed: self.hub.open(Filter { tools: true, ..Filter::default() }, 100_000),
            state: self.state.clone(),
            stamps: self.stamps.clone(),
            cell: Arc::new(Cell::default()),
            request,
            name,
            words,
            notes: 0,
            first: None,
            over: false,
        };
        match play.poll_event(cx) {
            Poll::Ready(CallEvent::Done(reply)) => CallStart::Done(reply),
            Poll::Ready(step) => {
                play.first = Some(step);
                CallStart::Running(Box::new(play))
            }
            Poll::Pending => CallStart::Running(Box::new(play)),
        }
    }

    fn notified(&self, told: Notification, _: Arc<RequestContext>) {
        self.state.log(format!("notified {}", told.method));
    }

    fn header_params(&self, tool: &str, _: &Caller, _: &RequestContext) -> Option<Arc<[HeaderParam]>> {
        (tool == "mirrored").then(|| {
            let param = HeaderParam {
                header: "mcp-param-do".into(),
                path: ["do".into()].into(),
                kind: HeaderParamKind::String,
            };
            Arc::from([param])
        })
    }

    fn open_feed(&self, _: &Caller, _: &RequestContext) -> Option<SubscriptionHandle> {
        self.hub.open(Filter { tools: true, prompts: true, resources: true }, 100_000)
    }

    fn close(&self) {
        self.state.log("closed".into());
        self.hub.close();
    }

    fn ended(&self) -> linchpin_core::service::BoxFuture<'static, ()> {
        let state = self.state.clone();
        Box::pin(async move { state.log("ended".into()) })
    }
}

#[derive(Default)]
struct Cell {
    cancelled: Mutex<(bool, Option<Waker>)>,
    answer: Mutex<(Option<String>, Option<Waker>)>,
}

impl Cancel for Cell {
    fn cancel(&self) {
        let mut c = self.cancelled.lock().unwrap();
        c.0 = true;
        c.1.take().into_iter().for_each(Waker::wake);
    }
}

struct Play {
    request: Arc<Request>,
    name: String,
    /// Last first.
    words: Vec<String>,
    notes: u32,
    first: Option<CallEvent>,
    reply: Option<Reply>,
    feed: Option<SubscriptionHandle>,
    state: Arc<State>,
    stamps: Arc<Stamps>,
    cell: Arc<Cell>,
    over: bool,
}

impl RunningCall for Play {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        assert!(!self.over, "polled after its end");
        if let Some(first) = self.first.take() {
            return Poll::Ready(first);
        }
        {
            let mut c = self.cell.cancelled.lock().unwrap();
            if c.0 {
                self.over = true;
                self.state.log(format!("cancelled {}", self.name));
                return Poll::Ready(CallEvent::Cancelled);
            }
            c.1 = Some(cx.waker().clone());
        }
        let Some(word) = self.words.last().cloned() else { return self.done() };
        let (verb, arg) = word.split_once(':').unwrap_or((&word, ""));
        match verb {
            "note" => {
                self.words.pop();
                self.notes += 1;
                let pad = "x".repeat(arg.parse().unwrap_or(0));
                let members = format!("\"n\":{},\"of\":\"{}\",\"pad\":\"{pad}\"", self.notes, self.name);
                Poll::Ready(CallEvent::Notify(render::notification("note", members.as_bytes())))
            }
            "pause" => {
                self.words.pop();
                Poll::Ready(CallEvent::Pause(arg.parse().unwrap()))
            }
            "gate" => {
                let mut inner = self.state.inner.lock().unwrap();
                if !inner.open.contains(arg) {
                    inner.waiting.entry(arg.to_owned()).or_default().push(cx.waker().clone());
                    return Poll::Pending;
                }
                drop(inner);
                self.words.pop();
                self.poll_event(cx)
            }
            "ask" => {
                *self.words.last_mut().unwrap() = "answered".into();
                let cell = self.cell.clone();
                let answer = Box::new(move |answer: Result<String, ServerRequestError>| {
                    let mut slot = cell.answer.lock().unwrap();
                    slot.0 = Some(answer.unwrap_or_else(|e| format!("{e:?}")));
                    slot.1.take().into_iter().for_each(Waker::wake);
                });
                Poll::Ready(CallEvent::ServerRequest(ServerRequest {
                    method: "elicitation/create".into(),
                    params: "{}".into(),
                    answer,
                }))
            }
            "answered" => {
                let mut slot = self.cell.answer.lock().unwrap();
                let Some(answer) = slot.0.take() else {
                    slot.1 = Some(cx.waker().clone());
                    return Poll::Pending;
                };
                drop(slot);
                self.words.pop();
                let mut w = ResultWriter::new(&self.request.id, self.request.caller.features(), &self.stamps, 1 << 20);
                w.key("answer");
                w.string(&answer);
                self.reply = Some(w.finish(ReplyKind::Complete));
                self.poll_event(cx)
            }
            "hear" => match self.feed.as_ref().unwrap().feed().poll_next(cx) {
                Poll::Ready(Some(change)) => Poll::Ready(CallEvent::Notify(change.frame(Some(&self.request.id)))),
                Poll::Ready(None) => self.done(),
                Poll::Pending => Poll::Pending,
            },
            "answer" => {
                self.words.pop();
                let mut w = ResultWriter::new(&self.request.id, self.request.caller.features(), &self.stamps, 1 << 20);
                w.key("v");
                w.string(&"x".repeat(arg.parse().unwrap()));
                self.reply = Some(w.finish(ReplyKind::Complete));
                self.poll_event(cx)
            }
            "error" => {
                self.reply = Some(Reply::error(Some(&self.request.id), arg.parse().unwrap(), "as asked", None));
                self.done()
            }
            "hold" => {
                self.words.pop();
                while !self.state.inner.lock().unwrap().open.contains(arg) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                self.poll_event(cx)
            }
            "panic" => {
                self.over = true;
                panic!("as asked")
            }
            "done" => self.done(),
            other => panic!("unknown word {other}"),
        }
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.cell.clone()
    }
}

impl Play {
    fn done(&mut self) -> Poll<CallEvent> {
        self.over = true;
        self.state.log(format!("finished {}", self.name));
        Poll::Ready(CallEvent::Done(self.reply.take().unwrap()))
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        if !self.over {
            self.state.log(format!("dropped {}", self.name));
        }
    }
}

/// Keeps the import used where a test needs no engine of its own.
pub type AnyEngine = Engine;
