//! What can be typed.

use crate::commands::{Plain, auth, call, complete, diff, inspect, load, ping, prompt, read, replay, tools, watch};
use crate::exit;
use crate::place::PlaceArgs;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  linchpin serve filesystem ~/notes            a file server on stdio, for a host's configuration
  linchpin serve filesystem --read-only . --http 127.0.0.1:8931
                                               the same over HTTP; prints what to paste where
  linchpin serve everything                    every feature of the protocol, for trying out clients
  linchpin inspect -- npx -y some-server       what a server is and has, and what is wrong with it
  linchpin call echo message=hi -- npx -y some-server
  linchpin tools https://example.com/mcp       any server: an address, a socket, or by name out of a file:
  linchpin tools --config mcp.json --server NAME
";

const EXAMPLES_SERVE: &str = "\
Examples:
  linchpin serve filesystem ~/notes            a file server on stdio, for a host's configuration
  linchpin serve filesystem --read-only . --http 127.0.0.1:8931
                                               the same over HTTP; prints what to paste where
  linchpin serve everything                    every feature of the protocol, for trying out clients
";

/// MCP servers from one binary, and a look into any other: every revision of the protocol, every transport.
#[derive(Debug, Parser)]
#[command(name = "linchpin", version, before_help = EXAMPLES, after_help = exit::TABLE, disable_help_subcommand = true, max_term_width = 110)]
pub(crate) struct Cli {
    /// Say more on standard error; twice for everything but payloads. RUST_LOG=LEVEL works too.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a server: on standard input and output, or over HTTP.
    #[command(before_help = EXAMPLES_SERVE)]
    Serve(Serve),
    /// Show what a server is and has, and what is wrong with it.
    #[command(after_help = exit::TABLE, before_help = "\
Examples:
  linchpin inspect -- npx -y some-server --flag
  linchpin inspect https://example.com/mcp --json
  linchpin inspect --method tools/list -- node server.js      (flags of the MCP Inspector's command line)
")]
    Inspect(Box<inspect::InspectArgs>),
    /// List tools.
    #[command(before_help = "\
Examples:
  linchpin tools -- npx -y some-server
  linchpin tools --long https://example.com/mcp
")]
    Tools(Box<tools::ToolsArgs>),
    /// Call a tool.
    #[command(override_usage = "linchpin call [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]", after_help = exit::TABLE, before_help = "\
Examples:
  linchpin call get-sum a=2 b=40 -- npx -y some-server
  linchpin call https://example.com/mcp search query='two words' tags=a tags=b filter.year:=2026
  linchpin call write --json '{\"path\": \"a.txt\"}' --config mcp.json --server files
  echo '{\"a\": 1}' | linchpin call add - -- ./server

Words become what the tool's schema wants: numbers, true and false, lists by repeating the word, members of
objects with a dot. key:=JSON takes JSON as it is, key=@FILE the text of a file (@- is standard input; @@
begins a text with @).
")]
    Call(Box<call::CallArgs>),
    /// List resources and resource templates.
    #[command(before_help = "\
Examples:
  linchpin resources -- npx -y some-server
")]
    Resources(Box<Plain>),
    /// Read a resource.
    #[command(
        override_usage = "linchpin read [OPTIONS] [TARGET] URI [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin read file:///a.txt -- npx -y some-server
  linchpin read https://example.com/mcp demo://image > image.png
"
    )]
    Read(Box<read::ReadArgs>),
    /// List prompts.
    #[command(before_help = "\
Examples:
  linchpin prompts -- npx -y some-server
")]
    Prompts(Box<Plain>),
    /// Render a prompt.
    #[command(
        override_usage = "linchpin prompt [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin prompt brief city=Oslo -- npx -y some-server
"
    )]
    Prompt(Box<prompt::PromptArgs>),
    /// Show suggestions for an argument of a prompt or resource template.
    #[command(
        override_usage = "linchpin complete [OPTIONS] [TARGET] PROMPT|TEMPLATE ARGUMENT=BEGINNING [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin complete brief city=Os -- npx -y some-server
  linchpin complete 'weather://{city}/{day}' day= city=Oslo -- npx -y some-server
"
    )]
    Complete(Box<complete::CompleteArgs>),
    /// Print notifications as they come, until Ctrl-C.
    #[command(before_help = "\
Examples:
  linchpin watch -- npx -y some-server
  linchpin watch --uri file:///a.txt --json https://example.com/mcp
")]
    Watch(Box<watch::WatchArgs>),
    /// Ask whether a server is alive.
    #[command(before_help = "\
Examples:
  linchpin ping https://example.com/mcp
")]
    Ping(Box<ping::PingArgs>),
    /// Call one tool over and over, and say how fast that is.
    #[command(
        override_usage = "linchpin load [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin load echo message=hi --concurrency 64 --duration 10 https://example.com/mcp
  linchpin load get-sum a=1 b=2 --requests 1000 --json -- ./server
