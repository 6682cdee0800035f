//! For tests of MCP servers and hosts: a scripted client that speaks every revision, conversations as data, and a clock that
//! tests control; a web site with every fault ([`site`]); stores in memory, and what every store must promise ([`store`]); captured
//! logs ([`Logged`]).
//!
//! [`TestClient`] and [`Script`] work over any stream of one JSON message a line: the second end of
//! `linchpin::transport::memory()`, a unix socket, the pipes of a process. [`TestClient`] is for tests that say what they want in
//! any revision; [`Script`] is for tests about the exact messages. [`Clock`] makes timeouts and expiry happen without waiting.
//!
//! This crate owns the peer's side only. It must never know the server crate, so that it can test any server.
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
