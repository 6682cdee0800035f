//! The functions that can be handlers: an `async fn` or a plain `fn` of any of `&State`, `&Cx` and arguments, in this
//! order.
//!
//! The check has three steps, so that rustc reports the actual mistake. [`Parameters`]: how many parameters does the
//! function have? [`Roles`]: is each a reference or arguments, and is the result a future? [`Signature`]: are they in
//! the right order, and how is the function called? Each step knows its marker when its bounds are checked, so the
//! failing bound is the one that is reported. (With a single blanket trait every mistake gives the same message; with
//! associated types instead of parameters, rustc reports the step beside the bound.)

use crate::completion::{Completes, IntoCompletion};
use crate::custom_method::{CustomMethod, IntoResult};
use crate::cx::Cx;
use crate::hooks::{NotificationResult, Notified};
use crate::invocation::Args;
use crate::prompt::{IntoMessages, Prompt};
use crate::resource::{IntoContents, Resource};
use crate::schema::{self, Described, NoArgs};
use crate::tool::Tool;
use crate::tool_result::IntoReply;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;

/// Marker of the number and types of parameters, and the return type.
pub struct Takes<P, O>(P, O);

/// The number of parameters of a function. Implemented for functions and closures with at most three parameters.
pub trait Parameters<L> {}
#[diagnostic::do_not_recommend]
impl<F, O> Parameters<Takes<(), O>> for F where F: Fn() -> O {}
#[diagnostic::do_not_recommend]
impl<F, P, O> Parameters<Takes<(P,), O>> for F where F: Fn(P) -> O {}
#[diagnostic::do_not_recommend]
impl<F, P, Q, O> Parameters<Takes<(P, Q), O>> for F where F: Fn(P, Q) -> O {}
#[diagnostic::do_not_recommend]
impl<F, P, Q, R, O> Parameters<Takes<(P, Q, R), O>> for F where F: Fn(P, Q, R) -> O {}

/// Marker of a reference: the state or the context.
pub struct Ref<T: ?Sized>(PhantomData<T>);
/// Marker of a mutable reference, which handlers cannot take.
pub struct Mut<T: ?Sized>(PhantomData<T>);
/// Marker of arguments.
pub struct Arguments<A>(A);

/// The role of a parameter. Implemented for references and for types of arguments ([`FromArgs`]).
pub trait Parameter<M> {}
impl<T: ?Sized> Parameter<Ref<T>> for &T {}
impl<T: ?Sized> Parameter<Mut<T>> for &mut T {}
impl<A: FromArgs> Parameter<Arguments<A>> for A {}

/// Marker of a future's output.
pub struct Later<R>(R);
/// Marker of a plain result.
pub struct Now<R>(R);

/// The return type of a function. Implemented for the results of handlers ([`AnswerOf`]) and for futures.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a handler",
    label = "not the answer of a `{K}`",
    note = "a tool returns `String`, `Json<T>`, `ContentBlock`, `Vec<ContentBlock>`, `()`, or `Result<_, E>` of one of these; wrap structured data in `Json`",
    note = "the `T` of `Json<T>` derives `Serialize` and `JsonSchema`; an `E` that is boxed is `Box<dyn Error + Send + Sync>`",
    note = "a resource returns `String`, `Vec<u8>`, `Markdown`, `Json<T>`, `ResourceContents`, or `Result<_, E>` of one of these",
    note = "a completion function returns `Vec<String>` or `Result<Vec<String>, E>`",
    note = "a method returns `Json<T>`, `()`, or `Result<_, E>` of one of these",
    note = "a handler of notifications returns `()` or `Result<(), _>`",
    note = "a prompt returns `String`, `PromptMessage`, `Vec<PromptMessage>`, or `Result<_, E>` of one of these"
)]
pub trait Output<K, M> {}
#[diagnostic::do_not_recommend]
impl<K, Fut: Future> Output<K, Later<Fut::Output>> for Fut {}
#[diagnostic::do_not_recommend]
impl<K, R: AnswerOf<K>> Output<K, Now<R>> for R {}

/// A result of the kind `K` of handler. Implemented for all types that implement [`IntoReply`] (tools), [`IntoContents`]
/// (resources), [`IntoMessages`] (prompts), [`IntoResult`] (methods), [`IntoCompletion`] or [`NotificationResult`].
pub trait AnswerOf<K> {}
impl<R: IntoReply> AnswerOf<Tool> for R {}
impl<R: IntoContents> AnswerOf<Resource> for R {}
impl<R: IntoMessages> AnswerOf<Prompt> for R {}
impl<R: IntoResult> AnswerOf<CustomMethod> for R {}
impl<R: IntoCompletion> AnswerOf<Completes> for R {}
impl<R: NotificationResult> AnswerOf<Notified> for R {}

/// The roles of the parameters of a handler of kind `K`, and its return type. Implemented for [`Takes`] if every parameter
/// has a role and the return type is an [`Output`].
pub trait Roles<K, P, M> {}
impl<K, O, MO> Roles<K, (), MO> for Takes<(), O> where O: Output<K, MO> {}
impl<K, P, MP, O, MO> Roles<K, (MP,), MO> for Takes<(P,), O>
where
    P: Parameter<MP>,
    O: Output<K, MO>,
{
}
impl<K, P, MP, Q, MQ, O, MO> Roles<K, (MP, MQ), MO> for Takes<(P, Q), O>
where
    P: Parameter<MP>,
    Q: Parameter<MQ>,
    O: Output<K, MO>,
{
}
impl<K, P, MP, Q, MQ, R, MR, O, MO> Roles<K, (MP, MQ, MR), MO> for Takes<(P, Q, R), O>
where
    P: Parameter<MP>,
    Q: Parameter<MQ>,
    R: Parameter<MR>,
    O: Output<K, MO>,
{
}

