//! Rate limits, audit logs and metrics for servers of the Model Context Protocol.
//!
//! Use it through the crate `linchpin`, as `linchpin::middleware`. [`RateLimit`] and [`Audit`] are layers around handlers
//! or around all requests, and [`Metrics`] is an observer:
//!
//! ```
//! use linchpin_middleware::{Audit, Metrics, RateLimit};
//! use linchpin_server::Server;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let metrics = Metrics::new();
//! let server = Server::new("notes", "1.0")
//!     .layer("10/s".parse::<RateLimit>()?.layer())
//!     .layer_requests(Audit::file("audit.jsonl")?.layer())
//!     .observe(metrics.clone());
//! // With the transport http(…): .metrics(move || metrics.render())
//! # Ok(()) }
//! ```
//!
//! Request layers run before handler layers: here the audit also records the calls that the rate limit refuses.

// Files import downwards, in this order:
//
// ```text
// audit  rate_limit
// caller  metrics  time
// ```

// This crate owns what stands around handlers and is the same for every server. It must never know HTTP, transports, or
// revisions, and it uses only the public API of the server crate.

mod audit;
mod caller;
mod metrics;
mod rate_limit;
mod time;

pub use audit::Audit;
pub use metrics::Metrics;
pub use rate_limit::{RateLimit, RateLimitError};
