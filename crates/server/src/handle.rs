//! Changing what a server offers while it runs.

use crate::error::{Error, Result};
use crate::handler::{self, Bound, PromptHandler, ResourceHandler, ToolHandler};
use crate::prompt::{self, Prompt};
use crate::registry::{ChangeError, Item, Registry};
use crate::resource::{self, Resource};
use crate::state::StateOf;
use crate::tool::{self, Tool};
use linchpin_proto::{Change, Hub};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Everything a server offers, shared by the builder, the running server and all handles.
#[derive(Default)]
pub(crate) struct Offers {
    pub(crate) tools: Registry<tool::Registered>,
    pub(crate) resources: Registry<resource::Registered>,
    pub(crate) prompts: Registry<prompt::Registered>,
    pub(crate) hub: Arc<Hub>,
    /// Kinds that are announced even while there is nothing of them.
    pub(crate) announced: [AtomicBool; 3],
    /// Tools with mirrored arguments; while there are none, nobody looks for them.
    pub(crate) mirrored: AtomicUsize,
    pub(crate) live: AtomicBool,
    pub(crate) pause_ms: AtomicU64,
    pub(crate) problems_max: AtomicUsize,
    sent: Mutex<[Sent; 3]>,
}

#[derive(Default, Clone, Copy)]
struct Sent {
    last: Option<Instant>,
    scheduled: bool,
}

const KINDS: [Change; 3] = [Change::Tools, Change::Resources, Change::Prompts];

impl Offers {
    /// A list changed: tells listeners at once, then at most once a pause.
    fn changed(self: &Arc<Self>, kind: usize) {
        if !self.live.load(Ordering::Acquire) {
            return;
        }
        let pause = Duration::from_millis(self.pause_ms.load(Ordering::Relaxed));
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = sent[kind].last.map(|last| last + pause).filter(|due| *due > now);
        match (due, tokio::runtime::Handle::try_current()) {
            (Some(_), Ok(_)) if sent[kind].scheduled => {}
            (Some(due), Ok(runtime)) => {
                sent[kind].scheduled = true;
                let offers = self.clone();
                runtime.spawn(async move {
                    tokio::time::sleep_until(due).await;
                    {
                        let mut sent = offers.sent.lock().unwrap_or_else(PoisonError::into_inner);
                        sent[kind] = Sent { last: Some(Instant::now()), scheduled: false };
                    }
                    offers.hub.publish(&KINDS[kind]);
                });
            }
            _ => {
                sent[kind].last = Some(now);
                drop(sent);
                self.hub.publish(&KINDS[kind]);
            }
        }
    }

    /// Notes whether a tool has mirrored arguments, before anybody can call it.
    pub(crate) fn mirrors(&self, tool: &tool::Registered) {
        if tool.headers.is_some() {
            self.mirrored.fetch_add(1, Ordering::Release);
        }
    }
}

impl Item for tool::Registered {
    const KIND: &'static str = "tool";
    fn key(&self) -> &str {
        &self.def.name
    }
    fn hidden(&self) -> &[Box<str>] {
        &self.hidden
    }
    fn place(&self) -> String {
        self.place.to_string()
    }
}

impl Item for resource::Registered {
    const KIND: &'static str = "resource";
    fn key(&self) -> &str {
        &self.def.uri
    }
    fn place(&self) -> String {
        self.place.to_string()
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
}

/// A running server, as its handlers and its program see it. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    offers: Arc<Offers>,
}

impl Handle {
    pub(crate) fn new(offers: Arc<Offers>) -> Handle {
        Handle { offers }
    }

    /// The tools.
    pub fn tools(&self) -> Tools {
        self.offers.announced[0].store(true, Ordering::Relaxed);
        Tools { offers: self.offers.clone() }
    }

    /// The resources and templates.
    pub fn resources(&self) -> Resources {
        self.offers.announced[1].store(true, Ordering::Relaxed);
        Resources { offers: self.offers.clone() }
    }

    /// The prompts.
    pub fn prompts(&self) -> Prompts {
        self.offers.announced[2].store(true, Ordering::Relaxed);
        Prompts { offers: self.offers.clone() }
    }

    /// Tells whoever subscribed to this resource that it changed. Repeats that were not delivered yet are one.
    pub fn resource_updated(&self, uri: &str) {
        self.offers.hub.publish(&Change::Updated(uri.into()));
    }

