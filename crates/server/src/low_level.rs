//! The low-level server: one async function for each method, from the request as it was received to the members of the result.

use crate::cx::Cx;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::handler::NotificationHandler;
use crate::mrtr::RoundTrips;
use crate::running_call;
use crate::serve_error::ServeError;
use crate::server::Server;
use crate::service::{RunningServer, method_not_found};
use linchpin_core::json::Scanner;
use linchpin_core::message::{MethodName, Request};
use linchpin_core::service::{Bind, BoxFuture, CallStart, ConfigError, IntoService, RequestContext, Service};
use linchpin_core::{ChangeBus, Method, Reply, ReplyKind, ResultWriter};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::task::Context;

/// A type-erased handler: it returns the result as JSON text.
pub(crate) type Handler = Arc<dyn Fn(Request, Cx) -> BoxFuture<'static, Result<String>> + Send + Sync>;

/// A server whose methods are functions of the request as it was received.
///
/// [`Server`] is for servers of tools, resources and prompts; this is for programs that need the methods themselves:
/// proxies, recordings, test doubles, lists that a database pages. It answers the handshake (`initialize`, `server/discover`),
/// `ping`, `logging/setLevel`, and subscriptions by itself; each can be replaced. Methods without a handler are refused.
///
/// A handler is an `async fn(Request, Cx) -> Result<impl Serialize, Error>`. Its result must be an object; the members that the
/// caller's revision requires (`resultType`, `_meta`) are added, unless there is a `resultType` already: then the result is sent
/// as it stands. What is written must otherwise be what the caller's revision has; [`Cx::revision`] tells. An
/// [`ErrorObject`](linchpin_types::error::ErrorObject) that `?` returns is sent as it is. Limits of calls, cancellation, progress,
/// logs and requests to the client are those of [`Server`].
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

/// The handlers of a low-level server.
#[derive(Default)]
pub(crate) struct LowLevel {
    handlers: HashMap<Box<str>, Handler>,
    fallback: Option<Handler>,
    /// A `ServerCapabilities` object as JSON text.
    pub(crate) capabilities: String,
}

impl LowLevelServer {
    /// Creates a server with this name and version, and no methods of its own yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> LowLevelServer {
        Server::new(name, version).into()
    }

    /// Sets the capabilities to declare: a `ServerCapabilities` object. None by default.
    pub fn capabilities(mut self, capabilities: Value) -> LowLevelServer {
        for (kind, name) in ["tools", "resources", "prompts"].into_iter().enumerate() {
            self.server.announce(kind, capabilities.get(name).is_some());
        }
        self.low.capabilities = capabilities.to_string();
        self
    }

    /// Adds the handler of a method, whether the specification has it or not. The last one counts.
    pub fn method<F, Fut, R>(mut self, name: impl AsRef<str>, handler: F) -> LowLevelServer
    where
        F: Fn(Request, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: Serialize,
    {
        self.low.handlers.insert(name.as_ref().into(), erase(handler));
        self
    }

    /// Sets the handler of all methods that have none and that this server does not answer by itself.
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
    /// Those of [`Server::serve`].
    pub async fn serve(self, place: impl Bind) -> Result<(), ServeError> {
        self.into_server().serve(place).await
    }

    fn into_server(self) -> Server {
        self.server.with_low_level(self.low)
    }
}

/// Everything of the server but its tools, resources, prompts and methods: its description, limits, notifications, hooks.
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

/// What a low-level server does with a method.
pub(crate) enum Choice {
    Handler(Handler),
    /// It is answered as by any server.
    BuiltIn,
    Unknown,
}

impl LowLevel {
    pub(crate) fn choose(&self, method: &MethodName) -> Choice {
        let built_in = matches!(
            method,
            MethodName::Known(
                Method::Initialize
                    | Method::ServerDiscover
                    | Method::Ping
                    | Method::LoggingSetLevel
                    | Method::ResourcesSubscribe
                    | Method::ResourcesUnsubscribe
                    | Method::SubscriptionsListen
            )
        );
        match self.handlers.get(method.as_str()) {
            Some(handler) => Choice::Handler(handler.clone()),
            None if built_in => Choice::BuiltIn,
            None => self.fallback.clone().map_or(Choice::Unknown, Choice::Handler),
        }
    }

    pub(crate) fn defines(&self, method: &str) -> bool {
        self.fallback.is_some() || self.handlers.contains_key(method)
    }
}

/// Starts the handler of a request.
pub(crate) fn start(
    core: &Arc<RunningServer>,
    handler: &Handler,
    request: Request,
    door: RequestContext,
    task: &mut Context<'_>,
) -> CallStart {
    // A state that is not of `Cx::elicit` is the handler's own.
    let round_trips = RoundTrips::of(&request, door.principal.as_ref(), core).unwrap_or_default();
    let cx = Cx::new(request.clone(), door, core.clone(), round_trips);
    let (answer, out) = (handler(request.clone(), cx.clone()), core.writer(&request));
    let (id, limit) = (request.id.clone(), core.limits.messages.result_bytes_max);
    let future = Box::pin(async move {
        match answer.await {
            Ok(json) => write(&json, out, |kind| match json.len() {
                length if length > limit => {
                    let why =
                        format!("the response exceeds the server's limit of {limit} bytes; request less at a time");
                    Reply::error(Some(&id), linchpin_types::error::code::INTERNAL_ERROR, &why, None)
                }
                _ => Reply::with_result(&id, json.clone().into()).with_kind(kind),
            }),
            Err(error) => error.into_rpc(out),
        }
    });
    running_call::launch(core, &request, dispatch::CallStart { future, cx: Some(cx), name: None }, task)
}

/// The response with the members of `json`. `whole` makes one of a result that is complete.
fn write(json: &str, mut out: ResultWriter, whole: impl FnOnce(ReplyKind) -> Reply) -> Reply {
    let mut kind = None;
    let scanned = Scanner::new(json, 127).object(&mut |s, key| {
        let value = s.value()?.of(json);
        match &*key.name() {
            "resultType" if value == "\"input_required\"" => kind = Some(ReplyKind::InputRequired),
            "resultType" => kind = Some(ReplyKind::Complete),
            "_meta" if value.starts_with('{') => out.meta(value[1..value.len() - 1].trim().as_bytes()),
            name => {
                out.key(name);
                out.push(value.as_bytes());
            }
        }
        Ok(())
    });
    match (scanned, kind) {
        (Ok(_), Some(kind)) => whole(kind),
        (Ok(_), None) => out.finish(ReplyKind::Complete),
        (Err(_), _) => {
            Error::protocol(linchpin_types::error::code::INTERNAL_ERROR, "the result of a method must be a JSON object")
                .into_rpc(out)
        }
    }
}

/// The response to a method without a handler.
pub(crate) fn unknown(request: &Request) -> CallStart {
    CallStart::Done(method_not_found(request))
}
