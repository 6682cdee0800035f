//! Completion functions, with their requests and results.

use crate::invocation::Bound;
use crate::target::Target;
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use linchpin_types::error::code;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Marker of completion functions.
pub struct Completes;

/// A completion request.
///
/// ```
/// # use linchpin_server::Completion;
/// async fn branches(asked: Completion) -> Vec<String> {
///     match asked.context.get("repository").map(String::as_str) {
///         Some("linchpin") => asked.filter(["main", "next"]),
///         _ => Vec::new(),
///     }
/// }
/// # linchpin_server::Prompt::new("p", "").complete("branch", branches);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Completion {
    /// The name of the argument or variable.
    pub argument: String,
    /// The text entered so far.
    pub value: String,
    /// The values of other arguments (from 2025-06-18 on).
    pub context: BTreeMap<String, String>,
}

impl Completion {
    /// Returns the `choices` that start with the entered text, then those that contain it, ignoring case.
    pub fn filter<I, T>(&self, choices: I) -> Vec<String>
    where
        I: IntoIterator<Item = T>,
        T: Into<String>,
    {
        let typed = self.value.to_lowercase();
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for choice in choices {
            let choice = choice.into();
            let lower = choice.to_lowercase();
            if lower.starts_with(&typed) {
                first.push(choice);
            } else if lower.contains(&typed) {
                later.push(choice);
            }
        }
        first.append(&mut later);
        first
    }
}

/// Completion values, best first. Clients receive the first 100 and the total.
///
/// ```
/// # use linchpin_server::{Completion, Prompt};
/// async fn cities(asked: Completion) -> Result<Vec<&'static str>, std::io::Error> {
///     Ok(if asked.value.starts_with('O') { vec!["Oslo", "Odense"] } else { Vec::new() })
/// }
/// # Prompt::new("p", "").complete("city", cities);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a completion function",
    label = "not a list of values",
    note = "return `Vec<String>`, a `Vec` of anything that converts into `String`, or `Result<_, E>` of one of these"
)]
pub trait IntoCompletion {
    /// Returns the values, or an error message for the caller.
    fn into_values(self) -> Result<Vec<String>, String>;

    /// Writes the response.
    #[doc(hidden)]
    fn into_reply(self, out: ResultWriter) -> Reply
    where
        Self: Sized,
    {
        match self.into_values() {
            Ok(values) => write(&values, out),
            Err(why) => out.error(code::INTERNAL_ERROR, &why, None),
        }
    }

    /// Completions have no output schema.
    #[doc(hidden)]
    fn output_schema() -> Option<Value> {
        None
    }
}

impl<T: Into<String>> IntoCompletion for Vec<T> {
    fn into_values(self) -> Result<Vec<String>, String> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}

impl<T: IntoCompletion, E: std::fmt::Display> IntoCompletion for Result<T, E> {
    fn into_values(self) -> Result<Vec<String>, String> {
        self.map_err(|e| e.to_string())?.into_values()
    }
}

pub(crate) fn write(values: &[String], mut out: ResultWriter) -> Reply {
    const SHOWN_MAX: usize = 100;
    let (shown, total) = (&values[..values.len().min(SHOWN_MAX)], values.len());
    let completion = serde_json::json!({ "values": shown, "total": total, "hasMore": total > SHOWN_MAX });
    out.key("completion");
    out.push(completion.to_string().as_bytes());
    out.finish(ReplyKind::Complete)
}

/// Binds a completion function to the state of its item. `None` if it takes another state.
type Bind = dyn Fn(&dyn Any) -> Option<Bound> + Send + Sync;

/// A completion function.
#[derive(Clone)]
pub(crate) struct Completer {
    pub(crate) bind: Arc<Bind>,
    /// The name of the state's type.
    pub(crate) state: &'static str,
}

/// Completion functions by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<Box<str>, Completer>);

/// Completion functions with their state, by argument.
pub(crate) type Bindings = BTreeMap<Box<str>, Target>;

impl Completers {
    pub(crate) fn insert(&mut self, argument: Box<str>, completer: Completer) {
        self.0.insert(argument, completer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|k| &**k)
    }

    /// Binds the functions to the state of an item's handler.
    pub(crate) fn bind(&self, item: &Bound) -> Result<Bindings, String> {
        let bind = |argument: &str, completer: &Completer| {
            let Some(Bound { run, wants_cx, per_session, .. }) = (completer.bind)(&*item.state) else {
                let state = completer.state;
                return Err(format!("completes `{argument}` with a function of `{state}`, which is not its state"));
            };
            let name = Arc::from(argument);
            let target = Target { name, run, layers: Arc::new([]), wants_cx, per_session, explain: None };
            Ok((argument.into(), target))
        };
        let mut bound = BTreeMap::new();
        for (argument, completer) in &self.0 {
            let (argument, target) = bind(argument, completer)?;
            bound.insert(argument, target);
        }
        Ok(bound)
    }
}
