//! What happens to a POST once its body is here: which of the three kinds it is, and how its answer is given.
//!
//! An answer is `application/json` when nothing was said before it, and a stream of events from the first notification
//! or question on. A call that is ready at once passes through here without a task, a channel or a box of this crate.

use super::answer;
use super::body::{HttpBody, Source, event};
use super::calls::{Calls, Entered};
use super::service::{Principal, Shared};
use super::session::HttpSession;
use super::sessions::{Place, id_of};
use super::work::{Out, Work, run_unheard};
use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderValue, Response, StatusCode};
use linchpin_proto::budget::{Budget, EXHAUSTED};
use linchpin_proto::frame::{self, Frame, Kind};
use linchpin_proto::http::rules::{self, Admit};
use linchpin_proto::{
    AskError, Door, Engine, Event, Exchange, Id, Message, Reply, ReplyKind, Request, Started, Step, Wire,
};
use std::sync::Arc;
use std::task::{Context, Poll};

/// What is kept of a request's head while its body arrives.
pub(crate) struct Head {
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Extensions,
}

impl Head {
    pub(crate) fn principal(&self) -> Option<&Arc<str>> {
        self.extensions.get::<Principal>().map(|p| &p.0)
    }

    /// The same again, for each of several messages in one body.
    pub(crate) fn copy(&self) -> Head {
        Head { headers: self.headers.clone(), extensions: self.extensions.clone() }
    }

    pub(crate) fn door(self) -> Door {
        let principal = self.principal().cloned();
        Door { headers: self.headers, extensions: self.extensions, principal, connection: None }
    }
}

/// The outcome of a body that was read.
pub(crate) enum Next {
    Answer(Response<HttpBody>),
    Wait(Running),
}

/// A POST that has no response yet.
pub(crate) enum Running {
    /// Stands alone.
    Alone(Option<Call>, &'static Wire),
    /// Opens a session.
    Opening(Box<Opening>),
    /// Belongs to a session.
    InSession(InSession),
}

impl Running {
    pub(crate) fn poll(&mut self, shared: &Arc<Shared>, cx: &mut Context<'_>) -> Poll<Response<HttpBody>> {
        match self {
            Running::Alone(call, wire) => poll_alone(shared, call, wire, cx),
            Running::Opening(opening) => opening.poll(shared, cx),
            Running::InSession(calls) => calls.poll(shared, cx),
        }
    }
}

/// Takes a whole body.
pub(crate) fn receive(shared: &Arc<Shared>, head: Head, body: Bytes, cx: &mut Context<'_>) -> Next {
    match frame::read(body, &shared.limits) {
        Err(reply) => Next::Answer(refused(reply)),
        Ok(Frame::Batch(parts)) => batch(shared, head, parts, cx),
        Ok(Frame::One(message)) => match rules::admit(&message, &head.headers, &|tool| {
            shared.service.header_params(tool)
        }) {
            Err(reply) => Next::Answer(refused(reply)),
            Ok(Admit::Request(request)) => alone(shared, head, request, cx),
            Ok(Admit::Initialize) if !head.headers.contains_key(answer::SESSION_ID) => open(shared, head, message, cx),
            Ok(Admit::Initialize | Admit::Session) => in_session(shared, head, message, cx),
            Ok(Admit::Notification) => Next::Answer(answer::accepted()),
        },
    }
}

/// An error raised before there was a caller.
fn refused(reply: Reply) -> Response<HttpBody> {
    answer::reply(rules::status(reply.kind(), None), reply)
}

fn answered(reply: Reply, wire: &Wire) -> Response<HttpBody> {
    answer::reply(rules::status(reply.kind(), Some(wire)), reply)
}

/// The response to a call that was cancelled: it says nothing, as it must.
fn withheld() -> Response<HttpBody> {
    answer::events(HttpBody::empty())
}

// --- requests that stand alone -------------------------------------------------------------------------------------

fn alone(shared: &Arc<Shared>, head: Head, request: Request, cx: &mut Context<'_>) -> Next {
    let wire = request.caller.wire();
    match shared.service.start(request, head.door(), cx) {
        Started::Done(reply) => Next::Answer(answered(reply, wire)),
        Started::Running(exchange) => Next::Wait(Running::Alone(Some(Call::new(exchange, &shared.calls)), wire)),
    }
}

/// A running call that belongs to no session.
pub(crate) struct Call {
    exchange: Box<dyn Exchange>,
    // After the exchange: once it is no longer counted, it is gone.
    _entered: Entered,
}

impl Call {
    fn new(exchange: Box<dyn Exchange>, calls: &Arc<Calls>) -> Call {
        let _entered = calls.enter(exchange.canceller());
        Call { exchange, _entered }
    }
}

fn poll_alone(shared: &Shared, call: &mut Option<Call>, wire: &Wire, cx: &mut Context<'_>) -> Poll<Response<HttpBody>> {
    loop {
        let Some(running) = call else { return Poll::Ready(withheld()) };
        match std::task::ready!(running.exchange.poll_step(cx)) {
            Step::Notify(frame) => {
                let budget = shared.service.budget().clone();
                let source = Alone { first: Some(frame), call: call.take(), budget };
                return Poll::Ready(answer::events(HttpBody::stream(source, shared.limits.keep_alive_ms)));
            }
            Step::Ask(ask) => (ask.answer)(Err(AskError::Gone)),
            Step::Pause(_) => {}
            Step::Done(reply) => return Poll::Ready(answered(reply, wire)),
            Step::Cancelled => return Poll::Ready(withheld()),
        }
    }
}

/// The stream of a request that stands alone. Dropping it cancels the request.
struct Alone {
    first: Option<Bytes>,
    call: Option<Call>,
    budget: Arc<Budget>,
}

impl Alone {
    /// The message as an event. Without room for it the stream ends, and the request with it.
    fn event(&mut self, frame: &[u8]) -> Option<Bytes> {
        let event = self.budget.own(event(frame));
        if event.is_none() {
            tracing::debug!(EXHAUSTED);
            self.call = None;
        }
        event
    }
}

impl Source for Alone {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(self.event(&first));
        }
        loop {
            let Some(call) = &mut self.call else { return Poll::Ready(None) };
            match std::task::ready!(call.exchange.poll_step(cx)) {
                Step::Notify(frame) => return Poll::Ready(self.event(&frame)),
                Step::Ask(ask) => (ask.answer)(Err(AskError::Gone)),
                Step::Pause(_) => {}
                Step::Done(reply) => {
                    self.call = None;
                    return Poll::Ready(self.event(&reply.frame()));
                }
                Step::Cancelled => self.call = None,
            }
        }
    }
}

