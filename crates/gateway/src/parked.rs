//! A call of a client whose requests are stateless to an upstream that asks in the middle of it. The upstream's call stays
//! open, *parked*, while the client is told what is asked; its retry finds the call by the state that it was given.
//!
//! The state is a random number that says nothing. What it stands for is in memory, and bound to who called what: another
//! caller's state looks as if it did not exist.

use crate::answer_shape;
use crate::call::{Outlet, Relay};
use crate::lock;
use crate::url_elicitation;
use bytes::Bytes;
use linchpin_core::exact;
use linchpin_core::message::Request;
use linchpin_core::service::{RequestContext, ServerRequest, ServerRequestError, boxed};
use linchpin_core::{ClientCaps, Features, Id, Reply, ReplyKind};
use linchpin_proto::translate::{ask, notice};
use linchpin_types::error::code;
use linchpin_types::jsonrpc::method;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long a parked call waits for its client.
const PARK: Duration = Duration::from_secs(300);
/// How long after a question more of them are waited for, to ask them together.
const TOGETHER: Duration = Duration::from_millis(10);
/// Calls that are parked at once, and of one principal.
const PARKED_MAX: (usize, usize) = (1_024, 16);
/// Size of the responses that are kept for repeated retries.
const ENDED_BYTES_MAX: usize = 64 << 20;
/// Questions of one call that wait for answers.
const QUESTIONS_MAX: usize = 16;
/// Keys of the upstream's own in one call; further questions are numbered.
const NAMED_MAX: usize = 64;
/// Notifications that are kept for the client's next request.
const KEPT_MAX: usize = 16;
/// What the states of parked calls begin with.
const PREFIX: &str = "parked-";

/// The calls that are parked, and the responses of those that have ended, for a repeated retry.
#[derive(Default)]
pub(crate) struct Parking(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// By their states.
    calls: HashMap<Box<str>, Arc<Parked>>,
    /// Those that have ended, oldest first, with the size of their responses.
    ended: VecDeque<(Arc<Parked>, usize)>,
    /// The size of all of these.
    bytes: usize,
}

impl Kept {
    fn forget(&mut self, parked: &Parked) {
        self.calls.remove(&parked.state);
        if let Some(at) = self.ended.iter().position(|(one, _)| one.state == parked.state) {
            self.bytes -= self.ended.remove(at).map_or(0, |(_, bytes)| bytes);
        }
    }
}

/// A call that may be parked.
pub(crate) struct Parked {
    state: Box<str>,
    /// Who called what.
    identity: Box<str>,
    called: OnceLock<Value>,
    features: &'static Features,
    caps: ClientCaps,
    inner: Mutex<Inner>,
    changed: Notify,
    /// The upstream has answered: the call holds no connection any more.
    has_ended: AtomicBool,
}

#[derive(Default)]
struct Inner {
    /// The call, until it has ended or its client is asked: then [`Parked::called`] says what it is.
    request: Option<Arc<Request>>,
    /// What the upstream wants to know, by the keys under which the client is asked.
    questions: BTreeMap<String, ServerRequest>,
    keys: u32,
    /// The upstream's own keys that were used: a repeated retry must not answer a later question.
    named: BTreeSet<String>,
    /// Answers that came with the call itself, for questions with the upstream's own keys.
    given: BTreeMap<String, Box<RawValue>>,
    rounds: u32,
    asked: Option<Instant>,
    /// The client's request that is being answered: the latest takes over.
    turn: u64,
    outlet: Option<Arc<Outlet>>,
    /// Since when it waits for its client.
    since: Option<Instant>,
    kept: VecDeque<Bytes>,
    /// The response, with an id that is replaced.
    done: Option<Reply>,
    work: Option<AbortHandle>,
    /// Ends the call when its client does not come again.
    expiry: Option<AbortHandle>,
    over: bool,
}

impl Inner {
    /// A key that this call has not used: the upstream's own if it gave one, else a number.
    fn key(&mut self, params: &str) -> String {
        let numbered = |key: &String| key.strip_prefix('q').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let named = ask::key(params).filter(|key| !numbered(key) && self.named.len() < NAMED_MAX);
        if let Some(key) = named.filter(|key| self.named.insert(key.clone())) {
            return key;
        }
        self.keys += 1;
        format!("q{}", self.keys)
    }
}

