//! Methods that the specification does not have: their names, results, and parameters.

use crate::error::Error;
use crate::invocation::{Args, Bound, Source};
use crate::result_object;
use crate::target::Target;
use crate::tool_result::Json;
use linchpin_core::message::Request;
use linchpin_core::{Caller, Method as KnownMethod, Reply, ResultWriter};
use linchpin_types::error::code;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Marker of the handlers of custom methods.
pub struct CustomMethod;

/// Maximum bytes of a method's name.
const NAME_BYTES_MAX: usize = 128;

/// The result of the handler of a custom method: a JSON object.
///
/// ```
/// # use linchpin_server::{Error, Json, Server};
/// #[derive(serde::Serialize)]
/// struct Found { notes: Vec<String> }
///
/// fn search() -> Result<Json<Found>, Error> {
///     Ok(Json(Found { notes: vec!["buy milk".to_owned()] }))
/// }
/// # Server::new("notes", "1.0").method("example.com/search", search);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a method",
    label = "not a result",
    note = "return `Json<T>` where `T` serializes to an object, `()` for an empty one, or `Result<_, E>` of one of these"
)]
pub trait IntoResult {
    /// Converts the value into the members of the result.
    ///
    /// # Errors
    /// The error to respond with.
    fn into_result(self) -> Result<serde_json::Map<String, Value>, Error>;

    /// Writes the response.
    #[doc(hidden)]
    fn into_reply(self, out: ResultWriter) -> Reply
    where
        Self: Sized,
    {
        match self.into_result() {
            Ok(members) => result_object::write(&members, out),
            Err(error) => error.into_rpc(out),
        }
    }

    /// Custom methods have no output schema.
    #[doc(hidden)]
    fn output_schema() -> Option<Value> {
        None
    }
}

impl IntoResult for () {
    fn into_result(self) -> Result<serde_json::Map<String, Value>, Error> {
        Ok(serde_json::Map::new())
    }
}

impl<T: Serialize> IntoResult for Json<T> {
    fn into_result(self) -> Result<serde_json::Map<String, Value>, Error> {
        match serde_json::to_value(&self.0)? {
            Value::Object(members) => Ok(members),
            _ => Err(Error::protocol(code::INTERNAL_ERROR, "the result of a method must be a JSON object")),
        }
    }
}

impl<T: IntoResult, E: fmt::Display + Send + 'static> IntoResult for Result<T, E> {
    fn into_result(self) -> Result<serde_json::Map<String, Value>, Error> {
        self.map_err(Error::from_printable)?.into_result()
    }

    fn into_reply(self, out: ResultWriter) -> Reply {
        match self {
            Ok(result) => result.into_reply(out),
            Err(error) => Error::from_printable(error).into_rpc(out),
        }
    }
}

/// A method that the specification does not have.
pub(crate) struct Method {
    pub(crate) target: Arc<Target>,
    /// The extension that callers must declare.
    pub(crate) extension: Option<Arc<str>>,
    /// The member of the parameters that `Mcp-Name` repeats.
    pub(crate) named_by: Option<Arc<str>>,
}

impl Method {
    /// Whether it exists for a caller.
    pub(crate) fn is_for(&self, caller: &Caller) -> bool {
        self.extension.as_deref().is_none_or(|extension| caller.extension(extension).is_some())
    }
}

/// Checks the name of a custom method, and binds it to its handler.
pub(crate) fn register(name: &str, bound: Bound) -> Result<Target, String> {
    let at = |why: &str| format!("method `{name}`: {why}");
    if KnownMethod::ALL.iter().any(|known| known.as_str() == name) {
        return Err(at("the protocol defines it"));
    }
    if name.starts_with("notifications/") {
        return Err(at("`notifications/` begins the names of notifications"));
    }
    if !name_ok(name) {
        return Err(at("a name is 1 to 128 printable ASCII characters, for example `example.com/search`"));
    }
    let Bound { run, wants_cx, per_session, .. } = bound;
    Ok(Target { name: name.into(), run, layers: Arc::new([]), wants_cx, per_session, explain: None })
}

/// Whether `name` can be the name of a method or notification.
pub(crate) fn name_ok(name: &str) -> bool {
    let ok = |c: char| c.is_ascii_graphic() && !"\"\\".contains(c);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(ok)
}

/// The parameters of the method, without what belongs to the protocol. `None` if they are not an object.
pub(crate) fn parameters(request: &Request) -> Option<Args> {
    let params = request.params;
    if params.meta.or(params.input_responses).or(params.request_state).is_none() {
        return Some(Args(Source::Json(request.frame.clone(), params.all)));
    }
    result_object::own(request).map(|own| Args(Source::Owned(own.into())))
}

/// Whether `identifier` is a prefix of dotted labels and a name, as the specification requires: `com.example/name`.
pub(crate) fn identifier_ok(identifier: &str) -> bool {
    let edge = |text: &str| text.ends_with(|c: char| c.is_ascii_alphanumeric());
    let label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphabetic())
            && edge(label)
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && edge(name)
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    identifier.split_once('/').is_some_and(|(prefix, n)| prefix.split('.').all(label) && name(n))
}
