//! Step-by-step thinking as an MCP server.
//!
//! The tool of npm's `server-sequential-thinking` with the same arguments and texts: a model writes one thought at a
//! time, revises earlier ones and branches from them, and gets the current state back. In addition: a separate history
//! per client, limits on everything that a client can make grow, and two optional tools to read and to reset a history.

// This crate must not use files, the network or the command line.
//
// Files import downwards, in this order:
//
// ```text
// tools
// store
// history  log
// input
// ```

mod history;
mod input;
mod log;
mod store;
mod tools;

pub use history::Thought;
pub use log::ThoughtLog;
pub use tools::{Exported, Noted, Reset};

use linchpin::{Call, Next};
use linchpin::{Reply, Server};
use linchpin_kit::{Given, Service, ToolChoice, ToolError, ToolSet, ToolSpec, Vars, flag};
use std::sync::Arc;
use std::time::Duration;
use store::{Session, Store};

const SEQUENTIALTHINKING: ToolSpec = ToolSpec::writes(
    "sequentialthinking",
    "Sequential thinking",
    "thinking",
    "Records one step of your thinking and returns the current state. For problems with several steps whose plan may change; \
     not for questions you can answer at once.\n\
     - Estimate totalThoughts; adjust it at any time.\n\
     - To revise a thought, set isRevision and revisesThought.\n\
     - To try an alternative, set branchFromThought and a branchId; repeat the branchId on that branch.\n\
     - Pass the sessionId of the result with the next thought.\n\
     - Set nextThoughtNeeded to false only when you have a verified answer.",
);
const RESET: ToolSpec = ToolSpec::writes(
    "sequentialthinking_reset",
    "Reset the thoughts",
    "history",
    "Deletes all thoughts of a history, to start again with the same sessionId.",
)
.extra()
.destructive()
.idempotent()
.on_request();
const EXPORT: ToolSpec = ToolSpec::reads(
    "sequentialthinking_export",
    "Read the thoughts",
    "history",
    "Returns the thoughts of a history in order, page by page.",
)
.extra()
.on_request();

/// All tools, the published one first.
pub const SERVICE: Service = Service { name: "sequentialthinking", tools: &[SEQUENTIALTHINKING, RESET, EXPORT] };

linchpin_kit::options! {
    /// Limits on stored data. A limit of 0 is an error when the server is opened.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Limits {
        /// Maximum number of thoughts in a history; the oldest are dropped.
        ///
        /// They are still counted.
        pub thoughts_max: usize = 1_000 => flag::number("N").named("max-thoughts"),
        /// Maximum size of a thought, in bytes.
        ///
        /// A longer one is refused.
        pub thought_bytes_max: usize = 64 << 10 => flag::bytes().named("max-thought-bytes"),
        /// Maximum number of branches in a history; the oldest are dropped.
        pub branches_max: usize = 100 => flag::number("N").named("max-branches"),
        /// How long an unused history without a session is kept, in seconds.
        pub ttl: Duration = Duration::from_secs(3_600) => flag::seconds(),
        /// Maximum histories; beyond it the least recently used is dropped.
        pub histories_max: usize = 1_000,
        /// Maximum bytes of all histories together; beyond it the least recently used are dropped.
        pub bytes_max: usize = 64 << 20,
    }
}

impl Limits {
    /// Refuses limits of 0.
    fn check(&self) -> Result<(), ToolError> {
        let none = [
            ("--max-thoughts or MCP_SEQUENTIAL_THINKING_MAX_THOUGHTS", self.thoughts_max == 0),
            ("--max-thought-bytes or MCP_SEQUENTIAL_THINKING_MAX_THOUGHT_BYTES", self.thought_bytes_max == 0),
            ("--max-branches or MCP_SEQUENTIAL_THINKING_MAX_BRANCHES", self.branches_max == 0),
            ("--ttl or MCP_SEQUENTIAL_THINKING_TTL", self.ttl.is_zero()),
            ("histories_max", self.histories_max == 0),
            ("bytes_max", self.bytes_max == 0),
        ];
        match none.iter().find(|(_, none)| *none) {
            Some((name, _)) => Err(ToolError::new(format!("{name} is out of range: 0")).hint("Use 1 or more.")),
            None => Ok(()),
        }
    }
}

