//! A prompt's definition, and what a prompt handler may answer with.

use crate::call::Target;
use crate::complete::{Completer, Completers, Completion, IntoCompletion};
use crate::error::{Error, Kind};
use crate::handler::{PromptHandler, Shape};
use crate::layer::{self, Call, Layer, Next};
use linchpin_proto::{Reply, ReplyKind, ResultWriter, fit};
use linchpin_types::content::Icon;
use linchpin_types::error::code;
use linchpin_types::meta::Meta;
use linchpin_types::prompt::{GetPromptResult, Prompt as Definition, PromptArgument, PromptMessage};
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// A message of a prompt: a role and a piece of content.
pub type Message = PromptMessage;

/// A prompt: a template of messages that a person may choose. Its arguments come from the handler's type.
#[derive(Clone)]
pub struct Prompt {
    pub(crate) def: Definition,
    pub(crate) layers: Vec<Layer>,
    pub(crate) completers: Completers,
    pub(crate) place: &'static Location<'static>,
    pub(crate) hidden: Vec<Box<str>>,
}

impl Prompt {
    /// A prompt of this name.
    #[track_caller]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Prompt {
        let description = description.into();
        let description = (!description.is_empty()).then_some(description);
        let def = Definition { name: name.into(), description, ..Definition::default() };
        Prompt {
            def,
            layers: Vec::new(),
            completers: Completers::default(),
            place: Location::caller(),
            hidden: Vec::new(),
        }
    }

    /// A name for people (from 2025-06-18 on).
    pub fn title(mut self, title: impl Into<String>) -> Prompt {
        self.def.title = Some(title.into());
        self
    }

    /// Adds an icon (from 2025-11-25 on).
    pub fn icon(mut self, icon: Icon) -> Prompt {
        self.def.icons.push(icon);
        self
    }

    /// The definition's `_meta` (from 2025-06-18 on).
    pub fn meta(mut self, meta: Meta) -> Prompt {
        self.def.meta = Some(meta);
        self
    }

    /// Suggests values for an argument.
    pub fn complete<F, Fut, R>(mut self, argument: impl Into<Box<str>>, f: F) -> Prompt
    where
        F: Fn(Completion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoCompletion + 'static,
    {
        self.completers.insert(argument.into(), Completer::new(f));
        self
    }

    /// A name that requests may use too but that is not listed, for names of earlier versions. It answers only while no
    /// prompt has this name and no other one answers to it.
    pub fn alias(mut self, name: impl Into<Box<str>>) -> Prompt {
        self.hidden.push(name.into());
        self
    }

    /// Wraps it in middleware; the last one added runs first.
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
    pub(crate) place: &'static Location<'static>,
    pub(crate) hidden: Vec<Box<str>>,
}

/// Binds a definition to its handler.
pub(crate) fn register<S, M, H>(prompt: Prompt, state: Arc<S>, handler: H) -> Result<Registered, String>
where
    S: Send + Sync + 'static,
    H: Shape<S, M> + PromptHandler<S, M>,
{
    let Prompt { mut def, layers, completers, place, hidden } = prompt;
    let input = H::input();
    let Some(properties) = input["properties"].as_object() else {
        return Err(format!("prompt `{}` ({place}): arguments must be a struct of named strings", def.name));
    };
    let required = |name: &str| input["required"].as_array().is_some_and(|r| r.iter().any(|n| n == name));
    def.arguments = properties
        .iter()
        .map(|(name, schema)| PromptArgument {
            name: name.clone(),
            title: schema["title"].as_str().map(Into::into),
            description: schema["description"].as_str().map(Into::into),
            required: Some(required(name)),
        })
        .collect();
    for name in completers.names() {
        if !properties.contains_key(name) {
            return Err(format!(
                "prompt `{}` ({place}): completes `{name}`, which is not one of its arguments",
                def.name
            ));
        }
    }
    let description: Option<Arc<str>> = def.description.as_deref().map(Into::into);
    let run = Arc::new(move |mut call: crate::handler::Invocation| {
        call.out.annotate(description.clone());
        handler.run(&state, call)
    });
    let name = def.name.as_str().into();
    let target = Target { name, run, layers: layers.into(), wants_cx: H::WANTS_CX, explain: None };
    Ok(Registered { def, target, completers, place, hidden })
}

/// An answer of a prompt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a prompt",
    label = "not prompt messages",
    note = "return `String` (one message of the user), `Message`, `Vec<Message>`, or `Result<_, E>` of one of these"
)]
pub trait IntoMessages {
    /// The messages.
    fn into_messages(self) -> Result<GetPromptResult, Error>;
    /// Writes the answer.
    fn into_reply(self, out: ResultWriter) -> Reply
    where
        Self: Sized,
    {
        match self.into_messages() {
            Ok(result) => write(result, out),
            Err(error) => fail(&error, out),
        }
    }
    /// Prompts have no output schema.
    #[doc(hidden)]
    fn output_schema() -> Option<Value> {
        None
    }
}

fn write(result: GetPromptResult, mut out: ResultWriter) -> Reply {
    let (wire, description) = (out.wire(), out.annotation());
    if let Some(description) = result.description.as_deref().or(description.as_deref()) {
        out.key("description");
        out.string(description);
    }
    let messages: Vec<_> =
        result.messages.into_iter().map(|m| PromptMessage { content: fit::content(m.content, wire), ..m }).collect();
    out.key("messages");
    if out.serialize(&messages).is_err() {
        return out.error(code::INTERNAL_ERROR, "the messages could not be written as JSON", None);
    }
    out.finish(ReplyKind::Complete)
}

fn fail(error: &Error, out: ResultWriter) -> Reply {
    error.log_chain();
    match error.kind() {
        Kind::Protocol(code, data) => {
            let data = data.as_ref().map(Value::to_string);
            out.error(*code, &error.to_string(), data.as_deref())
        }
        _ => out.error(code::INTERNAL_ERROR, &error.to_string(), None),
    }
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
        Ok(GetPromptResult { messages: self, ..GetPromptResult::default() })
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
            Err(e) => {
                let mut e = Some(e);
                match (&mut e as &mut dyn Any).downcast_mut::<Option<Error>>().and_then(Option::take) {
                    Some(own) => Err(own),
                    None => Err(Error::tool(e.map(|e| e.to_string()).unwrap_or_default())),
                }
            }
        }
    }
}