    /// How many sessions and listen streams are open.
    pub fn listeners(&self) -> usize {
        self.offers.hub.open_feeds()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("listeners", &self.listeners()).finish()
    }
}

macro_rules! kind {
    ($name:ident $field:ident $at:literal $builder:ident $trait:ident $bind:ident $what:literal, $key:literal) => {
        #[doc = concat!("The ", $what, "s of a server: readers see each change at once, listeners hear of it once.")]
        ///
        /// A name that nothing has is an error, [`ChangeError::Unknown`], so that a misspelt one does not go unnoticed.
        #[derive(Clone)]
        pub struct $name {
            offers: Arc<Offers>,
        }

        impl $name {
            #[doc = concat!("Adds a ", $what, " without state of its own; closures capture what they need.")]
            #[doc = concat!("A handler cannot name itself here, see [`", stringify!($name), "::replace`].")]
            ///
            /// # Errors
            #[doc = concat!("The definition is wrong, or another ", $what, " has this ", $key, ".")]
            #[track_caller]
            pub fn insert<M, H>(&self, definition: impl Into<$builder>, handler: H) -> Result<()>
            where
                H: $trait<(), M>,
            {
                self.insert_with(Arc::new(()), definition, handler)
            }

            #[doc = concat!("Adds a ", $what, " with its state.")]
            ///
            /// # Errors
            #[doc = concat!("As for [`", stringify!($name), "::insert`].")]
            #[track_caller]
            pub fn insert_with<S, M, H>(
                &self,
                state: Arc<S>,
                definition: impl Into<$builder>,
                handler: H,
            ) -> Result<()>
            where
                S: Send + Sync + 'static,
                H: $trait<S, M>,
            {
                let mut definition = definition.into();
                definition.place = std::panic::Location::caller();
                let bound = handler::$bind(StateOf::shared(state), handler);
                self.offers.$field.insert(self.register(definition, bound).map_err(Error::tool)?).map_err(Error::tool)?;
                self.after();
                Ok(())
            }

            #[doc = concat!("Puts a ", $what, " in the place of the one that has its ", $key, ": definition and handler.")]
            /// No list is without it in between, and calls see the old one or the new one. It stays disabled if it was.
            ///
            /// A handler that names *itself* here does not compile (`E0283`: rustc cannot know yet that its future is `Send`).
            /// The call of `replace` then goes into a plain `fn` beside it:
            ///
            /// ```
            /// # use linchpin_server::{Cx, Resource, Server, Tool, Prompt, Tools};
            /// fn upgrade(tools: &Tools) -> Result<(), linchpin_server::ChangeError> {
            ///     tools.replace(("upgrade", "Asks for rights again."), rights)
            /// }
            ///
            /// async fn rights(cx: &Cx) -> linchpin_server::Result<&'static str> {
            ///     upgrade(&cx.server().tools())?;
            ///     Ok("upgraded")
            /// }
            /// # let server = Server::new("s", "1").tool("upgrade", rights);
            /// ```
            ///
            /// # Errors
            #[doc = concat!("No ", $what, " has this ", $key, ", or the definition is wrong.")]
            #[track_caller]
            pub fn replace<M, H>(&self, definition: impl Into<$builder>, handler: H) -> Result<(), ChangeError>
            where
                H: $trait<(), M>,
            {
                self.replace_with(Arc::new(()), definition, handler)
            }

            #[doc = concat!("[`", stringify!($name), "::replace`] with state.")]
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
                self.offers.$field.replace(registered)?;
                self.after();
                Ok(())
            }

            #[doc = concat!("Takes a ", $what, " away. Calls that run go on.")]
            ///
            /// # Errors
            #[doc = concat!("No ", $what, " has this ", $key, ".")]
            pub fn remove(&self, name: &str) -> Result<(), ChangeError> {
                self.offers.$field.remove(name)?;
                self.after();
                Ok(())
            }

            /// Offers again what was disabled. `false` if it was not.
            ///
            /// # Errors
            #[doc = concat!("No ", $what, " has this ", $key, ".")]
            pub fn enable(&self, name: &str) -> Result<bool, ChangeError> {
                self.set(name, true)
            }

            /// Hides it from lists and refuses calls, until it is enabled. `false` if that is so already.
            ///
            /// # Errors
            #[doc = concat!("No ", $what, " has this ", $key, ".")]
            pub fn disable(&self, name: &str) -> Result<bool, ChangeError> {
                self.set(name, false)
            }

            fn set(&self, name: &str, enabled: bool) -> Result<bool, ChangeError> {
                let changed = self.offers.$field.enable(name, enabled)?;
                if changed {
                    self.after();
                }
                Ok(changed)
            }

            /// The names (for resources, the URIs) offered now, in list order.
            pub fn names(&self) -> Vec<String> {
                self.offers.$field.snapshot().entries.iter().map(|e| e.item.key().to_owned()).collect()
            }

            fn after(&self) {
                self.offers.changed($at);
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.names()).finish()
            }
        }
    };
}

