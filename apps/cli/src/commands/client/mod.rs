//! The subcommands that talk to a server.

mod input;
mod inspector;
mod plain;
mod refusals;
mod wanted;

mod auth;
pub(crate) mod bridge;
mod call;
mod complete;
mod diff;
mod inspect;
mod load;
mod ping;
mod prompt;
mod prompts;
mod read;
mod replay;
mod resources;
mod skills;
mod task;
mod tools;
mod watch;

use crate::deferred::Deferred;
use crate::exit;
use crate::fail::Failure;
use clap::Subcommand;
use plain::Plain;

/// The commands that talk to a server.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Show a server's capabilities and features, and check it for problems.
    #[command(after_help = exit::TABLE, before_help = "\
Examples:
  linchpin inspect -- npx -y some-server --flag
  linchpin inspect https://example.com/mcp --json
  linchpin inspect --method tools/list -- node server.js

The last example uses the flags of the MCP Inspector's command line.
")]
    Inspect(Deferred<inspect::InspectArgs>),
    /// List tools.
    #[command(
        alias = "list",
        before_help = "\
Examples:
  linchpin tools -- npx -y some-server
  linchpin tools --long https://example.com/mcp
"
    )]
    Tools(Deferred<tools::ToolsArgs>),
    /// Call a tool.
    #[command(override_usage = "linchpin call [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]", after_help = exit::TABLE, before_help = "\
Examples:
  linchpin call get-sum a=2 b=40 -- npx -y some-server
  linchpin call https://example.com/mcp search query='two words' tags=a tags=b
  linchpin call write --json '{\"path\": \"a.txt\"}' --server files
  echo '{\"a\": 1}' | linchpin call add - -- ./server

Values are converted to the types of the tool's input schema: numbers, booleans, \
arrays by repeating the key, object members with a dot. key:=JSON passes JSON \
unchanged, key=@FILE the text of a file (@- is standard input; @@ escapes a leading @).
")]
    Call(Deferred<call::CallArgs>),
    /// Show, await, answer and cancel tasks: tool calls whose result comes later.
    #[command(
        override_usage = "linchpin task [OPTIONS] ACTION [TARGET] [ID] [KEY] [FIELD=VALUE]... [-- COMMAND...]",
        after_help = exit::TABLE,
        before_help = "\
Examples:
  linchpin call https://example.com/mcp yearly year=2025 --detach
  linchpin task list https://example.com/mcp
  linchpin task wait https://example.com/mcp tk_4f…
  linchpin task answer https://example.com/mcp tk_4f… publish yes=true
"
    )]
    Task(Deferred<task::TaskArgs>),
    /// List resources and resource templates.
    #[command(before_help = "\
Examples:
  linchpin resources -- npx -y some-server
")]
    Resources(Deferred<Plain>),
    /// Read a resource.
    #[command(
        override_usage = "linchpin read [OPTIONS] [TARGET] URI [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin read file:///a.txt -- npx -y some-server
  linchpin read https://example.com/mcp demo://image > image.png
"
    )]
    Read(Deferred<read::ReadArgs>),
    /// List skills.
    #[command(after_help = exit::TABLE, before_help = "\
Examples:
  linchpin skills https://example.com/mcp
  linchpin skills --verify -- npx -y some-server
")]
    Skills(Deferred<skills::SkillsArgs>),
    /// Load and verify a skill, and print it or one of its files.
    #[command(
        override_usage = "linchpin skill [OPTIONS] [TARGET] URI [-- COMMAND...]",
        after_help = exit::TABLE,
        before_help = "\
Examples:
  linchpin skill https://example.com/mcp skill://refunds/SKILL.md
  linchpin skill https://example.com/mcp skill://refunds/SKILL.md --file faq.md
  linchpin skill https://example.com/mcp skill://refunds/SKILL.md --out refunds

Nothing that differs from the server's entry is printed or written.
"
    )]
    Skill(Deferred<skills::SkillArgs>),
    /// List prompts.
    #[command(before_help = "\
Examples:
  linchpin prompts -- npx -y some-server
")]
    Prompts(Deferred<Plain>),
    /// Render a prompt.
    #[command(
        override_usage = "linchpin prompt [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin prompt brief city=Oslo -- npx -y some-server
