//! Changing what a server offers while it runs.

use crate::error::{Error, Result};
use crate::handler::{PromptHandler, ResourceHandler, Shape, ToolHandler};
use crate::prompt::{self, Prompt};
use crate::registry::{Item, Registry};
use crate::resource::{self, Resource};
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

    pub(crate) fn add_tool(&self, tool: tool::Registered) -> Result<(), String> {
        if tool.headers.is_some() {
            self.mirrored.fetch_add(1, Ordering::Release);
        }
        self.tools.insert(tool)
    }
}

impl Item for tool::Registered {
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
    fn key(&self) -> &str {
        &self.def.uri
    }
    fn place(&self) -> String {
        self.place.to_string()
    }
}

impl Item for prompt::Registered {
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
    ($name:ident $field:ident $at:literal $what:literal) => {
        #[doc = concat!("The ", $what, " of a server: readers see each change at once, listeners hear of it once.")]
        #[derive(Clone)]
        pub struct $name {
            offers: Arc<Offers>,
        }

        impl $name {
            #[doc = concat!("Takes one of the ", $what, " away. Calls that run go on. `false` if there is none of that name.")]
            pub fn remove(&self, name: &str) -> bool {
                self.after(self.offers.$field.remove(name))
            }

            /// Offers again what was disabled. `false` if nothing changed.
            pub fn enable(&self, name: &str) -> bool {
                self.after(self.offers.$field.enable(name, true))
            }

            /// Hides it from lists and refuses calls, until it is enabled. `false` if nothing changed.
            pub fn disable(&self, name: &str) -> bool {
                self.after(self.offers.$field.enable(name, false))
            }

            /// The names (for resources, the URIs) offered now, in list order.
            pub fn names(&self) -> Vec<String> {
                self.offers.$field.snapshot().entries.iter().map(|e| e.item.key().to_owned()).collect()
            }

            fn after(&self, changed: bool) -> bool {
                if changed {
                    self.offers.changed($at);
                }
                changed
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.names()).finish()
            }
        }
    };
}

kind!(Tools tools 0 "tools");
kind!(Resources resources 1 "resources");
kind!(Prompts prompts 2 "prompts");

impl Tools {
    /// Adds a tool without state of its own; closures capture what they need.
    #[track_caller]
    pub fn insert<M, H>(&self, tool: impl Into<Tool>, handler: H) -> Result<()>
    where
        H: Shape<(), M> + ToolHandler<(), M>,
    {
        self.insert_with(Arc::new(()), tool, handler)
    }

    /// Adds a tool with its state.
    #[track_caller]
    pub fn insert_with<S, M, H>(&self, state: Arc<S>, tool: impl Into<Tool>, handler: H) -> Result<()>
    where
        S: Send + Sync + 'static,
        H: Shape<S, M> + ToolHandler<S, M>,
    {
        let mut tool = tool.into();
        tool.place = std::panic::Location::caller();
        let problems_max = self.offers.problems_max.load(Ordering::Relaxed);
        let tool = tool::register(tool, state, handler, problems_max).map_err(Error::tool)?;
        self.offers.add_tool(tool).map_err(Error::tool)?;
        self.after(true);
        Ok(())
    }

    /// Offers a tool under another name, which must be as names of tools are: 1 to 128 letters, digits, `_`, `-` or `.`. Its
    /// own becomes one that calls may use but that is not listed ([`Tool::alias`]). `false` if there is none of that name, or
    /// the new one is taken or no name.
    pub fn rename(&self, name: &str, to: &str) -> bool {
        if !tool::name_ok(to) {
            return false;
        }
        let changed = self.offers.tools.rename(name, |old| {
            let mut next = old.clone();
            next.def.name = to.into();
            next.hidden.push(name.into());
            next
        });
        self.after(changed)
    }

    /// Changes how a tool describes itself: title, description, annotations, icons, `_meta`. Its name, schemas and handler
    /// stay. `false` if there is none of that name.
    pub fn update(&self, name: &str, change: impl FnOnce(Tool) -> Tool) -> bool {
        let changed = self.offers.tools.update(name, |old| {
            let mut tool = Tool::new(old.def.name.clone(), "");
            tool.def = old.def.clone();
            let new = change(tool).def;
            let mut next = old.clone();
            next.def.title = new.title;
            next.def.description = new.description;
            next.def.annotations = new.annotations;
            next.def.icons = new.icons;
            next.def.meta = new.meta;
            next
        });
        self.after(changed)
    }
}

impl Resources {
    /// Adds a resource or template without state of its own.
    #[track_caller]
    pub fn insert<M, H>(&self, resource: impl Into<Resource>, handler: H) -> Result<()>
    where
        H: Shape<(), M> + ResourceHandler<(), M>,
    {
        self.insert_with(Arc::new(()), resource, handler)
    }

    /// Adds a resource or template with its state.
    #[track_caller]
    pub fn insert_with<S, M, H>(&self, state: Arc<S>, resource: impl Into<Resource>, handler: H) -> Result<()>
    where
        S: Send + Sync + 'static,
        H: Shape<S, M> + ResourceHandler<S, M>,
    {
        let mut resource = resource.into();
        resource.place = std::panic::Location::caller();
        let resource = resource::register(resource, state, handler).map_err(Error::tool)?;
        self.offers.resources.insert(resource).map_err(Error::tool)?;
        self.after(true);
        Ok(())
    }
}

impl Prompts {
    /// Offers a prompt under another name. Its own becomes one that requests may use but that is not listed
    /// ([`Prompt::alias`]). `false` if there is none of that name, or the new one is taken.
    pub fn rename(&self, name: &str, to: &str) -> bool {
        let changed = self.offers.prompts.rename(name, |old| {
            let mut next = old.clone();
            next.def.name = to.into();
            next.hidden.push(name.into());
            next
        });
        self.after(changed)
    }

    /// Adds a prompt without state of its own.
    #[track_caller]
    pub fn insert<M, H>(&self, prompt: impl Into<Prompt>, handler: H) -> Result<()>
    where
        H: Shape<(), M> + PromptHandler<(), M>,
    {
        self.insert_with(Arc::new(()), prompt, handler)
    }

    /// Adds a prompt with its state.
    #[track_caller]
    pub fn insert_with<S, M, H>(&self, state: Arc<S>, prompt: impl Into<Prompt>, handler: H) -> Result<()>
    where
        S: Send + Sync + 'static,
        H: Shape<S, M> + PromptHandler<S, M>,
    {
        let mut prompt = prompt.into();
        prompt.place = std::panic::Location::caller();
        let prompt = prompt::register(prompt, state, handler).map_err(Error::tool)?;
        self.offers.prompts.insert(prompt).map_err(Error::tool)?;
        self.after(true);
        Ok(())
    }
}
