//! A place to think in steps as an MCP server.
//!
//! The tool of npm's `server-sequential-thinking` with the same arguments and texts: a model writes down one thought after the
//! other, revises earlier ones and branches off from them, and is told where it stands. Beyond that: histories that do not mix
//! where one process serves many clients, limits on all that a client can make grow, and two tools of our own that are offered
//! on request, to read a history and to end it.
//!
//! This crate must never know: files, the network, the command line.

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
use linchpin_kit::{Service, ToolChoice, ToolError, ToolSet, ToolSpec, Vars};
use std::sync::Arc;
use std::time::Duration;
use store::Store;

const SEQUENTIALTHINKING: ToolSpec = ToolSpec::writes(
    "sequentialthinking",
    "Sequential thinking",
    "thinking",
    "Write down one step of your thinking and get back where you stand. Use it for problems with several steps, where the plan \
     may change or the full extent is not clear yet; not for what you can answer at once.\n\
     - Estimate totalThoughts at the start. Raise or lower it whenever you know better; you may go past it.\n\
     - One call is one step: an analysis, a doubt, a hypothesis, a check of it.\n\
     - To revise, set isRevision and revisesThought to the number of the earlier thought.\n\
     - To try another way, set branchFromThought and a branchId; repeat the branchId while you are on that branch.\n\
     - If the answer holds a sessionId, pass it with the next thought: it keeps your thoughts together.\n\
     - Set nextThoughtNeeded to false only when you have an answer that you have checked. Then stop.",
);
const RESET: ToolSpec = ToolSpec::writes(
    "sequentialthinking_reset",
    "Forget the thoughts",
    "history",
    "Forgets every thought of a history, to begin anew with the same sessionId.",
)
.destructive()
.idempotent()
.on_request();
const EXPORT: ToolSpec = ToolSpec::reads(
    "sequentialthinking_export",
    "Read the thoughts",
    "history",
    "Returns the thoughts of a history in the order they were written, a page at a time.",
)
.on_request();

/// Everything this server has, the published tool first.
pub const SERVICE: Service = Service { name: "sequentialthinking", tools: &[SEQUENTIALTHINKING, RESET, EXPORT] };

/// How much a client can make the server keep. A limit of 0 is refused when the server is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Thoughts kept of one history; of more, the oldest are dropped, and still counted (`--max-thoughts`). Default 1,000.
    pub thoughts_max: usize,
    /// Bytes of one thought; a longer one is refused (`--max-thought-bytes`). Default 64 KiB.
    pub thought_bytes_max: usize,
    /// Branches listed of one history; of more, the oldest are dropped (`--max-branches`). Default 100.
    pub branches_max: usize,
    /// How long a history is kept that belongs to no session and that nobody uses (`--ttl`). Default one hour.
    pub ttl: Duration,
    /// Histories kept at the same time; of more, the one that was not used for longest is dropped. Default 1,000.
    pub histories_max: usize,
    /// Bytes of all histories together; of more, those that were not used for longest are dropped. Default 64 MiB.
    pub bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            thoughts_max: 1_000,
            thought_bytes_max: 64 << 10,
            branches_max: 100,
            ttl: Duration::from_secs(3_600),
            histories_max: 1_000,
            bytes_max: 64 << 20,
        }
    }
}

impl Limits {
    /// Changes some of these limits.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Refuses what cannot work: with a limit of 0 nothing could be kept, or asked.
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

/// How the server behaves.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// How much a client can make the server keep.
    pub limits: Limits,
    /// Where thoughts are shown to people as they come (`--log-thoughts` for standard error). Default nowhere.
    pub log: ThoughtLog,
    /// Whether a call that belongs to no session and came over no HTTP is the process's own client, as on stdio. Then such
    /// calls need no `sessionId`. Turn it off where a pipe has several clients, as a socket. Default on.
    pub one_client: bool,
    /// Which tools are offered, and how they are named.
    pub tools: ToolChoice,
}

impl Default for Config {
    fn default() -> Self {
        Self { limits: Limits::default(), log: ThoughtLog::silent(), one_client: true, tools: ToolChoice::default() }
    }
}

