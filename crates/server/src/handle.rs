//! Changes to the tools, resources and prompts of a running server.

use crate::access::Access;
use crate::cx::Cx;
use crate::handler::{self, PromptHandler, ResourceHandler, ToolHandler};
use crate::invocation::Bound;
use crate::prompt::{self, Prompt};
use crate::registry::{ChangeError, Item, Reach, Registry};
use crate::resource::{self, Resource};
use crate::state::StateOf;
use crate::tool::{self, Tool};
use crate::ui::{self, Shown};
use crate::viewer::{Audience, Subscriber};
use linchpin_core::service::{ConfigError, boxed};
use linchpin_core::{ChangeBus, ChangeRelay, ServerChange};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// All tools, resources and prompts, shared by the builder, the running server and all handles.
#[derive(Default)]
pub(crate) struct Registries {
    pub(crate) tools: Registry<tool::Registered>,
    pub(crate) resources: Registry<resource::Registered>,
    pub(crate) prompts: Registry<prompt::Registered>,
    pub(crate) changes: Arc<ChangeBus>,
    /// Carries changes to other processes.
    pub(crate) relay: OnceLock<Arc<dyn ChangeRelay>>,
    /// Kinds whose capability is declared even if there are no items.
    pub(crate) announced: [AtomicBool; 3],
    /// The number of tools with mirrored arguments; without any, the lookup is skipped.
    pub(crate) mirrored: AtomicUsize,
    pub(crate) live: AtomicBool,
    pub(crate) pause_ms: AtomicU64,
    pub(crate) problems_max: AtomicUsize,
    sent: Mutex<[Sent; 3]>,
}

#[derive(Default)]
struct Sent {
    last: Option<Instant>,
    scheduled: bool,
    /// Whom the changes concern that were not sent yet.
    waiting: Vec<Reach>,
}

const KINDS: [ServerChange; 3] = [ServerChange::Tools, ServerChange::Resources, ServerChange::Prompts];

impl Registries {
    /// Notifies subscribers that a list changed: at once, then at most once per pause.
    fn changed(self: &Arc<Self>, kind: usize, reach: Reach) {
        if !self.live.load(Ordering::Acquire) {
            return;
        }
        let pause = Duration::from_millis(self.pause_ms.load(Ordering::Relaxed));
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        sent[kind].waiting.push(reach);
        let due = sent[kind].last.map(|last| last + pause).filter(|due| *due > now);
        match (due, tokio::runtime::Handle::try_current()) {
            (Some(_), Ok(_)) if sent[kind].scheduled => {}
            (Some(due), Ok(runtime)) => {
                sent[kind].scheduled = true;
                let registries = self.clone();
                runtime.spawn(boxed(async move {
                    tokio::time::sleep_until(due).await;
                    let waiting = {
                        let mut sent = registries.sent.lock().unwrap_or_else(PoisonError::into_inner);
                        let now = Sent { last: Some(Instant::now()), ..Sent::default() };
                        std::mem::replace(&mut sent[kind], now).waiting
                    };
                    registries.publish_to(&KINDS[kind], &waiting);
                }));
            }
            _ => {
                let waiting = std::mem::take(&mut sent[kind].waiting);
                sent[kind].last = Some(now);
                drop(sent);
                self.publish_to(&KINDS[kind], &waiting);
            }
        }
    }

    /// Tells the subscribers whom it concerns, and other processes, which do not know whom.
    fn publish_to(&self, change: &ServerChange, reach: &[Reach]) {
        if reach.iter().any(|reach| matches!(reach, Reach::Everyone)) {
            return self.publish(change);
        }
        self.changes.publish_to(change, |subscriber| {
            let Some(viewer) = Subscriber::viewer(subscriber) else { return false };
            reach.iter().any(|reach| matches!(reach, Reach::Some(sees) if sees(&viewer)))
        });
        self.relay(change);
    }

    /// Tells the subscribers of a resource that exists for them, and other processes.
    fn updated(&self, uri: &str) {
        let change = ServerChange::Updated(uri.into());
        self.relayed(&change);
        self.relay(&change);
    }

    /// Tells the subscribers of this process of a change here or in another one: of a resource, those for whom it exists;
    /// of a list, all, because it is not known which of its items changed.
    pub(crate) fn relayed(&self, change: &ServerChange) {
        let ServerChange::Updated(uri) = change else { return self.changes.publish(change) };
        let resources = self.resources.snapshot().clone();
        if !resources.per_viewer() || !resources.covers(uri) {
            return self.changes.publish(change);
        }
        self.changes.publish_to(change, |subscriber| {
            Subscriber::viewer(subscriber).is_some_and(|viewer| resources.resolve(uri, || viewer).is_some())
        });
    }

