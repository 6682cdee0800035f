//! A server whose methods are functions of requests.

use crate::cx::Cx;
use crate::error::Result;
use crate::handler::NotificationHandler;
use crate::low_level::{Handler, LowLevel};
use crate::serve_error::ServeError;
use crate::server::Server;
use linchpin_core::ChangeBus;
use linchpin_core::message::Request;
use linchpin_core::service::{Bind, ConfigError, IntoService, Service};
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A server whose handlers take requests as they were received, one handler for each method.
///
/// [`Server`] is for servers with tools, resources and prompts; this is for programs that implement the methods themselves:
/// proxies, recorders, test doubles, or lists that are paged by a database. It handles the handshake (`initialize`,
/// `server/discover`), `ping`, `logging/setLevel`, and subscriptions; each of these can be replaced. Methods without a handler
/// are rejected.
///
/// A handler is an `async fn(Request, Cx) -> Result<impl Serialize, Error>`. Its result must be an object; the members that the
/// caller's revision requires (`resultType`, `_meta`) are added, unless there is a `resultType` already: then the result is sent
/// unchanged. Other members are not adapted to the caller's revision, which [`Cx::revision`] returns. An
/// [`ErrorObject`](linchpin_types::error::ErrorObject) that `?` returns is sent unchanged. Call limits, cancellation, progress,
/// logs and requests to the client work as in [`Server`].
///
/// ```
/// use linchpin_server::LowLevelServer;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Call { name: String, arguments: serde_json::Value }
///
/// let server = LowLevelServer::new("echo", "1.0")
///     .capabilities(json!({ "tools": {} }))
///     .method("tools/list", async |_, _| {
///         Ok(json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }))
///     })
///     .method("tools/call", async |request, _| {
///         let call: Call = request.decode()?;
///         Ok(json!({ "content": [{ "type": "text", "text": format!("{}: {}", call.name, call.arguments) }] }))
///     });
/// ```
#[must_use]
#[doc(alias = "setRequestHandler")]
#[doc(alias = "service_fn")]
pub struct LowLevelServer {
    server: Server,
    low: LowLevel,
}

impl LowLevelServer {
    /// Creates a server with this name and version, and no methods of its own yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> LowLevelServer {
        Server::new(name, version).into()
    }

    /// Sets the capabilities to declare: a `ServerCapabilities` object. Empty by default.
    pub fn capabilities(mut self, capabilities: Value) -> LowLevelServer {
        for (kind, name) in ["tools", "resources", "prompts"].into_iter().enumerate() {
            self.server.announce(kind, capabilities.get(name).is_some());
        }
        self.low.capabilities = capabilities.to_string();
        self
    }

    /// Sets the handler of a method, whether it is part of the specification or not. It replaces an earlier handler.
    pub fn method<F, Fut, R>(mut self, name: impl AsRef<str>, handler: F) -> LowLevelServer
    where
        F: Fn(Request, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: Serialize,
    {
        self.low.handlers.insert(name.as_ref().into(), erase(handler));
        self
    }

    /// Sets the handler of all methods that have no handler of their own and that this server does not handle by itself.
    pub fn fallback<F, Fut, R>(mut self, handler: F) -> LowLevelServer
    where
        F: Fn(Request, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: Serialize,
    {
        self.low.fallback = Some(erase(handler));
        self
    }

    /// Adds a handler of a notification; see [`Server::on_notification`].
    pub fn on_notification<M, H>(mut self, name: impl AsRef<str>, handler: H) -> LowLevelServer
    where
        H: NotificationHandler<(), M>,
    {
        self.server = self.server.on_notification(name, handler);
        self
    }

    /// Returns the bus on which changes of lists and resources are published to subscriptions.
    pub fn changes(&self) -> Arc<ChangeBus> {
        self.server.changes()
    }

    /// Serves at `place`; see [`Server::serve`].
    ///
    /// # Errors
    /// The same as for [`Server::serve`].
    pub async fn serve(self, place: impl Bind) -> Result<(), ServeError> {
        self.into_server().serve(place).await
    }

    fn into_server(self) -> Server {
        self.server.with_low_level(self.low)
    }
}

/// Keeps everything of the server except its tools, resources, prompts and methods, with their layers, refreshes and
/// tasks, and its extensions: what remains is, for example, its description, limits, notifications, hooks, and the
/// layers of all requests.
impl From<Server> for LowLevelServer {
    fn from(server: Server) -> LowLevelServer {
        LowLevelServer { server, low: LowLevel { capabilities: "{}".to_owned(), ..LowLevel::default() } }
    }
}

impl IntoService for LowLevelServer {
    fn into_shared(self) -> Result<Arc<dyn Service>, ConfigError> {
        self.into_server().into_shared()
    }
}

impl fmt::Debug for LowLevelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LowLevelServer").field("methods", &self.low.handlers.keys()).finish_non_exhaustive()
    }
}

fn erase<F, Fut, R>(handler: F) -> Handler
where
    F: Fn(Request, Cx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send + 'static,
    R: Serialize,
{
    Arc::new(move |request, cx| {
        let answer = handler(request, cx);
        Box::pin(async move { Ok(serde_json::to_string(&answer.await?)?) })
    })
}
