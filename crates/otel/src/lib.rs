//! OpenTelemetry traces and metrics for servers and clients of the Model Context Protocol.
//!
//! Use it through the crate `linchpin`, as `linchpin::otel`. Two lines in a server:
//!
//! ```ignore
//! let otel = Otel::install("notes")?;
//! Server::new("notes", "1.0").observe(otel.observer()).serve(stdio()).await?;
//! otel.shutdown().await;
//! ```
//!
//! and in a client, whose requests then carry their trace to the servers:
//!
//! ```ignore
//! let otel = Otel::install("host")?;
//! let client = Client::new("host", "1.0").trace_context(linchpin::otel::trace_context);
//! ```
//!
//! Traces and metrics are sent by OTLP over HTTP (protobuf) to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, by
//! default `http://localhost:4318`. Names and attributes are those of the OpenTelemetry conventions for MCP. Arguments,
//! results and URIs are never part of them.

// This crate owns how what linchpin-core tells observers becomes OpenTelemetry's. It must never know servers, clients or
// transports. Files import downwards:
//
//   otel
//   export  observer
//   conventions

mod conventions;
mod export;
mod observer;
mod otel;

pub use observer::OtelObserver;
pub use otel::{Otel, OtelBuilder, OtelError, trace_context};
