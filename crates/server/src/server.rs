//! The builder of a server.

use crate::custom_method::{self, Method};
use crate::error;
use crate::handle::Registries;
use crate::handler::{self, MethodHandler, NotificationHandler, PromptHandler, ResourceHandler, ToolHandler};
use crate::hooks::Hooks;
use crate::invocation::Bound;
use crate::layer::{self, Call, Layer, Next};
use crate::low_level::LowLevel;
use crate::prompt::{self, Prompt};
use crate::resource::{self, Resource};
use crate::running_server::{Refresher, ShutdownHook};
use crate::state::StateOf;
use crate::tool::{self, Tool};
use linchpin_core::{ChangeBus, ChangeRelay, Limits, Observer, Reply};
use linchpin_types::content::Icon;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::page::CacheScope;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The builder of a server, with all protocol revisions and safe limits by default.
///
/// `S` is the state type of the handlers added next. [`Server::state`] changes it, so one server can have several state
/// types; [`Server::with`] adds all tools, resources and prompts of a type.
///
/// ```
/// # use linchpin_server::{Server, Result};
/// # use serde::Deserialize; use schemars::JsonSchema;
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let server = Server::new("adder", "1.0").tool(("add", "Adds two numbers."), |q: Add| async move { (q.a + q.b).to_string() });
/// ```
#[doc(alias = "McpServer")]
#[doc(alias = "FastMCP")]
#[doc(alias = "ServerHandler")]
pub struct Server<S = ()> {
    pub(crate) registries: Arc<Registries>,
    pub(crate) settings: Box<Settings>,
    state: StateOf<S>,
}

/// The parts of a server besides its tools, resources and prompts.
pub(crate) struct Settings {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) extensions: BTreeMap<String, Value>,
    pub(crate) limits: Limits,
    pub(crate) layers: Vec<Layer>,
    pub(crate) request_layers: Vec<Layer>,
    pub(crate) refreshers: Vec<Refresher>,
    pub(crate) shutdown_hooks: Vec<ShutdownHook>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) relay: Option<Arc<dyn ChangeRelay>>,
    pub(crate) list_cache: (u64, CacheScope),
    pub(crate) identify: bool,
    pub(crate) methods: HashMap<Box<str>, Method>,
    pub(crate) hooks: Hooks,
    pub(crate) low_level: Option<LowLevel>,
    pub(crate) keys: Vec<[u8; 32]>,
    pub(crate) problems: Vec<String>,
    #[cfg(feature = "tasks")]
    pub(crate) tasks: Option<crate::Tasks>,
}

// Of what follows the types of states and handlers there is one copy each, and not one for each tool.

fn add_tool(settings: &Settings, registries: &Registries, tool: Tool, bound: Bound) -> Result<(), String> {
    let tool = tool::register(tool, bound, settings.limits.calls.problems_max)?;
    registries.mirrors(&tool);
    registries.tools.insert(tool).map_err(|why| format!("tool {why}"))
}

fn add_resource(registries: &Registries, resource: Resource, bound: Bound) -> Result<(), String> {
    let resource = resource::register(resource, bound)?;
    registries.resources.insert(resource).map_err(|why| format!("resource {why}"))
}

/// A type that provides tools, resources and prompts. `#[register]` implements it.
///
/// A manual implementation is one function:
///
/// ```
/// # use linchpin_server::{Register, Server};
/// struct Clock;
///
/// impl Register for Clock {
///     fn register(server: Server<Clock>) -> Server<Clock> {
///         server.tool(("zone", "Returns the time zone."), |_: &Clock| "UTC".to_owned())
///     }
/// }
///
/// let server = Server::new("clock", "1.0").with(Clock);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` offers no tools, resources or prompts",
    label = "not a `Register`",
    note = "put `#[register]` above the `impl` block of a type of yours whose methods have `#[tool]`, `#[resource(\"…\")]` or `#[prompt]`",
    note = "an `Arc` is not a type of yours: put it inside of one, `#[derive(Clone)] struct App(Arc<…>);`, and clone that to share it",
    note = "a state for handlers that are added with `.tool(…)` is set with `.state(…)`, not `.with(…)`"
)]
pub trait Register: Sized + Send + Sync + 'static {
    /// Adds the type's tools, resources and prompts to a server whose state is of this type.
    fn register(server: Server<Self>) -> Server<Self>;
}

