//! The definition of a prompt, and the result types of prompt handlers.

use crate::access::Access;
use crate::completion::{Bindings, Completers};
use crate::downgrade;
use crate::error::Error;
use crate::invocation::Bound;
use crate::layer::{self, Call, Layer, Next};
use crate::string_args;
use crate::target::Target;
use crate::viewer::Viewer;
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use linchpin_types::content::Icon;
use linchpin_types::error::code;
use linchpin_types::meta::IntoMeta;
use linchpin_types::prompt::{GetPromptResult, Prompt as Definition, PromptArgument, PromptMessage};
use serde_json::Value;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The definition of a prompt. Its arguments are derived from the handler's argument type.
///
/// ```
/// # use linchpin_server::{Prompt, PromptMessage, Server};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Review { code: String }
/// let prompt = Prompt::new("review", "Reviews code.").title("Code review");
/// let server = Server::new("prompts", "1.0").prompt(prompt, |q: Review| {
///     vec![PromptMessage::user("Review this code."), PromptMessage::user(q.code)]
/// });
/// ```
#[derive(Clone)]
pub struct Prompt {
    pub(crate) def: Definition,
    pub(crate) layers: Vec<Layer>,
    pub(crate) completers: Completers,
    pub(crate) place: &'static Location<'static>,
    pub(crate) hidden: Vec<Box<str>>,
    pub(crate) access: Access,
    declared: Vec<PromptArgument>,
}

impl Prompt {
    /// Creates a prompt with this name and description.
    #[track_caller]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Prompt {
        let description = description.into();
        let description = (!description.is_empty()).then_some(description);
        let mut def = Definition::new(name);
        def.description = description;
        Prompt {
            def,
            layers: Vec::new(),
            completers: Completers::default(),
            place: Location::caller(),
            hidden: Vec::new(),
            access: Access::default(),
            declared: Vec::new(),
        }
    }

    /// Declares an argument that is known only at run time, for example that of a prompt read from a file.
    ///
    /// The handler takes a map of strings with all arguments that were passed. If the handler's argument type has a
    /// field of this name, this replaces what is derived from it: its title, its description and whether it is
    /// required. A second argument of the same name replaces the first.
    ///
    /// ```
    /// # use linchpin_server::{Prompt, Server};
    /// # use std::collections::BTreeMap;
    /// let template = "Review this {language} code.".to_owned();
    /// let prompt = Prompt::new("review", "Reviews code.").argument("language", "Which language it is in.", true);
    /// let server = Server::new("prompts", "1.0").prompt(prompt, move |given: BTreeMap<String, String>| {
    ///     template.replace("{language}", &given["language"])
    /// });
    /// ```
    pub fn argument(mut self, name: impl Into<String>, description: impl Into<String>, required: bool) -> Prompt {
        let (name, description) = (name.into(), description.into());
        let description = (!description.is_empty()).then_some(description);
        self.declared.retain(|argument| argument.name != name);
        let mut argument = PromptArgument::new(name).with_required(required);
        argument.description = description;
        self.declared.push(argument);
        self
    }

    /// Sets the display name (from 2025-06-18 on).
    pub fn title(mut self, title: impl Into<String>) -> Prompt {
        self.def.title = Some(title.into());
        self
    }

    /// Replaces the description.
    pub fn description(mut self, description: impl Into<String>) -> Prompt {
        self.def.description = Some(description.into());
        self
    }

    /// Adds an icon (from 2025-11-25 on).
    pub fn icon(mut self, icon: Icon) -> Prompt {
        self.def.icons.push(icon);
        self
    }

    /// Sets the `_meta` of the definition (from 2025-06-18 on).
    ///
    /// It is a `Meta`, or JSON such as `json!({ "example.com/cost": 1 })`.
    ///
    /// # Panics
    /// If the JSON is not an object.
    pub fn meta(mut self, meta: impl IntoMeta) -> Prompt {
        self.def.meta = Some(meta.into_meta());
        self
    }

    /// Adds a name that requests can use but that is not listed, for example one from an earlier version.
    ///
    /// It is ignored while another prompt has this name or alias.
    pub fn alias(mut self, name: impl Into<Box<str>>) -> Prompt {
        self.hidden.push(name.into());
        self
    }

    /// Sets the scopes that the prompt and its completion require, as [`Tool::scopes`](crate::Tool::scopes) does.
    pub fn scopes<I>(mut self, scopes: I) -> Prompt
    where
        I: IntoIterator,
        I::Item: Into<Arc<str>>,
    {
        self.access.set_scopes(scopes);
        self
    }

    /// Sets for which clients the prompt exists: others do not see it in lists, cannot get it, and are not notified of its
    /// changes. For them, a request for it fails as if the prompt did not exist.
    ///
    /// `visible` is called for every list and every request, so it must be fast. If a server has such items, its lists are built
    /// for each caller, and are never cached publicly. See [`Tool::visible_to`](crate::Tool::visible_to).
    pub fn visible_to(mut self, visible: impl Fn(&Viewer) -> bool + Send + Sync + 'static) -> Prompt {
        self.access.set_visible(visible);
        self
    }

    /// Wraps the prompt in middleware; the last layer added runs first.
    pub fn layer<F, Fut>(mut self, layer: F) -> Prompt
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Reply> + Send + 'static,
    {
        self.layers.insert(0, layer::erase(layer));
        self
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.def.name).finish_non_exhaustive()
    }
}

