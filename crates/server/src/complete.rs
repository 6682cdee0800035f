//! Completion for the arguments of prompts and the variables of resource templates.

use crate::access::Access;
use crate::dispatch::{self, Target};
use crate::handler::{self, Args, Bound, CompletionHandler, Source};
use crate::running_call;
use crate::service::{RunningServer, clip, fail};
use crate::state::StateOf;
use crate::validate;
use crate::viewer::Viewer;
use linchpin_core::message::Request;
use linchpin_core::service::{CallStart, RequestContext};
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use linchpin_types::complete::{CompleteReference, CompleteRequestParams};
use linchpin_types::error::code;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Context;

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

fn write(values: &[String], mut out: ResultWriter) -> Reply {
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
    bind: Arc<Bind>,
    state: &'static str,
}

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
        self.0.iter().map(|(argument, completer)| bind(argument, completer)).collect()
    }
}

/// `completion/complete`
pub(crate) fn start(
    core: &RunningServer,
    request: &Request,
    door: RequestContext,
    task: &mut Context<'_>,
) -> CallStart {
    let params = match serde_json::from_str::<CompleteRequestParams>(request.params_text()) {
        Ok(params) => params,
        Err(e) => {
            let why = format!("malformed completion request: {}", validate::serde_message(&e));
            return fail(request, code::INVALID_PARAMS, &why);
        }
    };
    let (access, target) = match find(core, &params, || Viewer::of(request, &door)) {
        Ok(found) => found,
        Err(why) => return fail(request, code::INVALID_PARAMS, &why),
    };
    if let Err(reply) = access.admit(&request.id, &door) {
        return CallStart::Done(reply);
    }
    let Some(target) = target else { return CallStart::Done(write(&[], core.writer(request))) };
    let context = params.context.map(|c| c.arguments).unwrap_or_default();
    let asked =
        serde_json::json!({ "argument": params.argument.name, "value": params.argument.value, "context": context });
    let Some(core) = core.this.upgrade() else {
        return fail(request, code::INTERNAL_ERROR, "the server is shutting down");
    };
    match dispatch::unlayered(&core, &target, request, door, Args(Source::Owned(asked.to_string().into()))) {
        Ok(call) => running_call::launch(&core, request, call, task),
        Err(reply) => CallStart::Done(reply),
    }
}

/// The item whose argument is completed, and the function that does it, if there is one.
fn find(
    core: &RunningServer,
    params: &CompleteRequestParams,
    viewer: impl FnOnce() -> Viewer,
) -> Result<(Access, Option<Target>), String> {
    let argument = params.argument.name.as_str();
    match &params.reference {
        CompleteReference::Prompt(prompt) => match core.registries.prompts.snapshot().find(&prompt.name, viewer) {
            None => Err(format!("Unknown prompt: {}", clip(&prompt.name))),
            Some(e) if !e.item.def.arguments.iter().any(|a| a.name == argument) => {
                Err(format!("prompt `{}` has no argument `{}`", prompt.name, clip(argument)))
            }
            Some(e) => Ok((e.item.access.clone(), e.item.completes.get(argument).cloned())),
        },
        CompleteReference::Resource(resource) => match core.registries.resources.snapshot().find(&resource.uri, viewer)
        {
            None => Err(format!("Unknown resource template: {}", clip(&resource.uri))),
            Some(e) => Ok((e.item.access.clone(), e.item.completes.get(argument).cloned())),
        },
        _ => Err("Unknown kind of reference".into()),
    }
}