    /// Tells the subscribers of this process and of others.
    fn publish(&self, change: &ServerChange) {
        self.changes.publish(change);
        self.relay(change);
    }

    fn relay(&self, change: &ServerChange) {
        if let Some(relay) = self.relay.get() {
            relay.publish(change);
        }
    }

    /// The tools whose page is not there, each a sentence.
    pub(crate) fn missing_pages(&self) -> Vec<String> {
        let (tools, resources) = (self.tools.snapshot(), self.resources.snapshot());
        let missing = |tool: &tool::Registered| {
            let uri = tool.ui.uri.as_deref()?;
            let page = resources.get(uri).filter(|page| page.item.def.mime_type.as_deref() == Some(ui::PAGE));
            let why = format!("there is no app `{uri}`; add it with `.with(App::new(…))`");
            page.is_none().then(|| format!("tool `{}` ({}): {why}", tool.def.name, tool.place))
        };
        tools.entries.iter().filter_map(|tool| missing(&tool.item)).collect()
    }

    /// Counts tools with mirrored arguments before they can be called.
    pub(crate) fn mirrors(&self, tool: &tool::Registered) {
        if tool.headers.is_some() {
            self.mirrored.fetch_add(1, Ordering::Release);
        }
    }
}

impl Item for tool::Registered {
    const KIND: &'static str = "tool";
    fn shown(&self) -> Shown {
        self.ui.shown()
    }
    fn key(&self) -> &str {
        &self.def.name
    }
    fn hidden(&self) -> &[Box<str>] {
        &self.hidden
    }
    fn place(&self) -> String {
        self.place.to_string()
    }
    fn access(&self) -> &Access {
        &self.access
    }
}

impl Item for resource::Registered {
    const KIND: &'static str = "resource";
    fn shown(&self) -> Shown {
        if self.def.uri.starts_with(ui::SCHEME) { Shown::ToPages } else { Shown::Alike }
    }
    fn key(&self) -> &str {
        &self.def.uri
    }
    fn place(&self) -> String {
        self.place.to_string()
    }
    fn access(&self) -> &Access {
        &self.access
    }
}

impl Item for prompt::Registered {
    const KIND: &'static str = "prompt";
    fn key(&self) -> &str {
        &self.def.name
    }
    fn hidden(&self) -> &[Box<str>] {
        &self.hidden
    }
    fn place(&self) -> String {
        self.place.to_string()
    }
    fn access(&self) -> &Access {
        &self.access
    }
}

/// A handle to a running server. Cheap to clone.
///
/// ```
/// # use linchpin_server::{Cx, Result};
/// async fn unlock(cx: &Cx) -> Result<&'static str> {
///     cx.server().tools().enable("purge")?;
///     cx.server().resource_updated("rows://state");
///     Ok("unlocked")
/// }
/// # linchpin_server::Server::new("s", "1").tool("unlock", unlock);
/// ```
#[derive(Clone)]
pub struct Handle {
    registries: Arc<Registries>,
}

impl Handle {
    pub(crate) fn new(registries: Arc<Registries>) -> Handle {
        Handle { registries }
    }

    /// Returns the tools. From then on the server declares that it has tools, even without any.
    pub fn tools(&self) -> Tools {
        self.registries.announced[0].store(true, Ordering::Relaxed);
        Tools { registries: self.registries.clone() }
    }

    /// Returns the resources and templates. From then on the server declares that it has resources, even without any.
    pub fn resources(&self) -> Resources {
        self.registries.announced[1].store(true, Ordering::Relaxed);
        Resources { registries: self.registries.clone() }
    }

    /// Returns the prompts. From then on the server declares that it has prompts, even without any.
    pub fn prompts(&self) -> Prompts {
        self.registries.announced[2].store(true, Ordering::Relaxed);
        Prompts { registries: self.registries.clone() }
    }

    /// Notifies subscribers of this resource that it changed, except those for whom the resource does not exist
    /// ([`Resource::visible_to`](crate::Resource::visible_to)). Undelivered duplicates are merged.
    ///
    /// By default any client may subscribe to any URI, even if it cannot read the resource; a handler added with
    /// [`Server::on_subscribe`](crate::Server::on_subscribe) can refuse.
    pub fn resource_updated(&self, uri: &str) {
        self.registries.updated(uri);
    }

