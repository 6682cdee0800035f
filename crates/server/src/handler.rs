//! Arity is the grammar: a handler is an `async fn` of `(args)`, `(&State, args)` or `(&State, &Cx, args)`.
//!
//! [`Shape`] finds which of the three a function is, from its arity alone; the handler trait then states what that shape
//! must satisfy. Because the marker is already known, rustc names the one bound that fails. (With a single blanket trait
//! every mistake gives the same unhelpful message.)

use crate::answer::IntoReply;
use crate::call::EXPLAINED_BYTES_MAX;
use crate::cx::Cx;
use crate::prompt::IntoMessages;
use crate::resource::IntoContents;
use crate::{explain, schema, text, vars};
use bytestring::ByteString;
use linchpin_proto::service::BoxFuture;
use linchpin_proto::{Reply, ResultWriter, Span};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// A function of two parameters whose future may borrow the first.
#[doc(hidden)]
pub trait F2<'a, X, Y>: Fn(X, Y) -> Self::Fut {
    type Out;
    type Fut: Future<Output = Self::Out>;
}
impl<F, X, Y, Fut: Future> F2<'_, X, Y> for F
where
    F: Fn(X, Y) -> Fut,
{
    type Out = Fut::Output;
    type Fut = Fut;
}
/// A function of three parameters whose future may borrow the first two.
#[doc(hidden)]
pub trait F3<'a, X, Y, Z>: Fn(X, Y, Z) -> Self::Fut {
    type Out;
    type Fut: Future<Output = Self::Out>;
}
impl<F, X, Y, Z, Fut: Future> F3<'_, X, Y, Z> for F
where
    F: Fn(X, Y, Z) -> Fut,
{
    type Out = Fut::Output;
    type Fut = Fut;
}

/// The same, for functions whose future is `Send`.
#[doc(hidden)]
pub trait S2<'a, X, Y> {
    type Out;
    type Fut: Future<Output = Self::Out> + Send;
    fn go(&self, x: X, y: Y) -> Self::Fut;
}
impl<F, X, Y, Fut: Future + Send> S2<'_, X, Y> for F
where
    F: Fn(X, Y) -> Fut,
{
    type Out = Fut::Output;
    type Fut = Fut;
    fn go(&self, x: X, y: Y) -> Fut {
        self(x, y)
    }
}
/// The same, for functions whose future is `Send`.
#[doc(hidden)]
pub trait S3<'a, X, Y, Z> {
    type Out;
    type Fut: Future<Output = Self::Out> + Send;
    fn go(&self, x: X, y: Y, z: Z) -> Self::Fut;
}
impl<F, X, Y, Z, Fut: Future + Send> S3<'_, X, Y, Z> for F
where
    F: Fn(X, Y, Z) -> Fut,
{
    type Out = Fut::Output;
    type Fut = Fut;
    fn go(&self, x: X, y: Y, z: Z) -> Fut {
        self(x, y, z)
    }
}

/// Marks `(args)`.
#[doc(hidden)]
pub struct WithArgs<A, R>(A, R);
/// Marks `(&State, args)`.
#[doc(hidden)]
pub struct WithState<A, R>(A, R);
/// Marks `(&State, &Cx, args)`.
#[doc(hidden)]
pub struct WithCx<A, R>(A, R);

/// Which of the three shapes a function has.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a handler of `{S}`",
    label = "not a handler",
    note = "a handler is an `async fn` of `(args)`, `(&{S}, args)` or `(&{S}, &Cx, args)`",
    note = "is `async` missing, is `&Cx` after the arguments, or is the state another type than `{S}`?"
)]
pub trait Shape<S, M> {}
#[diagnostic::do_not_recommend]
impl<F, S, A, Fut: Future> Shape<S, WithArgs<A, Fut::Output>> for F where F: Fn(A) -> Fut {}
#[diagnostic::do_not_recommend]
impl<F, S: 'static, A, R> Shape<S, WithState<A, R>> for F where F: for<'a> F2<'a, &'a S, A, Out = R> {}
#[diagnostic::do_not_recommend]
impl<F, S: 'static, A, R> Shape<S, WithCx<A, R>> for F where F: for<'a> F3<'a, &'a S, &'a Cx, A, Out = R> {}

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

    fn read_json<A: DeserializeOwned>(&self) -> Result<A, String> {
        let json = self.json();
        // An explicit null means the same as no arguments.
        let decode = || serde_json::from_str(if json == "null" { "{}" } else { &json }).map_err(|e| explain::said(&e));
        match &self.0 {
            Source::Json(message, _) => text::within(message, decode),
            _ => decode(),
        }
    }

    fn read_vars<A: DeserializeOwned>(&self) -> Result<A, String> {
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
    pub(crate) explain: Option<Arc<dyn crate::call::Explain>>,
}

