//! The caller of a request: described by its session, or by the request itself in stateless revisions, with one interface.

use crate::features::Features;
use crate::json::Span;
use crate::render;
use crate::server_request::{ServerRequest, SessionRequests};
use crate::session_record::SessionRecord;
use crate::subscription::SubscriptionHandle;
use bytestring::ByteString;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::LoggingLevel;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The client capabilities that a server uses.
///
/// ```
/// use linchpin_core::ClientCaps;
///
/// let caps = ClientCaps::read(r#"{"elicitation":{}}"#).unwrap();
/// assert!(caps.elicitation_form && !caps.sampling);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClientCaps {
    /// Elicitation in form mode.
    pub elicitation_form: bool,
    /// Elicitation in URL mode.
    pub elicitation_url: bool,
    /// Sampling.
    pub sampling: bool,
    /// Tools in sampling.
    pub sampling_tools: bool,
    /// `includeContext` other than `none` in sampling.
    pub sampling_context: bool,
    /// Listing roots.
    pub roots: bool,
}

impl ClientCaps {
    /// Reads a `ClientCapabilities` object. `None` if it is not an object of the right shape.
    pub fn read(json: &str) -> Option<ClientCaps> {
        ClientCaps::read_with_extensions(json).map(|(caps, _)| caps)
    }

    /// Reads a `ClientCapabilities` object, and finds its member `extensions`.
    fn read_with_extensions(json: &str) -> Option<(ClientCaps, Option<Span>)> {
        #[derive(Deserialize)]
        struct Caps<'a> {
            #[serde(borrow)]
            elicitation: Option<&'a RawValue>,
            #[serde(borrow)]
            sampling: Option<&'a RawValue>,
            #[serde(borrow)]
            roots: Option<&'a RawValue>,
            #[serde(borrow)]
            extensions: Option<&'a RawValue>,
        }
        #[derive(Deserialize, Default)]
        struct Inner<'a> {
            #[serde(borrow)]
            form: Option<&'a RawValue>,
            #[serde(borrow)]
            url: Option<&'a RawValue>,
            #[serde(borrow)]
            tools: Option<&'a RawValue>,
            #[serde(borrow)]
            context: Option<&'a RawValue>,
        }
        if !json.starts_with('{') {
            return None;
        }
        if json == "{}" {
            return Some((ClientCaps::default(), None));
        }
        let caps: Caps<'_> = serde_json::from_str(json).ok()?;
        fn inner(raw: Option<&RawValue>) -> Option<Inner<'_>> {
            raw.map_or(Some(Inner::default()), |r| serde_json::from_str(r.get()).ok())
        }
        let (e, s) = (inner(caps.elicitation)?, inner(caps.sampling)?);
        let extensions = caps.extensions.map(|value| {
            let start = value.get().as_ptr() as usize - json.as_ptr() as usize;
            Span::new(start, start + value.get().len())
        });
        let caps = ClientCaps {
            // An empty object means form mode.
            elicitation_form: caps.elicitation.is_some() && (e.form.is_some() || e.url.is_none()),
            elicitation_url: e.url.is_some(),
            sampling: caps.sampling.is_some(),
            sampling_tools: s.tools.is_some(),
            sampling_context: s.context.is_some(),
            roots: caps.roots.is_some(),
        };
        Some((caps, extensions))
    }
}

/// Values that a service stores per session or connection, by key. They are dropped with it.
///
/// ```
/// use linchpin_core::caller::Locals;
/// use std::sync::Arc;
///
/// const CITY: u64 = 1;
///
/// let locals = Locals::default();
/// locals.get_or_insert(CITY, || Arc::new("Oslo"));
/// let city = locals.get(CITY).and_then(|value| value.downcast_ref::<&str>().copied());
/// assert_eq!(city, Some("Oslo"));
/// ```
#[derive(Default)]
pub struct Locals(Mutex<Vec<(u64, Arc<dyn Any + Send + Sync>)>>);

impl Locals {
    /// Returns the value of `key`.
    pub fn get(&self, key: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone())
    }

    /// Returns the value of `key`, and creates it if missing. A lock is held while `make` runs, so it must be short.
    pub fn get_or_insert(
        &self,
        key: u64,
        make: impl FnOnce() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == key) {
            return value.clone();
        }
        let value = make();
        values.push((key, value.clone()));
        value
    }
}

