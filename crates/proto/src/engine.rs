//! The protocol state of one peer: a pipe, or an HTTP session.
//!
//! Bytes become [`Event`]s; finished calls are reported back. The engine keeps three promises whatever the peer does: an
//! id is answered at most once, nothing is sent for a cancelled request, and no frame of one era reaches a peer of the
//! other. A stateless request over HTTP needs no engine: [`open`] is a pure function.
//!
//! ```text
//!            initialize                    close
//!   New ────────────────────▶ Open ────────────────────▶ Closed
//!    └── requests with their own claims pass in every state but Closed
//! ```

use crate::era::{self, HeaderVersion};
use crate::frame;
use bytes::Bytes;
use linchpin_core::caller::{Caller, ClientCaps, Session};
use linchpin_core::id::Id;
use linchpin_core::json::{Span, write_str};
use linchpin_core::limits::Limits;
use linchpin_core::message::{Kind, Message, MethodName, Notification, Request};
use linchpin_core::method::Method;
use linchpin_core::observer::Observer;
use linchpin_core::render;
use linchpin_core::reply::Reply;
use linchpin_core::service::{Cancel, ServerRequest, ServerRequestError, Service};
use linchpin_core::session_record::SessionRecord;
use linchpin_types::error::code;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::LoggingLevel;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// The next action for the driver of an engine.
pub enum Event {
    /// Start this request and report it with [`Engine::started`]. When it ends, however it ends, its last event goes to
    /// [`Engine::send`].
    Call(Arc<Request>),
    /// Send this response; no other action.
    Reply(Reply),
    /// Cancel this running request; nothing more is sent for it. Its id is free again once it has ended.
    Cancel(Option<Arc<dyn Cancel>>, Vec<Bytes>),
    /// Deliver the client's response to a server request.
    Answer(ServerRequest, Result<String, ServerRequestError>),
    /// Hand this notification to the service.
    Notified(Box<Notification>),
    /// Nothing to do.
    Nothing,
}

/// Whether a session is one that observers hear of: others are made for one request, and have no id.
fn is_shown(session: &Session) -> bool {
    session.public_id() != 0
}

#[derive(Clone)]
enum State {
    /// With the public id of the session to come.
    New(u64),
    Open(Arc<Session>),
    Closed,
}

/// See the module's documentation.
pub struct Engine {
    state: State,
    /// At most `calls.per_peer_max` and `subscriptions.streams_per_peer_max`, mostly one or two: a linear search is
    /// faster than hashing.
    running: Vec<Running>,
    /// Server requests within calls, mostly none: their ids, and those of the calls.
    asked: Vec<(u64, Id, ServerRequest)>,
    next_ask: u64,
    limits: Arc<Limits>,
    observer: Option<Arc<dyn Observer>>,
}

struct Running {
    id: Id,
    may_ask: bool,
    /// A listen stream, which may stay open indefinitely: counted separately, so that it does not take the slots of
    /// calls.
    listens: bool,
    cancel: Option<Arc<dyn Cancel>>,
    /// Cancelled, but not yet finished by the driver. Until then the id is in use, so that effects of the old call are
    /// not attributed to a new one.
    cancelled: bool,
}

impl Engine {
    /// An engine for a new peer.
    pub fn new(limits: Arc<Limits>) -> Engine {
        Engine { state: State::New(0), running: Vec::new(), asked: Vec::new(), next_ask: 0, limits, observer: None }
    }

    /// An engine for a new peer of `service`, which its observer learns of. `public_id` is a random number:
    /// [`Session::public_id`].
    pub fn for_service(service: &dyn Service, public_id: u64) -> Engine {
        let mut engine = Engine::new(service.limits().clone());
        engine.state = State::New(public_id);
        engine.observer = service.observer().cloned();
        engine
    }