impl Invocation {
    /// Arguments of a tool. What does not decode is tried once more with whole numbers that were sent as floats.
    fn tool_arguments<A: DeserializeOwned>(&self) -> Result<A, String> {
        self.args.read_json().or_else(|why| {
            let json = self.args.json();
            let explain = self.explain.as_ref().filter(|_| json.len() <= EXPLAINED_BYTES_MAX);
            let settled = explain.and_then(|explain| explain.with_whole_numbers(&json));
            settled.and_then(|json| serde_json::from_str(&json).ok()).ok_or(why)
        })
    }

    fn variables<A: DeserializeOwned>(&self) -> Result<A, String> {
        self.args.read_vars()
    }
}

/// An erased handler.
pub(crate) type Run = Arc<dyn Fn(Invocation) -> BoxFuture<'static, Reply> + Send + Sync>;

macro_rules! handlers {
    ($(#[$doc:meta])* $name:ident $answer:ident $decode:ident $refuse:path) => {
        $(#[$doc])*
        // Seen only when the shape is wrong already; a bound that fails is reported by itself.
        #[diagnostic::on_unimplemented(
            message = "this function cannot be a handler of `{S}`, as its shape is wrong",
            label = "not a handler"
        )]
        pub trait $name<S, M>: Clone + Send + Sync + 'static {
            /// Whether the handler looks at its context.
            const WANTS_CX: bool;
            /// The schema of its arguments.
            fn input() -> Value;
            /// The schema of its structured answer, if it has one.
            fn output() -> Option<Value>;
            /// Runs it.
            fn run(&self, state: &Arc<S>, call: Invocation) -> BoxFuture<'static, Reply>;
        }

        impl<F, S, A, R, Fut> $name<S, WithArgs<A, R>> for F
        where
            F: Fn(A) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            A: DeserializeOwned + JsonSchema + Send + 'static,
            R: $answer + 'static,
        {
            const WANTS_CX: bool = false;
            fn input() -> Value {
                schema::arguments::<A>()
            }
            fn output() -> Option<Value> {
                R::output_schema()
            }
            fn run(&self, _: &Arc<S>, call: Invocation) -> BoxFuture<'static, Reply> {
                let f = self.clone();
                Box::pin(async move {
                    match call.$decode() {
                        Ok(args) => f(args).await.into_reply(call.out),
                        Err(why) => $refuse(call, &why),
                    }
                })
            }
        }

        impl<F, S, A, R> $name<S, WithState<A, R>> for F
        where
            F: for<'a> S2<'a, &'a S, A, Out = R> + Clone + Send + Sync + 'static,
            S: Send + Sync + 'static,
            A: DeserializeOwned + JsonSchema + Send + 'static,
            R: $answer + 'static,
        {
            const WANTS_CX: bool = false;
            fn input() -> Value {
                schema::arguments::<A>()
            }
            fn output() -> Option<Value> {
                R::output_schema()
            }
            fn run(&self, state: &Arc<S>, call: Invocation) -> BoxFuture<'static, Reply> {
                let (f, state) = (self.clone(), state.clone());
                Box::pin(async move {
                    match call.$decode() {
                        Ok(args) => f.go(&state, args).await.into_reply(call.out),
                        Err(why) => $refuse(call, &why),
                    }
                })
            }
        }

        impl<F, S, A, R> $name<S, WithCx<A, R>> for F
        where
            F: for<'a> S3<'a, &'a S, &'a Cx, A, Out = R> + Clone + Send + Sync + 'static,
            S: Send + Sync + 'static,
            A: DeserializeOwned + JsonSchema + Send + 'static,
            R: $answer + 'static,
        {
            const WANTS_CX: bool = true;
            fn input() -> Value {
                schema::arguments::<A>()
            }
            fn output() -> Option<Value> {
                R::output_schema()
            }
            fn run(&self, state: &Arc<S>, call: Invocation) -> BoxFuture<'static, Reply> {
                let (f, state) = (self.clone(), state.clone());
                Box::pin(async move {
                    let Some(cx) = call.cx.clone() else { return $refuse(call, "called without a context") };
                    match call.$decode() {
                        Ok(args) => f.go(&state, &cx, args).await.into_reply(call.out),
                        Err(why) => $refuse(call, &why),
                    }
                })
            }
        }
    };
}

handlers! {
    /// A function that can be a tool of state `S`.
    ToolHandler IntoReply tool_arguments crate::call::bad_arguments
}
handlers! {
    /// A function that can serve a resource of state `S`.
    ResourceHandler IntoContents variables crate::call::bad_variables
}
handlers! {
    /// A function that can be a prompt of state `S`.
    PromptHandler IntoMessages variables crate::call::bad_variables
}