/// The session negotiated by `initialize`. Lives as long as its pipe or HTTP session.
///
/// ```
/// use linchpin_core::{Observer, Session};
///
/// struct Sessions;
///
/// impl Observer for Sessions {
///     fn session_opened(&self, session: &Session) {
///         println!("{:016x} in {}", session.public_id(), session.features().revision);
///     }
/// }
/// ```
pub struct Session {
    features: &'static Features,
    caps: ClientCaps,
    /// `capabilities` and `clientInfo` in one allocation; `info_at` is where the second begins.
    declared: Box<str>,
    info_at: u32,
    /// Of `declared`.
    extensions: Option<Span>,
    public_id: AtomicU64,
    /// Counts changes of the log level.
    changes: AtomicU32,
    log: AtomicU8,
    feed: OnceLock<SubscriptionHandle>,
    locals: Locals,
    requests: Mutex<SessionRequests>,
}

impl Session {
    /// Creates a session of the revision of `features`, with the client's declarations as JSON texts.
    pub fn new(features: &'static Features, caps: ClientCaps, capabilities: &str, client_info: &str) -> Session {
        let declared = [capabilities, client_info].concat().into();
        let extensions = ClientCaps::read_with_extensions(capabilities).and_then(|(_, extensions)| extensions);
        let log = AtomicU8::new(LoggingLevel::Info as u8);
        Session {
            features,
            caps,
            declared,
            info_at: capabilities.len() as u32,
            extensions,
            public_id: AtomicU64::new(0),
            changes: AtomicU32::new(0),
            log,
            feed: OnceLock::new(),
            locals: Locals::default(),
            requests: Mutex::default(),
        }
    }

    fn requests(&self) -> MutexGuard<'_, SessionRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a server request that belongs to no call, on the session's stream. Returns its id, for [`Session::withdraw`].
    ///
    /// Returns `None` if the session has no stream, is closed, or has too many pending requests; the request is then
    /// answered with an error.
    pub fn request(&self, request: ServerRequest) -> Option<u64> {
        let Some(feed) = self.feed() else {
            request.refuse();
            return None;
        };
        let (method, params) = (request.method.clone(), request.params.clone());
        let added = self.requests().add(request);
        match added {
            Ok(id) => {
                feed.feed().request(id, render::request(id, &method, &params));
                Some(id)
            }
            Err(request) => {
                request.refuse();
                None
            }
        }
    }

    /// Removes and returns the pending request to which the client's response with this id belongs.
    pub fn answered(&self, id: u64) -> Option<ServerRequest> {
        self.requests().take(id)
    }

    /// Cancels a request whose response is no longer needed. Nothing is sent if it was already answered.
    pub fn withdraw(&self, id: u64) {
        let withdrawn = self.requests().take(id);
        if let (Some(_), Some(feed)) = (withdrawn, self.feed()) {
            feed.feed().withdraw(id, render::cancelled(id, "the server no longer waits"));
        }
    }

    /// Closes the session for server requests: each pending one is answered with an error.
    pub fn close(&self) {
        let pending = self.requests().close();
        pending.into_iter().for_each(ServerRequest::refuse);
    }

    /// Restores a recorded session, without its feed: the caller restores the subscriptions. Ids of requests to the client
    /// begin at the random `nonce`, so that a late response to another process is not mistaken for one to this process.
    /// `None` if the record's revision has no sessions, or its capabilities are malformed.
    pub fn from_record(record: &SessionRecord, nonce: u32) -> Option<Session> {
        let features = Features::all().find(|f| f.revision == record.revision && f.has_sessions)?;
        let caps = ClientCaps::read(record.capabilities.get())?;
        let info = record.client_info.as_ref().map_or("", |info| info.get());
        let mut session = Session::new(features, caps, record.capabilities.get(), info);
        session.requests = Mutex::new(SessionRequests::after(nonce));
        session.set_log_level(record.log_level);
        session.set_public_id(record.public_id);
        Some(session)
    }