linchpin_kit::options! {
    /// The configuration.
    #[derive(Debug, Clone)]
    pub struct Config: "MCP_SEQUENTIAL_THINKING" then settle {
        /// Limits on stored data.
        pub limits: Limits = Limits::default() => flag::group(),
        /// Log thoughts to standard error, like the published server.
        ///
        /// Or elsewhere: see [`ThoughtLog`].
        pub log: ThoughtLog = ThoughtLog::silent()
            => flag::switch_with(|log, on| *log = if on { ThoughtLog::to_stderr() } else { ThoughtLog::silent() })
                .named("log-thoughts"),
        /// The enabled tools and their names.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

impl Config {
    /// `DISABLE_THOUGHT_LOGGING`, which the published server reads, takes precedence over our variable.
    fn settle(&mut self, vars: Vars<'_>, given: &Given) -> Result<(), ToolError> {
        let value = vars.text("DISABLE_THOUGHT_LOGGING").map(|value| value.trim().to_ascii_lowercase());
        match value.as_deref() {
            Some("true") if !given.has("log-thoughts") => self.log = ThoughtLog::silent(),
            Some("false") => self.log = ThoughtLog::to_stderr(),
            // The published server treats any other value as "not disabled", which is unlikely to be intended.
            _ => {}
        }
        Ok(())
    }
}

/// The server.
#[derive(Debug)]
pub struct SequentialThinking {
    store: Arc<Store>,
    config: Arc<Config>,
    session: Session,
}

impl SequentialThinking {
    /// Opens it. There are no warnings today.
    ///
    /// # Errors
    /// When a limit is 0, or the configuration names an unknown tool.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), ToolError> {
        config.limits.check()?;
        // Without the export tool, thoughts are only counted, not stored.
        let keeps_text = config.tools.choose(&SERVICE)?.iter().any(|(spec, _)| spec.name == EXPORT.name);
        let store = Arc::new(Store::new(config.limits, keeps_text));
        Ok((Self::of(store, config.into()), Vec::new()))
    }

    fn of(store: Arc<Store>, config: Arc<Config>) -> Self {
        Self { session: Session::new(store.clone()), store, config }
    }

    /// Registers the enabled tools on a server. Each session has a history of its own, see
    /// [`Server::session_state`](linchpin::Server::session_state); where there are none, each call without a
    /// `sessionId` starts one.
    ///
    /// # Errors
    /// When the configuration names an unknown tool.
    pub fn add_to<S: Send + Sync + 'static>(self, server: Server<S>) -> Result<Server<Self>, ToolError> {
        let Self { store, config, .. } = self;
        let tools = config.tools.clone();
        let server = server.session_state(move || Self::of(store.clone(), config.clone()));
        let server = ToolSet::open(server, &SERVICE, &tools)?
            .instructions(INSTRUCTIONS)
            .tool_as(&SEQUENTIALTHINKING, |tool| tool.layer(plain_numbers), Self::think)
            .tool(&RESET, Self::reset)
            .tool(&EXPORT, Self::export)
            .close();
        Ok(server)
    }
}

/// Converts numeric strings to numbers before the arguments are validated.
async fn plain_numbers(mut call: Call, next: Next) -> Reply {
    match input::with_plain_numbers(&call.arguments()) {
        Ok(None) => {}
        Ok(Some(arguments)) => call.set_arguments(arguments),
        Err(fault) => return call.refuse(&fault.to_string()),
    }
    next.run(call).await
}

/// The instructions of the server.
const INSTRUCTIONS: &str = "\
`sequentialthinking` is for thinking in steps that can be revised and branched. It computes nothing: the thoughts are yours. \
Thoughts are kept in memory for a limited time and are not sent anywhere.";