kind!(Tools tools 0 Tool ToolHandler bind_tool "tool", "name");
kind!(Resources resources 1 Resource ResourceHandler bind_resource "resource", "URI");
kind!(Prompts prompts 2 Prompt PromptHandler bind_prompt "prompt", "name");

impl Tools {
    fn register(&self, tool: Tool, bound: Bound) -> Result<tool::Registered, String> {
        let tool = tool::register(tool, bound, self.offers.problems_max.load(Ordering::Relaxed))?;
        self.offers.mirrors(&tool);
        Ok(tool)
    }

    /// Offers a tool under another name, which must be as names of tools are: 1 to 128 letters, digits, `_`, `-` or `.`. Its
    /// own becomes one that calls may use but that is not listed ([`Tool::alias`]).
    ///
    /// # Errors
    /// No tool has this name, or the new one is taken or not a name.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), ChangeError> {
        if !tool::name_ok(to) {
            let why = format!("`{to}` cannot be the name of a tool: 1 to 128 letters, digits, `_`, `-` or `.`");
            return Err(ChangeError::Invalid(why));
        }
        self.offers.tools.rename(name, |old| {
            let mut next = old.clone();
            next.def.name = to.into();
            next.hidden.push(name.into());
            next
        })?;
        self.after();
        Ok(())
    }

    /// Changes a tool in place: what `change` makes of its definition, schemas included. Its name and handler stay, and so does
    /// a schema that `change` does not give anew. No list is without the tool in between.
    ///
    /// A new [`Tool::input_schema`] is checked before the handler is called, whose type must be able to read what it allows.
    ///
    /// # Errors
    /// No tool has this name, or the new definition is wrong.
    pub fn update(&self, name: &str, change: impl FnOnce(Tool) -> Tool) -> Result<(), ChangeError> {
        let problems_max = self.offers.problems_max.load(Ordering::Relaxed);
        self.offers.tools.update(name, |old| {
            let new = old.changed(change, problems_max)?;
            self.offers.mirrors(&new);
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

    /// Changes a resource or template in place: what `change` makes of its definition. Its URI and handler stay.
    ///
    /// # Errors
    /// No resource has this URI, or the new definition is wrong.
    pub fn update(&self, uri: &str, change: impl FnOnce(Resource) -> Resource) -> Result<(), ChangeError> {
        self.offers.resources.update(uri, |old| old.changed(change))?;
        self.after();
        Ok(())
    }
}

impl Prompts {
    #[allow(clippy::unused_self, reason = "as for tools, which have a limit to keep")]
    fn register(&self, prompt: Prompt, bound: Bound) -> Result<prompt::Registered, String> {
        prompt::register(prompt, bound)
    }

    /// Offers a prompt under another name. Its own becomes one that requests may use but that is not listed
    /// ([`Prompt::alias`]).
    ///
    /// # Errors
    /// No prompt has this name, or the new one is taken.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), ChangeError> {
        self.offers.prompts.rename(name, |old| {
            let mut next = old.clone();
            next.def.name = to.into();
            next.hidden.push(name.into());
            next
        })?;
        self.after();
        Ok(())
    }

    /// Changes a prompt in place: what `change` makes of its definition. Its name and handler stay.
    ///
    /// # Errors
    /// No prompt has this name, or the new definition is wrong.
    pub fn update(&self, name: &str, change: impl FnOnce(Prompt) -> Prompt) -> Result<(), ChangeError> {
        self.offers.prompts.update(name, |old| old.changed(change))?;
        self.after();
        Ok(())
    }
}
