//! A call before its handler runs, and type-erased handlers.

use crate::cx::Cx;
use crate::state::Owner;
use crate::validate::{self, Checker};
use crate::{string_args, text_arg};
use bytestring::ByteString;
use linchpin_core::message::Request;
use linchpin_core::service::BoxFuture;
use linchpin_core::{Reply, ResultWriter, Span};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;

/// Maximum size of arguments that are parsed again after a decoding error. As values they take up to forty times their
/// size.
pub(crate) const EXPLAINED_BYTES_MAX: usize = 256 << 10;

/// Arguments of a call: the received bytes, or the variables of a URI or the arguments of a prompt.
#[derive(Clone, Debug)]
pub struct Args(pub(crate) Source);

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Json(ByteString, Option<Span>),
    Owned(Arc<str>),
    Vars(Arc<[(String, String)]>),
}

impl Args {
    /// The same arguments of a request that may be a copy of the one that they came with.
    #[cfg(feature = "tasks")]
    pub(crate) fn of(self, request: &Request) -> Args {
        match self.0 {
            Source::Json(frame, span) if *frame == *request.frame => Args(Source::Json(request.frame.clone(), span)),
            other => Args(other),
        }
    }

    /// Returns the arguments as JSON text. Variables are an object of strings.
    pub(crate) fn json(&self) -> std::borrow::Cow<'_, str> {
        match &self.0 {
            Source::Json(frame, Some(span)) => span.of(frame).into(),
            Source::Json(_, None) => "{}".into(),
            Source::Owned(json) => (&**json).into(),
            Source::Vars(vars) => {
                let object: serde_json::Map<_, _> =
                    vars.iter().map(|(k, v)| (k.clone(), Value::from(v.clone()))).collect();
                Value::Object(object).to_string().into()
            }
        }
    }

    pub(crate) fn read_json<A: DeserializeOwned>(&self) -> Result<A, String> {
        let json = self.json();
        // An explicit null means no arguments.
        let decode =
            || serde_json::from_str(if json == "null" { "{}" } else { &json }).map_err(|e| validate::serde_message(&e));
        match &self.0 {
            Source::Json(message, _) => text_arg::within(message, decode),
            _ => decode(),
        }
    }

    pub(crate) fn read_vars<A: DeserializeOwned>(&self) -> Result<A, String> {
        match &self.0 {
            Source::Vars(vars) => string_args::decode(vars),
            // A layer has replaced them, perhaps by strings as they came.
            Source::Owned(json) => self.read_json().or_else(|why| match string_args::from_json(json) {
                Some(vars) => string_args::decode(&vars),
                None => Err(why),
            }),
            Source::Json(..) => self.read_json(),
        }
    }
}

/// A call before its handler runs.
pub struct Invocation {
    pub(crate) args: Args,
    pub(crate) cx: Option<Cx>,
    pub(crate) out: ResultWriter,
    /// Explains invalid arguments, using the tool's schema.
    pub(crate) explain: Option<Arc<Checker>>,
    /// The owner of a state per session.
    pub(crate) owner: Option<Owner>,
}

/// An erased handler.
pub(crate) type Run = Arc<dyn Fn(Invocation) -> BoxFuture<'static, Reply> + Send + Sync>;

/// A type-erased handler with its state.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) run: Run,
    /// The schema of its arguments.
    pub(crate) input: fn() -> Value,
    /// The schema of its structured result, if there is one.
    pub(crate) output: fn() -> Option<Value>,
    pub(crate) wants_cx: bool,
    pub(crate) per_session: bool,
    /// The `StateOf` of the handler, for its completion functions.
    pub(crate) state: Arc<dyn Any + Send + Sync>,
}

/// The arguments as sent in the request.
pub(crate) fn json_args(request: &Request, span: Option<Span>) -> Args {
    Args(Source::Json(request.frame.clone(), span))
}
