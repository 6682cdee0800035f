//! The transports: framing, streams, backpressure, timeouts, and the life of connections and child processes.
//!
//! A transport turns bytes into messages for the protocol engine and drives the calls that the engine starts. It does not
//! depend on the names of methods, on handlers, or on what differs between revisions: `linchpin-proto` decides which message
//! is allowed, and a transport acts on the decision.

// Files import downwards, in this order:
//
// ```text
// http/listen
// http/connection
// http/layered
// http/service
// http/post  sse  sse/peer
// http/shared
// http/sessions
// http/session  http/stream  http/work
// http/admission  http/cors  http/guard  http/pages  http/stores  remote  remote/link  remote/listen
// http/answer  remote/sse
// child  child/process  http/body  memory  remote/answer  stdio  unix
// http/intake  link  pipe  remote/endpoint
// driver  http  http/calls  http/options  http/pace  http/session_id  http/tls  lines  link/in_flight  link/outbox
// partial_parse  remote/error_body  remote/head  signals  wake_flag
// ```

#[cfg(feature = "child")]
pub mod child;
mod driver;
mod lines;
mod link;
pub mod memory;
mod partial_parse;
mod pipe;
#[cfg(any(feature = "stdio", feature = "http"))]
mod signals;

#[cfg(any(feature = "stdio", feature = "http"))]
pub use signals::shutdown_signal;

#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "remote")]
pub mod remote;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "stdio")]
pub mod stdio;

#[cfg(all(feature = "stdio", unix))]
pub mod unix;
mod wake_flag;
