//! For people who write MCP servers: [`Server`], tools, resources and prompts as `async fn`s or plain `fn`s, [`Cx`] for
//! everything a call may want of its caller.
//!
//! This crate owns the API, the registry of what a server offers, and the members of results. It must never know HTTP
//! status codes, sockets, sessions' ids, or frames and what each revision adds to them: those belong to `linchpin-proto`
//! (a result is written through its `ResultWriter`) and `linchpin-transport`. It does not know the client crate.

mod answer;
mod ask;
mod call;
mod complete;
mod core;
mod cx;
mod error;
mod exchange;
mod explain;
mod form;
mod handle;
mod handler;
mod layer;
mod list;
mod listen;
mod prompt;
mod registry;
mod resource;
mod rounds;
mod schema;
mod server;
mod shape;
mod state;
mod text;
mod tool;
mod vars;
mod whole;

pub use answer::{Answer, Content, IntoReply, Json, Structured};
pub use ask::{Accepted, UrlAnswer};
pub use complete::{Completion, IntoCompletion};
pub use cx::{Cx, Peer, TraceContext};
pub use error::{Error, Result};
pub use handle::{Handle, Prompts, Resources, Tools};
pub use handler::{Args, Invocation, PromptHandler, ResourceHandler, ToolHandler};
pub use layer::{Call, Next};
pub use prompt::{IntoMessages, Message, Prompt};
pub use registry::ChangeError;
pub use resource::{IntoContents, Markdown, Resource};
pub use schema::NoArgs;
pub use server::{Offer, Server};
pub use text::Text;
pub use tool::Tool;

/// The limits of a server, each with its default.
pub use linchpin_proto::Limits;
/// The answer of a call, for middleware.
pub use linchpin_proto::reply::{Reply, ReplyKind};
/// Whether an answer may be cached for everyone or only for the asking user.
pub use linchpin_types::page::CacheScope;
