//! The integration tests of `linchpin-transport`: one program, a module for each subject.

mod child_life;
mod client;
mod common;
mod http_gate;
mod http_h2;
mod http_layers;
mod http_limits;
mod http_pages;
mod http_post;
mod http_replay;
mod http_sessions;
mod http_tls;
mod link_faults;
mod link_local;
mod pipe_flood;
mod remote;
mod sse_2024;
#[cfg(feature = "remote")]
#[path = "../../../web/tests/it/server.rs"]
mod web_server;
