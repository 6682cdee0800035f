//! Utilities for tests of MCP servers and hosts: a client for every revision, scripted conversations, a clock that tests
//! control, a web server that fails in every way ([`site`]), an in-memory store and tests for stores ([`store`]), and captured
//! logs ([`Logged`]).
//!
//! [`TestClient`] and [`Script`] work over any stream with one JSON message per line: the other end of
//! `linchpin::transport::memory()`, a unix socket, the pipes of a process. [`TestClient`] is for tests that run in any
//! revision; [`Script`] is for tests of the exact messages. [`Clock`] makes timeouts and expiry happen without waiting.
//!
//! This crate does not depend on the server crate, so that it can test any server.
//!
//! ```no_run
//! # async fn test(stream: tokio::io::DuplexStream) {
//! use linchpin_testing::TestClient;
//! use linchpin_types::version::Revision;
//! use serde_json::json;
//!
//! let mut client = TestClient::new(stream, Revision::V2026_07_28).answer("roots/list", |_| json!({ "roots": [] }));
//! client.open().await;
//! let result = client.request("tools/call", json!({ "name": "get-roots-list" })).await.unwrap();
//! assert_eq!(result["content"][0]["type"], "text");
//! # }
//! ```

// Files import downwards, in this order:
//
// ```text
// client  script
// clock  lines  logged  site  store
// ```

mod client;
mod clock;
mod lines;
mod logged;
mod script;
pub mod site;
pub mod store;

pub use client::TestClient;
pub use clock::Clock;
pub use logged::Logged;
pub use script::{Mismatch, Script};