// --- opening a session ---------------------------------------------------------------------------------------------

/// A request that opens a session and is not answered yet.
pub(crate) struct Opening {
    engine: Option<Engine>,
    place: Option<Place>,
    principal: Option<Arc<str>>,
    id: Id,
    call: Call,
}

fn open(shared: &Arc<Shared>, head: Head, message: Message, cx: &mut Context<'_>) -> Next {
    let mut engine = Engine::new(shared.limits.clone());
    let request = match engine.receive(message) {
        Event::Call(request) => request,
        Event::Reply(reply) => return Next::Answer(refused(reply)),
        _ => return Next::Answer(answer::refuse(StatusCode::BAD_REQUEST, None, "a request was expected")),
    };
    let refuse = |why| Next::Answer(answer::refuse(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), why));
    let declared = engine.session().map_or(0, |session| session.declared_bytes());
    let Some(declared) = shared.service.budget().reserve(declared) else { return refuse(EXHAUSTED) };
    let Some(place) = shared.sessions.place(declared) else {
        return refuse("this server has too many sessions; end one with DELETE or try again later");
    };
    // From now on no change is lost, even one that happens before the client hears its session's id.
    if let (Some(session), Some(feed)) = (engine.session(), shared.service.open_feed()) {
        session.set_feed(feed);
    }
    let (id, principal) = (request.id.clone(), head.principal().cloned());
    match shared.service.start(*request, head.door(), cx) {
        Started::Done(reply) => Next::Answer(opened(shared, engine, place, principal, &id, reply)),
        Started::Running(exchange) => {
            let (engine, place, call) = (Some(engine), Some(place), Call::new(exchange, &shared.calls));
            Next::Wait(Running::Opening(Box::new(Opening { engine, place, principal, id, call })))
        }
    }
}

