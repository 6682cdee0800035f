//! Type-erased handlers, as the registry keeps them.

use crate::completion::{Completes, IntoCompletion};
use crate::custom_method::{CustomMethod, IntoResult};
use crate::dispatch::{self};
use crate::hooks::{NotificationResult, Notified};
use crate::invocation::EXPLAINED_BYTES_MAX;
use crate::invocation::{Bound, Invocation, Run};
use crate::prompt::{IntoMessages, Prompt};
use crate::resource::{IntoContents, Resource};
use crate::shape::{FromArgs, Parameters, Roles, Signature};
use crate::state::StateOf;
use crate::tool::Tool;
use crate::tool_result::IntoReply;
use linchpin_core::Reply;
use linchpin_core::service::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

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

macro_rules! handlers {
    ($(#[$doc:meta])* $name:ident $bind:ident $kind:ty, $answer:ident $decode:ident $refuse:path) => {
        $(#[$doc])*
        ///
        /// This trait is implemented for every `async fn` and plain `fn` that takes any of `&S`, `&Cx` and one struct
        /// of arguments, in this order; do not implement it yourself. Write a closure that takes a reference as
        /// `async |app: &App, q: Query| …`, because the future of `|app: &App| async move { … }` cannot borrow from the
        /// parameter.
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
    ///
    /// ```
    /// use linchpin_server::{Server, ToolHandler};
    ///
    /// /// Adds a tool under two names.
    /// fn add<M, H: ToolHandler<(), M>>(server: Server, handler: H) -> Server {
    ///     server.tool("now", handler.clone()).tool("time", handler)
    /// }
    /// let server = add(Server::new("clock", "1.0"), async || "12:00");
    /// assert_eq!(server.tools().names(), ["now", "time"]);
    /// ```
    ToolHandler bind_tool Tool, IntoReply tool_arguments dispatch::bad_arguments
}
handlers! {
    /// A function that can handle a resource with state `S`. [`Cx::uri`](crate::Cx::uri) returns the requested URI.
    ///
    /// ```
    /// use linchpin_server::{Cx, ResourceHandler, Server};
    ///
    /// /// Adds two files that have the same handler.
    /// fn add<M, H: ResourceHandler<(), M>>(server: Server, read: H) -> Server {
    ///     server.resource("file:///a.txt", read.clone()).resource("file:///b.txt", read)
    /// }
    /// let server = add(Server::new("files", "1.0"), |cx: &Cx| cx.uri().unwrap_or_default().to_owned());
    /// assert_eq!(server.resources().names(), ["file:///a.txt", "file:///b.txt"]);
    /// ```
    ResourceHandler bind_resource Resource, IntoContents variables dispatch::bad_variables
}
handlers! {
    /// A function that can handle a prompt with state `S`.
    ///
    /// ```
    /// use linchpin_server::{PromptHandler, Server};
    ///
    /// /// Adds a prompt in two languages.
    /// fn add<M, H: PromptHandler<(), M>>(server: Server, english: H, german: H) -> Server {
    ///     server.prompt("greet-en", english).prompt("greet-de", german)
    /// }
    /// let server = add::<_, fn() -> &'static str>(Server::new("greeter", "1.0"), || "Greet me.", || "Begrüße mich.");
    /// assert_eq!(server.prompts().names(), ["greet-en", "greet-de"]);
    /// ```
    PromptHandler bind_prompt Prompt, IntoMessages variables dispatch::bad_variables
}
handlers! {
    /// A function that can handle a custom method with state `S`.
    ///
    /// ```
    /// use linchpin_server::{Json, MethodHandler, Server};
    ///
    /// /// Adds a method under a prefix of our own.
    /// fn add<M, H: MethodHandler<(), M>>(server: Server, name: &str, handler: H) -> Server {
    ///     server.method(format!("example.com/{name}"), handler)
    /// }
    /// let server = add(Server::new("notes", "1.0"), "count", || Json(serde_json::json!({ "notes": 3 })));
    /// ```
    MethodHandler bind_method CustomMethod, IntoResult tool_arguments dispatch::bad_parameters
}
handlers! {
    /// A function that can complete arguments of prompts and resources with state `S`. Its argument is a [`Completion`].
    ///
    /// ```
    /// use linchpin_server::{Completion, CompletionHandler, Prompt};
    ///
    /// /// Completes an argument `city` that several prompts have.
    /// fn with_city<M, H: CompletionHandler<(), M>>(prompt: Prompt, cities: H) -> Prompt {
    ///     prompt.complete("city", cities)
    /// }
    /// let prompt = Prompt::new("brief", "A morning briefing.");
    /// let prompt = with_city(prompt, |asked: Completion| asked.filter(["Oslo", "Bergen"]));
    /// ```
    ///
    /// [`Completion`]: crate::Completion
    CompletionHandler bind_completion Completes, IntoCompletion variables dispatch::bad_variables
}
handlers! {
    /// A function that can handle a notification, or a subscription to a resource, with state `S`.
    ///
    /// ```
    /// use linchpin_server::{Cx, NotificationHandler, Server};
    ///
    /// /// Runs a handler after the handshake and whenever the roots change.
    /// fn on_roots<M, H: NotificationHandler<(), M>>(server: Server, handler: H) -> Server {
    ///     server.on_initialized(handler.clone()).on_roots_changed(handler)
    /// }
    /// let server = on_roots(Server::new("files", "1.0"), |cx: &Cx| println!("roots of {:?}", cx.client()));
    /// ```
    NotificationHandler bind_notification Notified, NotificationResult tool_arguments dispatch::bad_parameters
}
