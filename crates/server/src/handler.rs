//! Type-erased handlers, as the registry keeps them.

use crate::complete::{Completes, IntoCompletion};
use crate::custom_method::{CustomMethod, IntoResult};
use crate::cx::Cx;
use crate::dispatch::{self, EXPLAINED_BYTES_MAX};
use crate::notification::{NotificationResult, Notified};
use crate::prompt::{IntoMessages, Prompt};
use crate::resource::{IntoContents, Resource};
use crate::shape::{FromArgs, Parameters, Roles, Signature};
use crate::state::{Owner, StateOf};
use crate::tool::Tool;
use crate::tool_result::IntoReply;
use crate::validate::{self, Checker};
use crate::{string_args, text_arg};
use bytestring::ByteString;
use linchpin_core::service::BoxFuture;
use linchpin_core::{Reply, ResultWriter, Span};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;

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
            _ => self.read_json(),
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

impl Invocation {
    /// The arguments of a tool. If decoding fails, it is retried with integral floats as integers.
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

macro_rules! handlers {
    ($(#[$doc:meta])* $name:ident $bind:ident $kind:ty, $answer:ident $decode:ident $refuse:path) => {
        $(#[$doc])*
        ///
        /// It is an `async fn` or a plain `fn` of any of `&S`, `&Cx` and one struct of arguments, in this order. A closure
        /// that takes a reference is written `async |app: &App, q: Query| …`, because the future of
        /// `|app: &App| async move { … }` cannot borrow from the parameter. Implemented for all such functions; do not
        /// implement it yourself.
        #[diagnostic::on_unimplemented(
            message = "this function cannot be a handler of `{S}`",
            label = "not a handler",
            note = "a handler is an `async fn` or `fn` of at most `&{S}`, `&Cx` and one struct of arguments, in this order",
            note = "a closure that takes a reference is written `async |app: &{S}, q: Query| …`; calls run at the same time, so a handler is `Fn`, `Clone`, `Send`, `Sync` and `'static`"
        )]
        pub trait $name<S, M>: Clone + Send + Sync + 'static {
            /// Whether the handler takes the context.
            #[doc(hidden)]
            const WANTS_CX: bool;
            /// The schema of its arguments.
            #[doc(hidden)]
            fn input() -> Value;
            /// The schema of its structured result, if there is one.
            #[doc(hidden)]
            fn output() -> Option<Value>;
            /// Runs it.
            #[doc(hidden)]
            fn run(&self, state: &StateOf<S>, call: Invocation) -> BoxFuture<'static, Reply>;
        }

        /// Erases the types of a handler.
        pub(crate) fn $bind<S, M, H>(state: StateOf<S>, handler: H) -> Bound
        where
            S: Send + Sync + 'static,
            H: $name<S, M>,
        {
            let (per_session, kept) = (state.per_session(), Arc::new(state.clone()));
            let run: Run = Arc::new(move |call| handler.run(&state, call));
            Bound { run, input: H::input, output: H::output, wants_cx: H::WANTS_CX, per_session, state: kept }
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
    /// A function that can handle a tool with state `S`.
    ToolHandler bind_tool Tool, IntoReply tool_arguments dispatch::bad_arguments
}
handlers! {
    /// A function that can handle a resource with state `S`. [`Cx::uri`] returns the requested URI.
    ResourceHandler bind_resource Resource, IntoContents variables dispatch::bad_variables
}
handlers! {
    /// A function that can handle a prompt with state `S`.
    PromptHandler bind_prompt Prompt, IntoMessages variables dispatch::bad_variables
}
handlers! {
    /// A function that can handle a custom method with state `S`.
    MethodHandler bind_method CustomMethod, IntoResult tool_arguments dispatch::bad_parameters
}
handlers! {
    /// A function that can complete arguments of prompts and resources with state `S`. Its argument is a [`Completion`].
    ///
    /// [`Completion`]: crate::Completion
    CompletionHandler bind_completion Completes, IntoCompletion variables dispatch::bad_variables
}
handlers! {
    /// A function that can handle a notification, or a subscription to a resource, with state `S`.
    NotificationHandler bind_notification Notified, NotificationResult tool_arguments dispatch::bad_parameters
}
