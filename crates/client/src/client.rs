//! The host: its identity, its capabilities, its callbacks.

use crate::book::{Book, BookedTask};
use crate::config::{ClientConfig, NotificationHandler, ReconnectPolicy};
use crate::connection::Connection;
use crate::elicitation::ElicitForm;
use crate::server_requests::{Answers, ElicitUrl, SamplingRequest, ServerMessage};
use crate::{BoxError, Change, Result, negotiate};
use linchpin_core::{ClientLimits, Connector, Features, Tap, TraceContext};
use linchpin_types::capability::{
    ClientCapabilities, ElicitationCapability, EmptyCapability, RootsCapability, SamplingCapability, extension,
};
use linchpin_types::elicit::ElicitResult;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use linchpin_types::root::Root;
use linchpin_types::sample::CreateMessageResult;
use linchpin_types::version::Revision;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A host: its identity, callbacks and settings.
///
/// Cheap to clone; it can connect to any number of servers.
///
/// All settings are optional. Only capabilities with a callback are declared: a client without `on_sampling` has no
/// sampling capability. A client and its clones remember the revision of each server, so that connecting again needs no
/// probe.
///
/// ```
/// # use linchpin_client::{Client, ReconnectPolicy};
/// # async fn connect(transport: impl linchpin_core::Connector) -> linchpin_client::Result<()> {
/// let client = Client::new("my-host", "1.0")
///     .on_elicitation(|form| async move { form.accept_defaults() })
///     .reconnect(ReconnectPolicy::default());
/// let server = client.connect(transport).await?;
/// println!("{:?} speaks {:?}", server.server(), server.revision());
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use]
#[doc(alias = "ClientHandler")]
#[doc(alias = "host")]
pub struct Client {
    pub(crate) config: ClientConfig,
}