impl Opening {
    fn poll(&mut self, shared: &Arc<Shared>, cx: &mut Context<'_>) -> Poll<Response<HttpBody>> {
        loop {
            match std::task::ready!(self.call.exchange.poll_step(cx)) {
                // Nobody could answer: the client does not know its session yet.
                Step::Ask(ask) => (ask.answer)(Err(AskError::Gone)),
                Step::Notify(_) | Step::Pause(_) => {}
                Step::Cancelled => return Poll::Ready(withheld()),
                Step::Done(reply) => {
                    let (Some(engine), Some(place)) = (self.engine.take(), self.place.take()) else {
                        return Poll::Ready(withheld());
                    };
                    return Poll::Ready(opened(shared, engine, place, self.principal.take(), &self.id, reply));
                }
            }
        }
    }
}

fn opened(
    shared: &Shared,
    mut engine: Engine,
    place: Place,
    principal: Option<Arc<str>>,
    id: &Id,
    reply: Reply,
) -> Response<HttpBody> {
    engine.finish(id);
    let wire = engine.session().map(|s| s.wire());
    if matches!(reply.kind(), ReplyKind::Error(_)) {
        return answer::reply(rules::status(reply.kind(), wire), reply);
    }
    let session = shared.sessions.open(place, principal, engine);
    let header = session.and_then(|s| HeaderValue::from_str(&id_of(s.key())).ok());
    let Some(mut header) = header else {
        return answer::refuse(StatusCode::INTERNAL_SERVER_ERROR, Some(id), "no session could be opened");
    };
    header.set_sensitive(true);
    let mut response = answer::reply(200, reply);
    response.headers_mut().insert(answer::SESSION_ID, header);
    response
}

fn request_id(message: &Message) -> Option<&Id> {
    match &message.kind {
        Kind::Request { id, .. } => Some(id),
        _ => None,
    }
}

// --- inside a session ----------------------------------------------------------------------------------------------

fn in_session(shared: &Arc<Shared>, head: Head, message: Message, cx: &mut Context<'_>) -> Next {
    let session = match shared.session_of(&head.headers, head.principal(), request_id(&message)) {
        Ok(session) => session,
        Err(response) => return Next::Answer(*response),
    };
    match take(shared, &session, message, || head.door(), cx) {
        Took::Nothing => Next::Answer(answer::accepted()),
        Took::Reply(reply) => Next::Answer(answered(reply, session.wire())),
        Took::Withheld => Next::Answer(withheld()),
        Took::Running(id, exchange) => {
            let mut work = Work::new(session);
            work.add(id, exchange, &shared.calls);
            Next::Wait(Running::InSession(InSession { work: Some(work), replies: None }))
        }
    }
}

/// What became of one message inside a session.
enum Took {
    /// It wants no answer.
    Nothing,
    Reply(Reply),
    /// It was cancelled meanwhile.
    Withheld,
    Running(Id, Box<dyn Exchange>),
}

fn take(
    shared: &Shared,
    session: &Arc<HttpSession>,
    message: Message,
    door: impl FnOnce() -> Door,
    cx: &mut Context<'_>,
) -> Took {
    let event = session.engine().receive(message);
    match event {
        Event::Call(request) => {
            let id = request.id.clone();
            match shared.service.start(*request, door(), cx) {
                // Nothing was asked, so nothing is withdrawn.
                Started::Done(reply) => match session.engine().finish(&id) {
                    (true, _) => return Took::Reply(reply),
                    (false, _) => return Took::Withheld,
                },
                Started::Running(exchange) => return Took::Running(id, exchange),
            }
        }
        Event::Reply(reply) => return Took::Reply(reply),
        Event::Cancel(Some(cancel), withdrawals) => session.cancel(&cancel, &withdrawals),
        Event::Cancel(None, _) | Event::Nothing => {}
        Event::Answer(ask, answer) => (ask.answer)(answer),
        Event::Notified(caller, name, params) => shared.service.notified(&caller, &name, &params),
    }
    Took::Nothing
}

