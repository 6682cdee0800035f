//! Handling of a POST once its body has been read: its kind, one of three, and its response.
//!
//! A response is `application/json` if no message precedes it, and an SSE stream from the first notification
//! or server request on. A call that completes on its first poll needs no task, channel or box of this crate.

use super::admission;
use super::answer;
use super::body::{HttpBody, Source, event};
use super::calls::Counted;
use super::session::HttpSession;
use super::sessions::{SessionSlot, Sessions};
use super::shared::Shared;
use super::stores;
use super::work::{Work, run_unheard};
use crate::driver;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use linchpin_core::budget::{Budget, EXHAUSTED};
use linchpin_core::gate::Refusal;
use linchpin_core::message::Kind;
use linchpin_core::service::BoxFuture;
use linchpin_core::{CallStart, Caller, Features, Id, Message, Principal, Reply, ReplyKind, Request, RequestContext};
use linchpin_proto::driver::{
    HasEngine, Out, Received, Started, Stateless, Unfinished, poll_stateless as poll_stateless_call,
    receive as receive_message,
};
use linchpin_proto::frame::{self, Frame};
use linchpin_proto::http::rules::{self, Ask, PostKind, SessionHeaders};
use linchpin_proto::{Engine, Event};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A subscription ends itself when the authentication of its reader expires, with a response: its stream is cut later.
const END_GRACE: Duration = Duration::from_secs(1);