"
    )]
    Prompt(Deferred<prompt::PromptArgs>),
    /// Complete an argument of a prompt or resource template.
    #[command(
        override_usage = "linchpin complete [OPTIONS] [TARGET] PROMPT|TEMPLATE ARGUMENT=BEGINNING [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin complete brief city=Os -- npx -y some-server
  linchpin complete 'w://{city}/{day}' day= city=Oslo -- npx -y some-server
"
    )]
    Complete(Deferred<complete::CompleteArgs>),
    /// Print notifications as they arrive, until Ctrl-C.
    #[command(before_help = "\
Examples:
  linchpin watch -- npx -y some-server
  linchpin watch --uri file:///a.txt --json https://example.com/mcp
")]
    Watch(Deferred<watch::WatchArgs>),
    /// Check that a server responds.
    #[command(before_help = "\
Examples:
  linchpin ping https://example.com/mcp
")]
    Ping(Deferred<ping::PingArgs>),
    /// Call a tool repeatedly and report throughput and latency.
    #[command(
        override_usage = "linchpin load [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin load echo message=hi --concurrency 64 https://example.com/mcp
  linchpin load get-sum a=1 b=2 --requests 1000 --json -- ./server
"
    )]
    Load(Deferred<load::LoadArgs>),
    /// Log in to servers that require it.
    #[command(before_help = "\
Examples:
  linchpin auth login https://example.com/mcp
  linchpin auth status
")]
    Auth(Deferred<auth::AuthArgs>),
    /// Serve a transcript written by --record.
    #[command(before_help = "\
Examples:
  linchpin call echo message=hi --record talk.jsonl -- npx -y some-server
  linchpin replay talk.jsonl
  linchpin replay talk.jsonl --http 127.0.0.1:8931

A recorded request gets its recorded response; any other request returns an \
error.
")]
    Replay(Deferred<replay::ReplayArgs>),
    /// Put a server behind another transport and another protocol revision.
    #[command(
        override_usage = "linchpin bridge [OPTIONS] [TARGET] [-- COMMAND...]",
        before_help = "\
Examples:
  A command over HTTP:
    linchpin bridge --http 127.0.0.1:8931 -- npx -y some-server
  A remote server on standard input and output; logs in when it must:
    linchpin bridge https://example.com/mcp
  HTTP+SSE of 2024-11-05 as Streamable HTTP:
    linchpin bridge --http 127.0.0.1:8931 https://example.com/sse
  A Unix socket on either side:
    linchpin bridge --unix run/s.sock -- some-server
    linchpin bridge unix:run/s.sock
"
    )]
    Bridge(Deferred<bridge::BridgeArgs>),
    /// Compare two servers or transcripts.
    #[command(after_help = exit::TABLE, before_help = "\
Examples:
  linchpin diff before.jsonl -- npx -y some-server
  linchpin diff 'npx -y some-server@1' 'npx -y some-server@2'
")]
    Diff(Deferred<diff::DiffArgs>),
}

impl ClientCommand {
    /// Whether the command serves until it is stopped.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, ClientCommand::Replay(_) | ClientCommand::Bridge(_))
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            ClientCommand::Inspect(args) => inspect::run(args.into_inner()),
            ClientCommand::Tools(args) => tools::run(args.into_inner()),
            ClientCommand::Call(args) => call::run(args.into_inner()),
            ClientCommand::Task(args) => task::run(args.into_inner()),
            ClientCommand::Resources(args) => resources::run(args.into_inner()),
            ClientCommand::Skills(args) => skills::list(args.into_inner()),
            ClientCommand::Skill(args) => skills::one(args.into_inner()),
            ClientCommand::Read(args) => read::run(args.into_inner()),
            ClientCommand::Prompts(args) => prompts::run(args.into_inner()),
            ClientCommand::Prompt(args) => prompt::run(args.into_inner()),
            ClientCommand::Complete(args) => complete::run(args.into_inner()),
            ClientCommand::Watch(args) => watch::run(args.into_inner()),
            ClientCommand::Ping(args) => ping::run(args.into_inner()),
            ClientCommand::Load(args) => load::run(args.into_inner()),
            ClientCommand::Auth(args) => auth::run(args.into_inner()),
            ClientCommand::Replay(args) => replay::run(args.into_inner()),
            ClientCommand::Bridge(args) => bridge::run(args.into_inner()),
            ClientCommand::Diff(args) => diff::run(args.into_inner()),
        }
    }
}