impl Server {
    /// Creates a server with this name and version, and nothing registered yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Server {
        let info = Implementation::new(name, version);
        let registries = Arc::new(Registries::default());
        registries.problems_max.store(Limits::default().calls.problems_max, Ordering::Relaxed);
        let settings = Settings {
            info,
            instructions: None,
            extensions: BTreeMap::new(),
            limits: Limits::default(),
            layers: Vec::new(),
            request_layers: Vec::new(),
            refreshers: Vec::new(),
            shutdown_hooks: Vec::new(),
            observers: Vec::new(),
            relay: None,
            list_cache: (0, CacheScope::Private),
            identify: true,
            methods: HashMap::new(),
            hooks: Hooks::default(),
            low_level: None,
            keys: Vec::new(),
            problems: Vec::new(),
            #[cfg(feature = "tasks")]
            tasks: None,
        };
        Server { registries, settings: Box::new(settings), state: StateOf::shared(Arc::new(())) }
    }
}

impl<S: Send + Sync + 'static> Server<S> {
    /// Sets the state of the handlers added after this call. They take it as `&T`; all calls share it.
    ///
    /// ```
    /// # use linchpin_server::Server;
    /// struct Config { unit: &'static str }
    ///
    /// let server = Server::new("weather", "1.0")
    ///     .state(Config { unit: "°C" })
    ///     .tool(("unit", "Returns the unit of temperatures."), |config: &Config| config.unit.to_owned());
    /// ```
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Server<T> {
        self.shared_state(Arc::new(state))
    }

    /// Like [`Server::state`], for state that is already in an `Arc`.
    pub fn shared_state<T: Send + Sync + 'static>(self, state: Arc<T>) -> Server<T> {
        Server { registries: self.registries, settings: self.settings, state: StateOf::shared(state) }
    }

    /// Sets a state per session for the handlers added after this call. They take it as `&T`.
    ///
    /// `make` creates the state at the first call of each session. To share data between sessions, capture an `Arc` and
    /// clone it into each state. A session that another process continues (`SessionStore`) gets a new state there.
    ///
    /// ```
    /// # use linchpin_server::Server; use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    /// struct Counter { own: AtomicU64, all: Arc<AtomicU64> }
    ///
    /// fn increment(counter: &Counter) -> String {
    ///     let all = counter.all.fetch_add(1, Ordering::Relaxed) + 1;
    ///     format!("{} here, {all} in all", counter.own.fetch_add(1, Ordering::Relaxed) + 1)
    /// }
    ///
    /// let all = Arc::new(AtomicU64::new(0));
    /// let server = Server::new("counter", "1.0")
    ///     .session_state(move || Counter { own: AtomicU64::new(0), all: all.clone() })
    ///     .tool(("increment", "Counts calls."), increment);
    /// ```
    ///
    /// The session depends on the transport and the protocol revision:
    ///
    /// * stdio, unix sockets, `pipes`, memory: the connection, in every revision;
    /// * Streamable HTTP up to 2025-11-25, HTTP+SSE: the session (`Mcp-Session-Id`), until the client ends it or it expires;
    /// * Streamable HTTP of 2026-07-28, which has no sessions: the request. **Each call gets a new state**; data that
    ///   must outlive the call belongs in shared state, under a key that the caller proves or passes as an argument.
    ///
    /// The state is dropped with its session, once no call uses it. Calls of one session run concurrently and share it.
    /// `make` blocks the other calls of its session, so it must be fast.
    pub fn session_state<T: Send + Sync + 'static>(self, make: impl Fn() -> T + Send + Sync + 'static) -> Server<T> {
        Server { registries: self.registries, settings: self.settings, state: StateOf::session(make) }
    }

    /// Adds all tools, resources and prompts of `offer`, with `offer` as their state.
    ///
    /// The state of this server does not change.
    #[doc(alias = "tool_router")]
    pub fn with<T: Register>(self, offer: T) -> Server<S> {
        self.offered_by(StateOf::shared(Arc::new(offer)))
    }

    /// Like [`Server::with`], with a state per session; see [`Server::session_state`].
    pub fn with_session<T: Register>(self, make: impl Fn() -> T + Send + Sync + 'static) -> Server<S> {
        self.offered_by(StateOf::session(make))
    }

    fn offered_by<T: Register>(self, offer: StateOf<T>) -> Server<S> {
        let Server { registries, settings, state } = self;
        let Server { registries, settings, .. } = T::register(Server { registries, settings, state: offer });
        Server { registries, settings, state }
    }

    /// Adds a tool: a function that takes any of `&S`, `&Cx` and one struct of arguments, in this order.
    ///
    /// The function is an `async fn`, a plain `fn` or a closure.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Server, Result};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Greet { name: String }
    /// # #[derive(Default)] struct App { greeting: String }
    /// async fn greet(app: &App, cx: &Cx, q: Greet) -> Result<String> {
    ///     cx.progress(1.0, None);
    ///     Ok(format!("{}, {}!", app.greeting, q.name))
    /// }
    ///
    /// fn version() -> &'static str {
    ///     "1.0"
    /// }
    ///
    /// let server = Server::new("greeter", "1.0")
    ///     .tool("version", version)
    ///     .tool("length", |q: Greet| q.name.len().to_string())
    ///     .state(App::default())
    ///     .tool("greet", greet)
    ///     // A closure that takes a reference is `async |…|`: the future of `|…| async move` cannot borrow it.
    ///     .tool("shout", async |app: &App, q: Greet| format!("{}, {}!", app.greeting.to_uppercase(), q.name));
    /// ```
    ///
    /// A plain `fn` runs on the task that reads requests: blocking or slow work belongs in
    /// `tokio::task::spawn_blocking`, called from an `async fn`.
    ///
    /// `tool` is a name, a name and a description, or a [`Tool`]. Invalid definitions (a duplicate name, arguments that
    /// are not a struct) are reported all at once when the server starts.
    #[track_caller]
    pub fn tool<M, H>(self, tool: impl Into<Tool>, handler: H) -> Self
    where
        H: ToolHandler<S, M>,
    {
        let mut tool = tool.into();
        tool.place = std::panic::Location::caller();
        let bound = handler::bind_tool(self.state.clone(), handler);
        let added = add_tool(&self.settings, &self.registries, tool, bound);
        self.note(added)
    }

    /// Adds a resource or, if the URI has `{variables}`, a template: its variables are the handler's arguments.
    ///
    /// [`Cx::uri`] returns the requested URI.
    ///
    /// [`Cx::uri`]: crate::Cx::uri
    ///
    /// ```
    /// # use linchpin_server::{Cx, Server};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Page { city: String }
    /// let server = Server::new("weather", "1.0")
    ///     .resource("weather://about", || "Weather by city.")
    ///     .resource("weather://{city}", |cx: &Cx, page: Page| {
    ///         format!("{} is about {}", cx.uri().unwrap_or_default(), page.city)
    ///     });
    /// ```
    #[track_caller]
    pub fn resource<M, H>(self, resource: impl Into<Resource>, handler: H) -> Self
    where
        H: ResourceHandler<S, M>,
    {
        let mut resource = resource.into();
        resource.place = std::panic::Location::caller();
        let bound = handler::bind_resource(self.state.clone(), handler);
        let added = add_resource(&self.registries, resource, bound);
        self.note(added)
    }

    /// Adds a method that is not part of the specification, for clients that know it.
    ///
    /// It can be called in every revision. The handler is a function that takes any of `&S`, `&Cx` and one struct of
    /// parameters, in this order; the parameters are `params` without `_meta`. It returns [`Json`](crate::Json) of a
    /// value that serializes to an object, `()`, or a `Result` of one of these; errors become JSON-RPC errors. Layers
    /// and the limits of calls apply.
    ///
    /// The name consists of 1 to 128 printable ASCII characters, without spaces, quotes and backslashes, and should
    /// have a prefix of your own. It is an error, reported when the server starts, if the name is a method of the
    /// specification, begins with `notifications/`, or was added twice.
    ///
    /// ```
    /// # use linchpin_server::{Json, Server};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Search { text: String }
    ///
    /// let server = Server::new("notes", "1.0")
    ///     .method("example.com/search", |q: Search| Json(serde_json::json!({ "found": [q.text] })));
    /// ```
    #[doc(alias = "setRequestHandler")]
    #[doc(alias = "custom request")]
    pub fn method<M, H>(mut self, name: impl AsRef<str>, handler: H) -> Self
    where
        H: MethodHandler<S, M>,
    {
        let name = name.as_ref();
        let bound = handler::bind_method(self.state.clone(), handler);
        let added = self.add_method(name, bound, None, None);
        self.note(added)
    }

    pub(crate) fn add_method(
        &mut self,
        name: &str,
        bound: Bound,
        extension: Option<Arc<str>>,
        named_by: Option<Arc<str>>,
    ) -> Result<(), String> {
        let target = Arc::new(custom_method::register(name, bound)?);
        match self.settings.methods.insert(name.into(), Method { target, extension, named_by }) {
            None => Ok(()),
            Some(_) => Err(format!("method `{name}`: it is added twice")),
        }
    }

    /// Adds a handler for a notification from clients, whether it is part of the specification or not. The only
    /// exception is `notifications/cancelled`: with a handler for it, the server does not start.
    ///
    /// The handler is a function that takes any of `&S`, `&Cx` and one struct of parameters, in this order; the
    /// parameters are `params` without `_meta`. It returns `()` or a `Result` of `()`; an error is logged. Layers do
    /// not apply. A handler that completes at its first poll has finished before the next message is read; others run
    /// concurrently, at most `calls.concurrent_max` of them, each for at most `calls.run_ms_max`. While that many run,
    /// further notifications are dropped. Several handlers of one notification run one after the other, in the order in
    /// which they were added.
    ///
    /// Notifications that neither belong to a session nor describe their client in `_meta` are ignored.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Server};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Saved { path: String }
    ///
    /// let server = Server::new("notes", "1.0")
    ///     .on_notification("notifications/example.com/saved", |saved: Saved| println!("saved {}", saved.path))
    ///     .on_initialized(|cx: &Cx| println!("hello, {:?}", cx.client()));
    /// ```
    #[doc(alias = "setNotificationHandler")]
    #[doc(alias = "on_custom_notification")]
    pub fn on_notification<M, H>(mut self, name: impl AsRef<str>, handler: H) -> Self
    where
        H: NotificationHandler<S, M>,
    {
        let bound = handler::bind_notification(self.state.clone(), handler);
        let added = self.settings.hooks.add(name.as_ref(), bound);
        self.note(added)
    }

    /// Adds a handler for the end of a client's handshake, `notifications/initialized`; see [`Server::on_notification`].
    ///
    /// Only clients with sessions have a handshake.
    #[doc(alias = "oninitialized")]
    pub fn on_initialized<M, H>(self, handler: H) -> Self
    where
        H: NotificationHandler<S, M>,
    {
        self.on_notification("notifications/initialized", handler)
    }

    /// Adds a handler for changes of a client's roots, `notifications/roots/list_changed`; see [`Server::on_notification`].
    ///
    /// Only clients with sessions send it.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Result, Server}; use std::sync::Mutex;
    /// #[derive(Default)]
    /// struct Roots(Mutex<Vec<String>>);
    ///
    /// async fn update(roots: &Roots, cx: &Cx) -> Result<()> {
    ///     let new = cx.roots("roots").await?;
    ///     *roots.0.lock().unwrap() = new.into_iter().map(|root| root.uri).collect();
    ///     Ok(())
    /// }
    ///
    /// let server = Server::new("files", "1.0").session_state(Roots::default).on_initialized(update).on_roots_changed(update);
    /// ```
    #[doc(alias = "RootsListChangedHandler")]
    pub fn on_roots_changed<M, H>(self, handler: H) -> Self
    where
        H: NotificationHandler<S, M>,
    {
        self.on_notification("notifications/roots/list_changed", handler)
    }

    /// Adds a handler that runs when a client subscribes to a resource, in every revision, and may refuse the
    /// subscription. Without one, any client may subscribe to any URI that requires no scopes, even if it cannot read
    /// the resource.
    ///
    /// Its only parameter is the `uri`, which [`Cx::uri`](crate::Cx::uri) returns too; the server does not start if the
    /// handler needs others. An error refuses the subscription: with a session, the request fails with this error;
    /// otherwise, the acknowledgement of the stream does not list the resource. If a client subscribes again without
    /// having unsubscribed, the handler does not run again. If sessions are stored, each process that continues a
    /// session runs the handlers for its subscriptions.
    ///
    /// ```
    /// # use linchpin_server::{Cx, Error, Result, Server};
    /// # #[derive(Default)] struct Files; impl Files { fn watch(&self, _: &str) -> bool { true } fn forget(&self, _: &str) {} }
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Subscription { uri: String }
    ///
    /// fn subscribe(files: &Files, to: Subscription) -> Result<()> {
    ///     if files.watch(&to.uri) { Ok(()) } else { Err(Error::protocol(-32602, "cannot be watched")) }
    /// }
    ///
    /// let server = Server::new("files", "1.0")
    ///     .resource("file:///{path}", |cx: &Cx| cx.uri().unwrap_or_default().to_owned())
    ///     .state(Files::default())
    ///     .on_subscribe(subscribe)
    ///     .on_unsubscribe(|files: &Files, to: Subscription| files.forget(&to.uri));
    /// ```
    #[doc(alias = "SubscribeHandler")]
    pub fn on_subscribe<M, H>(mut self, handler: H) -> Self
    where
        H: NotificationHandler<S, M>,
    {
        let bound = handler::bind_notification(self.state.clone(), handler);
        let added = self.settings.hooks.add_subscription(false, bound);
        self.note(added)
    }

    /// Adds a handler that runs when a subscription to a resource ends: the client unsubscribes, its stream ends, or its
    /// session does. See [`Server::on_subscribe`].
    #[doc(alias = "UnsubscribeHandler")]
    pub fn on_unsubscribe<M, H>(mut self, handler: H) -> Self
    where
        H: NotificationHandler<S, M>,
    {
        let bound = handler::bind_notification(self.state.clone(), handler);
        let added = self.settings.hooks.add_subscription(true, bound);
        self.note(added)
    }

    /// Adds a prompt.
    ///
    /// Its arguments are the fields of the handler's argument type, or those that [`Prompt::argument`] declares. They
    /// arrive as strings and are parsed into text, numbers, booleans or enums; the server does not start if an argument
    /// of another type is required.
    ///
    /// ```
    /// # use linchpin_server::Server;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Review { language: String }
    /// let server = Server::new("prompts", "1.0")
    ///     .prompt(("review", "Reviews code."), |q: Review| format!("Review this {} code.", q.language));
    /// ```
    #[track_caller]
    pub fn prompt<M, H>(self, prompt: impl Into<Prompt>, handler: H) -> Self
    where
        H: PromptHandler<S, M>,
    {
        let mut prompt = prompt.into();
        prompt.place = std::panic::Location::caller();
        let added = prompt::register(prompt, handler::bind_prompt(self.state.clone(), handler));
        let added = added.and_then(|p| self.registries.prompts.insert(p).map_err(|why| format!("prompt {why}")));
        self.note(added)
    }

    /// Whether to declare tools (0), resources (1) or prompts (2) without having any.
    pub(crate) fn announce(&self, kind: usize, on: bool) {
        self.registries.announced[kind].store(on, Ordering::Relaxed);
    }

    pub(crate) fn changes(&self) -> Arc<ChangeBus> {
        self.registries.changes.clone()
    }

    pub(crate) fn with_low_level(mut self, low: LowLevel) -> Self {
        self.settings.low_level = Some(low);
        self
    }

    /// Returns the state of the handlers added next: in [`Register::register`], the value passed to [`Server::with`].
    /// If the state is per session, each call returns a new one.
    ///
    /// ```
    /// # use linchpin_server::{Register, Server};
    /// struct Pages(Vec<&'static str>);
    ///
    /// impl Register for Pages {
    ///     fn register(server: Server<Pages>) -> Server<Pages> {
    ///         let pages = server.registered();
    ///         pages.0.iter().fold(server, |server, page| server.resource(format!("pages://{page}").as_str(), || "empty"))
    ///     }
    /// }
    ///
    /// let server = Server::new("pages", "1.0").with(Pages(vec!["a", "b"]));
    /// ```
    pub fn registered(&self) -> Arc<S> {
        self.state.of(None).into_arc()
    }

    /// Reports a problem with the configuration, as a sentence. The server then does not start, and the error contains
    /// the sentence.
    pub fn problem(self, why: impl Into<String>) -> Self {
        self.note(Err(why.into()))
    }

    /// Declares the resources capability even if there are no resources yet, for servers that add them later.
    pub fn announce_resources(self) -> Self {
        self.announce(1, true);
        self
    }

    fn note(mut self, added: Result<(), String>) -> Self {
        self.settings.problems.extend(added.err());
        self
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.info.title = Some(title.into());
        self
    }

    /// Sets the description, for users.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.settings.info.description = Some(description.into());
        self
    }

    /// Sets the URL of the server's home page.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.settings.info.website_url = Some(url.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.settings.info.icons.push(icon);
        self
    }

    /// Adds instructions for the model. Each further call adds a paragraph.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.settings.instructions = Some(match self.settings.instructions.take() {
            Some(before) => format!("{before}\n\n{text}"),
            None => text,
        });
        self
    }

    /// Declares a protocol extension with its settings, a JSON object.
    ///
    /// The identifier has a prefix, for example `com.example/thing`. In revisions without extensions, it is announced to clients
    /// that declare it themselves. Use [`Extension`](crate::Extension) for an extension with methods.
    pub fn extension(mut self, identifier: impl Into<String>, settings: impl Into<Value>) -> Self {
        self.settings.extensions.insert(identifier.into(), settings.into());
        self
    }

    /// Sets where tasks are kept. By default, they are kept in memory and end with the process.
    #[cfg(feature = "tasks")]
    pub fn tasks(mut self, tasks: crate::Tasks) -> Self {
        self.settings.tasks = Some(tasks);
        self
    }

    /// Adds an observer of calls, sessions and streams, on every transport, for example metrics.
    ///
    /// Without an observer, nothing is measured. Each request also has a `tracing` span, `linchpin::call` at level `info`.
    ///
    /// ```
    /// use linchpin_server::{CallEnd, CallInfo, Observer, Server};
    ///
    /// struct Slow;
    ///
    /// impl Observer for Slow {
    ///     fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
    ///         if end.duration.as_secs() >= 1 {
    ///             eprintln!("{} took {:?}: {}", call.method, end.duration, end.outcome.as_str());
    ///         }
    ///     }
    /// }
    ///
    /// let server = Server::new("files", "1.0").observe(Slow);
    /// ```
    #[doc(alias = "metrics")]
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.settings.observers.push(Arc::new(observer));
        self
    }

    /// Sets the relay that carries changes of lists and resources to the other processes of this server, and their changes to
    /// the subscribers of this process.
    pub fn change_relay(mut self, relay: impl ChangeRelay) -> Self {
        self.settings.relay = Some(Arc::new(relay));
        self
    }

    /// Wraps every tool call, resource read, prompt request and custom method in middleware; the last layer added runs first.
    ///
    /// [`Server::layer_requests`] wraps requests of all methods.
    ///
    /// ```
    /// # use linchpin_server::{Call, Next, Reply, Server};
    /// async fn guarded(call: Call, next: Next) -> Reply {
    ///     let name = call.name().to_owned();
    ///     if name.starts_with("admin_") && call.cx().principal().is_none() {
    ///         return call.refuse("log in first");
    ///     }
    ///     let mut reply = next.run(call).await;
    ///     // Paths of this machine are not sent.
    ///     reply.map_text(|text| text.contains("/srv/").then(|| text.replace("/srv/", "")));
    ///     println!("{name}: {:?}", reply.kind());
    ///     reply
    /// }
    ///
    /// let server = Server::new("files", "1.0").layer(guarded);
    /// ```
    #[doc(alias = "middleware")]
    pub fn layer<F, Fut>(mut self, layer: F) -> Self
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        self.settings.layers.insert(0, layer::erase(layer));
        self
    }

    /// Wraps every request in middleware, whatever its method: lists, completions, subscriptions, `initialize`, custom
    /// methods. The last layer added runs first.
    ///
    /// A layer may refuse a request, change its arguments, and change or replace its response. It runs before the server
    /// looks at the request, so it also sees requests for tools that do not exist, or whose scopes are missing;
    /// [`Server::layer`] runs only around handlers. A `subscriptions/listen` request lasts until its stream ends.
    ///
    /// ```
    /// # use linchpin_server::{Call, Next, Reply, Server};
    /// async fn audited(call: Call, next: Next) -> Reply {
    ///     let (method, who) = (call.method().to_owned(), call.cx().principal().cloned());
    ///     if method == "prompts/list" {
    ///         return call.respond(serde_json::json!({ "prompts": [] }));
    ///     }
    ///     let mut reply = next.run(call).await;
    ///     if method == "tools/list" {
    ///         reply.edit(|list| drop(list.remove("nextCursor")));
    ///     }
    ///     println!("{method} by {}: {:?}", who.map_or("anonymous".into(), |who| who.subject().to_owned()), reply.kind());
    ///     reply
    /// }
    ///
    /// let server = Server::new("files", "1.0").layer_requests(audited);
    /// ```
    #[doc(alias = "middleware")]
    pub fn layer_requests<F, Fut>(mut self, layer: F) -> Self
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        self.settings.request_layers.insert(0, layer::erase(layer));
        self
    }

    /// Updates the list of resources: `refresh` runs before the first page of each `resources/list`.
    ///
    /// `refresh` makes its changes through [`Server::resources`]. The start of the server, later pages and reads do not wait
    /// for it. Several can be added, one for each part of a server; they run one after the other.
    ///
    /// It is dropped when the client cancels the request or when the time limit of calls is reached; the request then
    /// fails. It runs for every request, so it should have a timeout of its own and return at once while the list is up
    /// to date.
    ///
    /// If it fails and there are no resources to list, the request fails with its message, because an empty list would
    /// be wrong.
    pub fn refresh_resources<F, Fut>(mut self, refresh: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = error::Result<()>> + Send + 'static,
    {
        self.registries.announced[1].store(true, Ordering::Relaxed);
        self.settings.refreshers.push(Box::new(move || Box::pin(refresh())));
        self
    }

    /// Adds a hook that runs after serving has ended and the remaining calls have been dropped, or one second after they were
    /// cancelled if they block their threads.
    ///
    /// [`Server::serve`] waits for all hooks before it returns, for at most one second together. They run one after the
    /// other. Tasks spawned by calls still run at that time; usually the runtime ends right after. A service mounted in
    /// another program runs them in `HttpService::shutdown`; a service that is only dropped does not run them.
    ///
    /// ```
    /// # use linchpin_server::Server; use std::sync::Arc;
    /// # #[derive(Default)] struct Pool; impl Pool { async fn close(&self) {} }
    /// let pool = Arc::new(Pool::default());
    /// let server = Server::new("rows", "1.0").on_shutdown(move || {
    ///     let pool = pool.clone();
    ///     async move { pool.close().await }
    /// });
    /// ```
    pub fn on_shutdown<F, Fut>(mut self, end: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let end = Arc::new(end);
        self.settings.shutdown_hooks.push(Box::new(move || {
            let end = end.clone();
            Box::pin(async move { end().await })
        }));
        self
    }

    /// Sets the scopes of every tool added so far without scopes, disabled ones included. `scopes` is called with the
    /// tool's name and whether the tool is read-only.
    ///
    /// ```
    /// # use linchpin_server::{Server, Tool};
    /// let server = Server::new("notes", "1.0")
    ///     .tool(Tool::new("list", "Lists notes.").read_only(), || "none")
    ///     .tool("clear", || "cleared")
    ///     .scopes_for_tools(|_, reads| vec![if reads { "read" } else { "write" }.to_owned()]);
    /// ```
    pub fn scopes_for_tools(self, scopes: impl Fn(&str, bool) -> Vec<String>) -> Self {
        let tools = &self.registries.tools;
        for entry in tools.all() {
            let def = &entry.item.def;
            let reads = def.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true));
            if !entry.item.access.has_scopes() {
                // It is there: nobody else has the server yet.
                let _ = tools.update(&def.name, |tool| {
                    let mut tool = tool.clone();
                    tool.access.set_scopes(scopes(&def.name, reads));
                    Ok(tool)
                });
            }
        }
        self
    }

    /// Changes limits. Each has a safe default; see [`Limits`]. `calls.problems_max` applies to the tools that are
    /// added after this call.
    ///
    /// ```
    /// # use linchpin_server::Server;
    /// let server = Server::new("files", "1.0").limits(|limits| limits.server_requests.response_ms_max = 60_000);
    /// ```
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.settings.limits);
        self.registries.problems_max.store(self.settings.limits.calls.problems_max, Ordering::Relaxed);
        self
    }

    /// Sets how long (in milliseconds) and for whom lists and the server's description may be cached.
    ///
    /// Default: no caching. `Public` allows shared caches to give one caller's response to another.
    pub fn cache_lists(mut self, ttl_ms: u64, scope: CacheScope) -> Self {
        self.settings.list_cache = (ttl_ms, scope);
        self
    }

    /// Omits the server's name and version from responses to stateless requests.
    pub fn hide_server_info(mut self) -> Self {
        self.settings.identify = false;
        self
    }

    /// Sets the key that encrypts the state of multi-round-trip requests, so that any replica can continue.
    ///
    /// Further calls add older keys that are still accepted. Default: a random key per process.
    pub fn state_key(mut self, key: [u8; 32]) -> Self {
        self.settings.keys.push(key);
        self
    }
}

impl<S> fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.settings.info.name).finish_non_exhaustive()
    }
}