impl From<&str> for Prompt {
    #[track_caller]
    fn from(name: &str) -> Prompt {
        Prompt::new(name, "")
    }
}

impl From<(&str, &str)> for Prompt {
    #[track_caller]
    fn from((name, description): (&str, &str)) -> Prompt {
        Prompt::new(name, description)
    }
}

/// A prompt in the registry.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) def: Definition,
    pub(crate) target: Target,
    pub(crate) completers: Completers,
    pub(crate) completes: Arc<Bindings>,
    pub(crate) place: &'static Location<'static>,
    pub(crate) hidden: Vec<Box<str>>,
    pub(crate) access: Access,
    declared: Vec<PromptArgument>,
    bound: Bound,
}

impl Registered {
    /// The prompt after `change`.
    pub(crate) fn changed(&self, change: impl FnOnce(Prompt) -> Prompt) -> Result<Registered, String> {
        let before = Prompt {
            def: self.def.clone(),
            layers: self.target.layers.to_vec(),
            completers: self.completers.clone(),
            place: self.place,
            hidden: self.hidden.clone(),
            access: self.access.clone(),
            declared: self.declared.clone(),
        };
        let after = change(before);
        if after.def.name != self.def.name {
            let (name, other) = (&self.def.name, &after.def.name);
            return Err(format!("prompt `{name}`: an update cannot change its name to `{other}`; `rename` does that"));
        }
        register(after, self.bound.clone())
    }
}

/// Binds a definition to its handler.
pub(crate) fn register(prompt: Prompt, bound: Bound) -> Result<Registered, String> {
    let Prompt { mut def, layers, completers, place, hidden, access, declared } = prompt;
    let name = def.name.clone();
    let at = |why: String| format!("prompt `{name}` ({place}): {why}");
    access.check().map_err(at)?;
    let input = (bound.input)();
    // An optional one may belong to a tool that has the same type.
    string_args::check(&input, |name| requires(&input, name)).map_err(at)?;
    def.arguments = arguments(&input, &declared).map_err(at)?;
    for name in completers.names() {
        if !def.arguments.iter().any(|argument| argument.name == name) {
            return Err(at(format!("completes `{name}`, which is not one of its arguments")));
        }
    }
    let completes = Arc::new(completers.bind(&bound).map_err(at)?);
    let description: Option<Arc<str>> = def.description.as_deref().map(Into::into);
    let handler = bound.run.clone();
    let run = Arc::new(move |mut call: crate::invocation::Invocation| {
        call.out.annotate(description.clone());
        handler(call)
    });
    let (wants_cx, per_session) = (bound.wants_cx, bound.per_session);
    let name = def.name.as_str().into();
    let target = Target { name, run, layers: layers.into(), wants_cx, per_session, explain: None };
    Ok(Registered { def, target, completers, completes, place, hidden, access, declared, bound })
}

