//! Custom protocol extensions.

use crate::custom_method;
use crate::handler::{self, MethodHandler};
use crate::invocation::Bound;
use crate::server::{Register, Server};
use crate::state::StateOf;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A custom protocol extension: an identifier, settings, and methods for clients that declare it.
///
/// ```
/// # use linchpin_server::{Extension, Json, Server};
/// # use serde_json::json;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Query {
///     query: String,
/// }
///
/// #[derive(serde::Serialize)]
/// struct Found {
///     notes: Vec<String>,
/// }
///
/// let search = Extension::new("com.example/search", json!({}))
///     .method("run", |q: Query| Json(Found { notes: vec![q.query] }))
///     .named_by("query");
/// let server = Server::new("notes", "1.0").with(search);
/// ```
///
/// The server announces the extension in every revision; before 2026-07-28, only to clients that declare it. The full name of
/// the method above is `com.example/search/run`. A client declares the extension with `Client::extension` and calls the method
/// with `Connection::request`; for other clients the method does not exist (-32601). Clients of 2026-07-28 declare the extension
/// in each request, others in `initialize`.
///
/// The prefix of the identifier is a domain that you control, reversed. Application-defined error codes lie outside -32768 to
/// -32000.
pub struct Extension<S = ()> {
    identifier: String,
    settings: Value,
    methods: Vec<Method>,
    problems: Vec<String>,
    state: StateOf<S>,
}

#[derive(Clone)]
struct Method {
    name: String,
    bound: Bound,
    named_by: Option<Arc<str>>,
}

impl Extension {
    /// Creates an extension with this identifier, for example `com.example/search`, and these settings, a JSON object.
    pub fn new(identifier: impl Into<String>, settings: impl Into<Value>) -> Extension {
        let (identifier, settings, state) = (identifier.into(), settings.into(), StateOf::shared(Arc::new(())));
        Extension { identifier, settings, methods: Vec::new(), problems: Vec::new(), state }
    }
}

impl<S: Send + Sync + 'static> Extension<S> {
    /// Sets the state of the methods added after this call: they take `&T`, shared by all calls.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Extension<T> {
        let Extension { identifier, settings, methods, problems, .. } = self;
        Extension { identifier, settings, methods, problems, state: StateOf::shared(Arc::new(state)) }
    }

    /// Adds a method. Its name on the wire begins with the identifier: `run` becomes `com.example/search/run`.
    ///
    /// The handler has the same form as for [`Server::method`].
    pub fn method<M, H>(mut self, name: &str, handler: H) -> Self
    where
        H: MethodHandler<S, M>,
    {
        let name = format!("{}/{name}", self.identifier);
        let bound = handler::bind_method(self.state.clone(), handler);
        self.methods.push(Method { name, bound, named_by: None });
        self
    }

    /// Sets which member of the parameters, a string, names the target of the method added last. Over HTTP, clients of
    /// 2026-07-28 repeat it in `Mcp-Name` (in Rust with `Request::named`); a request whose header differs is rejected
    /// (-32020).
    pub fn named_by(mut self, member: &str) -> Self {
        match self.methods.last_mut() {
            Some(method) => method.named_by = Some(member.into()),
            None => self.problems.push(format!("extension `{}`: `named_by` follows a method", self.identifier)),
        }
        self
    }
}

impl<S: Send + Sync + 'static> Register for Extension<S> {
    fn register(mut server: Server<Self>) -> Server<Self> {
        let this = server.registered();
        let identifier = &this.identifier;
        server.settings.problems.extend(this.problems.iter().cloned());
        if is_reserved(identifier) {
            let why = format!("extension `{identifier}`: the prefix is reserved; use a domain of your own, reversed");
            return server.problem(why);
        }
        if server.settings.extensions.insert(identifier.clone(), this.settings.clone()).is_some() {
            return server.problem(format!("extension `{identifier}`: it is added twice"));
        }
        let extension: Arc<str> = identifier.as_str().into();
        for Method { name, bound, named_by } in this.methods.iter().cloned() {
            if let Err(why) = server.add_method(&name, bound, Some(extension.clone()), named_by) {
                server.settings.problems.push(why);
            }
        }
        server
    }
}

/// Whether the specification keeps the prefix for itself: its second label is `modelcontextprotocol` or `mcp`.
fn is_reserved(identifier: &str) -> bool {
    let prefix = identifier.split('/').next().unwrap_or_default();
    custom_method::identifier_ok(identifier)
        && prefix.split('.').nth(1).is_some_and(|label| matches!(label, "modelcontextprotocol" | "mcp"))
}

impl<S> fmt::Debug for Extension<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").field("identifier", &self.identifier).finish_non_exhaustive()
    }
}
