//! The wires: bytes in and out, framing, streams, backpressure, timeouts, the life of processes and sockets.
//!
//! A transport turns bytes into messages for the protocol engine and drives what comes back. It must never know the name
//! of a method, decide between eras, or see a user's handler: it acts on what `linchpin-proto` tells it.

#[cfg(feature = "child")]
pub mod child;
mod lines;
mod link;
pub mod memory;
pub mod pipe;
mod salvage;
#[cfg(any(feature = "stdio", feature = "http"))]
mod signals;

#[cfg(any(feature = "stdio", feature = "http"))]
pub use signals::shutdown_signal;

#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "remote")]
pub mod remote;
#[cfg(feature = "sse")]
pub mod sse;
#[cfg(feature = "stdio")]
pub mod stdio;
#[cfg(feature = "web")]
pub mod web;

#[cfg(all(feature = "stdio", unix))]
pub mod unix;