impl Parking {
    /// The call that this request continues. An error, as a sentence, if its state is of a call that is not there, or is
    /// somebody else's; `None` if it is not a state of this bridge.
    pub(crate) fn find(
        &self,
        request: &Request,
        context: &RequestContext,
    ) -> Option<Result<Arc<Parked>, &'static str>> {
        let state = request.string(request.params.request_state)?;
        let state = state.strip_prefix(PREFIX)?;
        // Behind the number of the call is that of the round, so that no two states are alike.
        let (call, round) = state.split_once('.').unwrap_or((state, ""));
        let found = lock(&self.0).calls.get(call).cloned();
        let given = |parked: &Arc<Parked>| {
            let rounds = lock(&parked.inner).rounds;
            round.parse::<u32>().is_ok_and(|n| (1..=rounds).contains(&n) && n.to_string() == round)
        };
        let fits = |parked: &Arc<Parked>| {
            *parked.identity == *identity(context) && parked.called.get() == Some(&called(request))
        };
        Some(found.filter(fits).filter(given).ok_or("`requestState` is not valid for this request, or has expired"))
    }

    /// Keeps a call that waits for its client. `false` if there are too many.
    fn park(&self, parked: &Arc<Parked>) -> bool {
        if let Some(request) = lock(&parked.inner).request.take() {
            let _ = parked.called.set(called(&request));
        }
        let mut kept = lock(&self.0);
        if kept.calls.contains_key(&parked.state) {
            return true;
        }
        let waiting = kept.calls.values().filter(|other| !other.has_ended.load(Ordering::Acquire));
        let (all, own) =
            waiting.fold((0, 0), |(all, own), other| (all + 1, own + usize::from(other.identity == parked.identity)));
        if all >= PARKED_MAX.0 || (!parked.identity.is_empty() && own >= PARKED_MAX.1) {
            return false;
        }
        kept.calls.insert(parked.state.clone(), parked.clone());
        true
    }

    /// Keeps the response of a parked call for a while; the oldest ones give way.
    fn ended(&self, parked: &Parked, bytes: usize) {
        let mut kept = lock(&self.0);
        let Some(parked) = kept.calls.get(&parked.state).cloned() else { return };
        let own = kept.ended.iter().filter(|(one, _)| one.identity == parked.identity).count();
        if !parked.identity.is_empty() && own >= PARKED_MAX.1 {
            let oldest = kept.ended.iter().find(|(one, _)| one.identity == parked.identity).map(|(one, _)| one.clone());
            oldest.into_iter().for_each(|one| kept.forget(&one));
        }
        kept.bytes += bytes;
        kept.ended.push_back((parked, bytes));
        // The latest stays, whatever its size: its client has not had it.
        while kept.ended.len() > PARKED_MAX.0 || (kept.bytes > ENDED_BYTES_MAX && kept.ended.len() > 1) {
            let Some((oldest, _)) = kept.ended.front().cloned() else { return };
            kept.forget(&oldest);
        }
    }

    /// Ends the call that has waited longest for its client, so that another has its connection. `false` if none waits.
    pub(crate) fn give_way(&self) -> bool {
        let all: Vec<Arc<Parked>> = lock(&self.0).calls.values().cloned().collect();
        let since = |one: &Arc<Parked>| {
            let waits = !one.has_ended.load(Ordering::Acquire);
            lock(&one.inner).since.filter(|_| waits)
        };
        let longest = all.iter().filter_map(|one| Some((since(one)?, one))).min_by_key(|(since, _)| *since);
        let Some((_, parked)) = longest else { return false };
        tracing::info!("dropping a call that is waiting for its client: all connections are in use");
        self.forget(parked);
        parked.end();
        true
    }

    fn forget(&self, parked: &Parked) {
        lock(&self.0).forget(parked);
    }
}

fn identity(context: &RequestContext) -> &str {
    context.principal.as_ref().map_or("", |principal| principal.identity())
}

/// The answers of a request. What is not an object is not an answer: it is asked for again.
fn responses(request: &Request) -> BTreeMap<String, Box<RawValue>> {
    let text = request.params.input_responses.map_or("{}", |span| request.text(span));
    let mut all: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap_or_default();
    all.retain(|_, answer| answer.get().starts_with('{'));
    all
}