    /// Returns the number of open sessions and `subscriptions/listen` streams.
    pub fn listeners(&self) -> usize {
        self.registries.changes.open_feeds()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("listeners", &self.listeners()).finish()
    }
}

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident $field:ident $at:literal $builder:ident $trait:ident $bind:ident $what:literal, $key:literal
     $(#[$replace:meta])*) => {
        #[doc = concat!("The ", $what, "s of a server. Changes take effect at once, and subscribers are notified.")]
        ///
        /// An unknown name is an error, [`ChangeError::Unknown`].
        ///
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            registries: Arc<Registries>,
        }

        impl $name {
            #[doc = concat!("Adds a ", $what, " without state; closures can capture values.")]
            ///
            #[doc = concat!("A handler cannot pass itself here, see [`", stringify!($name), "::replace`].")]
            ///
            /// # Errors
            #[doc = concat!("If the definition is invalid, or another ", $what, " has this ", $key, ".")]
            #[track_caller]
            pub fn insert<M, H>(&self, definition: impl Into<$builder>, handler: H) -> Result<(), ConfigError>
            where
                H: $trait<(), M>,
            {
                self.insert_with(Arc::new(()), definition, handler)
            }

            #[doc = concat!("Adds a ", $what, " with state.")]
            ///
            /// # Errors
            #[doc = concat!("As for [`", stringify!($name), "::insert`].")]
            #[track_caller]
            pub fn insert_with<S, M, H>(
                &self,
                state: Arc<S>,
                definition: impl Into<$builder>,
                handler: H,
            ) -> Result<(), ConfigError>
            where
                S: Send + Sync + 'static,
                H: $trait<S, M>,
            {
                let mut definition = definition.into();
                definition.place = std::panic::Location::caller();
                let bound = handler::$bind(StateOf::shared(state), handler);
                let registered = self.register(definition, bound).map_err(ConfigError::new)?;
                self.registries.$field.insert(registered).map_err(ConfigError::new)?;
                self.after();
                Ok(())
            }

            #[doc = concat!("Replaces the ", $what, " with the same ", $key, ": definition and handler.")]
            ///
            /// Lists always contain either the old or the new definition, and calls reach either the old or the new
            /// handler. A disabled item stays disabled.
            ///
            /// A handler that passes *itself* here does not compile (`E0283`: rustc cannot yet prove that its future is
            /// `Send`). Call `replace` in a separate plain `fn` instead:
            ///
            $(#[$replace])*
            ///
            /// # Errors
            #[doc = concat!("If no ", $what, " has this ", $key, ", or the definition is invalid.")]
            #[track_caller]
            pub fn replace<M, H>(&self, definition: impl Into<$builder>, handler: H) -> Result<(), ChangeError>
            where
                H: $trait<(), M>,
            {
                self.replace_with(Arc::new(()), definition, handler)
            }

            #[doc = concat!("Like [`", stringify!($name), "::replace`], with state.")]
            ///
            /// # Errors
            #[doc = concat!("As for [`", stringify!($name), "::replace`].")]
            #[track_caller]
            pub fn replace_with<S, M, H>(
                &self,
                state: Arc<S>,
                definition: impl Into<$builder>,
                handler: H,
            ) -> Result<(), ChangeError>
            where
                S: Send + Sync + 'static,
                H: $trait<S, M>,
            {
                let mut definition = definition.into();
                definition.place = std::panic::Location::caller();
                let bound = handler::$bind(StateOf::shared(state), handler);
                let registered = self.register(definition, bound).map_err(ChangeError::Invalid)?;
                self.registries.$field.replace(registered)?;
                self.after();
                Ok(())
            }

            #[doc = concat!("Removes a ", $what, ". Running calls continue.")]
            ///
            /// # Errors
            #[doc = concat!("If no ", $what, " has this ", $key, ".")]
            pub fn remove(&self, name: &str) -> Result<(), ChangeError> {
                self.registries.$field.remove(name)?;
                self.after();
                Ok(())
            }

            /// Enables a disabled item. Returns `false` if it was enabled already.
            ///
            /// # Errors
            #[doc = concat!("If no ", $what, " has this ", $key, ".")]
            pub fn enable(&self, name: &str) -> Result<bool, ChangeError> {
                self.set(name, true)
            }

            /// Hides the item from lists, and rejects calls to it until it is enabled.
            ///
            /// Returns `false` if it was disabled already.
            ///
            /// # Errors
            #[doc = concat!("If no ", $what, " has this ", $key, ".")]
            pub fn disable(&self, name: &str) -> Result<bool, ChangeError> {
                self.set(name, false)
            }

            fn set(&self, name: &str, enabled: bool) -> Result<bool, ChangeError> {
                let changed = self.registries.$field.enable(name, enabled)?;
                if changed {
                    self.after();
                }
                Ok(changed)
            }

            /// Enables the item for one session or principal only, even if it is disabled or hidden by `visible_to` for
            /// others.
            ///
            /// A setting for a session takes precedence over one for its principal. Settings are kept in this process:
            #[doc = concat!("until the end of the session or, for a principal, until [`", stringify!($name), "::reset_for`] or the removal of the ", $what, ".")]
            ///
            /// # Errors
            #[doc = concat!("If no ", $what, " has this ", $key, ".")]
            pub fn enable_for(&self, name: &str, audience: &Audience) -> Result<(), ChangeError> {
                self.set_for(name, audience, Some(true))
            }

            /// Hides the item from one session or principal only, as if it did not exist.
            ///
            /// # Errors
            #[doc = concat!("If no ", $what, " has this ", $key, ".")]
            pub fn disable_for(&self, name: &str, audience: &Audience) -> Result<(), ChangeError> {
                self.set_for(name, audience, Some(false))
            }

            #[doc = concat!("Undoes [`", stringify!($name), "::enable_for`] and [`", stringify!($name), "::disable_for`].")]
            ///
            /// # Errors
            #[doc = concat!("If no ", $what, " has this ", $key, ".")]
            pub fn reset_for(&self, name: &str, audience: &Audience) -> Result<(), ChangeError> {
                self.set_for(name, audience, None)
            }

            fn set_for(&self, name: &str, audience: &Audience, enabled: Option<bool>) -> Result<(), ChangeError> {
                self.registries.$field.enable_for(name, audience, enabled)?;
                let audience = audience.clone();
                self.registries.changed($at, Reach::Some(Arc::new(move |viewer| audience.contains(viewer))));
                Ok(())
            }

            /// Returns the names of the enabled items (for resources, their URIs), in list order.
            pub fn names(&self) -> Vec<String> {
                self.registries.$field.snapshot().entries.iter().map(|e| e.item.key().to_owned()).collect()
            }

            fn after(&self) {
                if let Some(reach) = self.registries.$field.take_touched() {
                    self.registries.changed($at, reach);
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.names()).finish()
            }
        }
    };
}