fn batch(shared: &Arc<Shared>, head: Head, parts: Vec<Bytes>, cx: &mut Context<'_>) -> Next {
    const NO_BATCHES: &str = "batches are not part of this protocol revision; send each message as a POST of its own";
    if !head.headers.contains_key(answer::SESSION_ID) {
        return Next::Answer(answer::refuse(StatusCode::BAD_REQUEST, None, NO_BATCHES));
    }
    let session = match shared.session_of(&head.headers, head.principal(), None) {
        Ok(session) if session.wire().batches => session,
        Ok(_) => return Next::Answer(answer::refuse(StatusCode::BAD_REQUEST, None, NO_BATCHES)),
        Err(response) => return Next::Answer(*response),
    };
    let (mut work, mut replies, mut unread, total) = (Work::new(session.clone()), Vec::new(), 0, parts.len());
    for part in parts {
        let message = match frame::message(part, &shared.limits) {
            Ok(message) => message,
            Err(reply) => {
                unread += 1;
                replies.push(reply);
                continue;
            }
        };
        // Headers that a request alone must have cannot speak for several messages.
        if let Ok(Admit::Request(_)) | Err(_) = rules::admit(&message, &head.headers, &|_| None) {
            let why = "a request that stands alone cannot be part of a batch";
            replies.push(Reply::error(request_id(&message), linchpin_types::error::code::INVALID_REQUEST, why, None));
            continue;
        }
        let door = || head.copy().door();
        match take(shared, &session, message, door, cx) {
            Took::Nothing | Took::Withheld => {}
            Took::Reply(reply) => replies.push(reply),
            Took::Running(id, exchange) => work.add(id, exchange, &shared.calls),
        }
    }
    if work.is_empty() {
        return Next::Answer(match replies.is_empty() {
            true => answer::accepted(),
            false if unread == total => answer::json(StatusCode::BAD_REQUEST, array(&replies)),
            false => answer::json(StatusCode::OK, array(&replies)),
        });
    }
    Next::Wait(Running::InSession(InSession { work: Some(work), replies: Some(replies) }))
}

fn array(replies: &[Reply]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + replies.iter().map(|r| r.frame_len() + 1).sum::<usize>());
    for reply in replies {
        out.push(if out.is_empty() { b'[' } else { b',' });
        reply.write_to(&mut out);
    }
    out.push(b']');
    out
}

/// Calls inside a session that have said nothing yet. Dropping this is no cancellation: they run on, unheard, because
/// their client has no event id to come back with.
pub(crate) struct InSession {
    work: Option<Work>,
    /// The answers of a batch so far; absent for a single call.
    replies: Option<Vec<Reply>>,
}

impl InSession {
    fn poll(&mut self, shared: &Arc<Shared>, cx: &mut Context<'_>) -> Poll<Response<HttpBody>> {
        loop {
            let Some(work) = &mut self.work else { return Poll::Ready(withheld()) };
            let response = match (std::task::ready!(work.poll_next(true, cx)), &mut self.replies) {
                (Some(Out::Answer(reply)), Some(replies)) => {
                    replies.push(reply);
                    continue;
                }
                (Some(Out::Answer(reply)), None) => answered(reply, work.session().wire()),
                (Some(Out::Notice(frame)), _) => self.stream(shared, Some((frame, true)), None),
                (Some(Out::Question(frame)), _) => self.stream(shared, Some((frame, false)), None),
                (Some(Out::Pause(ms)), _) if work.session().wire().priming => self.stream(shared, None, Some(ms)),
                (Some(Out::Pause(_)), _) => continue,
                (None, Some(replies)) if !replies.is_empty() => answer::json(StatusCode::OK, array(replies)),
                (None, _) => withheld(),
            };
            self.work = None;
            return Poll::Ready(response);
        }
    }

    /// Turns the response into a stream of events: from now on the client can come back to it. With `pause`, it is asked
    /// to do so after that many milliseconds.
    fn stream(&mut self, shared: &Shared, first: Option<(Bytes, bool)>, pause: Option<u64>) -> Response<HttpBody> {
        let Some(work) = self.work.take() else { return withheld() };
        let session = work.session().clone();
        let stream = session.open_stream(work.cancellers());
        let Some(reader) = stream.attach(&session, 0, None) else { return withheld() };
        if session.wire().priming {
            stream.prime(&session, pause.unwrap_or(shared.retry_ms));
        }
        for reply in self.replies.take().unwrap_or_default() {
            stream.push(&session, &reply.frame(), false);
        }
        if let Some((frame, notice)) = first {
            stream.push(&session, &frame, notice);
        }
        stream.feed_from(work);
        if pause.is_some() {
            stream.hang_up();
        }
        answer::events(HttpBody::stream(reader, shared.limits.keep_alive_ms))
    }
}

impl Drop for InSession {
    fn drop(&mut self) {
        // A call that panicked is not polled again.
        if let Some(work) = self.work.take().filter(|w| !w.is_empty() && !std::thread::panicking()) {
            run_unheard(work);
        }
    }
}
