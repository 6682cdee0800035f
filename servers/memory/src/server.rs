//! The server: opens the file and runs the tools.

use crate::config::{self, Config};
use crate::files::{self, Patience};
use crate::graph::{Edit, Graph};
use crate::import::import;
use crate::journal::Journal;
use crate::store::{self, Done, Store};
use linchpin::Handle;
use linchpin_kit::ToolError;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The whole graph as a resource.
pub const GRAPH_URI: &str = "memory://knowledge-graph";

/// How often the file is checked for changes by other processes while a client may be subscribed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The state of the server. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) store: Store,
    /// Serializes the changes of this process, before they wait for other processes.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    /// The servers to notify of changes.
    pub(crate) servers: Mutex<Vec<Handle>>,
    pub(crate) watched: AtomicBool,
}

impl Memory {
    /// Opens the memory file, and imports a file if configured. The memory file need not exist; without an import
    /// nothing is written before the first change.
    ///
    /// Also returns warnings for stderr.
    ///
    /// # Errors
    /// When the path is a symlink, not a memory file, or a name that other programs read; when the file is too large or
    /// cannot be read; when the import fails.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), ToolError> {
        let (store, mut warnings) = Store::open(&config)?;
        if let Some(source) = &config.import {
            if config.tools.read_only {
                return Err(
                    ToolError::new("Cannot import into a read-only memory").hint("Omit --import or --read-only.")
                );
            }
            let other = store::read_foreign(&config::expanded(source)?, config.max_file_bytes)?;
            let done = store.change("import", &Patience::until(Instant::now() + config.lock_wait), |edit| {
                Ok(import(edit, &other))
            })?;
            warnings.extend(done.warnings);
            if done.changed {
                warnings.push(format!("Imported from {}: {}.", source.display(), done.value));
            }
        }
        let inner =
            Inner { config, store, turn: Arc::default(), servers: Mutex::default(), watched: AtomicBool::new(false) };
        Ok((Self { inner: Arc::new(inner) }, warnings))
    }

    /// The memory file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.inner.store.path()
    }

    /// Runs a read on the current graph.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Inner, &Graph) -> Result<T, ToolError> + Send + 'static,
    {
        self.watch();
        self.blocking(move |inner| {
            let graph = inner.store.graph()?;
            if inner.store.news() {
                inner.tell();
            }
            work(inner, &graph)
        })
        .await
    }

    /// The same, with the times of changes.
    pub(crate) async fn read_dated<T, F>(&self, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Inner, &Graph, Option<&Journal>) -> Result<T, ToolError> + Send + 'static,
    {
        self.watch();
        self.blocking(move |inner| {
            let journal = inner.store.journal();
            let graph = inner.store.graph()?;
            if inner.store.news() {
                inner.tell();
            }
            work(inner, &graph, Some(&*journal).filter(|journal| journal.keeps_times()))
        })
        .await
    }

    /// Changes the graph, one change at a time. A change that is cancelled before the file is replaced is not made;
    /// after that it is completed.
    pub(crate) async fn change<T, F>(&self, tool: &'static str, work: F) -> Result<Done<T>, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Inner, &mut Edit) -> Result<T, ToolError> + Send + 'static,
    {
        if self.inner.config.tools.read_only {
            return Err(ToolError::denied("This memory is read-only")
                .hint("The operator can allow changes by removing --read-only."));
        }
        self.watch();
        let patience = Patience::until(Instant::now() + self.inner.config.lock_wait);
        let _waiting = patience.waiting();
        let turn = self.inner.turn.clone().lock_owned();
        let turn = tokio::time::timeout(self.inner.config.lock_wait, turn).await;
        let turn = turn.map_err(|_| files::busy("other calls"))?;
        self.blocking(move |inner| {
            let done = inner.store.change(tool, &patience, |edit| work(inner, edit));
            drop(turn);
            if inner.store.news() || done.as_ref().is_ok_and(|done| done.changed) {
                inner.tell();
            }
            done
        })
        .await
    }

    async fn blocking<T, F>(&self, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Inner) -> Result<T, ToolError> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        linchpin_kit::blocking(move || work(&inner)).await.unwrap_or_else(|| {
            Err(ToolError::new("The operation stopped unexpectedly")
                .hint("Check with open_nodes or memory_history whether the change was made before trying again."))
        })
    }

    /// From now on, notifies this server's subscribers of changes.
    pub(crate) fn attach(&self, server: Handle) {
        self.inner.servers.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        self.watch();
    }

    /// Checks the file periodically while the runtime runs, so that subscribers learn of changes by other processes. A
    /// check is one system call, and made only while a client is connected.
    fn watch(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.inner.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let Some(inner) = inner.upgrade() else { return };
                if !inner.is_heard() {
                    continue;
                }
                let looked = tokio::task::spawn_blocking(move || {
                    // A file that cannot be read is reported to whoever reads it.
                    if inner.store.graph().is_ok() && inner.store.news() {
                        inner.tell();
                    }
                });
                if looked.await.is_err() {
                    return;
                }
            }
        });
    }
}

impl Inner {
    fn is_heard(&self) -> bool {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|server| server.listeners() > 0)
    }

    fn tell(&self) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let uri = self.config.tools.uri(GRAPH_URI);
        servers.iter().for_each(|server| server.resource_updated(&uri));
    }
}
