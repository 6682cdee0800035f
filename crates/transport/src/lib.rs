//! The wires: bytes in and out, framing, streams, backpressure, timeouts, the life of processes and sockets.
//!
//! A transport turns bytes into messages for the protocol engine and drives what comes back. It must never know the name
//! of a method, decide between eras, or see a user's handler: it acts on what `linchpin-proto` tells it.

pub mod memory;
pub mod pipe;

#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "sse")]
pub mod sse;
#[cfg(feature = "stdio")]
pub mod stdio;
#[cfg(all(feature = "stdio", unix))]
pub mod unix;
