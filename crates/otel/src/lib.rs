//! OpenTelemetry traces and metrics for servers and clients of the Model Context Protocol.
//!
//! Use it through the crate `linchpin`, as `linchpin::otel`. Two lines in a server:
//!
//! ```no_run
//! use linchpin::otel::Otel;
//! use linchpin::prelude::*;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let otel = Otel::install("notes")?;
//! Server::new("notes", "1.0").observe(otel.observer()).serve(stdio()).await?;
//! otel.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! and in a client, whose requests then carry their trace to the servers:
//!
//! ```no_run
//! # use linchpin::otel::{Otel, trace_context};
//! # use linchpin::prelude::*;
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let otel = Otel::install("host")?;
//! let client = Client::new("host", "1.0").trace_context(trace_context);
//! # Ok(()) }
//! ```
//!
//! Traces and metrics are sent by OTLP over HTTP (protobuf) to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, by
//! default `http://localhost:4318`. Names and attributes are those of the OpenTelemetry conventions for MCP. Arguments,
//! results and URIs are never part of them.

// Files import downwards, in this order:
//
// ```text
// otel
// export
// client  observer
// conventions
// ```

// This crate owns how what linchpin-core tells observers becomes OpenTelemetry's. It must never know servers, clients or
// transports.

mod client;
mod conventions;
mod export;
mod observer;
mod otel;

pub use observer::OtelObserver;
pub use otel::{Otel, OtelBuilder, OtelError, trace_context};
