//! Streamable HTTP: one endpoint for clients of every revision.
//!
//! | request | answer |
//! |---|---|
//! | POST of a request that stands alone | JSON, or a stream of events from its first notification on |
//! | POST of `initialize` | JSON, and `Mcp-Session-Id` |
//! | POST inside a session | the same, resumable; 202 when no answer is due |
//! | GET inside a session | the session's stream, or with `Last-Event-ID` another one again |
//! | DELETE inside a session | 204; the session has ended |
//! | OPTIONS from a page of an allowed origin (a CORS preflight) | 204 |
//!
//! A sender whose `Accept` names `text/event-stream` before `application/json` gets a finished answer as a stream of one
//! event; refusals stay JSON.
//!
//! This module owns bytes, statuses, connections, sessions and replay. It names no MCP method and no era: which message
//! belongs where is decided by `linchpin_proto`, and this module acts on the outcome.
//!
//! Two ways in: [`http()`] listens itself, and [`HttpExt::into_service`] gives a [`tower_service::Service`] that mounts
//! beside other routes. Request bodies with a `Content-Encoding` are refused; answers are not compressed.

mod answer;
mod body;
mod calls;
mod connection;
mod cors;
mod guard;
mod intake;
mod listen;
mod pace;
mod post;
mod service;
mod session;
mod sessions;
mod stream;
mod work;

pub use body::HttpBody;
pub use listen::{Address, Http, http};
pub use service::{HttpFuture, HttpService, Principal};

#[cfg(feature = "sse")]
pub(crate) use {
    answer::{accepted, events, refuse, reply},
    body::Source,
    calls::Calls,
    post::Head,
    service::Shared,
    sessions::{Place, id_of, key_of},
};

use linchpin_proto::service::IntoService;
use std::io;

/// How the endpoint is reached, and by whom. What bounds it is in [`linchpin_proto::Limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// The endpoint's path. `None` takes every path, for a router in front that has decided already. Default `/mcp`.
    pub path: Option<String>,
    /// Names allowed in `Host`, with or without a port. Default `None`: `localhost`, `127.0.0.1`, `[::1]`, and the bound
    /// address when it is a single one.
    pub allowed_hosts: Option<Vec<String>>,
    /// Allows any `Host`. Default `false`. Only for servers behind a proxy that checks it.
    pub any_host: bool,
    /// Origins of pages that may call, for example `https://app.example`; they get the CORS headers they need. Default `None`: pages of the same host, which
    /// includes any loopback page when the request came to a loopback name. Requests without `Origin` do not come from
    /// pages and are always allowed.
    pub allowed_origins: Option<Vec<String>>,
    /// Also serves the HTTP+SSE transport of revision 2024-11-05 at `/sse` and `/message`. Default `false`.
    #[cfg(feature = "sse")]
    pub sse_2024: bool,
    /// After how many milliseconds a client should come back to a stream that broke. Default 1,000.
    pub retry_ms: u64,
    /// How long a connection without a request stays open, in milliseconds. Default 75,000. PING frames of HTTP/2 are no
    /// requests. Only for [`http()`].
    pub idle_ms_max: u64,
    /// How long a client may take nothing of an answer that waits, in milliseconds. Default 30,000. Then its connection
    /// is closed; on HTTP/2, where a stream is given 16 KiB at a time, the stream alone is reset. Only for [`http()`].
    pub write_ms_max: u64,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            path: Some("/mcp".to_owned()),
            allowed_hosts: None,
            any_host: false,
            allowed_origins: None,
            #[cfg(feature = "sse")]
            sse_2024: false,
            retry_ms: 1_000,
            idle_ms_max: 75_000,
            write_ms_max: 30_000,
        }
    }
}

/// Turns anything that can be served into a service for a router.
pub trait HttpExt: IntoService + Sized {
    /// A service for every path it is mounted at, with the default options otherwise.
    ///
    /// # Errors
    /// What is wrong with the configuration of the server.
    fn into_service(self) -> io::Result<HttpService> {
        self.into_service_with(HttpOptions { path: None, ..HttpOptions::default() })
    }

    /// The same with options.
    ///
    /// # Errors
    /// What is wrong with the configuration of the server.
    fn into_service_with(self, options: HttpOptions) -> io::Result<HttpService> {
        Ok(HttpService::new(self.into_shared()?, options))
    }
}

impl<T: IntoService> HttpExt for T {}
