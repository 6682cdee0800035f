//! The builder of a server.

use crate::core::{self, Core, Ender, Refresher};
use crate::error::{Error, Result};
use crate::handle::{Handle, Offers};
use crate::handler::{self, PromptHandler, ResourceHandler, ToolHandler};
use crate::layer::{self, Call, Layer, Next};
use crate::prompt::{self, Prompt};
use crate::resource::{self, Resource};
use crate::state::StateOf;
use crate::tool::{self, Tool};
use linchpin_proto::seal::{Keyring, SealKey};
use linchpin_proto::service::{Bind, IntoService, Service};
use linchpin_proto::{Budget, Limits, Reply, Stamps};
use linchpin_types::content::Icon;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::page::CacheScope;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::task::{JoinError, JoinHandle};

/// A server being put together: every revision, both eras, safe limits, from the first line.
///
/// `S` is the state that handlers added next are methods of. [`Server::state`] changes it, so one server may have
/// several; [`Server::with`] adds everything a type offers.
///
/// ```
/// # use linchpin_server::{Server, Result};
/// # use serde::Deserialize; use schemars::JsonSchema;
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let server = Server::new("adder", "1.0").tool(("add", "Adds two numbers."), |q: Add| async move { (q.a + q.b).to_string() });
/// ```
pub struct Server<S = ()> {
    offers: Arc<Offers>,
    settings: Box<Settings>,
    state: StateOf<S>,
}

struct Settings {
    info: Implementation,
    instructions: Option<String>,
    extensions: BTreeMap<String, Value>,
    limits: Limits,
    layers: Vec<Layer>,
    refreshers: Vec<Refresher>,
    enders: Vec<Ender>,
    list_cache: (u64, CacheScope),
    identify: bool,
    keys: Vec<[u8; 32]>,
    problems: Vec<String>,
}

/// A type that offers tools, resources and prompts of its own. `#[offer]` writes this; by hand it is one function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` offers no tools, resources or prompts",
    label = "not an `Offer`",
    note = "put `#[offer]` above the `impl {Self}` block whose methods have `#[tool]`, `#[resource(\"…\")]` or `#[prompt]`",
    note = "a state for handlers that are added with `.tool(…)` is set with `.state(…)`, not `.with(…)`"
)]
pub trait Offer: Sized + Send + Sync + 'static {
    /// Adds what it offers to a server whose state it is.
    fn offer(server: Server<Self>) -> Server<Self>;
}

impl Server {
    /// A server of this name and version that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Server {
        let info = Implementation { name: name.into(), version: version.into(), ..Implementation::default() };
        let offers = Arc::new(Offers::default());
        offers.problems_max.store(Limits::default().problems_max, Ordering::Relaxed);
        let settings = Settings {
            info,
            instructions: None,
            extensions: BTreeMap::new(),
            limits: Limits::default(),
            layers: Vec::new(),
            refreshers: Vec::new(),
            enders: Vec::new(),
            list_cache: (0, CacheScope::Private),
            identify: true,
            keys: Vec::new(),
            problems: Vec::new(),
        };
        Server { offers, settings: Box::new(settings), state: StateOf::shared(Arc::new(())) }
    }
}