    /// Goes on with a session of another process, as an engine for a new peer. The session has no feed yet. Requests to the
    /// client have ids from the random `nonce` on. `None` if the record cannot be a session of this version.
    pub fn resume(mut self, record: &SessionRecord, nonce: u32) -> Option<Engine> {
        let session = Arc::new(Session::from_record(record, nonce)?);
        self.next_ask = u64::from(nonce) << 15;
        if let Some(observer) = self.observer.as_ref().filter(|_| is_shown(&session)) {
            observer.session_opened(&session);
        }
        self.state = State::Open(session);
        Some(self)
    }

    /// The session, once `initialize` was received.
    pub fn session(&self) -> Option<&Arc<Session>> {
        match &self.state {
            State::Open(session) => Some(session),
            _ => None,
        }
    }

    /// Whether the peer may send batches.
    pub fn batches(&self) -> bool {
        self.session().is_some_and(|s| s.features().batches)
    }

    /// Requests that are not finished, cancelled ones included.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Pending server requests.
    pub fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Handles a message.
    pub fn receive(&mut self, message: &Message) -> Event {
        if matches!(self.state, State::Closed) {
            return Event::Nothing;
        }
        match &message.kind {
            Kind::Request { .. } => self.request(message),
            Kind::Notification { method } => self.notification(method, message),
            Kind::Response { id, outcome } => self.response(id, *outcome, message),
        }
    }

    fn request(&mut self, message: &Message) -> Event {
        let request = match open(message, self.session()) {
            Ok(request) => request,
            Err(reply) => return Event::Reply(reply),
        };
        let refuse = |code, why: &str| Event::Reply(Reply::error(Some(&request.id), code, why, None));
        if self.find(&request.id).is_some() {
            return refuse(code::INVALID_REQUEST, "this id belongs to a request that is still running");
        }
        let listens = request.known() == Some(Method::SubscriptionsListen);
        let (max, what, advice) = match listens {
            true => {
                (self.limits.subscriptions.streams_per_peer_max, "`subscriptions/listen` streams", "cancel one first")
            }
            false => (self.limits.calls.per_peer_max, "calls", "wait for one to finish"),
        };
        if self.running.iter().filter(|r| r.listens == listens).count() >= max {
            return refuse(code::INTERNAL_ERROR, &format!("too many {what} at once (limit {max}); {advice}"));
        }
        if request.known() == Some(Method::Initialize) {
            if self.session().is_some() {
                return refuse(code::INVALID_REQUEST, "already initialized");
            }
            if let Some(session) = request.caller.session() {
                if let State::New(public_id) = self.state {
                    session.set_public_id(public_id);
                }
                self.state = State::Open(session.clone());
                if let Some(observer) = &self.observer {
                    observer.session_opened(session);
                }
            }
        }
        let (id, may_ask) = (request.id.clone(), request.caller.features().server_requests);
        self.running.push(Running { id, may_ask, listens, cancel: None, cancelled: false });
        Event::Call(request)
    }

    fn notification(&mut self, name: &MethodName, message: &Message) -> Event {
        if !message.params_text().starts_with('{') {
            return Event::Nothing;
        }
        if name.as_str() == "notifications/cancelled" {
            let id = message.params().request_id.and_then(|id| Id::from_json(message.text(id)));
            // Unknown, finished or without an id: ignored, as both eras ask.
            let at = id.as_ref().and_then(|id| self.find(id)).filter(|at| !self.running[*at].cancelled);
            return match (id, at) {
                (Some(id), Some(at)) => {
                    self.running[at].cancelled = true;
                    Event::Cancel(self.running[at].cancel.take(), self.orphan(&id))
                }
                _ => Event::Nothing,
            };
        }
        notification(message, self.session()).map_or(Event::Nothing, |told| Event::Notified(Box::new(told)))
    }