impl Config {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_sequential_thinking::Config;
    /// let config = Config::default().with(|config| config.limits.thoughts_max = 100);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Reads `MCP_SEQUENTIAL_THINKING_MAX_THOUGHTS`, `_MAX_THOUGHT_BYTES`, `_MAX_BRANCHES`, `_TTL` (seconds),
    /// `_LOG_THOUGHTS` and the choice of tools under the same prefix. `DISABLE_THOUGHT_LOGGING`, which the published server
    /// reads, wins over `_LOG_THOUGHTS`: `true` is silent, `false` writes thoughts to standard error.
    ///
    /// # Errors
    /// When a variable cannot be understood.
    pub fn from_env(vars: Vars<'_>) -> Result<Self, ToolError> {
        let mut config = Self { tools: vars.tool_choice("MCP_SEQUENTIAL_THINKING")?, ..Self::default() };
        let limits = &mut config.limits;
        vars.number("MCP_SEQUENTIAL_THINKING_MAX_THOUGHTS", &mut limits.thoughts_max)?;
        vars.number("MCP_SEQUENTIAL_THINKING_MAX_THOUGHT_BYTES", &mut limits.thought_bytes_max)?;
        vars.number("MCP_SEQUENTIAL_THINKING_MAX_BRANCHES", &mut limits.branches_max)?;
        vars.seconds("MCP_SEQUENTIAL_THINKING_TTL", &mut limits.ttl)?;
        let mut shown = false;
        vars.switch("MCP_SEQUENTIAL_THINKING_LOG_THOUGHTS", &mut shown)?;
        match vars.text("DISABLE_THOUGHT_LOGGING").map(|value| value.trim().to_ascii_lowercase()).as_deref() {
            Some("true") => shown = false,
            Some("false") => shown = true,
            // The published server takes any other word for "not disabled"; nobody who wrote one meant to turn it on.
            _ => {}
        }
        if shown {
            config.log = ThoughtLog::to_stderr();
        }
        Ok(config)
    }
}

/// The server: a cheap handle.
#[derive(Debug, Clone)]
pub struct SequentialThinking {
    store: Arc<Store>,
    config: Arc<Config>,
}

impl SequentialThinking {
    /// Opens it. There are no warnings today.
    ///
    /// # Errors
    /// When a limit is 0, or the choice of tools names one that does not exist.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), ToolError> {
        config.limits.check()?;
        // What nobody can ask for is not kept: without the export, a thought is only counted.
        let keeps_text = config.tools.choose(&SERVICE)?.iter().any(|(spec, _)| spec.name == EXPORT.name);
        let store = Store::new(config.limits, keeps_text);
        Ok((Self { store: store.into(), config: config.into() }, Vec::new()))
    }

    /// Puts the chosen tools on a server.
    ///
    /// # Errors
    /// When the choice of tools names one that does not exist.
    pub fn add_to<S: Send + Sync + 'static>(self, server: Server<S>) -> Result<Server<Self>, ToolError> {
        let config = self.config.clone();
        let server = ToolSet::open(server.state(self), &SERVICE, &config.tools)?
            .instructions(INSTRUCTIONS)
            .tool_as(&SEQUENTIALTHINKING, |tool| tool.layer(plain_numbers), Self::think)
            .tool(&RESET, Self::reset)
            .tool(&EXPORT, Self::export)
            .close();
        Ok(server)
    }
}

/// Before arguments are held against the schema: texts that are numbers become numbers.
async fn plain_numbers(mut call: Call, next: Next) -> Reply {
    match input::with_plain_numbers(&call.arguments()) {
        Ok(None) => {}
        Ok(Some(arguments)) => call.set_arguments(arguments),
        Err(fault) => return call.refuse(&fault.to_string()),
    }
    next.run(call).await
}

/// What models are told.
const INSTRUCTIONS: &str = "\
`sequentialthinking` is for thinking in steps that may be revised and branched. It computes nothing: the thoughts are yours. \
Thoughts are kept in memory for a limited time and are not sent anywhere.";
