//! Suggestions for the arguments of prompts and the variables of resource templates.

use linchpin_proto::service::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A client asks for suggestions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The argument or variable.
    pub argument: String,
    /// What was typed so far.
    pub value: String,
    /// Arguments that are already decided (from 2025-06-18 on).
    pub context: BTreeMap<String, String>,
}

impl Completion {
    /// Those of `choices` that begin with what was typed, without regard to case; then those that contain it.
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

/// Suggestions, best first. Clients are sent the first 100 and told the total.
pub trait IntoCompletion {
    /// The values, or a message for the caller.
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

/// An erased completion function.
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
