//! The integration tests of `linchpin`: one program, a module for each subject.

mod access;
mod advisories;
mod arguments;
mod callbacks;
mod client;
mod client_messages;
mod client_tasks;
mod clock;
mod common;
mod completions;
mod custom_methods;
mod custom_requests;
mod eras;
mod errors;
mod extensions;
mod guarded;
mod handlers;
mod http;
mod low_level;
mod mrtr;
mod nodes;
mod notifications;
mod observer;
mod per_caller;
#[cfg(unix)]
#[path = "../../../store/tests/it/redis/server.rs"]
#[allow(dead_code, reason = "the store's own tests use the rest")]
mod redis_server;
mod refreshed;
mod register;
mod request_layers;
mod restart;
mod runtime;
mod safety;
mod shared_state;
mod stdio;
mod tasks;
