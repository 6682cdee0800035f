//! The [Model Context Protocol](https://modelcontextprotocol.io) (MCP) for Rust: servers and hosts, every transport, and all
//! protocol revisions from 2024-11-05 to 2026-07-28.
//!
//! You write tools, resources and prompts as functions. One server speaks every revision on one endpoint.
//!
//! # A server
//!
//! A server on standard input and output needs two dependencies:
//!
//! ```toml
//! [dependencies]
//! linchpin = "0.1"
//! tokio = { version = "1", features = ["rt-multi-thread", "macros"] }
//! ```
//!
#![cfg_attr(all(feature = "macros", feature = "stdio"), doc = "```no_run")]
#![cfg_attr(not(all(feature = "macros", feature = "stdio")), doc = "```ignore")]
//! use linchpin::prelude::*;
//!
//! struct Adder;
//!
//! #[register]
//! impl Adder {
//!     /// Adds two numbers.
//!     #[tool(read_only)]
//!     async fn add(&self, /** The first number. */ a: f64, /** The second number. */ b: f64) -> String {
//!         (a + b).to_string()
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), ServeError> {
//!     Server::new("adder", "1.0").with(Adder).serve(stdio()).await
//! }
//! ```
//!
//! `serve(http("127.0.0.1:8931"))` (feature `http`) makes it a Streamable HTTP server. `#[register]` writes builder calls;
//! the builder itself takes any function: `Server::new("adder", "1.0").tool(("add", "Adds two numbers."), add)`.
//!
//! # A host
//!
//! A host connects to servers. This one starts a server as a child process (features `client` and `child`):
//!
#![cfg_attr(feature = "child", doc = "```no_run")]
#![cfg_attr(not(feature = "child"), doc = "```ignore")]
//! use linchpin::prelude::*;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Client::new("my-host", "1.0").connect(child("npx -y some-weather-server")?).await?;
//!     for tool in server.tools().await? {
//!         println!("{}: {}", tool.name, tool.description.unwrap_or_default());
//!     }
//!     let result = server.call("forecast", serde_json::json!({ "city": "Oslo" })).await?;
//!     println!("{}", result.text());
//!     server.close().await;
//!     Ok(())
//! }
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `server` | yes | the API for servers |
//! | `stdio` | yes | standard input and output, unix sockets, pipes |
//! | `macros` | yes | `#[register]`, `#[tool]`, `#[resource]`, `#[prompt]` |
//! | `http` | | Streamable HTTP for servers, all revisions on one endpoint |
//! | `tls` | | HTTPS for servers |
//! | `keys` | | keys for servers over HTTP, and issuers whose key sets are given |
//! | `guard` | | access tokens of authorization servers, for servers over HTTP |
//! | `issuer` | | your own authorization server: an OAuth proxy in front of a provider, or your own users |
//! | `redis` | | storage of authorization servers in Redis or Valkey, for several nodes |
//! | `sse` | | the HTTP+SSE transport of 2024-11-05 for servers, next to the MCP endpoint |
//! | `middleware` | | rate limits, audit logs and Prometheus metrics for servers |
//! | `otel` | | OpenTelemetry traces and metrics, for servers and clients |
//! | `apps` | | MCP Apps: pages that show the results of tools, and the checks of hosts that show them |
//! | `skills` | | skills: served with `server`, loaded and verified with `client` |
//! | `validate` | | a full JSON Schema validator for arguments and results |
//! | `tasks` | | tools whose calls may become tasks, kept in memory |
//! | `tasks-sqlite` | | tasks in a file, which outlive the process |
//! | `tasks-redis` | | tasks in Redis or Valkey, for several nodes |
//! | `store` | | sessions, stream events and changes in a store, from which another process can continue |
//! | `store-sqlite` | | the same in a file, which outlives the process |
//! | `store-redis` | | the same in Redis or Valkey, for several nodes |
//! | `client` | | the API for hosts |
//! | `child` | | servers as child processes, for clients |
//! | `remote` | | Streamable HTTP and HTTP+SSE for clients |
//! | `auth` | | OAuth for clients |
//! | `keyring` | | tokens in the keyring of the operating system |
//! | `anyhow` | | conversions between the error of handlers and `anyhow::Error` |
//! | `web` | | the HTTP client with address rules, for servers that fetch |
//! | `decompress` | | compressed responses for `web`: gzip, deflate |
//! | `forward-proxy` | | a proxy with the rules of `web`, for browsers and other programs |
//! | `testing` | | a client for tests of servers, transcripts, a clock that tests control |
//!
//! # Where to go next
//!
//! * [`prelude`]: what most programs import.
//! * The root of this crate: the API for servers. Start at `Server`, `Cx` and `Error`.
//! * `client`: the API for hosts. Start at `Client` and `Connection`.
//! * [`transport`]: stdio, child processes, unix sockets, Streamable HTTP, HTTP+SSE, in-memory connections, and the
//!   traits that your own transports implement.
//! * `auth`: OAuth for clients. `guard`: OAuth and keys for servers.
//!   `issuer`: an authorization server to put in front of them.
//! * [`limits`]: everything a peer can make grow, bounded by default. [`types`]: the types of the specification.
//! * `examples/` in the repository: one program per folder, for example state per session, elicitation, and mounting in axum.
//! * `docs/guide` in the repository: a guide, from a first server to deployment, and to migrating from other SDKs.

// This crate must never hold code: what is missing here belongs in one of the crates that it re-exports. It names what is
// public, each thing at one path; only the prelude repeats.

/// The limits of servers and clients, in groups by what they bound, with their defaults.
pub use linchpin_core::limits;
pub use linchpin_types as types;

#[cfg(feature = "apps")]
pub use linchpin_apps as apps;
#[cfg(feature = "auth")]
pub use linchpin_auth as auth;
#[cfg(feature = "client")]
pub use linchpin_client as client;
#[cfg(feature = "keys")]
pub use linchpin_guard as guard;
#[cfg(feature = "issuer")]
pub use linchpin_issuer as issuer;
/// Turns a method into a prompt.
///
/// ```
/// use linchpin::prelude::*;
///
/// struct Reviews;
///
/// #[register]
/// impl Reviews {
///     /// Reviews a change.
///     #[prompt]
///     fn review(&self, diff: String) -> String {
///         format!("Review this change:\n\n{diff}")
///     }
/// }
/// # let _ = Server::new("reviews", "1.0").with(Reviews);
/// ```
#[cfg(feature = "macros")]
pub use linchpin_macros::prompt;
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
/// #[register]
/// impl Weather {
///     /// Daily forecast for a city.
///     #[tool(read_only)]
///     async fn forecast(&self, q: Forecast) -> Json<Report> {
///         Json(Report { highs: vec![q.city.len() as f64; q.days.unwrap_or(1).into()] })
///     }
///
///     /// Converts degrees Celsius to another unit.
///     #[tool(read_only, idempotent, title = "Convert a temperature")]
///     async fn convert(
///         &self,
///         /// Degrees Celsius.
///         celsius: f64,
///         /// `K` or `F`. Default: the server's unit.
///         unit: Option<String>,
///     ) -> Result<String> {
///         match unit.as_deref().unwrap_or(self.unit) {
///             "K" => Ok(format!("{} K", celsius + 273.15)),
///             "F" => Ok(format!("{} F", celsius * 1.8 + 32.0)),
///             other => Err(Error::tool(format!("unknown unit {other}"))),
///         }
///     }
///
///     /// The weather of one day in Markdown.
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
pub use linchpin_macros::register;
/// Turns a method into a resource or a resource template.
///
/// ```
/// use linchpin::prelude::*;
///
/// struct Weather;
///
/// #[register]
/// impl Weather {
///     /// The weather of a city.
///     #[resource("weather://{city}", mime_type = "text/plain")]
///     fn city(&self, city: String) -> String {
///         format!("Rain in {city}.")
///     }
/// }
/// # let _ = Server::new("weather", "1.0").with(Weather);
/// ```
#[cfg(feature = "macros")]
pub use linchpin_macros::resource;
/// Turns a method into a tool.
///
/// ```
/// use linchpin::prelude::*;
///
/// struct Adder;
///
/// #[register]
/// impl Adder {
///     /// Adds two numbers.
///     #[tool(read_only, idempotent)]
///     fn add(&self, a: f64, b: f64) -> String {
///         (a + b).to_string()
///     }
/// }
/// # let _ = Server::new("adder", "1.0").with(Adder);
/// ```
#[cfg(feature = "macros")]
pub use linchpin_macros::tool;
#[cfg(feature = "middleware")]
pub use linchpin_middleware as middleware;
#[cfg(feature = "otel")]
pub use linchpin_otel as otel;
#[cfg(feature = "tasks")]
pub use linchpin_server::Tasks;
#[cfg(feature = "server")]
pub use linchpin_server::{
    Audience, BoxError, Call, CallEnd, CallInfo, ChangeError, Completion, CompletionHandler, ConfigError, Cx, Elicited,
    Error, Extension, Handle, IntoCompletion, IntoContents, IntoMessages, IntoReply, IntoResult, Json, LowLevelServer,
    Markdown, MethodHandler, Next, NoArgs, NotificationHandler, NotificationResult, Observer, Outcome, Peer, Prompt,
    PromptHandler, Prompts, Register, Reply, ReplyKind, RequestError, RequestErrorKind, Resource, ResourceHandler,
    Resources, Result, ResultExt, ServeError, Server, Structured, Text, Tool, ToolHandler, Tools, UrlElicited, Viewer,
};
#[cfg(feature = "skills")]
pub use linchpin_skills as skills;
#[cfg(feature = "testing")]
pub use linchpin_testing as testing;

// Parts of the protocol that the signatures above name.
pub use linchpin_core::service::BoxFuture;
pub use linchpin_core::{ClientCaps, Features, Principal, Request, ResultWriter, Session, TraceContext};

pub mod store {
    //! Storage for state that outlives one process: stores for sessions and events
    //! ([`HttpOptions`](crate::transport::HttpOptions)), and a relay for changes (`Server::change_relay`).
    //! `SharedState` is all three, in a file or in Redis (features `store-sqlite` and `store-redis`).
    //! `linchpin::testing::store` tests implementations.

    pub use linchpin_core::store::{ChangeRelay, EventStore, SessionSeal, SessionStore, StoreError, StoredEvent};
    pub use linchpin_core::{ServerChange, SessionRecord};
    #[cfg(feature = "store")]
    pub use linchpin_server::SharedState;
    #[cfg(feature = "store-redis")]
    pub use linchpin_server::store::RedisOptions;
    #[cfg(feature = "store")]
    pub use linchpin_server::store::{Builder, Error, Secrets, Store};
}

pub mod transport {
    //! How servers are reached: what to serve on, what to connect to, and the traits for transports of your own.
    //!
    //! | | a server serves on it | a client connects to it |
    //! |---|---|---|
    //! | standard input and output | `stdio()` | `child("program")` |
    //! | any pair of streams | `pipes(read, write)` | `pipes(read, write)` |
    //! | unix socket | `unix(path)` | `unix(path)` |
    //! | Streamable HTTP, HTTP+SSE | `http(address)`; in a router of your own: `HttpExt` | `remote(url)` |
    //! | in memory | [`memory()`] | [`in_process`] |
    //!
    //! # Transports of your own
    //!
    //! A server serves on anything that implements [`Bind`]: for a stream of lines, pass its halves to `pipes`. A client connects
    //! to anything that implements [`Connector`], which opens a [`ClientTransport`]. Programs that handle requests without
    //! `Server`, such as a proxy, use `LowLevelServer` or implement [`Service`]; its parts are in the crate `linchpin-core`.
    //!
    //! # Authorization
    //!
    //! `http(address).guard(…)` takes a [`Gate`], which decides about each request before its body is read.

    pub use linchpin_core::connector::{
        Agreed, Answer, Authorizer, BelongsTo, ClientTransport, ConnectOptions, Connector, Inbox, Outgoing,
        TransportError,
    };
    pub use linchpin_core::gate::{Admit, Document, Gate, Page, Refusal};
    pub use linchpin_core::service::{Bind, IntoService, RequestContext, Service};
    pub use linchpin_core::{ChangeBus, ServerChange};
    #[cfg(feature = "child")]
    pub use linchpin_transport::child::{Child, child, is_secret_name};
    #[cfg(feature = "http")]
    pub use linchpin_transport::http::{
        Address, Http, HttpBody, HttpExt, HttpFuture, HttpOptions, HttpService, LayeredService, RequestBody, http,
    };
    #[cfg(feature = "tls")]
    pub use linchpin_transport::http::{Tls, TlsError};
    pub use linchpin_transport::memory::{InProcess, Memory, in_process, memory};
    #[cfg(feature = "remote")]
    pub use linchpin_transport::remote::{Remote, remote};
    #[cfg(any(feature = "stdio", feature = "http"))]
    pub use linchpin_transport::shutdown_signal;
    #[cfg(feature = "stdio")]
    pub use linchpin_transport::stdio::{Pipes, Stdio, pipes, stdio};
    #[cfg(all(feature = "stdio", unix))]
    pub use linchpin_transport::unix::{Unix, UnixServer, unix};
    #[cfg(feature = "web")]
    pub use linchpin_web as web;
}

/// Used by the code of the attribute macros. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;
    pub use serde_json;

    #[cfg(feature = "server")]
    pub use linchpin_server::described;
}

/// The imports of most servers and hosts: `use linchpin::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "client")]
    pub use linchpin_client::{Client, Connection};
    #[cfg(feature = "macros")]
    pub use linchpin_macros::{prompt, register, resource, tool};
    #[cfg(feature = "server")]
    pub use linchpin_server::{
        Call, Cx, Error, IntoReply, Json, Markdown, Next, NoArgs, Prompt, Register, Reply, ReplyKind, Resource, Result,
        ResultExt, ServeError, Server, Structured, Text, Tool,
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
    pub use linchpin_transport::stdio::{pipes, stdio};
    pub use linchpin_types::content::{ContentBlock, ResourceContents};
    pub use linchpin_types::logging::LoggingLevel;
    pub use linchpin_types::prompt::PromptMessage;
    pub use linchpin_types::tool::CallToolResult;
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

/// The examples of the repository's README, compiled by the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

/// The example of this crate's README, compiled by the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_of_the_crate {}

/// And that of the guard's.
#[cfg(doctest)]
#[doc = include_str!("../../guard/README.md")]
mod readme_of_the_guard {}