/// The arguments of a handler, usually a struct. Implemented for all types that implement `Deserialize` and `JsonSchema`.
pub trait FromArgs: Sized + Send + 'static {
    /// Their schema.
    fn schema() -> Value;
    /// Reads JSON.
    fn from_json(args: &Args) -> Result<Self, String>;
    /// Reads the variables of a URI or the arguments of a prompt.
    fn from_vars(args: &Args) -> Result<Self, String>;
    /// Reads JSON that was coerced to match the schema.
    fn from_settled(json: &str) -> Option<Self>;
}

impl<A: DeserializeOwned + Described + Send + 'static> FromArgs for A {
    fn schema() -> Value {
        schema::arguments::<A>()
    }
    fn from_json(args: &Args) -> Result<Self, String> {
        args.read_json()
    }
    fn from_vars(args: &Args) -> Result<Self, String> {
        args.read_vars()
    }
    fn from_settled(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
}

/// A function of `P` whose future may borrow from it and is `Send`. Implemented for async functions and closures with at
/// most three parameters.
pub trait Async<'a, P> {
    /// The output of the future.
    type Out;
    /// The future.
    type Fut: Future<Output = Self::Out> + Send;
    /// Calls it.
    fn go(&self, passed: P) -> Self::Fut;
}

macro_rules! asyncs {
    ($($($name:ident: $ty:ident),*;)*) => {$(
        impl<F, $($ty,)* Fut: Future + Send> Async<'_, ($($ty,)*)> for F
        where
            F: Fn($($ty),*) -> Fut,
        {
            type Out = Fut::Output;
            type Fut = Fut;
            fn go(&self, ($($name,)*): ($($ty,)*)) -> Fut {
                self($($name),*)
            }
        }
    )*};
}

asyncs! {
    ;
    x: X;
    x: X, y: Y;
    x: X, y: Y, z: Z;
}

/// Marker of a handler without context.
pub struct Alone;
/// Marker of a handler that takes its context.
pub struct WithCx;

/// How a function `F` with parameters `P` is called: with arguments `A`, returning `R`. Implemented for the markers of
/// the return type, which are inferred last: an unknown `Self` keeps rustc from guessing `P` from the ways `F` could be
/// called.
#[diagnostic::on_unimplemented(
    message = "a handler here takes `&{S}`, `&Cx` and one struct of arguments, in this order; this one does not",
    label = "not a handler of the state `{S}`",
    note = "any of the three may be left out",
    note = "the state of the handlers that follow is set with `.state(…)`: `Server::new(…).state(App::new()).tool(…)`",
    note = "it is shared by calls that run at the same time, so it is `&`, never `&mut`; arguments are taken as a value"
)]
pub trait Signature<F, S, P, A, R, W> {
    /// Whether it takes the context.
    const WANTS_CX: bool;
    /// Calls it. Returns `None` if it takes a context and there is none.
    fn invoke<'a>(f: &'a F, state: &'a S, cx: Option<&'a Cx>, args: A) -> Option<impl Future<Output = R> + Send>;
}

macro_rules! signatures {
    ($f:ident $state:ident $cx:ident $args:ident; $(($($role:ty),*) ($($name:ident: $ty:ty = $value:expr),*) [$($generic:ident)?] $taken:ty, $marker:ty, $wants_cx:literal;)*) => {$(
        impl<F, S, R, $($generic)?> Signature<F, S, ($($role,)*), $taken, R, $marker> for Later<R>
        where
            F: for<'a> Async<'a, ($($ty,)*), Out = R>,
            S: Sync + 'static,
            $($generic: Send,)?
        {
            const WANTS_CX: bool = $wants_cx;
            #[allow(unused_variables, reason = "each signature needs some of them")]
            fn invoke<'a>(
                $f: &'a F,
                $state: &'a S,
                $cx: Option<&'a Cx>,
                $args: $taken,
            ) -> Option<impl Future<Output = R> + Send> {
                Some($f.go(($($value,)*)))
            }
        }

        impl<F, S, R, $($generic)?> Signature<F, S, ($($role,)*), $taken, R, $marker> for Now<R>
        where
            F: for<'a> Fn($($ty),*) -> R + Sync,
            S: Sync + 'static,
            $($generic: Send,)?
        {
            const WANTS_CX: bool = $wants_cx;
            #[allow(unused_variables, reason = "each signature needs some of them")]
            fn invoke<'a>(
                $f: &'a F,
                $state: &'a S,
                $cx: Option<&'a Cx>,
                $args: $taken,
            ) -> Option<impl Future<Output = R> + Send> {
                $(let $name = $value;)*
                Some(async move { $f($($name),*) })
            }
        }
    )*};
}

signatures! {
    f state cx args;
    () () [] NoArgs, Alone, false;
    (Arguments<A>) (a: A = args) [A] A, Alone, false;
    (Ref<S>) (s: &'a S = state) [] NoArgs, Alone, false;
    (Ref<S>, Arguments<A>) (s: &'a S = state, a: A = args) [A] A, Alone, false;
    (Ref<Cx>) (c: &'a Cx = cx?) [] NoArgs, WithCx, true;
    (Ref<Cx>, Arguments<A>) (c: &'a Cx = cx?, a: A = args) [A] A, WithCx, true;
    (Ref<S>, Ref<Cx>) (s: &'a S = state, c: &'a Cx = cx?) [] NoArgs, WithCx, true;
    (Ref<S>, Ref<Cx>, Arguments<A>) (s: &'a S = state, c: &'a Cx = cx?, a: A = args) [A] A, WithCx, true;
}