    fn response(&mut self, id: &Id, outcome: Result<Span, Span>, message: &Message) -> Event {
        #[derive(Deserialize)]
        struct ErrorObject<'a> {
            code: i32,
            #[serde(borrow)]
            message: Cow<'a, str>,
        }
        let Ok(number) = id.as_json().parse::<u64>() else { return Event::Nothing };
        let at = self.asked.iter().position(|(asked, ..)| *asked == number);
        let within_call = at.map(|at| self.asked.swap_remove(at).2);
        let Some(ask) = within_call.or_else(|| self.session()?.answered(number)) else { return Event::Nothing };
        let answer = match outcome {
            Ok(result) => Ok(message.text(result).to_owned()),
            Err(error) => Err(match serde_json::from_str::<ErrorObject<'_>>(message.text(error)) {
                Ok(e) => ServerRequestError::Rpc(e.code, e.message.into_owned()),
                Err(_) => ServerRequestError::Rpc(code::INTERNAL_ERROR, "the client sent a malformed error".into()),
            }),
        };
        Event::Answer(ask, answer)
    }

    /// Sets the canceller of a running request. Cancels it if the request was cancelled meanwhile, or the peer is gone.
    pub(crate) fn attach(&mut self, id: &Id, cancel: Arc<dyn Cancel>) {
        match self.find(id).filter(|at| !self.running[*at].cancelled) {
            Some(at) => self.running[at].cancel = Some(cancel),
            None => cancel.cancel(),
        }
    }

    /// Finishes a request. Returns whether its response may be sent (not if it was cancelled), and frames to send first:
    /// cancellations of its pending server requests.
    pub(crate) fn finish(&mut self, id: &Id) -> (bool, Vec<Bytes>) {
        match self.find(id).map(|at| self.running.swap_remove(at)) {
            None => (false, Vec::new()),
            Some(running) if running.cancelled => (false, Vec::new()),
            Some(_) if self.asked.is_empty() => (true, Vec::new()),
            Some(_) => (true, self.orphan(id)),
        }
    }

    /// Whether a running request may still send on its stream.
    pub fn may_send(&self, id: &Id) -> bool {
        self.find(id).is_some_and(|at| !self.running[at].cancelled)
    }

    /// Starts a server request within the request `parent`, and returns the frame to send. `None`, with an error to the
    /// handler, if the request has ended or is stateless (such clients are never sent requests).
    pub fn ask(&mut self, parent: &Id, ask: ServerRequest) -> Option<Bytes> {
        match self.find(parent).map(|at| &self.running[at]) {
            Some(running) if running.may_ask && !running.cancelled => {
                self.next_ask += 1;
                let frame = render::request(self.next_ask, &ask.method, &ask.params);
                self.asked.push((self.next_ask, parent.clone(), ask));
                Some(frame)
            }
            _ => {
                ask.refuse();
                None
            }
        }
    }

    /// Cancellers of the open listen streams, which would block a drain indefinitely.
    pub fn listeners(&self) -> Vec<Arc<dyn Cancel>> {
        self.running.iter().filter(|r| r.listens).filter_map(|r| r.cancel.clone()).collect()
    }

    /// Ends everything after the peer disconnected. Returns the cancellers of running requests.
    pub fn close(&mut self) -> Vec<Arc<dyn Cancel>> {
        let ended = std::mem::replace(&mut self.state, State::Closed);
        if let State::Open(session) = ended {
            session.close();
            if let Some(observer) = self.observer.as_ref().filter(|_| is_shown(&session)) {
                observer.session_closed(&session);
            }
        }
        for (_, _, ask) in self.asked.drain(..) {
            ask.refuse();
        }
        self.running.drain(..).filter_map(|r| r.cancel).collect()
    }

    fn find(&self, id: &Id) -> Option<usize> {
        self.running.iter().position(|r| r.id == *id)
    }

    fn orphan(&mut self, parent: &Id) -> Vec<Bytes> {
        let orphans = self.asked.extract_if(.., |(_, call, _)| call == parent);
        let cancelled = orphans.map(|(id, _, ask)| {
            ask.refuse();
            render::cancelled(id, "the parent request has ended")
        });
        cancelled.collect()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// Determines the caller from a request alone, and whether its era has the method. Pure.
///
/// A claim in `_meta` wins; `initialize` and silence belong to sessions. A message that is not a request is an error of
/// the driver and answered as an invalid request.
pub fn open(message: &Message, session: Option<&Arc<Session>>) -> Result<Arc<Request>, Reply> {
    let Kind::Request { id, method } = &message.kind else {
        return Err(Reply::error(None, code::INVALID_REQUEST, "expected a request", None));
    };
    let fail = |code, why: &str| Err(Reply::error(Some(id), code, why, None));
    let (claims, frame) = (message.params().claims.without_nulls(message.frame()), message.frame());
    if let Some(meta) = message.params().meta
        && !meta.of(frame).starts_with('{')
    {
        return fail(code::INVALID_PARAMS, "`_meta` must be an object");
    }
    if let Some(token) = claims.progress_token
        && Id::from_json(token.of(frame)).is_none()
    {
        return fail(code::INVALID_PARAMS, "`progressToken` must be a string or an integer");
    }
    let caller = match (claims.version, method) {
        (Some(version), _) => is_stateless_request(id, message, version)?,
        (None, MethodName::Known(Method::Initialize)) => Caller::of_session(Arc::new(initialize(id, message)?)),
        (None, name) => match session {
            // A session has chosen its era, which may lack the method.
            Some(session) => Caller::of_session(session.clone()),
            None if *name == MethodName::Known(Method::Ping) => {
                Caller::of_session(Arc::new(Session::new(era::negotiated(""), ClientCaps::default(), "{}", "")))
            }
            None => return fail(code::INVALID_PARAMS, MISSING_META),
        },
    };
    let features = caller.features();
    let method = match method {
        MethodName::Known(method) if !era::defines(features, *method) => {
            return fail(code::METHOD_NOT_FOUND, &format!("method not found: {method}"));
        }
        name => name.clone(),
    };
    let (id, params, frame) = (id.clone(), *message.params(), frame.clone());
    let mut request = Request::new(id, method, caller, params, frame);
    request.progress_token = claims.progress_token;
    Ok(Arc::new(request))
}

/// Determines the caller of a notification: its claims in `_meta`, or else the session. Pure.
///
/// `None` if it has neither, if it is malformed, or if the era lacks it: it is ignored.
pub fn notification(message: &Message, session: Option<&Arc<Session>>) -> Option<Notification> {
    let Kind::Notification { method } = &message.kind else { return None };
    let params = *message.params();
    let caller = match params.claims.version {
        Some(version) => is_stateless_request(&Id::unknown(), message, version).ok()?,
        None => Caller::of_session(session?.clone()),
    };
    let fits = message.params_text().starts_with('{') && era::defines_notification(caller.features(), method.as_str());
    fits.then(|| Notification::new(method.clone(), caller, params, message.frame().clone()))
}

const MISSING_META: &str = "`_meta` must contain `io.modelcontextprotocol/protocolVersion` and `io.modelcontextprotocol/clientCapabilities`; \
                            clients of earlier revisions send `initialize` first";

/// The caller of a request with a protocol version in `_meta`.
fn is_stateless_request(id: &Id, message: &Message, version: Span) -> Result<Caller, Reply> {
    let (claims, frame) = (message.params().claims.without_nulls(message.frame()), message.frame());
    let fail = |why: &str| Err(Reply::error(Some(id), code::INVALID_PARAMS, why, None));
    let Some(version) = frame::string(frame, version) else {
        return fail("`io.modelcontextprotocol/protocolVersion` must be a string");
    };
    let Some(features) = era::claimed(&version) else { return Err(unsupported(id, &version)) };
    if claims.info.is_some_and(|i| !i.of(frame).starts_with('{')) {
        return fail("`io.modelcontextprotocol/clientInfo` must be an object");
    }
    let log = match claims.log {
        None => None,
        Some(level) => match frame::string(frame, level).and_then(|l| LoggingLevel::parse(&l)) {
            Some(level) => Some(level),
            None => return fail("`io.modelcontextprotocol/logLevel` is not a log level"),
        },
    };
    let caller = claims.capabilities.and_then(|c| Caller::of_request(features, frame.clone(), c, claims.info, log));
    match caller {
        Some(caller) => Ok(caller),
        None => fail("`_meta` must contain `io.modelcontextprotocol/clientCapabilities`, an object of capabilities"),
    }
}

/// The version a message claims in its `_meta`, if it claims one. Malformed claims are found by [`open`].
pub fn claimed_version(message: &Message) -> Option<Cow<'_, str>> {
    frame::string(message.frame(), message.params().claims.version?)
}

