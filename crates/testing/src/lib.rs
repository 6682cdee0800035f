//! For tests of MCP servers: a scripted client that speaks every revision, and conversations as data.
//!
//! Both work over any stream of one JSON message a line: the second end of `linchpin::transport::memory::memory()`, a
//! unix socket, the pipes of a process. [`Client`] is for tests that say what they want in any revision; [`Script`] is for
//! tests about the exact messages.
//!
//! This crate owns the peer's side only. It must never know the server crate, so that it can test any server.
//!
//! ```no_run
//! # async fn test(stream: tokio::io::DuplexStream) {
//! use linchpin_testing::Client;
//! use linchpin_types::version::Revision;
//! use serde_json::json;
//!
//! let mut client = Client::new(stream, Revision::V2026_07_28).answer("roots/list", |_| json!({ "roots": [] }));
//! client.open().await;
//! let result = client.request("tools/call", json!({ "name": "get-roots-list" })).await.unwrap();
//! assert_eq!(result["content"][0]["type"], "text");
//! # }
//! ```

mod client;
mod lines;
mod script;

pub use client::{Client, Refused};
pub use script::{Mismatch, Script};