/// Answers a question of the upstream. What cannot be its answer is a refusal.
fn give(question: ServerRequest, answer: &str) {
    let answer = match answer_shape::fits(&question.method, answer) {
        true => Ok(answer.to_owned()),
        false => Err(ServerRequestError::Rpc(code::INVALID_PARAMS, answer_shape::WRONG.into())),
    };
    (question.answer)(answer);
}

/// What a request asks for, without what differs between its rounds.
fn called(request: &Request) -> Value {
    // With every digit: a number that is out of range must not make two calls alike.
    let Ok(Value::Object(mut params)) = exact::read(request.params_text()) else {
        // Text that no value can hold: compared as it is.
        let parts = [request.params.name, request.params.uri, request.params.arguments];
        return serde_json::json!([request.method.as_str(), parts.map(|span| span.map(|span| request.text(span)))]);
    };
    for own in ["_meta", "inputResponses", "requestState"] {
        params.remove(own);
    }
    serde_json::json!([request.method.as_str(), params])
}

impl Parked {
    /// A call that is about to begin. `None` if the system has no random numbers.
    pub(crate) fn new(request: &Arc<Request>, context: &RequestContext) -> Option<Arc<Parked>> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let given = if request.params.request_state.is_none() { responses(request) } else { BTreeMap::new() };
        Some(Arc::new(Parked {
            state: format!("{:032x}", u128::from_ne_bytes(random)).into(),
            identity: identity(context).into(),
            called: OnceLock::new(),
            features: request.caller.features(),
            caps: request.caller.caps(),
            inner: Mutex::new(Inner { request: Some(request.clone()), given, ..Inner::default() }),
            changed: Notify::new(),
            has_ended: AtomicBool::new(false),
        }))
    }

    /// The work of the call, which ends with [`Parked::done`].
    pub(crate) fn works(&self, work: AbortHandle) {
        lock(&self.inner).work = Some(work);
    }

    /// The upstream has answered.
    pub(crate) fn done(&self, parking: &Parking, reply: Reply) {
        let bytes = reply.frame_len();
        {
            let mut inner = lock(&self.inner);
            (inner.done, inner.request) = (Some(reply), None);
        }
        self.has_ended.store(true, Ordering::Release);
        parking.ended(self, bytes);
        self.changed.notify_one();
    }

    /// Gives the upstream the answers of a retry.
    pub(crate) fn answer(&self, request: &Request) {
        for (key, answer) in responses(request) {
            let asked = lock(&self.inner).questions.remove(&key);
            // Unknown keys are ignored.
            if let Some(question) = asked {
                give(question, answer.get());
            }
        }
        let mut inner = lock(&self.inner);
        // What was not answered is asked again at once.
        inner.asked = (!inner.questions.is_empty()).then(|| Instant::now() - TOGETHER);
    }

    /// Waits for the end of the call, or for what it asks, and makes the response to this request of its client.
    pub(crate) async fn wait(self: Arc<Self>, parking: &Arc<Parking>, id: &Id, outlet: &Arc<Outlet>) -> Reply {
        let turn = {
            let mut inner = lock(&self.inner);
            inner.turn += 1;
            inner.outlet = Some(outlet.clone());
            inner.since = None;
            // Before what comes next.
            std::mem::take(&mut inner.kept).iter().for_each(|frame| pass(outlet, frame));
            inner.turn
        };
        // An earlier request that waits for the same call ends.
        self.changed.notify_waiters();
        let mut attached = Attached { parked: &self, parking, turn, answered: false };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let due = match self.look(id, turn, parking) {
                Look::Reply(reply) => {
                    attached.answered = true;
                    return *reply;
                }
                Look::Park(reply) => {
                    attached.answered = true;
                    {
                        let mut inner = lock(&self.inner);
                        (inner.outlet, inner.since) = (None, Some(Instant::now()));
                    }
                    expire(&self, parking.clone(), turn);
                    return *reply;
                }
                Look::Wait(due) => due,
            };
            match due {
                None => changed.await,
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
            }
        }
    }

    fn look(self: &Arc<Self>, id: &Id, turn: u64, parking: &Parking) -> Look {
        let mut inner = lock(&self.inner);
        let fail = |why: &str| Look::Reply(Box::new(Reply::error(Some(id), code::INTERNAL_ERROR, why, None)));
        if inner.turn != turn {
            // What was meant for the one that took over.
            drop(inner);
            self.changed.notify_one();
            return fail("another request continues this call");
        }
        if let Some(done) = &inner.done {
            let reply = with_id(done, id);
            let parked = inner.work.is_some() && lock(&parking.0).calls.contains_key(&self.state);
            if parked {
                // A repeated retry gets the same.
                inner.outlet = None;
                drop(inner);
                return Look::Park(Box::new(reply));
            }
            // The upstream no longer waits for them, or they were another call's.
            let questions = std::mem::take(&mut inner.questions);
            drop(inner);
            questions.into_values().for_each(ServerRequest::refuse);
            return Look::Reply(Box::new(reply));
        }
        if inner.over {
            return fail("the call has expired");
        }
        let Some(asked) = inner.asked.filter(|_| !inner.questions.is_empty()) else { return Look::Wait(None) };
        if asked.elapsed() < TOGETHER {
            return Look::Wait(Some(asked + TOGETHER));
        }
        inner.asked = None;
        inner.rounds += 1;
        let state = format!("{PREFIX}{}.{}", self.state, inner.rounds);
        let questions: Vec<(&str, &str, &str)> =
            inner.questions.iter().map(|(key, asked)| (key.as_str(), &*asked.method, asked.params.as_str())).collect();
        let result = ask::input_required(&questions, &state);
        drop(inner);
        if !parking.park(self) {
            self.end();
            return fail("too many calls are waiting for their clients; try again later");
        }
        Look::Park(Box::new(Reply::with_result(id, result.into()).with_kind(ReplyKind::InputRequired)))
    }

    /// Ends the call: the upstream's is cancelled, and nobody is asked any more.
    fn end(&self) {
        let (questions, work) = {
            let mut inner = lock(&self.inner);
            inner.over = true;
            (std::mem::take(&mut inner.questions), inner.work.take())
        };
        for question in questions.into_values() {
            match &*question.method {
                method::ELICITATION_CREATE => (question.answer)(Ok("{\"action\":\"cancel\"}".to_owned())),
                _ => (question.answer)(Err(ServerRequestError::Rpc(code::INTERNAL_ERROR, "no answer in time".into()))),
            }
        }
        if let Some(work) = work {
            work.abort();
        }
        self.changed.notify_waiters();
    }
}