/// Whether an HTTP request without claims in its body was meant to be stateless, judged by its version header.
pub fn header_means_stateless(header: Option<&str>) -> bool {
    header.is_some_and(|h| era::header_version(h) == HeaderVersion::PerRequest)
}

/// The error for a version that is not served.
pub(crate) fn unsupported(id: &Id, requested: &str) -> Reply {
    let mut data = b"{\"supported\":[".to_vec();
    for (i, version) in era::claimable().iter().enumerate() {
        if i > 0 {
            data.push(b',');
        }
        write_str(&mut data, version);
    }
    data.extend_from_slice(b"],\"requested\":");
    write_str(&mut data, clip(requested));
    data.push(b'}');
    let data = String::from_utf8(data).unwrap_or_default();
    Reply::error(Some(id), code::UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", Some(&data))
}

fn initialize(id: &Id, message: &Message) -> Result<Session, Reply> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "protocolVersion")]
        version: Cow<'a, str>,
        #[serde(borrow)]
        capabilities: &'a RawValue,
        #[serde(borrow, rename = "clientInfo")]
        info: Option<&'a RawValue>,
    }
    let fail = |why: &str| Reply::error(Some(id), code::INVALID_PARAMS, why, None);
    let p: Params<'_> =
        serde_json::from_str(message.params_text()).map_err(|e| fail(&format!("malformed `initialize`: {e}")))?;
    let caps = ClientCaps::read(p.capabilities.get())
        .ok_or_else(|| fail("`capabilities` must be an object of capabilities"))?;
    if p.info.is_some_and(|info| !info.get().starts_with('{')) {
        return Err(fail("`clientInfo` must be an object"));
    }
    if p.capabilities.get().len() > DECLARED_BYTES_MAX {
        return Err(fail(&format!("`capabilities` are longer than {DECLARED_BYTES_MAX} bytes; declare less")));
    }
    let info = match p.info.map_or("", RawValue::get) {
        long if long.len() > DECLARED_BYTES_MAX => Cow::Owned(name_and_version(long)),
        info => Cow::Borrowed(info),
    };
    Ok(Session::new(era::negotiated(&p.version), caps, p.capabilities.get(), &info))
}

/// Maximum stored bytes of `capabilities`, and of `clientInfo`, per session.
const DECLARED_BYTES_MAX: usize = 8 << 10;

/// Shortens a long `clientInfo`: no icons, no description, and truncated names.
fn name_and_version(info: &str) -> String {
    let Ok(info) = serde_json::from_str::<Implementation>(info) else { return String::new() };
    let mut short = Implementation::new(clip(&info.name), clip(&info.version));
    short.title = info.title.map(|title| clip(&title).to_owned());
    serde_json::to_string(&short).unwrap_or_default()
}

/// The message for a method that does not exist.
pub(crate) fn not_found(name: &str) -> String {
    format!("method not found: {}", clip(name))
}

/// Truncates peer-supplied names in errors.
fn clip(name: &str) -> &str {
    match name.char_indices().nth(80) {
        Some((at, _)) => &name[..at],
        None => name,
    }
}
