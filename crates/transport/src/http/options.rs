//! The options of the endpoint.

use linchpin_core::gate::Gate;
use linchpin_core::store::{EventStore, SessionSeal, SessionStore};
use std::fmt;
use std::sync::Arc;

/// Options of the HTTP endpoint: its path, and who may reach it. Limits are in [`linchpin_core::Limits`].
///
/// ```
/// use linchpin_transport::http::{HttpOptions, http};
///
/// let options = HttpOptions::default().with(|options| {
///     options.path = Some("/tools".into());
///     options.retry_ms = 5_000;
/// });
/// assert_eq!(options.idle_ms_max, 75_000);
///
/// let transport = http("127.0.0.1:8931").options(|options| options.retry_ms = 5_000);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The endpoint's path. `None` accepts every path, for use behind a router. Default `/mcp`. A missing `/` at its
    /// beginning is added.
    pub path: Option<String>,
    /// Hosts allowed in the `Host` header, with or without a port, besides the bound address (unless that is unspecified,
    /// such as `0.0.0.0`). Default `None`: `localhost`, `127.0.0.1` and `[::1]`.
    pub allowed_hosts: Option<Vec<String>>,
    /// Allows any `Host`. Default `false`. Only for servers behind a proxy that checks the header.
    pub any_host: bool,
    /// Origins whose pages may send requests, for example `https://app.example`; they get the CORS headers they need.
    /// Default `None`: pages of the same host, including any loopback page if the request was sent to a loopback name;
    /// no pages with `any_host`. Requests without `Origin` do not come from web pages and are always allowed.
    pub allowed_origins: Option<Vec<String>>,
    /// Allows pages of every origin. Default `false`: any page that a user visits could call the server.
    pub any_origin: bool,
    /// Authorizes requests, and serves documents at paths other than the endpoint's. Default `None`: all requests are
    /// allowed.
    pub gate: Option<Arc<dyn Gate>>,
    /// Stores sessions outside this process, so that another process, or this one after a restart, can continue them.
    /// Default `None`: they are kept in memory. A client must return to the same process for as long as that process
    /// lives. A call to the store that takes longer than 5 seconds fails.
    pub sessions: Option<Arc<dyn SessionStore>>,
    /// Encrypts the record of a session into its id, so that it can be continued after a restart and by every process with the
    /// same key. Default `None`.
    pub session_seal: Option<Arc<dyn SessionSeal>>,
    /// Disables sessions, even in revisions that have them: `initialize` returns no id, every request is treated as
    /// coming from a new client without capabilities, and GET is rejected. Default `false`.
    pub no_sessions: bool,
    /// Stores the events of streams outside this process, so that a client can resume a stream at another process.
    /// Default `None`: they are kept in memory. An event is sent once it has been stored, or once storing it has
    /// failed.
    pub events: Option<Arc<dyn EventStore>>,
    /// Also serves the HTTP+SSE transport of revision 2024-11-05 at `/sse` and `/message`. Default `false`.
    #[cfg(feature = "sse")]
    pub sse_2024: bool,
    /// The paths of that transport's stream and of its messages. Default `/sse` and `/message`. Other paths require a
    /// fixed `path`.
    #[cfg(feature = "sse")]
    pub sse_paths: (String, String),
    /// How long clients should wait before they reconnect to a broken stream, in milliseconds. Default 1,000.
    pub retry_ms: u64,
    /// How long a connection without a request stays open, in milliseconds. Default 75,000. HTTP/2 PING frames do not count
    /// as requests. Only for [`http()`](super::http()).
    pub idle_ms_max: u64,
    /// How long a client may go without reading any of a pending response, in milliseconds. Default 30,000. After that,
    /// its connection is closed; on HTTP/2, where a stream is written 16 KiB at a time, only the stream is reset. Only
    /// for [`http()`](super::http()).
    pub write_ms_max: u64,
    /// Responds to `GET /healthz` with 200, and to `GET /readyz` with 200 or, once the shutdown has begun, with 503. Default
    /// `false`. `Host` and `Origin` are not checked for these paths.
    pub health: bool,
    /// The paths at which `health` responds with 200. Default `/healthz`.
    pub health_paths: Vec<String>,
    /// The path at which `health` reports whether requests are served. Default `/readyz`.
    pub ready_path: String,
    /// Called for `/readyz`: if requests cannot be served now, it returns why, as a sentence for the operator that is
    /// sent with status 503. Default `None`: requests can always be served.
    pub ready: Option<Arc<dyn Fn() -> Result<(), String> + Send + Sync>>,
    /// Renders the metrics for `GET /metrics`, in the text format of Prometheus. Default `None`. `Host`, `Origin` and the gate are
    /// checked as for other requests.
    pub metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// How long requests are still accepted after the shutdown signal, in milliseconds, so that a load balancer that
    /// polls `/readyz` can take the server out of rotation first. Default 0. Only for [`http()`](super::http()).
    pub shutdown_delay_ms: u64,
}

impl HttpOptions {
    /// The path with its first `/`.
    pub(super) fn endpoint(&self) -> Option<String> {
        let path = self.path.as_deref()?;
        Some(format!("/{}", path.strip_prefix('/').unwrap_or(path)))
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            path: Some("/mcp".to_owned()),
            allowed_hosts: None,
            any_host: false,
            allowed_origins: None,
            any_origin: false,
            gate: None,
            sessions: None,
            session_seal: None,
            no_sessions: false,
            events: None,
            #[cfg(feature = "sse")]
            sse_2024: false,
            #[cfg(feature = "sse")]
            sse_paths: ("/sse".to_owned(), "/message".to_owned()),
            retry_ms: 1_000,
            idle_ms_max: 75_000,
            write_ms_max: 30_000,
            health: false,
            health_paths: vec!["/healthz".to_owned()],
            ready_path: "/readyz".to_owned(),
            ready: None,
            metrics: None,
            shutdown_delay_ms: 0,
        }
    }
}

impl HttpOptions {
    /// Changes some of these options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("HttpOptions");
        out.field("path", &self.path)
            .field("allowed_hosts", &self.allowed_hosts)
            .field("any_host", &self.any_host)
            .field("allowed_origins", &self.allowed_origins)
            .field("any_origin", &self.any_origin)
            .field("gate", &self.gate.is_some())
            .field("session_seal", &self.session_seal.is_some())
            .field("no_sessions", &self.no_sessions)
            .field("sessions", &self.sessions.is_some())
            .field("events", &self.events.is_some());
        #[cfg(feature = "sse")]
        out.field("sse_2024", &self.sse_2024);
        out.field("retry_ms", &self.retry_ms)
            .field("idle_ms_max", &self.idle_ms_max)
            .field("write_ms_max", &self.write_ms_max)
            .field("health", &self.health)
            .field("ready", &self.ready.is_some())
            .field("metrics", &self.metrics.is_some())
            .field("shutdown_delay_ms", &self.shutdown_delay_ms)
            .finish()
    }
}