/// Whether a schema requires this member.
fn requires(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

/// The arguments derived from the handler's type, and the declared ones.
fn arguments(input: &Value, declared: &[PromptArgument]) -> Result<Vec<PromptArgument>, String> {
    let Some(properties) = input["properties"].as_object() else {
        return Err("arguments must be a struct of named strings, or a map of strings".into());
    };
    let derived = properties.iter().map(|(name, schema)| {
        let mut argument = PromptArgument::new(name).with_required(requires(input, name));
        argument.title = schema["title"].as_str().map(Into::into);
        argument.description = schema["description"].as_str().map(Into::into);
        argument
    });
    let mut arguments: Vec<_> = derived.collect();
    let map = input.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    for argument in declared {
        match arguments.iter_mut().find(|known| known.name == argument.name) {
            Some(known) => *known = argument.clone(),
            None if map => arguments.push(argument.clone()),
            None => {
                let name = &argument.name;
                return Err(format!(
                    "declares the argument `{name}`, which its handler does not take; a map takes all: `|given: BTreeMap<String, String>| …`"
                ));
            }
        }
    }
    Ok(arguments)
}

/// The result of a prompt handler.
///
/// ```
/// # use linchpin_server::Server;
/// use linchpin_types::prompt::PromptMessage;
///
/// fn interview() -> Vec<PromptMessage> {
///     vec![PromptMessage::user("Ask me five questions."), PromptMessage::assistant("What is the first topic?")]
/// }
/// let server = Server::new("s", "1").prompt("hello", || "Say hello.").prompt("interview", interview);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a prompt",
    label = "not prompt messages",
    note = "return `String` (one message of the user), `PromptMessage`, `Vec<PromptMessage>`, or `Result<_, E>` of one of these"
)]
pub trait IntoMessages {
    /// Returns the messages.
    fn into_messages(self) -> Result<GetPromptResult, Error>;
    /// Writes the response.
    fn into_reply(self, out: ResultWriter) -> Reply
    where
        Self: Sized,
    {
        match self.into_messages() {
            Ok(result) => write(result, out),
            Err(error) => error.into_rpc(out),
        }
    }
    /// Prompts have no output schema.
    #[doc(hidden)]
    fn output_schema() -> Option<Value> {
        None
    }
}

fn write(result: GetPromptResult, mut out: ResultWriter) -> Reply {
    let (features, description) = (out.features(), out.annotation());
    if let Some(description) = result.description.as_deref().or(description.as_deref()) {
        out.key("description");
        out.string(description);
    }
    let messages: Vec<_> = result
        .messages
        .into_iter()
        .map(|m| PromptMessage::new(m.role, downgrade::content(m.content, features)))
        .collect();
    out.key("messages");
    if out.serialize(&messages).is_err() {
        return out.error(code::INTERNAL_ERROR, "the messages could not be written as JSON", None);
    }
    if let Some(meta) = result.meta.and_then(|meta| serde_json::to_string(&meta).ok()) {
        out.meta(&meta.as_bytes()[1..meta.len() - 1]);
    }
    out.finish(ReplyKind::Complete)
}

impl IntoMessages for String {
    fn into_messages(self) -> Result<GetPromptResult, Error> {
        PromptMessage::user(self).into_messages()
    }
}

impl IntoMessages for &'static str {
    fn into_messages(self) -> Result<GetPromptResult, Error> {
        PromptMessage::user(self).into_messages()
    }
}

impl IntoMessages for PromptMessage {
    fn into_messages(self) -> Result<GetPromptResult, Error> {
        vec![self].into_messages()
    }
}

impl IntoMessages for Vec<PromptMessage> {
    fn into_messages(self) -> Result<GetPromptResult, Error> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoMessages for GetPromptResult {
    fn into_messages(self) -> Result<GetPromptResult, Error> {
        Ok(self)
    }
}

impl<T: IntoMessages, E: fmt::Display + Send + 'static> IntoMessages for Result<T, E> {
    fn into_messages(self) -> Result<GetPromptResult, Error> {
        match self {
            Ok(answer) => answer.into_messages(),
            Err(error) => Err(Error::from_printable(error)),
        }
    }
}
