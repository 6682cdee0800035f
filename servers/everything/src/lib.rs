//! A server that exercises every feature of the Model Context Protocol, to test clients.
//!
//! It has the tools, prompts and resources of npm's `server-everything` under the same names (the names of its first
//! version work too, unlisted), and `everything_*` for features that one lacks. It must not expose anything of value:
//! no files, no private network, no environment unless configured. The feature `web` (on by default) lets one tool
//! fetch URLs; it adds an HTTP client.

mod ask;
mod content;
#[cfg(feature = "web")]
mod fetch;
mod gzip;
mod offers;
mod session;

use linchpin::prelude::*;
use linchpin_kit::{Service, ToolChoice, ToolError, ToolSet};
use session::Sessions;

#[cfg(feature = "web")]
pub use fetch::allowed_domains;
#[cfg(feature = "web")]
pub use linchpin::transport::web::HostRule;

/// The flag that enables `get-env`.
const EXPOSE_ENV: &str = "--expose-env";

/// All tools, in listing order.
pub const SERVICE: Service = Service {
    name: "everything",
    tools: &[
        content::ECHO,
        content::ANNOTATED,
        content::ENV,
        content::LINKS,
        content::REFERENCE,
        content::STRUCTURED,
        content::SUM,
        content::IMAGE,
        content::LONG_OPERATION,
        content::AUDIO,
        content::MIRRORED,
        gzip::GZIP,
        session::LOGGING,
        session::UPDATES,
        session::TOGGLE_EXTRA,
        ask::ROOTS,
        ask::FORM,
        ask::OPEN_URL,
        ask::SAMPLE,
        ask::TWO_QUESTIONS,
    ],
};

/// The configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Enables `get-env`, which lists the names of environment variables, never their values. Default `false`.
    pub expose_env: bool,
    /// Pause between two simulated log messages, in milliseconds. Default 5,000; at least 10.
    pub log_ms: u64,
    /// Pause between two simulated updates of subscribed resources, in milliseconds. Default 5,000; at least 10.
    pub update_ms: u64,
    /// Maximum bytes of a `data:` URL for `gzip-file-as-resource`. Default 1 MiB.
    pub gzip_bytes_max: usize,
    /// Maximum bytes that it fetches (`GZIP_MAX_FETCH_SIZE`). Default 10 MiB.
    pub fetch_bytes_max: usize,
    /// Timeout of a fetch in milliseconds (`GZIP_MAX_FETCH_TIME_MILLIS`). Default 30,000.
    pub fetch_ms_max: u64,
    /// The hosts it may fetch from, see [`allowed_domains`]; empty means every host with a public address. Default
    /// empty.
    #[cfg(feature = "web")]
    pub fetch_hosts: Vec<HostRule>,
    /// The enabled tools and their names. Default: all but `get-env`, without prefix.
    pub tools: ToolChoice,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            expose_env: false,
            log_ms: 5_000,
            update_ms: 5_000,
            gzip_bytes_max: 1 << 20,
            fetch_bytes_max: 10 << 20,
            fetch_ms_max: 30_000,
            #[cfg(feature = "web")]
            fetch_hosts: Vec::new(),
            tools: ToolChoice::default(),
        }
    }
}

impl Options {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_everything::Options;
    /// let options = Options::default().with(|options| options.expose_env = true);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// The tools, resources and prompts, to be added to a server with [`Everything::add_to`].
#[derive(Debug)]
pub struct Everything {
    options: Options,
    sessions: Sessions,
    #[cfg(feature = "web")]
    fetcher: fetch::Fetcher,
}

impl Default for Everything {
    fn default() -> Self {
        Everything::new(Options::default())
    }
}

impl Everything {
    /// With these options.
    pub fn new(options: Options) -> Everything {
        Everything {
            sessions: Sessions::default(),
            #[cfg(feature = "web")]
            fetcher: fetch::Fetcher::new(&options),
            options,
        }
    }

    /// The same with a custom resolver for fetching, whose addresses are checked like any others.
    #[cfg(feature = "web")]
    pub fn with_lookup(options: Options, lookup: impl linchpin::transport::web::Lookup) -> Everything {
        let fetcher = fetch::Fetcher::with_lookup(&options, lookup);
        Everything { sessions: Sessions::default(), fetcher, options }
    }

    /// Adds everything, including instructions, to a server that may have other items. `get-env` only if enabled by the
    /// options.
    ///
    /// # Errors
    /// When the options name unknown tools or tool sets.
    pub fn add_to<S: Send + Sync + 'static>(self, server: Server<S>) -> Result<Server<Self>, ToolError> {
        let mut choice = self.options.tools.clone();
        choice.grant(EXPOSE_ENV, self.options.expose_env);
        let handle = server.handle();
        let tools = ToolSet::open(server.state(self), &SERVICE, &choice)?.instructions(INSTRUCTIONS);
        let tools = session::add(gzip::add(content::add(tools)), handle, &choice.prefix);
        let server = offers::prompts(ask::add(tools)).close();
        Ok(offers::resources(gzip::links(server, &choice), &choice))
    }
}

/// The complete server.
///
/// # Errors
/// As [`Everything::add_to`].
pub fn server(options: Options) -> Result<Server<Everything>, ToolError> {
    Everything::new(options).add_to(introduce(Server::new("linchpin-everything", env!("CARGO_PKG_VERSION"))))
}

/// The server's own title, description and icon.
pub fn introduce(server: Server) -> Server {
    server
        .title("Everything")
        .description("Exercises every feature of the Model Context Protocol")
        .icon(content::icon())
}

/// The instructions of the server.
pub(crate) const INSTRUCTIONS: &str = "\
This server is for testing MCP clients. Its data is made up and nothing is stored permanently.\n\
- Start with `echo` and `get-sum` to check that calls work.\n\
- `trigger-long-running-operation` reports progress when the request carries a progress token, and can be cancelled.\n\
- Tools with `trigger-` and `-request` in their names and `get-roots-list` send a request to the client before they \
return; they require a client that declared the capability.\n\
- `toggle-simulated-logging` and `toggle-subscriber-updates` start notifications that continue after the call, for this \
session only; call them again to stop them.\n\
- Links that `gzip-file-as-resource` returns can be read until the session ends.";