impl Client {
    /// Creates a host with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Client {
        Client {
            config: ClientConfig {
                info: Implementation::new(name, version),
                answers: Answers::default(),
                extensions: Vec::new(),
                on_log: None,
                log_level: None,
                notifications: Arc::default(),
                on_change: None,
                accepted: Features::all().collect(),
                limits: Arc::default(),
                tap: None,
                restart: None,
                cache: true,
                rounds: true,
                trace_context: None,
                check_results: false,
                tasks: true,
                book: Book::default(),
                known: Arc::default(),
            },
        }
    }

    /// Sets the identity of the host: title, description, website, icons.
    pub fn info(mut self, info: Implementation) -> Client {
        self.config.info = info;
        self
    }

    /// Sets the callback for form elicitation, and declares the capability.
    ///
    /// In revisions with sessions, the callback runs in its own task; otherwise it runs within the call that caused it.
    ///
    /// ```
    /// # use linchpin_client::Client;
    /// let client = Client::new("my-host", "1.0").on_elicitation(|form| async move {
    ///     eprintln!("{} asks: {}", form.server, form.message);
    ///     form.accept(serde_json::json!({ "city": "Oslo" }))
    /// });
    /// ```
    #[doc(alias = "elicitation")]
    #[doc(alias = "create_elicitation")]
    pub fn on_elicitation<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn(ElicitForm) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitResult> + Send + 'static,
    {
        self.config.answers.form = Some(Arc::new(move |form| Box::pin(answer(form))));
        self
    }

    /// Sets the callback for URL elicitation, and declares the capability.
    ///
    /// The callback asks the user for consent and opens the URL.
    ///
    /// ```
    /// # use linchpin_client::Client;
    /// # async fn confirm(_: &str) -> bool { false }
    /// let client = Client::new("my-host", "1.0").on_url_elicitation(|ask| async move {
    ///     if confirm(&ask.url).await { ask.accept() } else { ask.decline() }
    /// });
    /// ```
    pub fn on_url_elicitation<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn(ElicitUrl) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitResult> + Send + 'static,
    {
        self.config.answers.url = Some(Arc::new(move |ask| Box::pin(answer(ask))));
        self
    }

    /// Sets the callback for sampling requests, and declares the capability.
    ///
    /// If the callback fails, the error's message is sent to the server, but not its sources. In the revision without
    /// sessions, nothing is sent: the call that caused the request fails.
    ///
    /// ```
    /// # use linchpin_client::Client;
    /// # async fn complete(_: &str) -> std::io::Result<String> { Ok(String::new()) }
    /// let client = Client::new("host", "1.0").on_sampling(async |asked| {
    ///     let Some(last) = asked.params.messages.last() else { return Err("nothing to complete".into()) };
    ///     let said = last.content.iter().find_map(|block| block.as_text()).unwrap_or_default();
    ///     Ok(asked.reply("model-1", complete(said).await?))
    /// });
    /// ```
    #[doc(alias = "sampling")]
    #[doc(alias = "create_message")]
    pub fn on_sampling<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn(SamplingRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, BoxError>> + Send + 'static,
    {
        self.config.answers.sample = Some(Arc::new(move |sample| Box::pin(answer(sample))));
        self
    }

    /// Declares that `on_sampling` supports tools.
    pub fn sampling_tools(mut self) -> Client {
        self.config.answers.sample_tools = true;
        self
    }

    /// Sets the roots of the host, as `file://` URIs, and declares the capability.
    ///
    /// ```
    /// # use linchpin_client::Client; use linchpin_types::root::Root;
    /// let client = Client::new("my-host", "1.0").roots(vec![Root::new("file:///srv/project")]);
    /// ```
    pub fn roots(self, roots: Vec<Root>) -> Client {
        self.on_roots(move || std::future::ready(roots.clone()))
    }

    /// Like [`Client::roots`], with a callback for each request.
    ///
    /// Notify servers of changes with [`Connection::roots_changed`].
    pub fn on_roots<F, Fut>(mut self, answer: F) -> Client
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<Root>> + Send + 'static,
    {
        self.config.answers.roots = Some(Arc::new(move |()| Box::pin(answer())));
        self
    }

    /// Sets the callback for log messages and the minimum level to request.
    ///
    /// Messages arrive in order, outside the tasks that read from the connection. If the callback is too slow, the
    /// oldest messages are dropped.
    pub fn on_log(
        mut self,
        least: LoggingLevel,
        hear: impl Fn(LoggingMessageNotificationParams) + Send + Sync + 'static,
    ) -> Client {
        self.config.on_log = Some(Arc::new(hear));
        self.config.log_level = Some(least);
        self
    }

    /// Sets the callback for changes to lists and resources, which are reported in order.
    ///
    /// Lists are subscribed to automatically; for resources, use [`Connection::subscribe`]. After a reconnect,
    /// everything is reported as changed.
    pub fn on_change(mut self, hear: impl Fn(Change) + Send + Sync + 'static) -> Client {
        self.config.on_change = Some(Arc::new(hear));
        self
    }

    /// Adds a handler for requests from servers with this method. If the method has a callback of its own, connecting
    /// fails.
    ///
    /// In the revision without sessions, it handles input requests with this method. A request whose parameters
    /// cannot be decoded is rejected. If the handler fails with an [`ErrorObject`], its code and message are sent to
    /// the server, but not its data; any other error becomes an internal error, of which the message is sent, but not
    /// its sources. Requests without a handler are rejected. In the revision without sessions, nothing is sent when a
    /// request is rejected or its handler fails: the call that caused it fails.
    ///
    /// ```
    /// # use linchpin_client::Client;
    /// #[derive(serde::Deserialize)]
    /// struct Pick { from: Vec<String> }
    ///
    /// let client = Client::new("my-host", "1.0").on_request("example.com/pick", async |asked| {
    ///     let Pick { from } = asked.params;
    ///     let first = from.into_iter().next().ok_or("nothing to pick from")?;
    ///     Ok(serde_json::json!({ "picked": first }))
    /// });
    /// ```
    ///
    /// [`ErrorObject`]: linchpin_types::error::ErrorObject
    #[doc(alias = "setRequestHandler")]
    pub fn on_request<Q, A, F, Fut>(mut self, method: impl AsRef<str>, answer: F) -> Client
    where
        Q: DeserializeOwned + Send + 'static,
        A: Serialize + Send + 'static,
        F: Fn(ServerMessage<Q>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, BoxError>> + Send + 'static,
    {
        self.config.answers.add(method.as_ref(), answer);
        self
    }

    /// Adds a handler for notifications from servers with this name. If the client handles the name itself, connecting
    /// fails.
    ///
    /// Notifications arrive in order, including those for [`Client::on_log`] and [`Client::on_change`]. Notifications whose
    /// parameters cannot be decoded are ignored.
    ///
    /// ```
    /// # use linchpin_client::Client;
    /// #[derive(serde::Deserialize)]
    /// struct Saved { path: String }
    ///
    /// let client = Client::new("my-host", "1.0")
    ///     .on_notification("notifications/example.com/saved", |told| {
    ///         let Saved { path } = told.params;
    ///         println!("{} saved {path}", told.server);
    ///     });
    /// ```
    #[doc(alias = "setNotificationHandler")]
    pub fn on_notification<P: DeserializeOwned>(
        mut self,
        name: impl AsRef<str>,
        hear: impl Fn(ServerMessage<P>) + Send + Sync + 'static,
    ) -> Client {
        let handler: NotificationHandler =
            Arc::new(move |server, params| match ServerMessage::read(server.to_owned(), params) {
                Ok(told) => hear(told),
                Err(_) => tracing::debug!("a notification of the server cannot be read"),
            });
        Arc::make_mut(&mut self.config.notifications).insert(name.as_ref().into(), handler);
        self
    }

    /// Declares an extension with its settings as JSON, in each request or, for servers with sessions, in `initialize`.
    ///
    /// A result with another `resultType` than `complete`, `input_required` and, for calls of tools, `task` is an error
    /// unless an extension is declared; then the host receives the result and checks its type. A `task` in response to
    /// another request is always an error.
    pub fn extension(mut self, name: impl Into<String>, settings: &serde_json::Value) -> Client {
        let settings = RawValue::from_string(settings.to_string()).unwrap_or_default();
        self.config.extensions.push((name.into(), settings));
        self
    }

    /// Restricts the protocol revisions. By default all are allowed. The newest one that the server supports is used.
    pub fn revisions(mut self, revisions: &[Revision]) -> Client {
        self.config.accepted = Features::all().filter(|features| revisions.contains(&features.revision)).collect();
        // Revisions of servers that were negotiated from other choices are not reused.
        self.config.known = Arc::default();
        self
    }

    /// Changes limits. Each has a safe default; see [`ClientLimits`].
    ///
    /// ```
    /// # use linchpin_client::Client;
    /// let client = Client::new("my-host", "1.0").limits(|limits| limits.calls.run_ms_max = 5_000);
    /// ```
    pub fn limits(mut self, change: impl FnOnce(&mut ClientLimits)) -> Client {
        change(Arc::make_mut(&mut self.config.limits));
        self
    }

    /// Sets the default timeout for calls. Default: one minute; zero means no timeout.
    pub fn timeout(mut self, timeout: Duration) -> Client {
        Arc::make_mut(&mut self.config.limits).calls.run_ms_max =
            u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Sets a tap, which receives all messages in both directions, HTTP heads, and lines of standard error.
    pub fn tap(mut self, tap: impl Tap) -> Client {
        self.config.tap = Some(Arc::new(tap));
        self
    }

    /// Reopens lost connections automatically. Without this, the next call fails.
    ///
    /// A crashed program is restarted, its lists are reported as changed, and subscriptions are renewed; only running
    /// calls fail. An HTTP session that the server no longer knows is always reopened: by the next call, or at once if the
    /// host has subscriptions or callbacks for notifications.
    pub fn reconnect(mut self, restart: ReconnectPolicy) -> Client {
        self.config.restart = Some(restart);
        self
    }

    /// Sets whether results are cached for as long as the server allows (`ttlMs`), at most a day. Default: yes.
    ///
    /// The cache is never shared between connections.
    pub fn cache(mut self, on: bool) -> Client {
        self.config.cache = on;
        self
    }

    /// Continues the current trace at the server: `current` is called within the span of each `Request`
    /// (`linchpin::client`, level `info`), and its result is sent in the request's `_meta`. Lists, subscriptions and
    /// the requests about a running task have no span and are sent without it.
    ///
    /// A tracing library provides the current trace; [`crate::Request::trace`] continues another one.
    #[doc(alias = "traceparent")]
    pub fn trace_context(mut self, current: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Client {
        self.config.trace_context = Some(Arc::new(current));
        self
    }

    /// Sets whether the client handles multi-round-trip requests by gathering the input and retrying. Default: yes.
    ///
    /// If not, such a call returns a result for which [`crate::RawCallToolResult::input_required`] is true.
    pub fn multi_round_trip(mut self, on: bool) -> Client {
        self.config.rounds = on;
        self
    }

    /// Sets whether structured results are validated against the schemas of their tools. Default: no.
    ///
    /// Requires the feature `validate` and the list of tools, which a call requests if necessary.
    pub fn check_results(mut self, on: bool) -> Client {
        self.config.check_results = on;
        self
    }

    /// Does not declare support for tasks, so that servers respond to every call directly, or reject it.
    ///
    /// By default clients declare support, and awaiting a call that becomes a task waits for the task's result
    /// ([`crate::Task`]). Specification: the tasks extension of 2026-07-28; 2025-11-25 "Tasks".
    pub fn without_tasks(mut self) -> Client {
        self.config.tasks = false;
        self
    }

    /// Records unfinished tasks in this directory, so that another process can continue to wait for them:
    /// [`Connection::tasks`] lists them, [`Connection::task`] waits for one.
    ///
    /// The directory is created if necessary, accessible only by this user (0700, its files 0600). An entry contains
    /// the identifier, the server and the tool, but no arguments or results. It is written before the call continues,
    /// and removed when the task ends, or 10 minutes after its time to live has expired; without a time to live, after
    /// 30 days. At most 1,000 entries are kept: beyond that, the oldest is removed. By default, a client and its clones
    /// remember their tasks in memory.
    ///
    /// ```
    /// # async fn resume(transport: impl linchpin_core::Connector) -> linchpin_client::Result<()> {
    /// let client = linchpin_client::Client::new("my-host", "1.0").book("/var/lib/my-host/tasks");
    /// let server = client.connect(transport).await?;
    /// for task in server.tasks().await? {
    ///     println!("{}", server.task(&task.task_id).await?.text());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn book(mut self, folder: impl Into<PathBuf>) -> Client {
        self.config.book = Book::at(folder.into());
        self
    }

    /// Returns the recorded tasks of all servers, oldest first; see [`Client::book`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Book`] if they cannot be read.
    pub async fn booked(&self) -> Result<Vec<BookedTask>> {
        self.config.book.tasks().await
    }

    /// Connects to a server and negotiates the revision.
    ///
    /// Cancel-safe: dropping the future undoes everything, a child process included.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Connect`] if the server cannot be reached, does not respond within `connections.open_ms_max`
    /// (`child.open_ms_max` for a child that keeps writing to standard error), or shares no revision;
    /// [`crate::ErrorKind::Unauthorized`] if it requires a login; `InvalidRequest` if a handler of `on_request` or
    /// `on_notification` is for something that the client handles itself; `Book` if the directory of `Client::book`
    /// cannot be created.
    pub async fn connect(&self, connector: impl Connector) -> Result<Connection> {
        self.connect_to(Arc::new(connector)).await
    }

    /// Like [`Client::connect`], but for a transport chosen at run time. Cancel-safe.
    ///
    /// # Errors
    /// See [`Client::connect`].
    pub async fn connect_to(&self, connector: Arc<dyn Connector>) -> Result<Connection> {
        Ok(Connection::new(negotiate::connect(Arc::new(self.config.clone()), connector).await?))
    }
}

/// The settings of an extension that has none.
fn no_settings() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_default()
}

impl ClientConfig {
    /// The capabilities to declare to a server with `features`, never one that its revision lacks.
    pub(crate) fn capabilities(&self, features: &Features) -> ClientCapabilities {
        let answers = &self.answers;
        let url = answers.url.is_some() && features.icons;
        let form = answers.form.is_some() && features.elicitation;
        let mut can = ClientCapabilities::new();
        if answers.roots.is_some() {
            let mut roots = RootsCapability::new();
            roots.list_changed = features.has_sessions.then_some(true);
            can.roots = Some(roots);
        }
        if answers.sample.is_some() {
            let mut sampling = SamplingCapability::new();
            sampling.tools = (answers.sample_tools && features.icons).then(EmptyCapability::default);
            can.sampling = Some(sampling);
        }
        if form || url {
            let mut elicitation = ElicitationCapability::new();
            // A client with forms only sends the empty object, which every revision with elicitation
            // understands.
            elicitation.form = (form && url).then(EmptyCapability::default);
            elicitation.url = url.then(EmptyCapability::default);
            can.elicitation = Some(elicitation);
        }
        // Revisions with sessions have no such member, but servers look for it; tasks they have of their own.
        let said = |name: &str| features.extensions || name != extension::TASKS;
        can.extensions.extend(self.extensions.iter().filter(|(name, _)| said(name)).cloned());
        if features.extensions && self.tasks {
            can.extensions.entry(extension::TASKS.to_owned()).or_insert_with(no_settings);
        }
        can
    }

    /// The identity of the host, as far as the revision has its members.
    pub(crate) fn implementation(&self, features: &Features) -> Implementation {
        let mut info = self.info.clone();
        if !features.titles {
            info.title = None;
        }
        if !features.icons {
            (info.description, info.website_url, info.icons) = (None, None, Vec::new());
        }
        info
    }
}
