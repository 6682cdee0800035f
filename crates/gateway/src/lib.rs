//! Puts a server behind another transport and another revision.
//!
//! A [`Bridge`] is a [`Service`](linchpin_core::Service) whose calls are calls of an *upstream*: any server that a
//! [`Connector`](linchpin_core::Connector) reaches. It is served like a server, on any transport. Between
//! sides of the same era, arguments and results are forwarded as the bytes that were received; ids and progress tokens are the bridge's own, so that those of different clients do
//! not collide.
//!
//! ```no_run
//! use linchpin_core::service::{Bind, IntoService};
//! use linchpin_gateway::Bridge;
//!
//! async fn serve(upstream: impl linchpin_core::Connector, place: impl Bind) -> std::io::Result<()> {
//!     place.serve(Bridge::new(upstream).into_shared()?).await
//! }
//! ```
//!
//! `docs/TRANSLATION.md` describes what is translated between revisions, and what cannot be.

// This crate owns the connections to upstreams (who shares one, how many there are, when they are opened again or stopped)
// and the way of a message from a client to an upstream and back. It must never know sockets, HTTP statuses, eras by name
// (it asks `linchpin_core::Features`), command lines, or the server crate: a server of this process is a connector like any
// other.
//
// Files import downwards, in this order:
//
// ```text
// bridge
// tapped
// forward
// listen  multi_round_trip
// place
// mirrored  owner
// lease
// exchange  parked  pool
// subscribed  url_elicitation
// instance
// call
// answer_shape  options  refusal  sealed_session  tool_filter
// ```

mod answer_shape;
mod bridge;
mod call;
mod exchange;
mod forward;
mod instance;
mod lease;
mod listen;
mod mirrored;
mod multi_round_trip;
mod options;
mod owner;
mod parked;
mod place;
mod pool;
mod refusal;
mod sealed_session;
mod subscribed;
mod tapped;
mod tool_filter;
mod url_elicitation;

pub use bridge::Bridge;
pub use options::{BridgeOptions, Isolation};
pub use sealed_session::SealedSessions;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The example of this crate's README, compiled by the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
