//! Handlers, erased: what a registry keeps of a function once its shape is known.

use crate::answer::IntoReply;
use crate::call::{self, EXPLAINED_BYTES_MAX};
use crate::cx::Cx;
use crate::explain::{self, Checker};
use crate::prompt::{IntoMessages, Prompt};
use crate::resource::{IntoContents, Resource};
use crate::shape::{FromArgs, Parameters, Roles, Signature};
use crate::state::{Owner, StateOf};
use crate::tool::Tool;
use crate::{text, vars};
use bytestring::ByteString;
use linchpin_proto::service::BoxFuture;
use linchpin_proto::{Reply, ResultWriter, Span};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// Arguments on their way to a handler: still the bytes that arrived, or variables taken from a URI or a prompt.
#[derive(Clone, Debug)]
pub struct Args(pub(crate) Source);

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Json(ByteString, Option<Span>),
    Owned(Arc<str>),
    Vars(Arc<[(String, String)]>),
}

impl Args {
    /// The arguments as JSON text. Variables are an object of strings.
    pub fn json(&self) -> std::borrow::Cow<'_, str> {
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
        // An explicit null means the same as no arguments.
        let decode = || serde_json::from_str(if json == "null" { "{}" } else { &json }).map_err(|e| explain::said(&e));
        match &self.0 {
            Source::Json(message, _) => text::within(message, decode),
            _ => decode(),
        }
    }

    pub(crate) fn read_vars<A: DeserializeOwned>(&self) -> Result<A, String> {
        match &self.0 {
            Source::Vars(vars) => vars::decode(vars),
            _ => self.read_json(),
        }
    }
}

/// One call on its way to its handler.
pub struct Invocation {
    pub(crate) args: Args,
    pub(crate) cx: Option<Cx>,
    pub(crate) out: ResultWriter,
    /// Explains arguments that did not decode, from the tool's schema.
    pub(crate) explain: Option<Arc<Checker>>,
    /// Whose state the handler is given, where that is not shared by all.
    pub(crate) owner: Option<Owner>,
}

impl Invocation {
    /// Arguments of a tool. What does not decode is tried once more with whole numbers that were sent as floats.
    fn tool_arguments<A: FromArgs>(&self) -> Result<A, String> {
        A::from_json(&self.args).or_else(|why| {
            let json = self.args.json();
            let explain = self.explain.as_ref().filter(|_| json.len() <= EXPLAINED_BYTES_MAX);
            let settled = explain.and_then(|explain| explain.with_whole_numbers(&json));
            settled.and_then(|json| A::from_settled(&json)).ok_or(why)
        })
    }

    fn variables<A: FromArgs>(&self) -> Result<A, String> {
        A::from_vars(&self.args)
    }
}

/// An erased handler.
pub(crate) type Run = Arc<dyn Fn(Invocation) -> BoxFuture<'static, Reply> + Send + Sync>;

/// A handler whose types are forgotten, with its state.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) run: Run,
    /// The schema of its arguments.
    pub(crate) input: fn() -> Value,
    /// The schema of its structured answer, if it has one.
    pub(crate) output: fn() -> Option<Value>,
    pub(crate) wants_cx: bool,
    pub(crate) per_session: bool,
}

macro_rules! handlers {
    ($(#[$doc:meta])* $name:ident $bind:ident $kind:ty, $answer:ident $decode:ident $refuse:path) => {
        $(#[$doc])*
        ///
        /// It is an `async fn` or a plain `fn` of any of `&S`, `&Cx` and one struct of arguments, in this order. Among
        /// closures, those that take a reference are written `async |app: &App, q: Query| …`: the future of
        /// `|app: &App| async move { … }` cannot borrow from the parameter. Implemented for all such functions; not to be
        /// implemented by hand.
        #[diagnostic::on_unimplemented(
            message = "this function cannot be a handler of `{S}`",
            label = "not a handler",
            note = "a handler is an `async fn` or `fn` of at most `&{S}`, `&Cx` and one struct of arguments, in this order",
            note = "a closure that takes a reference is written `async |app: &{S}, q: Query| …`; calls run at the same time, so a handler is `Fn`, `Clone`, `Send`, `Sync` and `'static`"
        )]
        pub trait $name<S, M>: Clone + Send + Sync + 'static {
            /// Whether the handler looks at its context.
            #[doc(hidden)]
            const WANTS_CX: bool;
            /// The schema of its arguments.
            #[doc(hidden)]
            fn input() -> Value;
            /// The schema of its structured answer, if it has one.
            #[doc(hidden)]
            fn output() -> Option<Value>;
            /// Runs it.
            #[doc(hidden)]
            fn run(&self, state: &StateOf<S>, call: Invocation) -> BoxFuture<'static, Reply>;
        }

        /// Forgets the types of a handler.
        pub(crate) fn $bind<S, M, H>(state: StateOf<S>, handler: H) -> Bound
        where
            S: Send + Sync + 'static,
            H: $name<S, M>,
        {
            let per_session = state.per_session();
            let run: Run = Arc::new(move |call| handler.run(&state, call));
            Bound { run, input: H::input, output: H::output, wants_cx: H::WANTS_CX, per_session }
        }

        impl<F, S, L, P, M, A, R, W> $name<S, (L, P, M, A, R, W)> for F
        where
            F: Parameters<L> + Clone + Send + Sync + 'static,
            L: Roles<$kind, P, M>,
            M: Signature<F, S, P, A, R, W>,
            A: FromArgs,
            R: $answer,
            S: Send + Sync + 'static,
        {
            const WANTS_CX: bool = M::WANTS_CX;
            fn input() -> Value {
                A::schema()
            }
            fn output() -> Option<Value> {
                R::output_schema()
            }
            fn run(&self, state: &StateOf<S>, call: Invocation) -> BoxFuture<'static, Reply> {
                let (f, state) = (self.clone(), state.clone());
                Box::pin(async move {
                    let args: A = match call.$decode() {
                        Ok(args) => args,
                        Err(why) => return $refuse(call, &why),
                    };
                    let state = state.of(call.owner.as_ref());
                    let Some(answer) = M::invoke(&f, &state, call.cx.as_ref(), args) else {
                        return $refuse(call, "called without a context");
                    };
                    answer.await.into_reply(call.out)
                })
            }
        }
    };
}

handlers! {
    /// A function that can be a tool of state `S`.
    ToolHandler bind_tool Tool, IntoReply tool_arguments call::bad_arguments
}
handlers! {
    /// A function that can serve a resource of state `S`. [`Cx::uri`] is the URI that was asked for.
    ResourceHandler bind_resource Resource, IntoContents variables call::bad_variables
}
handlers! {
    /// A function that can be a prompt of state `S`.
    PromptHandler bind_prompt Prompt, IntoMessages variables call::bad_variables
}
