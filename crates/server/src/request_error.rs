//! The error of requests to the client.

use crate::error::BoxError;
use linchpin_types::error::ErrorObject;
use std::error::Error as StdError;
use std::fmt;

/// The error of a request to the client ([`Cx::elicit`], [`Cx::sample`], …).
///
/// It is a standard error, so `?` works in handlers with any error type. One kind is not a failure:
/// [`RequestErrorKind::InputRequired`] ends this run of the handler so that the client can be asked; the handler must
/// return it, wrapped in an error of any type.
///
/// ```
/// # use linchpin_server::{Elicited, Cx, RequestErrorKind};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Sure { yes: bool }
/// async fn purge(cx: &Cx) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
///     match cx.elicit::<Sure>("sure", "Delete everything?").await {
///         Ok(sure) => Ok(format!("sure: {}", sure.yes)),
///         // This client does not support elicitation.
///         Err(e) if e.kind() == RequestErrorKind::Unsupported => Ok("call again with `force`".into()),
///         Err(e) => Err(e.into()),
///     }
/// }
/// ```
///
/// [`Cx::elicit`]: crate::Cx::elicit
/// [`Cx::sample`]: crate::Cx::sample
pub struct RequestError(Box<Inner>);

struct Inner {
    kind: RequestErrorKind,
    message: String,
    rpc: Option<ErrorObject>,
    source: Option<BoxError>,
}

/// The kind of a [`RequestError`].
///
/// ```
/// # use linchpin_server::{Cx, Elicited, RequestErrorKind, RequestError};
/// fn explain(error: &RequestError) -> &'static str {
///     match error.kind() {
///         RequestErrorKind::Unsupported => "this client cannot ask its user",
///         RequestErrorKind::Declined | RequestErrorKind::Cancelled => "the user did not answer",
///         _ => "no answer",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestErrorKind {
    /// The client must be asked first: the call ends with `input_required` and runs again with the input.
    ///
    /// Return it with `?`.
    InputRequired,
    /// The client or its revision does not support the request.
    Unsupported,
    /// The user declined.
    Declined,
    /// The user dismissed the elicitation.
    Cancelled,
    /// The client returned a JSON-RPC error, see [`RequestError::rpc`].
    Rpc,
    /// The client did not respond within `server_requests.response_ms_max`.
    Timeout,
    /// The connection or the call ended before the response.
    Closed,
    /// The request is invalid.
    InvalidRequest,
    /// The response does not match the request or is too large.
    InvalidResponse,
}

impl RequestError {
    pub(crate) fn new(kind: RequestErrorKind, message: impl Into<String>) -> RequestError {
        RequestError(Box::new(Inner { kind, message: message.into(), rpc: None, source: None }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> RequestError {
        RequestError::new(RequestErrorKind::InvalidRequest, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> RequestError {
        RequestError::new(RequestErrorKind::Unsupported, message)
    }

    /// A JSON-RPC error from the client.
    pub(crate) fn refused(method: &str, error: ErrorObject) -> RequestError {
        let message = format!("the client refused {method}: {error}");
        RequestError(Box::new(Inner { kind: RequestErrorKind::Rpc, message, rpc: Some(error), source: None }))
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> RequestError {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> RequestErrorKind {
        self.0.kind
    }

    /// Returns whether the client must be asked for input first, which is not a failure.
    ///
    /// If so, return the error with `?`, and the client is asked.
    pub fn is_input_required(&self) -> bool {
        self.0.kind == RequestErrorKind::InputRequired
    }

    /// Returns the JSON-RPC error that the client returned, if any.
    pub fn rpc(&self) -> Option<&ErrorObject> {
        self.0.rpc.as_ref()
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for RequestError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let rpc = self.0.rpc.as_ref().map(|error| error as &(dyn StdError + 'static));
        rpc.or(self.0.source.as_deref().map(|error| error as &(dyn StdError + 'static)))
    }
}