"
    )]
    Load(Box<load::LoadArgs>),
    /// Log in to servers that want it.
    #[command(before_help = "\
Examples:
  linchpin auth login https://example.com/mcp
  linchpin auth status
")]
    Auth(auth::AuthArgs),
    /// Serve what --record wrote, as a server of its own.
    #[command(before_help = "\
Examples:
  linchpin call echo message=hi --record talk.jsonl -- npx -y some-server
  linchpin replay talk.jsonl
  linchpin replay talk.jsonl --http 127.0.0.1:8931

A request that was recorded is answered as it was then; one that was not is answered with an error that says so.
")]
    Replay(replay::ReplayArgs),
    /// Compare two servers or transcripts.
    #[command(after_help = exit::TABLE, before_help = "\
Examples:
  linchpin diff before.jsonl -- npx -y some-server
  linchpin diff 'npx -y some-server@1' 'npx -y some-server@2'
")]
    Diff(Box<diff::DiffArgs>),
}

/// The words as they are parsed: after `call` and `load`, `--json` followed by an object is the tool's arguments, and
/// without one a wish for JSON.
pub(crate) fn words(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let given: Vec<OsString> = given.collect();
    let calls = given.iter().skip(1).any(|word| word == "call" || word == "load");
    let is_object = |word: &OsString| word.to_string_lossy().trim_start().starts_with('{');
    let end = given.iter().position(|word| word == "--").unwrap_or(given.len());
    let renamed = |(at, word): (usize, &OsString)| {
        if !calls || at >= end {
            return word.clone();
        }
        match word.to_string_lossy().strip_prefix("--json=") {
            Some(object) => format!("--args-json={object}").into(),
            None if word == "--json" && given.get(at + 1).is_some_and(is_object) => "--args-json".into(),
            None => word.clone(),
        }
    };
    given.iter().enumerate().map(renamed).collect()
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) server: Server,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Server {
    /// Files in the directories you name, and nowhere else.
    #[command(before_help = "\
Examples:
  linchpin serve filesystem ~/notes ~/drafts
  linchpin serve filesystem --read-only --deny '**/.env' .
  linchpin serve filesystem . --http 127.0.0.1:8931
")]
    Filesystem(Box<FilesystemArgs>),
    /// Every feature of the protocol, for trying out clients.
    #[command(before_help = "\
Examples:
  linchpin serve everything
  linchpin serve everything --http 127.0.0.1:8931 --sse
")]
    Everything(EverythingArgs),
}

/// Each switch has an environment variable of the same meaning, MCP_FS_ and its name; the command line wins.
#[derive(Debug, Args)]
pub(crate) struct FilesystemArgs {
    /// Directories to serve. What is outside of them cannot be reached, by links neither.
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<String>,

    /// Offer only tools that change nothing.
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Files that are never touched or shown, for example '**/.env'. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub(crate) deny: Vec<String>,

    /// Largest file to read whole, in bytes [default: 10 MiB].
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_read_bytes: Option<u64>,

    /// Offer fs_delete too.
    #[arg(long)]
    pub(crate) allow_delete: bool,

    /// Let new names hold invisible or direction-changing characters.
    #[arg(long)]
    pub(crate) allow_odd_names: bool,

    /// Follow links that stay inside, or none [default: inside].
    #[arg(long, value_name = "inside|never")]
    pub(crate) follow_symlinks: Option<String>,

    /// What to do with the roots a client names [default: use without DIR, else ignore].
    #[arg(long, value_name = "ignore|narrow|use|replace")]
    pub(crate) roots: Option<String>,

    /// Offer files as resources too (file:///…).
    #[arg(long)]
    pub(crate) resources: bool,

    /// Answer exactly like the published server where ours improves on it.
    #[arg(long)]
    pub(crate) compat: bool,

    #[command(flatten)]
    pub(crate) tools: ToolArgs,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EverythingArgs {
    /// Offer get-env. It shows the names of the server's environment variables; values are redacted.
    #[arg(long)]
    pub(crate) expose_env: bool,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// Which tools are offered. Read-only beats disable, disable beats enable.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which tools")]
pub(crate) struct ToolArgs {
    /// Offer only these tools, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_tools: Vec<String>,

    /// Leave these tools out, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_tools: Vec<String>,

    /// Offer only these groups of tools, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) toolsets: Vec<String>,

    /// Put a prefix before the tools' names: none, auto (the server's short name), or a word [default: none].
    #[arg(long, value_name = "none|auto|WORD")]
    pub(crate) tool_prefix: Option<String>,
}

/// Help goes to standard output with status 0, a mistake to standard error with status 2. The one line of a terminal that
/// a host shows must be the one that helps, so it comes first.
pub(crate) fn usage(e: &clap::Error) -> ExitCode {
    // Nobody can be told when the stream is closed.
    let _ = e.print();
    ExitCode::from(if e.use_stderr() { 2 } else { 0 })
}
