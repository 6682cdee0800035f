//! The parts of a configured server that serves, and what all of its requests need.

use crate::custom_method::Method;
use crate::error::Result;
use crate::handle::Registries;
use crate::hooks::Hooks;
use crate::layer::Layer;
use crate::low_level::LowLevel;
use crate::shared::Shared;
#[cfg(feature = "tasks")]
use crate::tasks::options::Tasks;
#[cfg(feature = "tasks")]
use crate::tasks::storage::Storage;
use linchpin_core::Observer;
use linchpin_core::service::BoxFuture;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::page::CacheScope;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// Updates the list of resources.
pub(crate) type Refresher = Box<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// Cleans up after calls.
pub(crate) type ShutdownHook = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// A configured server. What its calls need of it, too, is in [`Shared`].
pub(crate) struct RunningServer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) registries: Arc<Registries>,
    pub(crate) list_cache: (u64, CacheScope),
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) extensions: BTreeMap<String, Box<RawValue>>,
    pub(crate) layers: Arc<[Layer]>,
    /// Layers around requests of all methods.
    pub(crate) request_layers: Arc<[Layer]>,
    pub(crate) refreshers: Arc<[Refresher]>,
    pub(crate) shutdown_hooks: Box<[ShutdownHook]>,
    /// Methods that the specification does not have.
    pub(crate) methods: HashMap<Box<str>, Method>,
    pub(crate) hooks: Hooks,
    pub(crate) low_level: Option<LowLevel>,
    /// Handlers of notifications that were not ready at once.
    pub(crate) background: Mutex<JoinSet<()>>,
    /// Those that hear the ends of subscriptions.
    pub(crate) ends: Mutex<JoinSet<()>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Where tasks are kept, as the server was told, and the tasks once there are any.
    #[cfg(feature = "tasks")]
    pub(crate) task_settings: Option<Tasks>,
    #[cfg(feature = "tasks")]
    pub(crate) task_storage: std::sync::OnceLock<Arc<Storage>>,
    /// The service itself, for calls that outlive `&self`.
    pub(crate) this: std::sync::Weak<RunningServer>,
}

impl RunningServer {
    /// Returns the layers of a call, if there are any.
    pub(crate) fn layers(&self, own: &Arc<[Layer]>) -> Option<Arc<[Layer]>> {
        match (self.layers.is_empty(), own.is_empty()) {
            (true, true) => None,
            (true, false) => Some(own.clone()),
            (false, true) => Some(self.layers.clone()),
            (false, false) => Some(self.layers.iter().chain(own.iter()).cloned().collect()),
        }
    }

    /// Whether some tool may be a task, or some call was one.
    #[cfg(feature = "tasks")]
    pub(crate) fn has_tasks(&self) -> bool {
        self.task_storage.get().is_some()
            || self.registries.tools.snapshot().entries.iter().any(|entry| entry.item.task.is_some())
    }

    /// Logs settings of tasks that have no effect.
    #[cfg(feature = "tasks")]
    pub(crate) fn note_tasks(&self) {
        let outlives = self.task_settings.as_ref().is_some_and(|tasks| tasks.store.is_some());
        let tools = self.registries.tools.snapshot();
        let mut tasks = tools.entries.iter().filter_map(|entry| entry.item.task.as_ref().map(|task| (entry, task)));
        if outlives && tasks.next().is_none() {
            tracing::info!("`Server::tasks` has no effect yet: no tool runs as a task");
        } else if !outlives && let Some((entry, _)) = tasks.find(|(_, task)| task.resumable) {
            let tool = entry.item.def.name.as_str();
            tracing::info!(tool, "`resumable` has no effect: tasks are kept in memory, and end with this process");
        }
    }

    /// The tasks. Servers without any never make this.
    #[cfg(feature = "tasks")]
    pub(crate) fn tasks(&self) -> &Arc<Storage> {
        let new = || Arc::new(Storage::new(self.task_settings.as_ref(), &self.info.name, &self.limits));
        self.task_storage.get_or_init(new)
    }

    /// Whether there are tools, resources, prompts.
    pub(crate) fn offered(&self) -> [bool; 3] {
        [self.offers_tools(), self.offers_resources(), self.offers_prompts()]
    }

    pub(crate) fn offers_tools(&self) -> bool {
        self.registries.announced[0].load(Ordering::Relaxed) || !self.registries.tools.is_empty()
    }

    pub(crate) fn offers_resources(&self) -> bool {
        self.registries.announced[1].load(Ordering::Relaxed) || !self.registries.resources.is_empty()
    }

    pub(crate) fn offers_prompts(&self) -> bool {
        self.registries.announced[2].load(Ordering::Relaxed) || !self.registries.prompts.is_empty()
    }

    /// Whether anything has a function that completes.
    pub(crate) fn completes(&self) -> bool {
        let o = &self.registries;
        o.prompts.snapshot().everything().any(|e| !e.item.completers.is_empty())
            || o.resources.snapshot().everything().any(|e| !e.item.completers.is_empty())
    }
}

impl Deref for RunningServer {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