impl Relay for Parked {
    // A question of the upstream, which is refused if the client has not declared that it can be asked.
    fn ask(&self, mut question: ServerRequest) {
        let can = ask::is_declared(&question.method, &question.params, self.features, &self.caps);
        let can = can && ask::visited_page(&question.params).is_none_or(|url| url_elicitation::is_for_a_browser(&url));
        let mut inner = lock(&self.inner);
        if !can || inner.over || inner.questions.len() >= QUESTIONS_MAX {
            drop(inner);
            return question.refuse();
        }
        let key = inner.key(&question.params);
        if let Some(answer) = inner.given.remove(&key).filter(|_| inner.named.contains(&key)) {
            drop(inner);
            return give(question, answer.get());
        }
        question.params = ask::for_stateless(&question.method, &question.params);
        inner.questions.insert(key, question);
        inner.asked.get_or_insert_with(Instant::now);
        drop(inner);
        self.changed.notify_one();
    }

    // A notification during the call: kept for the next request of the client while there is none.
    fn notify(&self, frame: Bytes) {
        let mut inner = lock(&self.inner);
        match &inner.outlet {
            Some(outlet) => {
                let outlet = outlet.clone();
                drop(inner);
                pass(&outlet, &frame);
            }
            None => {
                if inner.kept.len() == KEPT_MAX {
                    inner.kept.pop_front();
                }
                inner.kept.push_back(frame);
            }
        }
    }
}

/// Sends a notification during a request of the client, which may be another than when the notification came: progress has
/// the token of this one.
fn pass(outlet: &Outlet, frame: &Bytes) {
    if let Some(frame) = notice::for_retry(frame, outlet.token()) {
        outlet.notify(frame);
    }
}

