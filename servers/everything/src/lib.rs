//! A server that exercises every feature of the Model Context Protocol, to test clients.
//!
//! It has the tools, prompts and resources of npm's `server-everything` under the same names (the names of its first
//! version work too, unlisted), and `everything_*` for features that one lacks. It must not expose anything of value:
//! no files, no private network, no environment unless configured. The feature `web` (on by default) lets one tool
//! fetch URLs; it adds an HTTP client.

// Files import downwards, in this order:
//
// ```text
// content  session
// ask  fetch  gzip  offers  research
// ```

mod ask;
mod content;
#[cfg(feature = "web")]
mod fetch;
mod gzip;
mod offers;
mod research;
mod session;

use linchpin::prelude::*;
use linchpin_kit::{Service, ToolChoice, ToolError, ToolSet, flag};
use session::Session;
use std::sync::Arc;

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
        research::RESEARCH,
    ],
};

linchpin_kit::options! {
    /// The configuration.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Options: "MCP_EVERYTHING" {
        /// Offer `get-env`, which shows the names of the server's environment variables, not their values.
        pub expose_env: bool = false => flag::switch(),
        /// Pause between two simulated log messages, in milliseconds, at least 10.
        pub log_ms: u64 = 5_000,
        /// Pause between two simulated updates of subscribed resources, in milliseconds, at least 10.
        pub update_ms: u64 = 5_000,
        /// Maximum bytes of a `data:` URL for `gzip-file-as-resource`.
        pub gzip_bytes_max: usize = 1 << 20,
        /// Maximum bytes that it fetches.
        pub fetch_bytes_max: usize = 10 << 20 => flag::bytes().variable("GZIP_MAX_FETCH_SIZE").only_variable(),
        /// Timeout of a fetch in milliseconds.
        pub fetch_ms_max: u64 = 30_000 => flag::number("MS").variable("GZIP_MAX_FETCH_TIME_MILLIS").only_variable(),
        /// The hosts it may fetch from; empty means every host with a public address.
        ///
        /// Separated by commas in `GZIP_ALLOWED_DOMAINS`, see [`allowed_domains`].
        #[cfg(feature = "web")]
        pub fetch_hosts: Vec<HostRule> = Vec::new()
            => flag::with("HOSTS", read_domains).variable("GZIP_ALLOWED_DOMAINS").only_variable(),
        /// The enabled tools and their names. By default all but `get-env`, without prefix.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

#[cfg(feature = "web")]
fn read_domains(hosts: &mut Vec<HostRule>, text: &str) -> Result<(), ToolError> {
    *hosts = allowed_domains(text).map_err(|e| ToolError::new(e.to_string()))?;
    Ok(())
}

/// The tools, resources and prompts, to be added to a server with [`Everything::add_to`].
#[derive(Debug)]
pub struct Everything {
    shared: Arc<Shared>,
    session: Session,
}

#[derive(Debug)]
struct Shared {
    options: Options,
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
        Everything::of(Shared {
            #[cfg(feature = "web")]
            fetcher: fetch::Fetcher::new(&options),
            options,
        })
    }

    /// The same with a custom resolver for fetching, whose addresses are checked like any others.
    #[cfg(feature = "web")]
    pub fn with_lookup(options: Options, lookup: impl linchpin::transport::web::Lookup) -> Everything {
        let fetcher = fetch::Fetcher::with_lookup(&options, lookup);
        Everything::of(Shared { options, fetcher })
    }

    fn of(shared: Shared) -> Everything {
        Everything { shared: shared.into(), session: Session::new(Arc::default()) }
    }

    /// Adds everything, including instructions, to a server that may have other items. `get-env` only if enabled by the
    /// options.
    ///
    /// # Errors
    /// When the options name unknown tools or tool sets.
    pub fn add_to<S: Send + Sync + 'static>(self, server: Server<S>) -> Result<Server<Self>, ToolError> {
        let Everything { shared, session } = self;
        let mut choice = shared.options.tools.clone();
        choice.grant(EXPOSE_ENV, shared.options.expose_env);
        let handle = server.handle();
        let server = server.session_state(move || Everything { shared: shared.clone(), session: session.another() });
        let tools = ToolSet::open(server, &SERVICE, &choice)?.instructions(INSTRUCTIONS);
        let tools = session::add(gzip::add(content::add(tools)), handle, &choice.prefix);
        let server = offers::prompts(research::add(ask::add(tools))).close();
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
- `simulate-research-query` is a task: it takes four seconds, and requires a client that knows tasks.\n\
- `toggle-simulated-logging` and `toggle-subscriber-updates` start notifications that continue after the call, for this \
session only; call them again to stop them.\n\
- Links that `gzip-file-as-resource` returns can be read until the session ends.";