/// The outcome of a body that was read.
pub(crate) enum Next {
    Answer(Response<HttpBody>),
    Wait(Running),
    /// Opens a session.
    Later(BoxFuture<'static, Response<HttpBody>>),
}

/// A POST that has no response yet.
pub(crate) enum Running {
    /// A stateless request.
    Stateless(Option<Counted>, &'static Features, Option<Principal>),
    /// Belongs to a session.
    InSession(InSession),
}

impl Running {
    pub(crate) fn poll(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<Response<HttpBody>> {
        match self {
            Running::Stateless(call, features, principal) => {
                poll_stateless(shared, call, features, principal.as_ref(), cx)
            }
            Running::InSession(calls) => calls.poll(shared, cx),
        }
    }
}

/// Handles a complete body.
pub(crate) fn receive(shared: &Shared, head: Arc<RequestContext>, body: Bytes, cx: &mut Context<'_>) -> Next {
    match frame::read(body, &shared.limits) {
        Err(unreadable) => Next::Answer(refused(unreadable.reply)),
        Ok(Frame::Batch(parts)) => batch(shared, head, parts, cx),
        Ok(Frame::One(message)) => {
            let service = &shared.service;
            let named = SessionHeaders::of(&head.headers);
            let lookup = |tool: &str, caller: &Caller| service.header_params(tool, caller, &head);
            let ask = Ask {
                header_params: &lookup,
                defines: &|method| service.defines(method),
                named_by: &|method| service.named_by(method),
            };
            match rules::classify(&message, &head.headers, &named, ask) {
                Err(reply) => {
                    linchpin_proto::driver::refused(&**service, &head, None, &message, &reply);
                    Next::Answer(refused(reply))
                }
                Ok(PostKind::Request(request)) => alone(shared, head, request, cx),
                Ok(PostKind::Initialize) if shared.no_sessions || named.id.is_none() => {
                    open(shared, head, &message, cx)
                }
                Ok(PostKind::Initialize | PostKind::Session) => {
                    let session = match shared.no_sessions {
                        true => shared.sessions.passing(&head),
                        false => shared.session_of(&named, head.principal.as_ref(), request_id(&message)),
                    };
                    match session {
                        Ok(session) => in_session(shared, session, head, &message, cx),
                        Err(response) => Next::Answer(*response),
                    }
                }
                Ok(PostKind::Notification(told)) => {
                    if let Some(told) = told {
                        service.notified(told, head);
                    }
                    Next::Answer(answer::accepted())
                }
            }
        }
    }
}

/// An error raised before there was a caller.
fn refused(reply: Reply) -> Response<HttpBody> {
    answer::reply(rules::status(reply.kind(), None), reply)
}

/// A response; its status and challenge are the gate's if scopes are missing.
fn answered(shared: &Shared, reply: Reply, features: &Features) -> Response<HttpBody> {
    if let Some(missing) = reply.scopes_missing() {
        let principal = missing.principal.as_ref();
        let refusal = match &shared.gate {
            Some(gate) => gate.missing(&shared.path, principal, &missing.required),
            None => Refusal::missing(principal, &missing.required),
        };
        let (status, why) = (refusal.status().as_u16(), refusal.message());
        tracing::info!(status, why, scopes = missing.required.join(" "), "refused a request");
        return admission::respond(&refusal, reply);
    }
    answer::reply(rules::status(reply.kind(), Some(features)), reply)
}

/// The response to a cancelled call: empty, as required.
fn withheld() -> Response<HttpBody> {
    answer::events(HttpBody::empty())
}

// --- stateless requests -------------------------------------------------------------------------------------

fn alone(shared: &Shared, head: Arc<RequestContext>, request: Arc<Request>, cx: &mut Context<'_>) -> Next {
    let (features, principal) = (request.caller.features(), head.principal.clone());
    match driver::start(&*shared.service, request, head, cx) {
        CallStart::Done(reply) => Next::Answer(answered(shared, reply, features)),
        CallStart::Running(call) => {
            let cancel = call.canceller();
            let counted = Counted::new(call, cancel, &shared.calls);
            Next::Wait(Running::Stateless(Some(counted), features, principal))
        }
    }
}

fn poll_stateless(
    shared: &Shared,
    call: &mut Option<Counted>,
    features: &Features,
    principal: Option<&Principal>,
    cx: &mut Context<'_>,
) -> Poll<Response<HttpBody>> {
    let Some(running) = call else { return Poll::Ready(withheld()) };
    Poll::Ready(match std::task::ready!(poll_stateless_call(&mut *running.call, cx)) {
        Stateless::Notice(frame) => {
            let budget = shared.service.budget().clone();
            let source = StatelessStream { first: Some(frame), call: call.take(), budget };
            answer::events(HttpBody::stream(source, &*shared.service).until_expired_for(END_GRACE, principal))
        }
        Stateless::Reply(reply) => answered(shared, reply, features),
        Stateless::Cancelled => withheld(),
    })
}

/// The stream of a stateless request. Dropping it cancels the request.
struct StatelessStream {
    first: Option<Bytes>,
    call: Option<Counted>,
    budget: Arc<Budget>,
}

impl StatelessStream {
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

impl Source for StatelessStream {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(self.event(&first));
        }
        let Some(call) = &mut self.call else { return Poll::Ready(None) };
        let step = std::task::ready!(poll_stateless_call(&mut *call.call, cx));
        if !matches!(step, Stateless::Notice(_)) {
            self.call = None;
        }
        Poll::Ready(match step {
            Stateless::Notice(frame) => self.event(&frame),
            Stateless::Reply(reply) => self.event(&reply.frame()),
            Stateless::Cancelled => None,
        })
    }
}

// --- opening a session ---------------------------------------------------------------------------------------------

fn open(shared: &Shared, head: Arc<RequestContext>, message: &Message, cx: &mut Context<'_>) -> Next {
    let mut engine = driver::engine(&*shared.service);
    let request = match receive_message(&mut engine, &*shared.service, &head, message) {
        Event::Call(request) => request,
        Event::Reply(reply) => return Next::Answer(refused(reply)),
        _ => return Next::Answer(answer::refuse(StatusCode::BAD_REQUEST, None, "expected a request")),
    };
    let refuse = |why| Next::Answer(answer::refuse(StatusCode::SERVICE_UNAVAILABLE, Some(&request.id), why));
    let declared = engine.session().map_or(0, |session| session.declared_bytes());
    let Some(declared) = shared.service.budget().reserve(declared) else { return refuse(EXHAUSTED) };
    let Some(place) = shared.sessions.place(declared) else {
        return refuse("this server has too many sessions; end one with DELETE or try again later");
    };
    let (id, principal) = (request.id.clone(), head.principal.clone());
    let started = driver::start(&*shared.service, request, head, cx);
    let sessions = (!shared.no_sessions).then_some(&shared.sessions);
    match engine.started(id.clone(), started) {
        Started::Ended(reply) => match opened(sessions, engine, place, principal, &id, reply) {
            Opened::Now(response) => Next::Answer(response),
            Opened::Later(stored) => Next::Later(stored),
        },
        Started::Running(id, call, cancel) => {
            let counted = Counted::new(call, cancel, &shared.calls);
            Next::Later(Box::pin(opening(sessions.cloned(), counted, id, principal, place, engine)))
        }
    }
}

/// Waits for the response that opens a session.
// When it is dropped, the engine goes before the call.
async fn opening(
    sessions: Option<Arc<Sessions>>,
    mut counted: Counted,
    id: Id,
    principal: Option<Principal>,
    place: SessionSlot,
    mut engine: Engine,
) -> Response<HttpBody> {
    let reply = loop {
        // Nobody could answer a request: the client does not know its session yet.
        match poll_fn(|cx| poll_stateless_call(&mut *counted.call, cx)).await {
            Stateless::Notice(_) => {}
            Stateless::Reply(reply) => break engine.end(&id, reply),
            Stateless::Cancelled => break None,
        }
    };
    match opened(sessions.as_ref(), engine, place, principal, &id, reply) {
        Opened::Now(response) => response,
        Opened::Later(stored) => stored.await,
    }
}

/// The response that opens a session, at once or when the session is stored.
enum Opened {
    Now(Response<HttpBody>),
    Later(BoxFuture<'static, Response<HttpBody>>),
}

fn opened(
    sessions: Option<&Arc<Sessions>>,
    engine: Engine,
    place: SessionSlot,
    principal: Option<Principal>,
    id: &Id,
    reply: Option<Reply>,
) -> Opened {
    let Some(reply) = reply else { return Opened::Now(withheld()) };
    let features = engine.session().map(|s| s.features());
    if matches!(reply.kind(), ReplyKind::Error(_)) {
        return Opened::Now(answer::reply(rules::status(reply.kind(), features), reply));
    }
    let Some(sessions) = sessions else { return Opened::Now(answer::reply(200, reply)) };
    let session = sessions.open(place, principal.as_ref(), engine);
    let header = session.and_then(|s| Some((HeaderValue::from_str(&s.issued_id()).ok()?, s)));
    let Some((mut header, session)) = header else {
        return Opened::Now(answer::refuse(StatusCode::INTERNAL_SERVER_ERROR, Some(id), "cannot open a session"));
    };
    header.set_sensitive(true);
    let mut response = answer::reply(200, reply);
    response.headers_mut().insert(answer::SESSION_ID, header);
    if sessions.stores().is_none() {
        return Opened::Now(response);
    }
    // The client may come back to another process at once.
    let (sessions, id) = (sessions.clone(), id.clone());
    Opened::Later(Box::pin(async move {
        match session.store().await {
            Ok(()) => response,
            Err(error) => {
                sessions.end(session.key());
                stores::unavailable(Some(&id), &error)
            }
        }
    }))
}

fn request_id(message: &Message) -> Option<&Id> {
    match &message.kind {
        Kind::Request { id, .. } => Some(id),
        _ => None,
    }
}

// --- inside a session ----------------------------------------------------------------------------------------------

fn in_session(
    shared: &Shared,
    session: Arc<HttpSession>,
    head: Arc<RequestContext>,
    message: &Message,
    cx: &mut Context<'_>,
) -> Next {
    let principal = head.principal.clone();
    match take(shared, &session, message, head, cx) {
        None => Next::Answer(answer::accepted()),
        Some(Started::Ended(Some(reply))) => Next::Answer(answered(shared, reply, session.features())),
        Some(Started::Ended(None)) => Next::Answer(withheld()),
        Some(Started::Running(unfinished, call, cancel)) => {
            let mut work = Work::new(session);
            work.add(unfinished, call, cancel, &shared.calls);
            Next::Wait(Running::InSession(InSession { work: Some(work), replies: None, principal }))
        }
    }
}

/// Handles a message inside a session, which has no response unless it starts a call or is refused.
fn take(
    shared: &Shared,
    session: &Arc<HttpSession>,
    message: &Message,
    context: Arc<RequestContext>,
    cx: &mut Context<'_>,
) -> Option<Started<Unfinished<Arc<HttpSession>>>> {
    let event = receive_message(&mut session.engine(), &*shared.service, &context, message);
    match event.deliver(&*shared.service, &context, |cancel, frame| session.withdraw(cancel, frame)) {
        Received::Call(request) => {
            let unfinished = Unfinished::new(session.clone(), request.id.clone());
            let started = unfinished.started(driver::start(&*shared.service, request, context, cx));
            if let Started::Ended(_) = &started {
                session.save();
            }
            Some(started)
        }
        Received::Reply(reply) => Some(Started::Ended(Some(reply))),
        Received::Nothing => None,
    }
}

fn batch(shared: &Shared, head: Arc<RequestContext>, parts: Vec<Bytes>, cx: &mut Context<'_>) -> Next {
    const NO_BATCHES: &str = "this protocol revision has no batches; send each message as a separate POST";
    let named = SessionHeaders::of(&head.headers);
    if shared.no_sessions || named.id.is_none() {
        return Next::Answer(answer::refuse(StatusCode::BAD_REQUEST, None, NO_BATCHES));
    }
    let session = match shared.session_of(&named, head.principal.as_ref(), None) {
        Ok(session) if session.features().batches => session,
        Ok(_) => return Next::Answer(answer::refuse(StatusCode::BAD_REQUEST, None, NO_BATCHES)),
        Err(response) => return Next::Answer(*response),
    };
    let (mut work, mut replies, mut unread, total) = (Work::new(session.clone()), Vec::new(), 0, parts.len());
    let anything = Ask { header_params: &|_, _| None, defines: &|_| true, named_by: &|_| None };
    for part in parts {
        let message = match frame::message(part, &shared.limits) {
            Ok(message) => message,
            Err(unreadable) => {
                unread += 1;
                replies.push(unreadable.reply);
                continue;
            }
        };
        // Headers that a request alone must have cannot speak for several messages.
        if let Ok(PostKind::Request(_)) | Err(_) = rules::classify(&message, &head.headers, &named, anything) {
            let why = "a stateless request cannot be part of a batch";
            replies.push(Reply::error(request_id(&message), linchpin_types::error::code::INVALID_REQUEST, why, None));
            continue;
        }
        match take(shared, &session, &message, head.clone(), cx) {
            None => {}
            Some(Started::Ended(reply)) => replies.extend(reply),
            Some(Started::Running(unfinished, call, cancel)) => work.add(unfinished, call, cancel, &shared.calls),
        }
    }
    if work.is_empty() {
        return Next::Answer(match replies.is_empty() {
            true => answer::accepted(),
            false if unread == total => answer::json(StatusCode::BAD_REQUEST, array(&replies)),
            false => answer::json(StatusCode::OK, array(&replies)),
        });
    }
    Next::Wait(Running::InSession(InSession {
        work: Some(work),
        replies: Some(replies),
        principal: head.principal.clone(),
    }))
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

/// Calls inside a session without output yet. Dropping this does not cancel them: they continue, because
/// their client has no event id to come back with.
pub(crate) struct InSession {
    work: Option<Work>,
    /// The responses of a batch so far; absent for a single call.
    replies: Option<Vec<Reply>>,
    /// Who sent them: a stream ends with their authentication, and can be resumed with a new one.
    principal: Option<Principal>,
}

impl InSession {
    fn poll(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<Response<HttpBody>> {
        loop {
            let Some(work) = &mut self.work else { return Poll::Ready(withheld()) };
            let response = match (std::task::ready!(work.poll_next(true, cx)), &mut self.replies) {
                (Some(Out::Reply(reply)), Some(replies)) => {
                    replies.push(reply);
                    continue;
                }
                (Some(Out::Reply(reply)), None) => answered(shared, reply, work.session().features()),
                (Some(Out::Notice(frame)), _) => self.stream(shared, Some((frame, true)), None),
                (Some(Out::Request(frame)), _) => self.stream(shared, Some((frame, false)), None),
                (Some(Out::Pause(ms)), _) if work.session().features().priming => self.stream(shared, None, Some(ms)),
                (Some(Out::Pause(_)), _) => continue,
                (None, Some(replies)) if !replies.is_empty() => answer::json(StatusCode::OK, array(replies)),
                (None, _) => withheld(),
            };
            self.work = None;
            return Poll::Ready(response);
        }
    }

    /// Turns the response into an event stream, which the client can resume. With `pause`, it is asked
    /// to do so after that many milliseconds.
    fn stream(&mut self, shared: &Shared, first: Option<(Bytes, bool)>, pause: Option<u64>) -> Response<HttpBody> {
        let Some(work) = self.work.take() else { return withheld() };
        let session = work.session().clone();
        let stream = session.open_stream(work.cancellers());
        let Some(reader) = stream.attach(&session, 0, None) else { return withheld() };
        if session.features().priming {
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
            stream.close_after_flush();
        }
        answer::events(HttpBody::stream(reader, &*shared.service).until_expiry(self.principal.as_ref()))
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