kind! {
    /// ```
    /// # use linchpin_server::Server;
    /// let server = Server::new("news", "1.0").tool(("latest", "Returns the latest headline."), || "none yet");
    /// let tools = server.tools();
    /// tools.insert(("archive", "Returns old headlines."), || "none yet")?;
    /// tools.disable("latest")?;
    /// assert_eq!(tools.names(), ["archive"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Tools tools 0 Tool ToolHandler bind_tool "tool", "name"
    /// ```
    /// # use linchpin_server::{ChangeError, Cx, Tools, Server};
    /// fn upgrade(tools: &Tools) -> Result<(), ChangeError> {
    ///     tools.replace(("upgrade", "Asks for rights again."), rights)
    /// }
    ///
    /// async fn rights(cx: &Cx) -> linchpin_server::Result<&'static str> {
    ///     upgrade(&cx.server().tools())?;
    ///     Ok("upgraded")
    /// }
    /// # let server = Server::new("s", "1").tool("upgrade", rights);
    /// ```
}
kind! {
    /// ```
    /// # use linchpin_server::Server;
    /// let server = Server::new("notes", "1.0");
    /// let resources = server.resources();
    /// resources.insert("note://today", || "Buy milk.")?;
    /// assert_eq!(resources.names(), ["note://today"]);
    /// resources.remove("note://today")?;
    /// assert!(resources.names().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Resources resources 1 Resource ResourceHandler bind_resource "resource", "URI"
    /// ```
    /// # use linchpin_server::{ChangeError, Cx, Resource, Resources, Server};
    /// fn note_read(resources: &Resources) -> Result<(), ChangeError> {
    ///     resources.replace(Resource::new("note://today").description("Was read before."), today)
    /// }
    ///
    /// async fn today(cx: &Cx) -> linchpin_server::Result<&'static str> {
    ///     note_read(&cx.server().resources())?;
    ///     Ok("Buy milk.")
    /// }
    /// # let server = Server::new("s", "1").resource("note://today", today);
    /// ```
}
kind! {
    /// ```
    /// # use linchpin_server::Server;
    /// let server = Server::new("reviews", "1.0").prompt(("review", "Reviews a change."), || "Review my change.");
    /// let prompts = server.prompts();
    /// prompts.rename("review", "review-change")?;
    /// assert_eq!(prompts.names(), ["review-change"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Prompts prompts 2 Prompt PromptHandler bind_prompt "prompt", "name"
    /// ```
    /// # use linchpin_server::{ChangeError, Cx, Prompts, Server};
    /// fn note_used(prompts: &Prompts) -> Result<(), ChangeError> {
    ///     prompts.replace(("review", "Was used before."), review)
    /// }
    ///
    /// async fn review(cx: &Cx) -> linchpin_server::Result<&'static str> {
    ///     note_used(&cx.server().prompts())?;
    ///     Ok("Review my change.")
    /// }
    /// # let server = Server::new("s", "1").prompt("review", review);
    /// ```
}

