//! From a built server to one that runs, and can be changed then.

use crate::custom_method;
use crate::handle::{Handle, Prompts, Registries, Resources, Tools};
use crate::running_server::RunningServer;
use crate::seal::{Keyring, SealKey};
use crate::serve_error::ServeError;
use crate::server::{Server, Settings};
use crate::shared::{Shared, random};
use linchpin_core::service::{Bind, ConfigError, IntoService, Service};
use linchpin_core::{Budget, Features, Observer, Stamps};
use linchpin_types::capability::extension;
use serde_json::{Map, Value};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::task::{JoinError, JoinHandle};

impl<S: Send + Sync + 'static> Server<S> {
    /// Returns a handle for changes while the server runs.
    ///
    /// ```
    /// # use linchpin_server::Server;
    /// let server = Server::new("news", "1.0");
    /// let handle = server.handle();
    /// handle.tools().insert(("latest", "Returns the latest headline."), || "none yet")?;
    /// assert_eq!(handle.tools().names(), ["latest"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn handle(&self) -> Handle {
        Handle::new(self.registries.clone())
    }

    /// Returns the tools, for changes while the server runs. From then on the server declares that it has tools, even
    /// without any.
    pub fn tools(&self) -> Tools {
        self.handle().tools()
    }

    /// Returns the resources, for changes while the server runs. From then on the server declares that it has
    /// resources, even without any.
    pub fn resources(&self) -> Resources {
        self.handle().resources()
    }

    /// Returns the prompts, for changes while the server runs. From then on the server declares that it has prompts,
    /// even without any.
    pub fn prompts(&self) -> Prompts {
        self.handle().prompts()
    }

    /// Serves at `place` until the peer disconnects or `place` is shut down.
    ///
    /// `place` is a transport, for example `stdio()` or `http("127.0.0.1:8931")`.
    ///
    /// Signal handling is up to the program: with `stdio().with_graceful_shutdown(shutdown_signal())` the server shuts
    /// down gracefully on Ctrl-C and SIGTERM; by default these signals kill the process.
    ///
    /// The hooks of [`Server::on_shutdown`] run before `serve` returns, even if the transport failed to start.
    ///
    /// Cancel safety: dropping the future stops the server. Its listener and connections are closed, and running calls
    /// are dropped. The hooks do not run in that case.
    ///
    /// # Errors
    /// [`ServeError::Config`] if the configuration of the server is invalid (with source locations where they are
    /// known), [`ServeError::Io`] if the transport fails, for example because the address is in use.
    pub async fn serve(self, place: impl Bind) -> Result<(), ServeError> {
        let service = self.into_shared()?;
        // On a worker of the runtime the I/O driver and the loop share a thread, which saves a wake-up per message.
        let served = AbortOnDrop(tokio::spawn(place.serve(service.clone()))).await;
        service.ended().await;
        Ok(served.map_err(|e| io::Error::other(format!("serving stopped: {e}")))??)
    }

    fn freeze(self) -> Result<Arc<dyn Service>, ConfigError> {
        frozen(self.registries, *self.settings)
    }
}

// One copy for all states.
fn frozen(registries: Arc<Registries>, settings: Settings) -> Result<Arc<dyn Service>, ConfigError> {
    let Settings {
        info,
        instructions,
        mut extensions,
        limits,
        layers,
        request_layers,
        refreshers,
        shutdown_hooks,
        observers,
        relay,
        list_cache,
        identify,
        methods,
        hooks,
        low_level,
        keys,
        mut problems,
        #[cfg(feature = "tasks")]
        tasks,
    } = settings;
    for (identifier, settings) in &extensions {
        if !custom_method::identifier_ok(identifier) || !settings.is_object() {
            problems.push(format!(
                "extension `{identifier}`: needs a prefix (`com.example/name`) and an object of settings"
            ));
        }
    }
    problems.extend(registries.missing_pages());
    if registries.tools.snapshot().with_pages {
        extensions.entry(extension::UI.to_owned()).or_insert_with(|| Value::Object(Map::new()));
    }
    if !problems.is_empty() {
        return Err(problems.into_iter().collect());
    }
    let stamped = Features::all().find(|features| features.server_info_in_results);
    let card = stamped.map(|w| crate::downgrade::implementation(info.clone(), w)).unwrap_or_else(|| info.clone());
    let server_info = if identify { serde_json::to_string(&card).unwrap_or_default().into() } else { Box::default() };
    let mut keys = keys.into_iter().map(SealKey::from_bytes);
    let mut keyring = Keyring::new(keys.next().unwrap_or_else(|| SealKey::from_bytes(random())));
    keyring.previous.extend(keys);
    registries.pause_ms.store(limits.lists.changed_ms_min, Ordering::Relaxed);
    // Nobody needs to be told of what was there from the start.
    let _ = (registries.tools.take_touched(), registries.resources.take_touched(), registries.prompts.take_touched());
    registries.live.store(true, Ordering::Release);
    if let Some(relay) = relay {
        let here = Arc::downgrade(&registries);
        relay.start(Arc::new(move |change| here.upgrade().map(|here| here.relayed(&change)).is_some()));
        let _ = registries.relay.set(relay);
    }
    let observer: Option<Arc<dyn Observer>> = (!observers.is_empty()).then(|| Arc::new(observers) as _);
    let shared = Arc::new(Shared {
        budget: Budget::new(limits.connections.memory_bytes_max),
        limits: Arc::new(limits),
        stamps: Arc::new(Stamps { server_info }),
        calls: Default::default(),
        idle: Default::default(),
        observer: observer.clone(),
        keyring,
        registries: registries.clone(),
    });
    #[cfg(feature = "tasks")]
    let has_tasks = tasks.is_some();
    let core = Arc::new_cyclic(|this| RunningServer {
        registries,
        shared,
        list_cache,
        info,
        instructions,
        extensions: extensions.iter().map(|(k, v)| (k.clone(), crate::schema::raw(v))).collect(),
        layers: layers.into(),
        request_layers: request_layers.into(),
        refreshers: refreshers.into(),
        shutdown_hooks: shutdown_hooks.into(),
        observer,
        methods,
        hooks,
        low_level,
        background: Default::default(),
        ends: Default::default(),
        #[cfg(feature = "tasks")]
        task_settings: tasks,
        #[cfg(feature = "tasks")]
        task_storage: Default::default(),
        this: this.clone(),
    });
    #[cfg(feature = "tasks")]
    core.note_tasks();
    #[cfg(feature = "tasks")]
    if has_tasks {
        crate::tasks::recovery::ensure(&core);
    }
    Ok(core)
}

/// A task that is aborted when the future that waits for it is dropped.
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

impl<S: Send + Sync + 'static> IntoService for Server<S> {
    fn into_shared(self) -> Result<Arc<dyn Service>, ConfigError> {
        self.freeze()
    }
}
