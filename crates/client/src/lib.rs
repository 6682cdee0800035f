//! The API for MCP hosts: programs that connect to servers.
//!
//! A [`Client`] is the identity and the callbacks of a host. [`Client::connect`] opens a [`Connection`] to one server
//! and negotiates its revision; calls, lists, reads and subscriptions have the same API in all revisions.
//!
//! Use it through the crate `linchpin`, with its transports:
//!
//! ```
//! use linchpin_client::{Client, Result};
//! use linchpin_core::Connector;
//!
//! async fn greet(transport: impl Connector) -> Result<String> {
//!     let server = Client::new("my-host", "1.0").connect(transport).await?;
//!     let result = server.call("greet", serde_json::json!({ "name": "Ada" })).await?;
//!     server.close().await;
//!     Ok(result.text())
//! }
//! ```
//!
//! * Calls, reads and all other requests: [`Request`], with timeout, progress and cancellation. Results: [`Decoded`] and,
//!   for tools, [`RawCallToolResult`].
//! * Calls that become tasks: [`Task`], [`Request::detached`], [`Client::book`].
//! * Lists: [`Listing`], or page by page with [`Pages`]. Subscriptions: [`ChangeFilter`] and [`Changes`].
//! * Server requests: [`ElicitForm`], [`ElicitUrl`], [`SamplingRequest`] and [`ServerMessage`], passed to the callbacks of
//!   [`Client`].
//! * Programs that forward messages: [`raw`].
//! * Errors: [`Error`] and [`ErrorKind`]. Limits: [`linchpin_core::limits::ClientLimits`].

// This crate owns the methods that a host calls, version negotiation, reconnection, multi-round-trip requests, timeouts,
// progress, lists and their pages, the cache, and subscriptions. It must never know frames (`linchpin_proto`'s `Writer`
// writes those), sockets, processes, HTTP (those are behind `linchpin_core::ClientTransport`) or the server crate, and
// names no protocol version: it asks `linchpin_core::Features` what a revision has.
//
// Files import downwards, in this order:
//
// ```text
// client  task
// connection  exchange  pages  raw  request
// drive
// task_questions
// incoming  mrtr  negotiate  supervise
// list  listen
// connection_state
// config  task_record
// book  cache  listeners  questions  request_parts  result  server_requests  task_feed  tool_index
// response
// active_transport  elicitation  error  lock  queue
// ```

mod active_transport;
mod book;
mod cache;
mod client;
mod config;
mod connection;
mod connection_state;
mod drive;
mod elicitation;
mod error;
mod exchange;
mod incoming;
mod list;
mod listen;
mod listeners;
mod lock;
mod mrtr;
mod negotiate;
mod pages;
mod questions;
mod queue;
pub mod raw;
mod request;
mod request_parts;
mod response;
mod result;
mod server_requests;
mod supervise;
mod task;
mod task_feed;
mod task_questions;
mod task_record;
mod tool_index;

pub use book::BookedTask;
pub use client::Client;
pub use config::ReconnectPolicy;
pub use connection::Connection;
pub use elicitation::ElicitForm;
pub use error::{BoxError, Error, ErrorKind};
pub use linchpin_core::{Tap, TraceContext, Traffic};
pub use list::{Listed, Listing, Page, Refusal};
pub use listen::Changes;
pub use listeners::ChangeFilter;
pub use pages::Pages;
pub use request::{Received, Request, Step, Steps};
pub use request_parts::Progress;
pub use result::{Decoded, RawCallToolResult};
pub use server_requests::{ElicitUrl, SamplingRequest, ServerMessage};
pub use task::{Task, TaskState};

/// The result of client operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A change on a server.
///
/// ```
/// use linchpin_client::{Change, Client};
///
/// let client = Client::new("my-host", "1.0").on_change(|change| match change {
///     Change::Tools => println!("list the tools again"),
///     Change::Updated(uri) => println!("{uri} was updated"),
///     _ => {}
/// });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and templates.
    Resources,
    /// The resource with this URI.
    Updated(String),
}
