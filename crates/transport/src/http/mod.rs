//! Streamable HTTP: one endpoint for clients of every revision.
//!
//! | request | response |
//! |---|---|
//! | POST of a stateless request | JSON, or an SSE stream from its first notification on |
//! | POST of `initialize` | JSON, and `Mcp-Session-Id` |
//! | POST in a session | the same, resumable; 202 for messages without a response |
//! | GET in a session | the session's stream, or another one resumed with `Last-Event-ID` |
//! | DELETE in a session | 204; the session has ended |
//! | GET of `/healthz`, `/readyz`, `/metrics`, where [`HttpOptions`] has them | the state as text |
//! | OPTIONS from a page of an allowed origin (a CORS preflight) | 204 |
//!
//! If `Accept` lists `text/event-stream` before `application/json`, a complete response is sent as a stream of one
//! event; one with another status than 200 remains JSON.
//!
//! This module handles bytes, statuses, connections, sessions and replay. `linchpin_proto` decides which message is allowed
//! where, and this module acts on the result.
//!
//! There are two entry points: [`http()`] listens on an address, and [`HttpExt::into_service`] returns a
//! [`tower_service::Service`] that can be mounted beside other routes. Request bodies with a `Content-Encoding` are rejected;
//! responses are not compressed.

mod admission;
mod answer;
mod body;
mod calls;
mod connection;
mod cors;
mod guard;
mod intake;
mod layered;
mod listen;
mod options;
mod pace;
mod pages;
mod post;
mod service;
mod session;
mod session_id;
mod sessions;
mod shared;
mod stores;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod work;

pub use body::HttpBody;
pub use layered::{LayeredService, RequestBody};
pub use listen::{Address, Http, http};
pub use options::HttpOptions;
pub use service::{HttpExt, HttpFuture, HttpService};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};

#[cfg(feature = "sse")]
pub(crate) use {
    answer::{accepted, events, log_foreign_session, refuse, reply},
    body::Source,
    calls::{Calls, Counted},
    session_id::{id_of, key_of},
    sessions::SessionSlot,
    shared::Shared,
};