impl Tools {
    fn register(&self, tool: Tool, bound: Bound) -> Result<tool::Registered, String> {
        let tool = tool::register(tool, bound, self.registries.problems_max.load(Ordering::Relaxed))?;
        self.registries.mirrors(&tool);
        Ok(tool)
    }

    /// Renames a tool. The old name stays usable but is not listed ([`Tool::alias`]).
    ///
    /// The new name must have 1 to 128 letters, digits, `_`, `-` or `.`.
    ///
    /// # Errors
    /// If no tool has this name, or the new name is taken or invalid.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), ChangeError> {
        if !tool::name_ok(to) {
            let why = format!("`{to}` cannot be the name of a tool: 1 to 128 letters, digits, `_`, `-` or `.`");
            return Err(ChangeError::Invalid(why));
        }
        self.registries.tools.rename(name, |old| {
            let mut next = old.clone();
            next.def.name = to.into();
            next.target.name = to.into();
            next.hidden.push(name.into());
            next
        })?;
        self.after();
        Ok(())
    }

    /// Changes the definition of a tool in place, schemas included. Its name and handler stay.
    ///
    /// Schemas that `change` does not set are kept. Lists contain the tool at all times.
    ///
    /// A new [`Tool::input_schema`] is checked before the handler is called; the handler's type must accept all values
    /// that it allows.
    ///
    /// ```
    /// # use linchpin_server::{Server, Tool};
    /// let server = Server::new("rows", "1.0").tool(("query", "Queries."), || "no rows");
    /// server.tools().update("query", |tool: Tool| tool.description("Queries the table `users`.").read_only())?;
    /// # Ok::<(), linchpin_server::ChangeError>(())
    /// ```
    ///
    /// # Errors
    /// If no tool has this name, or the new definition is invalid.
    pub fn update(&self, name: &str, change: impl FnOnce(Tool) -> Tool) -> Result<(), ChangeError> {
        let problems_max = self.registries.problems_max.load(Ordering::Relaxed);
        self.registries.tools.update(name, |old| {
            let new = old.changed(change, problems_max)?;
            self.registries.mirrors(&new);
            Ok(new)
        })?;
        self.after();
        Ok(())
    }
}

impl Resources {
    #[allow(clippy::unused_self, reason = "as for tools, which have a limit to keep")]
    fn register(&self, resource: Resource, bound: Bound) -> Result<resource::Registered, String> {
        resource::register(resource, bound)
    }

    /// Changes the definition of a resource or template in place. Its URI and handler stay.
    ///
    /// # Errors
    /// If no resource has this URI, or the new definition is invalid.
    pub fn update(&self, uri: &str, change: impl FnOnce(Resource) -> Resource) -> Result<(), ChangeError> {
        self.registries.resources.update(uri, |old| old.changed(change))?;
        self.after();
        Ok(())
    }
}

impl Prompts {
    #[allow(clippy::unused_self, reason = "as for tools, which have a limit to keep")]
    fn register(&self, prompt: Prompt, bound: Bound) -> Result<prompt::Registered, String> {
        prompt::register(prompt, bound)
    }

    /// Renames a prompt. The old name stays usable but is not listed ([`Prompt::alias`]).
    ///
    /// # Errors
    /// If no prompt has this name, or the new name is taken.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), ChangeError> {
        self.registries.prompts.rename(name, |old| {
            let mut next = old.clone();
            next.def.name = to.into();
            next.target.name = to.into();
            next.hidden.push(name.into());
            next
        })?;
        self.after();
        Ok(())
    }

    /// Changes the definition of a prompt in place. Its name and handler stay.
    ///
    /// # Errors
    /// If no prompt has this name, or the new definition is invalid.
    pub fn update(&self, name: &str, change: impl FnOnce(Prompt) -> Prompt) -> Result<(), ChangeError> {
        self.registries.prompts.update(name, |old| old.changed(change))?;
        self.after();
        Ok(())
    }
}

impl Cx {
    /// Returns a handle to the running server, to add, remove and change its tools, resources and prompts.
    pub fn server(&self) -> Handle {
        let registries = self.0.shared.registries.clone().downcast::<Registries>();
        Handle::new(registries.unwrap_or_default())
    }
}