enum Look {
    /// The response; nothing follows.
    Reply(Box<Reply>),
    /// The response to this request; the call stays until its client comes again.
    Park(Box<Reply>),
    /// Nothing yet, and when to look again.
    Wait(Option<Instant>),
}

/// Ends a parked call whose client does not come again.
fn expire(parked: &Arc<Parked>, parking: Arc<Parking>, turn: u64) {
    let mut inner = lock(&parked.inner);
    if inner.turn != turn {
        return;
    }
    let parked = parked.clone();
    let expiry = tokio::spawn(boxed(async move {
        tokio::time::sleep(PARK).await;
        if lock(&parked.inner).turn == turn {
            parking.forget(&parked);
            parked.end();
        }
    }));
    if let Some(earlier) = inner.expiry.replace(expiry.abort_handle()) {
        earlier.abort();
    }
}

/// The request of a client that a call is attached to. Dropping it without a response cancels the call.
struct Attached<'a> {
    parked: &'a Parked,
    parking: &'a Parking,
    turn: u64,
    answered: bool,
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        let latest = lock(&self.parked.inner).turn == self.turn;
        if !self.answered && latest {
            self.parking.forget(self.parked);
            self.parked.end();
        }
    }
}

/// The same response to another request.
fn with_id(reply: &Reply, id: &Id) -> Reply {
    let body = Bytes::copy_from_slice(reply.body().as_bytes());
    match reply.kind() {
        ReplyKind::Error(code) => Reply::with_error(id, code, body),
        kind => Reply::with_result(id, body).with_kind(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_core::{Limits, Principal};
    use linchpin_proto::{engine, frame};

    #[test]
    fn a_state_is_of_its_principal_and_its_call_alone() {
        let request = |tool: &str, state: &str| {
            let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","requestState":"{state}","_meta":{meta}}}}}"#
            );
            engine::open(&frame::message(Bytes::from(text), &Limits::default()).unwrap(), None).unwrap()
        };
        let of = |name: &str| {
            let principal = (!name.is_empty()).then(|| Principal::new(name));
            RequestContext::default().with(|context| context.principal = principal)
        };
        let (parking, ada) = (Parking::default(), of("ada"));
        let parked = Parked::new(&request("t", ""), &ada).unwrap();
        assert!(parking.park(&parked));
        lock(&parked.inner).rounds = 1;
        let state = format!("{PREFIX}{}.1", parked.state);
        assert!(parking.find(&request("t", &state), &ada).unwrap().is_ok());
        for (tool, principal) in [("t", "eve"), ("t", ""), ("u", "ada")] {
            assert!(parking.find(&request(tool, &state), &of(principal)).unwrap().is_err(), "{tool} of {principal}");
        }
        assert!(parking.find(&request("t", "not of a bridge"), &ada).is_none());
        // One principal cannot take the places of others.
        let taken = (1..PARKED_MAX.1).all(|_| parking.park(&Parked::new(&request("t", ""), &ada).unwrap()));
        assert!(taken && !parking.park(&Parked::new(&request("t", ""), &ada).unwrap()));
        // One that has ended keeps its response, and no place.
        parked.done(&parking, Reply::error(None, 1, "", None));
        assert!(parking.park(&Parked::new(&request("t", ""), &ada).unwrap()));
        assert!(parking.find(&request("t", &state), &ada).unwrap().is_ok());
        let eve = of("eve");
        assert!(parking.park(&Parked::new(&request("t", ""), &eve).unwrap()));
        // Of the responses of a principal the oldest is forgotten.
        let bob = of("bob");
        let ended = || {
            let parked = Parked::new(&request("t", ""), &bob).unwrap();
            assert!(parking.park(&parked));
            lock(&parked.inner).rounds = 1;
            parked.done(&parking, Reply::error(None, 1, "", None));
            format!("{PREFIX}{}.1", parked.state)
        };
        let states: Vec<_> = (0..=PARKED_MAX.1).map(|_| ended()).collect();
        let known = |state: &String| parking.find(&request("t", state), &bob).unwrap().is_ok();
        assert!(!known(&states[0]) && states[1..].iter().all(known));
    }
}
