//! Completion functions of prompts and resources, as they are added.

use crate::completion::Completer;
use crate::handler::{self, CompletionHandler};
use crate::prompt::Prompt;
use crate::resource::Resource;
use crate::state::StateOf;
use std::any::Any;
use std::sync::Arc;

impl Completer {
    /// A function without state.
    pub(crate) fn new<M, H: CompletionHandler<(), M>>(f: H) -> Completer {
        let bound = handler::bind_completion(StateOf::shared(Arc::new(())), f);
        Completer { bind: Arc::new(move |_| Some(bound.clone())), state: "" }
    }

    /// A function of the state `S`.
    pub(crate) fn with_state<S, M, H>(f: H) -> Completer
    where
        S: Send + Sync + 'static,
        H: CompletionHandler<S, M>,
    {
        let bind = move |state: &dyn Any| {
            let state = state.downcast_ref::<StateOf<S>>()?;
            Some(handler::bind_completion(state.clone(), f.clone()))
        };
        Completer { bind: Arc::new(bind), state: std::any::type_name::<S>() }
    }
}

impl Prompt {
    /// Adds a function that suggests values for an argument. It takes any of `&Cx` and
    /// [`Completion`](crate::Completion).
    ///
    /// ```
    /// # use linchpin_server::{Completion, Prompt};
    /// async fn languages(asked: Completion) -> Vec<String> {
    ///     asked.filter(["Rust", "Python"])
    /// }
    ///
    /// let prompt = Prompt::new("review", "Reviews code.").complete("language", languages);
    /// ```
    pub fn complete<M, H>(mut self, argument: impl Into<Box<str>>, f: H) -> Prompt
    where
        H: CompletionHandler<(), M>,
    {
        self.completers.insert(argument.into(), Completer::new(f));
        self
    }

    /// Like [`Prompt::complete`], with a function that also takes the state of the prompt's handler.
    ///
    /// ```
    /// # use linchpin_server::{Completion, Cx, Prompt, Server};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Page { city: String }
    /// struct Places { cities: Vec<String> }
    ///
    /// async fn cities(places: &Places, cx: &Cx, asked: Completion) -> Vec<String> {
    ///     // Only who logged in learns which cities there are.
    ///     if cx.principal().is_some() { asked.filter(&places.cities) } else { Vec::new() }
    /// }
    ///
    /// let page = Prompt::new("brief", "A morning briefing.").complete_with("city", cities);
    /// let server = Server::new("weather", "1.0")
    ///     .state(Places { cities: vec!["Oslo".to_owned()] })
    ///     .prompt(page, |page: Page| page.city);
    /// ```
    ///
    /// If the handler has a state of another type, this is reported when the server starts.
    pub fn complete_with<S, M, H>(mut self, argument: impl Into<Box<str>>, f: H) -> Prompt
    where
        S: Send + Sync + 'static,
        H: CompletionHandler<S, M>,
    {
        self.completers.insert(argument.into(), Completer::with_state(f));
        self
    }
}

impl Resource {
    /// Adds a function that suggests values for a template variable. It takes any of `&Cx` and
    /// [`Completion`](crate::Completion).
    ///
    /// ```
    /// # use linchpin_server::{Completion, Resource};
    /// async fn cities(asked: Completion) -> Vec<String> {
    ///     asked.filter(["Oslo", "Bergen"])
    /// }
    ///
    /// let page = Resource::new("weather://{city}").complete("city", cities);
    /// ```
    pub fn complete<M, H>(mut self, variable: impl Into<Box<str>>, f: H) -> Resource
    where
        H: CompletionHandler<(), M>,
    {
        self.completers.insert(variable.into(), Completer::new(f));
        self
    }

    /// Like [`Resource::complete`], with a function that also takes the state of the template's handler.
    ///
    /// ```
    /// # use linchpin_server::{Completion, Cx, Resource, Server};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Page { city: String }
    /// struct Places { cities: Vec<String> }
    ///
    /// async fn cities(places: &Places, cx: &Cx, asked: Completion) -> Vec<String> {
    ///     // Only who logged in learns which cities there are.
    ///     if cx.principal().is_some() { asked.filter(&places.cities) } else { Vec::new() }
    /// }
    ///
    /// let page = Resource::new("weather://{city}").complete_with("city", cities);
    /// let server = Server::new("weather", "1.0")
    ///     .state(Places { cities: vec!["Oslo".to_owned()] })
    ///     .resource(page, |page: Page| page.city);
    /// ```
    ///
    /// If the handler has a state of another type, this is reported when the server starts.
    pub fn complete_with<S, M, H>(mut self, variable: impl Into<Box<str>>, f: H) -> Resource
    where
        S: Send + Sync + 'static,
        H: CompletionHandler<S, M>,
    {
        self.completers.insert(variable.into(), Completer::with_state(f));
        self
    }
}
