//! Completion for the arguments of prompts and the variables of resource templates.

use linchpin_core::service::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
pub trait IntoCompletion {
    /// Returns the values, or an error message for the caller.
    fn into_values(self) -> Result<Vec<String>, String>;
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

type Erased = dyn Fn(Completion) -> BoxFuture<'static, Result<Vec<String>, String>> + Send + Sync;

/// A type-erased completion function.
#[derive(Clone)]
pub(crate) struct Completer(Arc<Erased>);

impl Completer {
    pub(crate) fn new<F, Fut, R>(f: F) -> Completer
    where
        F: Fn(Completion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoCompletion + 'static,
    {
        Completer(Arc::new(move |asked| {
            let values = f(asked);
            Box::pin(async move { values.await.into_values() })
        }))
    }

    pub(crate) fn run(&self, asked: Completion) -> BoxFuture<'static, Result<Vec<String>, String>> {
        (self.0)(asked)
    }
}

/// Completion functions by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<Box<str>, Completer>);

impl Completers {
    pub(crate) fn insert(&mut self, argument: Box<str>, completer: Completer) {
        self.0.insert(argument, completer);
    }

    pub(crate) fn get(&self, argument: &str) -> Option<&Completer> {
        self.0.get(argument)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|k| &**k)
    }
}