    /// Returns what another process needs to continue the session, without its owner. `None` if the client's declarations are
    /// not JSON.
    pub fn record(&self) -> Option<SessionRecord> {
        let json = |text: &str| RawValue::from_string(text.to_owned()).ok();
        let (capabilities, info) = self.declared.split_at(self.info_at as usize);
        let mut record = SessionRecord::new(self.features.revision, json(capabilities)?);
        if !info.is_empty() {
            record.client_info = Some(json(info)?);
        }
        record.log_level = self.log_level();
        record.public_id = self.public_id();
        record.subscriptions = self.feed().map(|feed| feed.feed().subscriptions()).unwrap_or_default();
        Some(record)
    }

    /// Returns a number that changes whenever the record changes.
    pub fn record_version(&self) -> u32 {
        let feed = self.feed().map_or(0, |feed| feed.feed().changes());
        self.changes.load(Ordering::Relaxed).wrapping_add(feed)
    }

    /// Sets the public id, which is 0 until then.
    pub fn set_public_id(&self, public_id: u64) {
        self.public_id.store(public_id, Ordering::Relaxed);
    }

    /// Returns a random number for logs, metrics and traces, the same for the whole life of the session. It is not a
    /// secret: the session's id over HTTP cannot be derived from it.
    pub fn public_id(&self) -> u64 {
        self.public_id.load(Ordering::Relaxed)
    }

    /// Returns a copy with the client's declarations, without the session's feed and values.
    pub fn detached(&self) -> Session {
        let (capabilities, info) = self.declared.split_at(self.info_at as usize);
        let copy = Session::new(self.features, self.caps, capabilities, info);
        copy.set_log_level(self.log_level());
        copy.set_public_id(self.public_id());
        copy
    }