impl<S: Send + Sync + 'static> Server<S> {
    /// Handlers added from here on take `&T`: `state`, which all calls share.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Server<T> {
        self.shared_state(Arc::new(state))
    }

    /// [`Server::state`] for state that is shared with others.
    pub fn shared_state<T: Send + Sync + 'static>(self, state: Arc<T>) -> Server<T> {
        Server { offers: self.offers, settings: self.settings, state: StateOf::shared(state) }
    }

    /// Handlers added from here on take `&T`: a state of their session's own, which `make` makes at its first call. What is
    /// shared by all sessions `make` puts into it, as an `Arc`.
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
    /// What a session is depends on the transport and the revision of the protocol:
    ///
    /// * stdio, unix sockets, `pipes`, memory: the connection, in every revision;
    /// * Streamable HTTP up to 2025-11-25, HTTP+SSE: the session (`Mcp-Session-Id`), until the client ends it or it expires;
    /// * Streamable HTTP of 2026-07-28, which has no sessions: the request. **Each call gets a new state**; what must outlive it
    ///   belongs into shared state, under a key that the caller proves or passes as an argument.
    ///
    /// The state is dropped with its session, once no call uses it. Calls of one session run at the same time and share it.
    /// `make` runs while other calls of the session wait for it, so it does nothing slow.
    pub fn session_state<T: Send + Sync + 'static>(self, make: impl Fn() -> T + Send + Sync + 'static) -> Server<T> {
        Server { offers: self.offers, settings: self.settings, state: StateOf::session(make) }
    }

    /// Adds everything `offer` offers, with itself as the state. The state of this server stays what it was.
    pub fn with<T: Offer>(self, offer: T) -> Server<S> {
        self.offered_by(StateOf::shared(Arc::new(offer)))
    }

    /// [`Server::with`] for a state of each session's own, as [`Server::session_state`] describes it.
    pub fn with_session<T: Offer>(self, make: impl Fn() -> T + Send + Sync + 'static) -> Server<S> {
        self.offered_by(StateOf::session(make))
    }

    fn offered_by<T: Offer>(self, offer: StateOf<T>) -> Server<S> {
        let Server { offers, settings, state } = self;
        let Server { offers, settings, .. } = T::offer(Server { offers, settings, state: offer });
        Server { offers, settings, state }
    }

    /// Adds a tool: an `async fn` or a plain `fn` of any of `&S`, `&Cx` and one struct of arguments, in this order.
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
    ///     // A closure that takes a reference is `async |…|`, not `|…| async move`, whose future could not borrow it.
    ///     .tool("shout", async |app: &App, q: Greet| format!("{}, {}!", app.greeting.to_uppercase(), q.name));
    /// ```
    ///
    /// A plain `fn` runs on the task that reads requests: what takes long in it belongs into
    /// `tokio::task::spawn_blocking`, from an `async fn`.
    ///
    /// `tool` is a name, a name and a description, or a [`Tool`]. Problems (a name taken, arguments that are no struct)
    /// are reported when the server starts, all at once.
    #[track_caller]
    pub fn tool<M, H>(self, tool: impl Into<Tool>, handler: H) -> Self
    where
        H: ToolHandler<S, M>,
    {
        let mut tool = tool.into();
        tool.place = std::panic::Location::caller();
        let bound = handler::bind_tool(self.state.clone(), handler);
        let added = tool::register(tool, bound, self.settings.limits.problems_max).and_then(|tool| {
            self.offers.mirrors(&tool);
            self.offers.tools.insert(tool).map_err(|why| format!("tool {why}"))
        });
        self.note(added)
    }

    /// Adds a resource, or a template when the URI has `{variables}`, which are the handler's arguments. [`Cx::uri`] is the URI
    /// that was asked for.
    ///
    /// [`Cx::uri`]: crate::Cx::uri
    ///
    /// ```
    /// # use linchpin_server::{Cx, Server};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Page { city: String }
    /// let server = Server::new("weather", "1.0")
    ///     .resource("weather://about", || "Weather by city.")
    ///     .resource("weather://{city}", |cx: &Cx, page: Page| format!("{} is about {}", cx.uri().unwrap_or_default(), page.city));
    /// ```
    #[track_caller]
    pub fn resource<M, H>(self, resource: impl Into<Resource>, handler: H) -> Self
    where
        H: ResourceHandler<S, M>,
    {
        let mut resource = resource.into();
        resource.place = std::panic::Location::caller();
        let added = resource::register(resource, handler::bind_resource(self.state.clone(), handler));
        let added = added.and_then(|r| self.offers.resources.insert(r).map_err(|why| format!("resource {why}")));
        self.note(added)
    }

    /// Adds a prompt. Its arguments are the fields of the handler's type, or those that [`Prompt::argument`] declares.
    #[track_caller]
    pub fn prompt<M, H>(self, prompt: impl Into<Prompt>, handler: H) -> Self
    where
        H: PromptHandler<S, M>,
    {
        let mut prompt = prompt.into();
        prompt.place = std::panic::Location::caller();
        let added = prompt::register(prompt, handler::bind_prompt(self.state.clone(), handler));
        let added = added.and_then(|p| self.offers.prompts.insert(p).map_err(|why| format!("prompt {why}")));
        self.note(added)
    }

    fn note(mut self, added: Result<(), String>) -> Self {
        self.settings.problems.extend(added.err());
        self
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.info.title = Some(title.into());
        self
    }

    /// What the server is, for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.settings.info.description = Some(description.into());
        self
    }

    /// The server's home page.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.settings.info.website_url = Some(url.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.settings.info.icons.push(icon);
        self
    }

    /// How to use the server, for models. Called again it adds a paragraph, so that each part of a server can say its own.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.settings.instructions = Some(match self.settings.instructions.take() {
            Some(before) => format!("{before}\n\n{text}"),
            None => text,
        });
        self
    }

    /// Announces an extension of the protocol with its settings, an object. The identifier has a prefix, for example
    /// `com.example/thing`.
    pub fn extension(mut self, identifier: impl Into<String>, settings: impl Into<Value>) -> Self {
        self.settings.extensions.insert(identifier.into(), settings.into());
        self
    }

    /// Wraps every tool call, resource read and prompt in middleware; the last one added runs first.
    ///
    /// ```
    /// # use linchpin_server::{Call, Next, Reply, Server};
    /// async fn guarded(call: Call, next: Next) -> Reply {
    ///     let name = call.name().to_owned();
    ///     if name.starts_with("admin_") && call.cx().principal().is_none() {
    ///         return call.refuse("log in first");
    ///     }
    ///     let mut reply = next.run(call).await;
    ///     // No path of this machine leaves it.
    ///     reply.map_text(|text| text.contains("/srv/").then(|| text.replace("/srv/", "")));
    ///     println!("{name}: {:?}", reply.kind());
    ///     reply
    /// }
    ///
    /// let server = Server::new("files", "1.0").layer(guarded);
    /// ```
    pub fn layer<F, Fut>(mut self, layer: F) -> Self
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        self.settings.layers.insert(0, layer::erase(layer));
        self
    }

    /// Brings the list of resources up to date when it is asked for: `refresh` is run before the first page of `resources/list`
    /// is answered, and changes what it must through [`Server::resources`]. Nothing else waits for it: neither the start,
    /// nor later pages, nor reads. Parts of a server may each have one; they run one after the other.
    ///
    /// It is dropped when the client cancels the request, and at the limit for calls; then the request fails. So it should
    /// have a deadline of its own, and return at once where the list is still good: it runs for every request.
    ///
    /// Where it fails and there is no resource at all to list, the request fails with its message: an empty list would say
    /// that there are none.
    pub fn refresh_resources<F, Fut>(mut self, refresh: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.offers.announced[1].store(true, Ordering::Relaxed);
        self.settings.refreshers.push(Box::new(move || Box::pin(refresh())));
        self
    }

    /// Ends what calls may have left behind: `end` is run once serving has ended, when calls that still ran have been dropped,
    /// and is waited for before [`Server::serve`] returns, for a second at most. What a call has spawned is still running then;
    /// after that the runtime usually goes. A service that is mounted elsewhere runs it in `HttpService::shutdown`; one that is
    /// just dropped does not.
    ///
    /// ```
    /// # use linchpin_server::Server; use std::sync::Arc;
    /// # #[derive(Default)] struct Pool; impl Pool { async fn close(&self) {} }
    /// let pool = Arc::new(Pool::default());
    /// let server = Server::new("rows", "1.0").at_end(move || {
    ///     let pool = pool.clone();
    ///     async move { pool.close().await }
    /// });
    /// ```
    pub fn at_end<F, Fut>(mut self, end: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.settings.enders.push(Box::new(move || Box::pin(end())));
        self
    }

    /// Changes limits. Each has a safe default; see [`Limits`].
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.settings.limits);
        self.offers.problems_max.store(self.settings.limits.problems_max, Ordering::Relaxed);
        self
    }

    /// How long, in milliseconds, and for whom lists and the server's description may be cached. Default: not at all.
    /// `Public` means that shared caches may give one caller's answer to another.
    pub fn cache_lists(mut self, ttl_ms: u64, scope: CacheScope) -> Self {
        self.settings.list_cache = (ttl_ms, scope);
        self
    }

    /// Leaves the server's name and version out of answers to stand-alone requests.
    pub fn anonymous(mut self) -> Self {
        self.settings.identify = false;
        self
    }

    /// Seals state that clients carry between rounds with this key, so that any replica can go on. Call it again for older
    /// keys that are still accepted. Default: a random key of this process.
    pub fn state_key(mut self, key: [u8; 32]) -> Self {
        self.settings.keys.push(key);
        self
    }

    /// The handle to change what the server offers, also while it runs.
    pub fn handle(&self) -> Handle {
        Handle::new(self.offers.clone())
    }

    /// The tools, to change while the server runs.
    pub fn tools(&self) -> crate::handle::Tools {
        self.handle().tools()
    }

    /// The resources, to change while the server runs.
    pub fn resources(&self) -> crate::handle::Resources {
        self.handle().resources()
    }

    /// The prompts, to change while the server runs.
    pub fn prompts(&self) -> crate::handle::Prompts {
        self.handle().prompts()
    }

    /// Serves at `place` until its peer ends or the place is told to shut down: `stdio()`, `http("127.0.0.1:8931")`, …
    ///
    /// Signals are the program's affair: with `stdio().with_graceful_shutdown(shutdown_signal())` the server ends gracefully on
    /// Ctrl-C and SIGTERM, without that they end the process at once.
    ///
    /// Cancel safety: dropping the future stops the server. Its listener is closed, its connections end and running calls
    /// are dropped. What [`Server::at_end`] has is run only by a server that was told to shut down, or whose peer ended.
    ///
    /// # Errors
    /// The server is put together wrongly (each problem with its place in the source), or the place cannot be used.
    pub async fn serve(self, place: impl Bind) -> Result<()> {
        let service = self.into_shared()?;
        // On a worker of the runtime the I/O driver and the loop share a thread, which saves a wake-up per message.
        let served = AbortOnDrop(tokio::spawn(place.serve(service.clone()))).await;
        service.ended().await;
        served.map_err(|e| Error::tool(format!("serving stopped: {e}")))??;
        Ok(())
    }

    fn freeze(self) -> Result<Arc<dyn Service>, String> {
        let Settings {
            info,
            instructions,
            extensions,
            limits,
            layers,
            refreshers,
            enders,
            list_cache,
            identify,
            keys,
            mut problems,
        } = *self.settings;
        for (identifier, settings) in &extensions {
            if !identifier_ok(identifier) || !settings.is_object() {
                problems.push(format!(
                    "extension `{identifier}`: needs a prefix (`com.example/name`) and an object of settings"
                ));
            }
        }
        if !problems.is_empty() {
            return Err(problems.join("\n"));
        }
        let claimed = linchpin_proto::Wire::claimed(linchpin_proto::era::claimable()[0]);
        let card =
            claimed.map(|w| linchpin_proto::fit::implementation(info.clone(), w)).unwrap_or_else(|| info.clone());
        let server_info =
            if identify { serde_json::to_string(&card).unwrap_or_default().into() } else { Box::default() };
        let mut keys = keys.into_iter().map(SealKey::from_bytes);
        let mut keyring = Keyring::new(keys.next().unwrap_or_else(|| SealKey::from_bytes(core::random())));
        keyring.previous.extend(keys);
        let offers = self.offers;
        offers.pause_ms.store(limits.list_changed_ms_min, Ordering::Relaxed);
        offers.live.store(true, Ordering::Release);
        Ok(Arc::new_cyclic(|this| Core {
            offers,
            budget: Budget::new(limits.memory_bytes_max),
            limits: Arc::new(limits),
            stamps: Arc::new(Stamps { server_info }),
            calls: Default::default(),
            list_cache,
            info,
            instructions,
            extensions: extensions.iter().map(|(k, v)| (k.clone(), crate::schema::raw(v))).collect(),
            layers: layers.into(),
            refreshers: refreshers.into(),
            enders: enders.into(),
            keyring,
            this: this.clone(),
        }))
    }
}

/// A task that ends with whoever waits for it.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether it is a prefix of dotted labels and a name, as the specification writes keys: `com.example/name`.
fn identifier_ok(identifier: &str) -> bool {
    let edge = |text: &str| text.ends_with(|c: char| c.is_ascii_alphanumeric());
    let label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphabetic())
            && edge(label)
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && edge(name)
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    identifier.split_once('/').is_some_and(|(prefix, n)| prefix.split('.').all(label) && name(n))
}

impl<S: Send + Sync + 'static> IntoService for Server<S> {
    fn into_shared(self) -> io::Result<Arc<dyn Service>> {
        self.freeze().map_err(|problems| io::Error::new(io::ErrorKind::InvalidInput, problems))
    }
}

impl<S> fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.settings.info.name).finish_non_exhaustive()
    }
}
