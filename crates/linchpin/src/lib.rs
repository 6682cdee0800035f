//! The Model Context Protocol for Rust: one SDK, every revision, every transport.
//!
//! This crate holds no code of its own: it re-exports what a server (later also a client) is written with.
//!
//! ```no_run
//! use linchpin::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number.
//!     a: f64,
//!     /// The second number.
//!     b: f64,
//! }
//!
//! async fn add(q: Add) -> String {
//!     (q.a + q.b).to_string()
//! }
//!
//! #[tokio::main]
//! async fn main() -> linchpin::Result<()> {
//!     Server::new("adder", "1.0").tool(Tool::new("add", "Adds two numbers.").read_only(), add).serve(stdio()).await
//! }
//! ```
//!
//! It must never hold code: what is missing here belongs into one of the crates it re-exports.

pub use linchpin_proto as proto;
pub use linchpin_transport as transport;
pub use linchpin_types as types;

#[cfg(feature = "macros")]
pub use linchpin_macros::offer;
#[cfg(feature = "server")]
pub use linchpin_server as server;
#[cfg(feature = "server")]
pub use linchpin_server::*;

/// What the attribute macros refer to. Not for direct use.
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;
    pub use serde_json;
}

/// What most servers need, in one line.
pub mod prelude {
    #[cfg(feature = "macros")]
    pub use linchpin_macros::offer;
    #[cfg(feature = "server")]
    pub use linchpin_server::{
        Answer, Cx, Content, Error, IntoReply, Json, Markdown, Message, NoArgs, Offer, Prompt, Resource, Result, Server, Structured, Tool,
    };
    #[cfg(feature = "http")]
    pub use linchpin_transport::http::{HttpExt, http};
    pub use linchpin_transport::memory::memory;
    #[cfg(feature = "stdio")]
    pub use linchpin_transport::stdio::stdio;
    pub use linchpin_types::content::ResourceContents;
    pub use linchpin_types::logging::LoggingLevel;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}
