//! The Model Context Protocol for Rust: one SDK, every revision, every transport.
//!
//! This crate holds no code of its own: it re-exports what servers and hosts are written with.
//!
//! ```no_run
//! use linchpin::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number.
//!     a: f64,
//!     /// The second number.
//!     b: f64,
//! }
//!
//! async fn add(q: Add) -> String {
//!     (q.a + q.b).to_string()
//! }
//!
//! #[tokio::main]
//! async fn main() -> linchpin::Result<()> {
//!     Server::new("adder", "1.0").tool(Tool::new("add", "Adds two numbers.").read_only(), add).serve(stdio()).await
//! }
//! ```
//!
//! It must never hold code: what is missing here belongs into one of the crates it re-exports.

pub use linchpin_proto as proto;
pub use linchpin_transport as transport;
pub use linchpin_types as types;

#[cfg(feature = "auth")]
pub use linchpin_auth as auth;
#[cfg(feature = "client")]
pub use linchpin_client as client;
/// # Example
///
/// ```
/// use linchpin::prelude::*;
/// use linchpin::Completion;
///
/// struct Weather {
///     unit: &'static str,
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Forecast {
///     /// City name.
///     city: String,
///     days: Option<u8>,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Report {
///     highs: Vec<f64>,
/// }
///
/// async fn cities(asked: Completion) -> Vec<String> {
///     asked.filter(["Oslo", "Bergen"])
/// }
///
/// #[offer]
/// impl Weather {
///     /// Daily forecast for a city.
///     #[tool(read_only)]
///     async fn forecast(&self, q: Forecast) -> Json<Report> {
///         Json(Report { highs: vec![q.city.len() as f64; q.days.unwrap_or(1).into()] })
///     }
///
///     /// Between two units.
///     #[tool(read_only, idempotent, title = "Convert a temperature")]
///     async fn convert(
///         &self,
///         /// Degrees Celsius.
///         celsius: f64,
///         /// `K` or `F`; the server's own unit when left out.
///         unit: Option<String>,
///     ) -> Result<String> {
///         match unit.as_deref().unwrap_or(self.unit) {
///             "K" => Ok(format!("{} K", celsius + 273.15)),
///             "F" => Ok(format!("{} F", celsius * 1.8 + 32.0)),
///             other => Err(Error::tool(format!("unknown unit {other}"))),
///         }
///     }
///
///     /// A day's weather as a page.
///     #[resource("weather://{city}/{day}", mime_type = "text/markdown", cache(60_000, public), complete(city = cities))]
///     async fn page(&self, city: String, day: u16) -> String {
///         format!("# {city}, day {day}")
///     }
///
///     /// A morning briefing.
///     #[prompt(complete(city = cities))]
///     async fn brief(&self, city: String) -> String {
///         format!("Tell me about today's weather in {city}.")
///     }
/// }
///
/// let server = Server::new("weather", "1.0").with(Weather { unit: "F" });
/// ```
#[cfg(feature = "macros")]
pub use linchpin_macros::offer;
#[cfg(feature = "macros")]
pub use linchpin_macros::{prompt, resource, tool};
#[cfg(feature = "server")]
pub use linchpin_server as server;
#[cfg(feature = "server")]
pub use linchpin_server::*;

/// What the attribute macros refer to. Not for direct use.
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;
    pub use serde_json;
}

/// What most servers need, in one line.
pub mod prelude {
    #[cfg(feature = "client")]
    pub use linchpin_client::{Client, Connection};
    #[cfg(feature = "macros")]
    pub use linchpin_macros::{offer, prompt, resource, tool};
    #[cfg(feature = "server")]
    pub use linchpin_server::{
        Answer, Call, Content, Cx, Error, IntoReply, Json, Markdown, Message, Next, NoArgs, Offer, Prompt, Reply,
        Resource, Result, Server, Structured, Text, Tool,
    };
    #[cfg(feature = "child")]
    pub use linchpin_transport::child::child;
    #[cfg(feature = "http")]
    pub use linchpin_transport::http::{HttpExt, http};
    pub use linchpin_transport::memory::{in_process, memory};
    #[cfg(feature = "remote")]
    pub use linchpin_transport::remote::remote;
    #[cfg(any(feature = "stdio", feature = "http"))]
    pub use linchpin_transport::shutdown_signal;
    #[cfg(feature = "stdio")]
    pub use linchpin_transport::stdio::stdio;
    pub use linchpin_types::content::ResourceContents;
    pub use linchpin_types::logging::LoggingLevel;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

/// The examples of the README, compiled by the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// The example of this crate's own README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_of_the_crate {}
