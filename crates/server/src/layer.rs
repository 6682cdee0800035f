//! Middleware: an `async fn(Call, Next) -> Reply`, per tool, resource or prompt, or for a whole server.

use crate::cx::Cx;
use crate::invocation::{Invocation, Run, Source};
use crate::result_object;
use crate::tool_result;
use linchpin_core::message::MethodName;
use linchpin_core::service::BoxFuture;
use linchpin_core::{Method, Reply};
use linchpin_types::error::code;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A type-erased layer.
pub(crate) type Layer = Arc<dyn Fn(Call, Next) -> BoxFuture<'static, Reply> + Send + Sync>;

/// Erases the type of a layer.
pub(crate) fn erase<F, Fut>(layer: F) -> Layer
where
    F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Reply> + Send + 'static,
{
    Arc::new(move |call, next| Box::pin(layer(call, next)))
}

/// A tool call, resource read, prompt request or custom method, as middleware receives it; in
/// [`Server::layer_requests`], any request.
///
/// [`Server::layer_requests`]: crate::Server::layer_requests
///
/// ```
/// # use linchpin_server::{Call, Next, Reply, Server};
/// async fn timed(call: Call, next: Next) -> Reply {
///     let (name, start) = (call.name().to_owned(), std::time::Instant::now());
///     let reply = next.run(call).await;
///     eprintln!("{name} took {:?}", start.elapsed());
///     reply
/// }
///
/// let server = Server::new("rows", "1.0").layer(timed);
/// ```
pub struct Call {
    invocation: Invocation,
    cx: Cx,
    item: Option<Arc<str>>,
}

impl Call {
    /// A call of the `item` that was found, if one was looked for.
    pub(crate) fn new(invocation: Invocation, cx: Cx, item: Option<Arc<str>>) -> Call {
        Call { invocation, cx, item }
    }

    /// Returns the name of the tool or prompt, or the URI of the resource; empty for other requests.
    pub fn name(&self) -> &str {
        self.cx.name()
    }

    /// Returns the name of the registered tool or prompt, the URI or template of the registered resource, or the name
    /// of a custom method; `None` in [`Server::layer_requests`], where the item has not been looked up yet.
    ///
    /// Reads of `note://1` and `note://2` both have the item `note://{id}`, so that the number of counters is bounded
    /// when calls are counted per item.
    ///
    /// ```
    /// # use linchpin_server::{Call, Next, Reply, Server};
    /// async fn counted(call: Call, next: Next) -> Reply {
    ///     // A call that asks its client comes again with the answer: it is counted once.
    ///     if call.round_trip() == 0 {
    ///         eprintln!("one more of {}", call.item().unwrap_or("unknown"));
    ///     }
    ///     next.run(call).await
    /// }
    /// let server = Server::new("notes", "1.0").layer(counted);
    /// ```
    ///
    /// [`Server::layer_requests`]: crate::Server::layer_requests
    pub fn item(&self) -> Option<&str> {
        self.item.as_deref()
    }

    /// Returns how many times the client has been asked for input before: 0 for the first request, and always 0 in
    /// sessions. The number comes from state that the server itself has sealed, but a client can send that state more
    /// than once.
    pub fn round_trip(&self) -> u32 {
        self.cx.round_trips().round()
    }

    /// Returns the request's method, for example `tools/call`.
    pub fn method(&self) -> &str {
        self.cx.method().as_str()
    }

    /// Returns the parameters of the request as JSON text, as they were sent.
    pub fn params(&self) -> &str {
        self.cx.params()
    }

    /// Returns the arguments as JSON text, not yet validated. `{}` if the method has none.
    pub fn arguments(&self) -> Cow<'_, str> {
        self.invocation.args.json()
    }

    /// Replaces the arguments of a tool, a prompt or a method of your own. They are validated as usual. In
    /// `Server::layer` and in the layers of items, this also replaces the variables of a resource template; a number or a
    /// boolean in them, or in the arguments of a prompt, may be JSON there, or a string as it comes. This has no effect on
    /// other methods, or on the functions of a [`LowLevelServer`](crate::LowLevelServer).
    pub fn set_arguments(&mut self, json: impl Into<Arc<str>>) {
        self.invocation.args.0 = Source::Owned(json.into());
    }

    /// Returns the call's context.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Rejects the call with a message: as a tool result with `isError` for tools, as a JSON-RPC error for everything else.
    pub fn refuse(self, message: &str) -> Reply {
        match self.cx.method() {
            MethodName::Known(Method::ToolsCall) => tool_result::failure(self.invocation.out, message),
            _ => self.invocation.out.error(code::INVALID_REQUEST, message, None),
        }
    }

    /// Responds with this result instead of running the handler: an object with the members of the method's result.
    ///
    /// The members that the client's revision requires in every result (`resultType`, the server's name) are added.
    pub fn respond(self, result: impl Into<Value>) -> Reply {
        match result.into() {
            Value::Object(members) => result_object::write(&members, self.invocation.out),
            _ => self.invocation.out.error(code::INTERNAL_ERROR, "a result must be a JSON object", None),
        }
    }

    /// Rejects the call with a JSON-RPC error.
    pub fn refuse_protocol(self, code: i32, message: &str) -> Reply {
        self.invocation.out.error(code, message, None)
    }

    /// Rejects the call with a JSON-RPC error that has `data`.
    pub fn refuse_protocol_with(self, code: i32, message: &str, data: &Value) -> Reply {
        self.invocation.out.error(code, message, Some(&data.to_string()))
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method()).field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The rest of the middleware chain, with the handler at its end.
///
/// ```
/// # use linchpin_server::{Call, Next, Reply, Server};
/// async fn announce(call: Call, next: Next) -> Reply {
///     let name = call.name().to_owned();
///     let reply = next.run(call).await;
///     eprintln!("{name}: {:?}", reply.kind());
///     reply
/// }
/// let server = Server::new("s", "1").layer(announce);
/// ```
pub struct Next {
    layers: Arc<[Layer]>,
    at: usize,
    run: Run,
}

impl Next {
    pub(crate) fn new(layers: Arc<[Layer]>, run: Run) -> Next {
        Next { layers, at: 0, run }
    }

    /// Runs the whole chain when it is polled, where the panics of layers are caught, also those before their futures.
    pub(crate) fn start(self, call: Call) -> BoxFuture<'static, Reply> {
        Box::pin(async move { self.run(call).await })
    }

    /// Runs the rest of the chain. Dropping the future cancels the handler.
    pub fn run(mut self, call: Call) -> BoxFuture<'static, Reply> {
        match self.layers.get(self.at).cloned() {
            Some(layer) => {
                self.at += 1;
                layer(call, self)
            }
            None => (self.run)(call.invocation),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("left", &(self.layers.len() - self.at)).finish()
    }
}