    /// Returns the features of the session's revision.
    pub fn features(&self) -> &'static Features {
        self.features
    }

    /// Returns the size of the client's declarations in bytes.
    pub fn declared_bytes(&self) -> usize {
        self.declared.len()
    }

    /// Returns the service's values for this session.
    pub fn locals(&self) -> &Locals {
        &self.locals
    }

    /// Returns the least severe log level to send: `info` until the client sets another.
    pub fn log_level(&self) -> LoggingLevel {
        LoggingLevel::ALL.get(self.log.load(Ordering::Relaxed) as usize).copied().unwrap_or(LoggingLevel::Info)
    }

    /// Sets the least severe log level to send.
    pub fn set_log_level(&self, level: LoggingLevel) {
        self.log.store(level as u8, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the queue of change notifications for this session. The transport sets it once, when the session opens.
    pub fn feed(&self) -> Option<&SubscriptionHandle> {
        self.feed.get()
    }

    /// Gives the session its feed. A second call has no effect.
    pub fn set_feed(&self, feed: SubscriptionHandle) {
        let _ = self.feed.set(feed);
    }
}

/// The sender of a request, and its capabilities.
///
/// ```
/// use linchpin_core::{Caller, ClientCaps, Features, Session};
/// use linchpin_types::version::Revision;
/// use std::sync::Arc;
///
/// let capabilities = r#"{"elicitation":{}}"#;
/// let caps = ClientCaps::read(capabilities).unwrap();
/// let client = r#"{"name":"desktop","version":"2.0"}"#;
/// let session = Session::new(Features::of(Revision::V2025_11_25), caps, capabilities, client);
///
/// let caller = Caller::of_session(Arc::new(session));
/// assert!(caller.caps().elicitation_form);
/// assert_eq!(caller.client_info().unwrap().name, "desktop");
/// ```
#[derive(Clone)]
pub struct Caller(Source);

#[derive(Clone)]
enum Source {
    Session(Arc<Session>),
    Request {
        features: &'static Features,
        caps: ClientCaps,
        frame: ByteString,
        capabilities: Span,
        /// Of the text at `capabilities`.
        extensions: Option<Span>,
        info: Option<Span>,
        log: Option<LoggingLevel>,
    },
}

impl Caller {
    /// Creates a caller inside a session.
    pub fn of_session(session: Arc<Session>) -> Caller {
        Caller(Source::Session(session))
    }

    /// The same caller, described by a copy of the message it was described by.
    pub(crate) fn described_by(&self, message: &ByteString, copy: &ByteString) -> Caller {
        let mut caller = self.clone();
        if let Source::Request { frame, .. } = &mut caller.0 {
            let same = frame.as_ptr() == message.as_ptr() && frame.len() == message.len();
            *frame = if same { copy.clone() } else { String::from(&**frame).into() };
        }
        caller
    }

    /// Returns a copy in memory of its own. A caller as received is described by slices of the transport's read buffer
    /// and keeps the whole buffer alive (8 KiB over HTTP), which is too much for one that is kept for long.
    ///
    /// ```
    /// # use linchpin_core::Caller;
    /// fn keep(caller: &Caller, subscribers: &mut Vec<Caller>) {
    ///     subscribers.push(caller.detached());
    /// }
    /// ```
    #[must_use]
    pub fn detached(&self) -> Caller {
        let mut caller = self.clone();
        let Source::Request { frame, capabilities, info, .. } = &mut caller.0 else { return caller };
        let (declared, named) = (capabilities.of(frame), info.map(|info| info.of(frame)));
        let text = [declared, named.unwrap_or_default()].concat();
        *info = named.map(|_| Span::new(declared.len(), text.len()));
        *capabilities = Span::new(0, declared.len());
        *frame = text.into();
        caller
    }

    /// Creates a caller described by its own request. `None` if there is no capabilities object at `capabilities`.
    pub fn of_request(
        features: &'static Features,
        frame: ByteString,
        capabilities: Span,
        info: Option<Span>,
        log: Option<LoggingLevel>,
    ) -> Option<Caller> {
        let (caps, extensions) = ClientCaps::read_with_extensions(capabilities.of(&frame))?;
        Some(Caller(Source::Request { features, caps, frame, capabilities, extensions, info, log }))
    }

    /// Returns the features of the caller's revision.
    pub fn features(&self) -> &'static Features {
        match &self.0 {
            Source::Session(s) => s.features,
            Source::Request { features, .. } => features,
        }
    }

    /// Returns the session, if the caller has one.
    pub fn session(&self) -> Option<&Arc<Session>> {
        match &self.0 {
            Source::Session(s) => Some(s),
            Source::Request { .. } => None,
        }
    }

    /// Returns the caller's capabilities that a server uses.
    pub fn caps(&self) -> ClientCaps {
        match &self.0 {
            Source::Session(s) => s.caps,
            Source::Request { caps, .. } => *caps,
        }
    }

    /// Returns the declared `ClientCapabilities` as JSON text.
    pub fn capabilities_json(&self) -> &str {
        match &self.0 {
            Source::Session(s) => &s.declared[..s.info_at as usize],
            Source::Request { frame, capabilities, .. } => capabilities.of(frame),
        }
    }

    /// Returns the settings with which the caller declares a protocol extension, as the JSON text of an object. `None`
    /// if the caller does not declare it.
    ///
    /// A stateless caller declares its extensions in each request, one with a session in `initialize`.
    pub fn extension(&self, identifier: &str) -> Option<&str> {
        let extensions = match &self.0 {
            Source::Session(session) => session.extensions,
            Source::Request { extensions, .. } => *extensions,
        };
        let json = extensions?.of(self.capabilities_json());
        let declared: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).ok()?;
        declared.get(identifier).map(|settings| settings.get()).filter(|settings| settings.starts_with('{'))
    }

    /// Returns the client's name and version, if declared. They are not verified, so use them only for display.
    pub fn client_info(&self) -> Option<Implementation> {
        serde_json::from_str(self.client_info_json()?).ok()
    }

    /// Returns the declared `clientInfo` as JSON text, if there is one.
    pub fn client_info_json(&self) -> Option<&str> {
        let json = match &self.0 {
            Source::Session(s) => &s.declared[s.info_at as usize..],
            Source::Request { frame, info, .. } => (*info)?.of(frame),
        };
        (!json.is_empty()).then_some(json)
    }

    /// Returns the current minimum log level of the caller; `None` disables logging.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        match &self.0 {
            Source::Session(s) => Some(s.log_level()),
            Source::Request { log, .. } => *log,
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("revision", &self.features().revision).finish_non_exhaustive()
    }
}
