//! The API for MCP servers: [`Server`], [`Tool`], [`Resource`], [`Prompt`], and [`Cx`], the context of a call.
//!
//! Use it through the crate `linchpin`. A handler is an `async fn`, a plain `fn` or a closure:
//!
//! ```
//! use linchpin_server::{Error, Result, Server};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Divide {
//!     a: f64,
//!     /// Not zero.
//!     b: f64,
//! }
//!
//! async fn divide(q: Divide) -> Result<String> {
//!     if q.b == 0.0 {
//!         return Err(Error::tool("cannot divide by zero"));
//!     }
//!     Ok((q.a / q.b).to_string())
//! }
//!
//! let server = Server::new("math", "1.0")
//!     .tool(("divide", "Divides two numbers."), divide)
//!     .resource("math://pi", || "3.14159");
//! ```
//!
//! * Results of tools: [`IntoReply`]; of resources: [`IntoContents`]; of prompts: [`IntoMessages`].
//! * Errors: [`Error`] in handlers, [`RequestError`] of requests to the client, [`ServeError`] of [`Server::serve`].
//! * Servers with plain methods instead of tools, resources and prompts: [`LowLevelServer`].
//! * Changes while the server runs: [`Handle`]. Middleware: [`Call`] and [`Next`]. Limits: [`Limits`].

// This crate owns the API, the registry of tools, resources and prompts, and the members of results. It must never know
// HTTP status codes, sockets, session ids, or frames and what each revision adds to them: those belong to `linchpin-proto`
// (a result is written through its `ResultWriter`) and `linchpin-transport`. It does not know the client crate.
//
// Files import downwards, in this order:
//
// ```text
// service
// extension  listen  low_level_server  serve  tasks/start
// tasks/call  tasks/listen  tasks/result
// tasks/methods  tasks/recovery
// complete  list  notification  request_layer  server
// running_server
// tasks/runner
// tasks/live
// tasks/node
// tasks/storage
// completer  handle
// handler
// shape
// hooks  low_level  prompt  resource  tool
// completion  custom_method  dispatch  running_call
// target
// layer
// chain  elicit  invocation
// cx
// mrtr  registry  tasks/link
// tasks/capacity
// tasks/owner
// shared_state
// shared_state/changes
// access  overrides  shared  tasks/options  tasks/record
// form_schema  tool_result  validate  viewer
// coerce_integers  cursor  digest  downgrade  error  request_error  result_object  schema  seal  serve_error  state  ui
// string_args  tasks  text_arg  uri_template
// ```

mod access;
mod chain;
mod coerce_integers;
mod complete;
mod completer;
mod completion;
mod cursor;
mod custom_method;
mod cx;
#[cfg(feature = "store")]
mod digest;
mod dispatch;
mod downgrade;
mod elicit;
mod error;
mod extension;
mod form_schema;
mod handle;
mod handler;
mod hooks;
mod invocation;
mod layer;
mod list;
mod listen;
mod low_level;
mod low_level_server;
mod mrtr;
mod notification;
mod overrides;
mod prompt;
mod registry;
mod request_error;
mod request_layer;
mod resource;
mod result_object;
mod running_call;
mod running_server;
mod schema;
mod seal;
mod serve;
mod serve_error;
mod server;
mod service;
mod shape;
mod shared;
#[cfg(feature = "store")]
mod shared_state;
mod state;
mod string_args;
mod target;
#[cfg(feature = "tasks")]
mod tasks;
mod text_arg;
mod tool;
mod tool_result;
mod ui;
mod uri_template;
mod validate;
mod viewer;

/// What the fuzz targets call. Not public API.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::cursor::{decode, encode};
    pub use crate::seal::{Keyring, SealKey, binding};
    pub use crate::uri_template::UriTemplate;
}

pub use completion::{Completion, IntoCompletion};
pub use custom_method::IntoResult;
pub use cx::{Cx, Peer};
pub use elicit::{Elicited, UrlElicited};
pub use error::{BoxError, Error, Result, ResultExt};
pub use extension::Extension;
pub use handle::{Handle, Prompts, Resources, Tools};
pub use handler::{CompletionHandler, MethodHandler, NotificationHandler, PromptHandler, ResourceHandler, ToolHandler};
pub use hooks::NotificationResult;
pub use layer::{Call, Next};
/// The stores in which tasks and [`SharedState`] are kept.
#[cfg(feature = "store")]
pub use linchpin_store as store;
pub use low_level_server::LowLevelServer;
pub use prompt::{IntoMessages, Prompt};
pub use registry::ChangeError;
pub use request_error::{RequestError, RequestErrorKind};
pub use resource::{IntoContents, Markdown, Resource};
pub use schema::NoArgs;
#[doc(hidden)]
pub use schema::described;
pub use serve_error::ServeError;
pub use server::{Register, Server};
#[cfg(feature = "store")]
pub use shared_state::SharedState;
#[cfg(feature = "tasks")]
pub use tasks::options::Tasks;
pub use text_arg::Text;
pub use tool::Tool;
pub use tool_result::{IntoReply, Json, Structured};
pub use viewer::{Audience, Viewer};

/// The limits of a server and their defaults.
pub use linchpin_core::Limits;
/// Observers of a server, and the events that they receive.
pub use linchpin_core::observer::{CallEnd, CallInfo, Observer, Outcome, TraceContext};
/// The response of a call, for middleware.
pub use linchpin_core::reply::{Reply, ReplyKind};
/// The problems in the configuration of a server.
pub use linchpin_core::service::ConfigError;
/// Content blocks, for results built by hand.
pub use linchpin_types::content::ContentBlock;
/// Whether a response may be cached for all users or only for the requesting one.
pub use linchpin_types::page::CacheScope;
pub use linchpin_types::prompt::PromptMessage;
pub use linchpin_types::tool::CallToolResult;
