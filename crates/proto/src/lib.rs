//! The engine of the Model Context Protocol, without I/O.
//!
//! This crate defines how frames are read ([`frame`]), which revision a message belongs to ([`era`]), which message is
//! allowed when ([`engine`]), how transports drive calls ([`driver`]), the header and SSE rules of the HTTP transports
//! ([`http`]), how a client determines a server's revision ([`negotiation`]), and how it writes its messages
//! ([`message_writer`]).

// It must not depend on sockets, tasks, clocks, random numbers (each is passed in), or a user's handlers. Everything
// here is deterministic, so it is tested and fuzzed without a runtime.
//
// Files import downwards, in this order:
//
// ```text
// driver  http/rules  translate
// translate/ask  translate/notice  translate/open  translate/request
// engine  negotiation  translate/downgrade  translate/error  translate/result
// era  http/request_headers
// frame  http  http/headers  http/sse  legacy  message_writer  modern  short_duration  splice  task
// ```

pub mod driver;
pub mod engine;
pub mod era;
pub mod frame;
pub mod http;
mod legacy;
pub mod message_writer;
mod modern;
pub mod negotiation;
pub mod short_duration;
pub mod splice;
pub mod task;
pub mod translate;

pub use engine::{Engine, Event};
