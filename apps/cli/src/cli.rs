//! What can be typed.

#[cfg(feature = "client")]
use crate::commands::client::{
    Plain, auth, call, complete, diff, inspect, load, ping, prompt, prompts, read, replay, resources, tools, watch,
};
use crate::commands::{install_names, serve};
use crate::exit;
use crate::fail::Failure;
use crate::later::Later;
use crate::servers;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = if cfg!(feature = "client") { EXAMPLES_ALL } else { EXAMPLES_SERVE };

const EXAMPLES_ALL: &str = "\
Examples:
  linchpin serve filesystem ~/notes            a file server on stdio, for a host's configuration
  linchpin serve filesystem --read-only . --http 127.0.0.1:8931
                                               the same over HTTP; prints what to paste where
  linchpin serve filesystem:. git:. memory     several servers in one process
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
  linchpin serve filesystem:. git:. memory     several servers in one process
  linchpin serve notes=sqlite:a.db 'git --repository . --allow-remote' --read-only
                                               a name, flags for one of them, a flag for all
  linchpin serve everything                    every feature of the protocol, for trying out clients
";

const SEVERAL: &str = "\
Several servers:
  Each server is one word: NAME, NAME:VALUE (its directory, repository, file, address or zone),
  postgres://…, or its name and flags in quotes. OTHER=… before it gives it another name.
  Options after the words are for all of them.

  Tools are listed with their server's name before them: fs_read_file, git_status. Their own
  names work too, as long as only one of the servers has a tool of that name.

  After the bare name of a server that takes words, everything is its own: `serve filesystem git`
  serves the directory git. Write `serve filesystem:. git:.` for both.
";

/// MCP servers from one binary, and a look into any other: every revision of the protocol, every transport.
#[derive(Debug, Parser)]
#[command(name = "linchpin", version, before_help = EXAMPLES, after_help = exit::TABLE, disable_help_subcommand = true, max_term_width = 110)]
pub(crate) struct Cli {
    /// Say more on standard error; twice for everything but payloads. RUST_LOG=LEVEL works too.
    #[arg(short, long, action = clap::ArgAction::Count, global = true, display_order = 998)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a server: on standard input and output, or over HTTP.
    #[command(before_help = EXAMPLES_SERVE, after_help = SEVERAL)]
    Serve(Box<serve::Serve>),
    /// Make links under which this program answers as mcp-server-git, mcp-server-time, …
    #[command(
        before_help = "\
Examples:
  linchpin install-names ~/.local/bin           every name; a host's configuration goes on as it is
  linchpin install-names ~/.local/bin git time  only mcp-server-git and mcp-server-time
  linchpin install-names ~/.local/bin --list    what is there now
",
        after_help = "\
The links lead to this program, which looks at the name it was called by. A file or link that is not ours is
never replaced without --force.
"
    )]
    InstallNames(Later<install_names::InstallArgs>),
    /// Show what a server is and has, and what is wrong with it.
    #[cfg(feature = "client")]
    #[command(after_help = exit::TABLE, before_help = "\
Examples:
  linchpin inspect -- npx -y some-server --flag
  linchpin inspect https://example.com/mcp --json
  linchpin inspect --method tools/list -- node server.js      (flags of the MCP Inspector's command line)
")]
    Inspect(Later<inspect::InspectArgs>),
    /// List tools.
    #[cfg(feature = "client")]
    #[command(before_help = "\
Examples:
  linchpin tools -- npx -y some-server
  linchpin tools --long https://example.com/mcp
")]
    Tools(Later<tools::ToolsArgs>),
    /// Call a tool.
    #[cfg(feature = "client")]
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
    Call(Later<call::CallArgs>),
    /// List resources and resource templates.
    #[cfg(feature = "client")]
    #[command(before_help = "\
Examples:
  linchpin resources -- npx -y some-server
")]
    Resources(Later<Plain>),
    /// Read a resource.
    #[cfg(feature = "client")]
    #[command(
        override_usage = "linchpin read [OPTIONS] [TARGET] URI [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin read file:///a.txt -- npx -y some-server
  linchpin read https://example.com/mcp demo://image > image.png
"
    )]
    Read(Later<read::ReadArgs>),
    /// List prompts.
    #[cfg(feature = "client")]
    #[command(before_help = "\
Examples:
  linchpin prompts -- npx -y some-server
")]
    Prompts(Later<Plain>),
    /// Render a prompt.
    #[cfg(feature = "client")]
    #[command(
        override_usage = "linchpin prompt [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin prompt brief city=Oslo -- npx -y some-server
"
    )]
    Prompt(Later<prompt::PromptArgs>),
    /// Show suggestions for an argument of a prompt or resource template.
    #[cfg(feature = "client")]
    #[command(
        override_usage = "linchpin complete [OPTIONS] [TARGET] PROMPT|TEMPLATE ARGUMENT=BEGINNING [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin complete brief city=Os -- npx -y some-server
  linchpin complete 'weather://{city}/{day}' day= city=Oslo -- npx -y some-server
"
    )]
    Complete(Later<complete::CompleteArgs>),
    /// Print notifications as they come, until Ctrl-C.
    #[cfg(feature = "client")]
    #[command(before_help = "\
Examples:
  linchpin watch -- npx -y some-server
  linchpin watch --uri file:///a.txt --json https://example.com/mcp
")]
    Watch(Later<watch::WatchArgs>),
    /// Ask whether a server is alive.
    #[cfg(feature = "client")]
    #[command(before_help = "\
Examples:
  linchpin ping https://example.com/mcp
")]
    Ping(Later<ping::PingArgs>),
    /// Call one tool over and over, and say how fast that is.
    #[cfg(feature = "client")]
    #[command(
        override_usage = "linchpin load [OPTIONS] [TARGET] NAME [KEY=VALUE]... [-- COMMAND...]",
        before_help = "\
Examples:
  linchpin load echo message=hi --concurrency 64 --duration 10 https://example.com/mcp
  linchpin load get-sum a=1 b=2 --requests 1000 --json -- ./server
"
    )]
    Load(Later<load::LoadArgs>),
    /// Log in to servers that want it.
    #[cfg(feature = "client")]
    #[command(before_help = "\
Examples:
  linchpin auth login https://example.com/mcp
  linchpin auth status
")]
    Auth(Later<auth::AuthArgs>),
    /// Serve what --record wrote, as a server of its own.
    #[cfg(feature = "client")]
    #[command(before_help = "\
Examples:
  linchpin call echo message=hi --record talk.jsonl -- npx -y some-server
  linchpin replay talk.jsonl
  linchpin replay talk.jsonl --http 127.0.0.1:8931

A request that was recorded is answered as it was then; one that was not is answered with an error that says so.
")]
    Replay(Later<replay::ReplayArgs>),
    /// Compare two servers or transcripts.
    #[cfg(feature = "client")]
    #[command(after_help = exit::TABLE, before_help = "\
Examples:
  linchpin diff before.jsonl -- npx -y some-server
  linchpin diff 'npx -y some-server@1' 'npx -y some-server@2'
")]
    Diff(Later<diff::DiffArgs>),
}

impl Command {
    /// Whether it serves until somebody ends it.
    pub(crate) fn serves(&self) -> bool {
        match self {
            Command::Serve(_) => true,
            Command::InstallNames(_) => false,
            #[cfg(feature = "client")]
            Command::Replay(_) => true,
            #[cfg(feature = "client")]
            _ => false,
        }
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Serve(args) => serve::run(*args),
            Command::InstallNames(args) => install_names::run(args.into_inner()),
            #[cfg(feature = "client")]
            other => other.run_client(),
        }
    }

    #[cfg(feature = "client")]
    fn run_client(self) -> Result<(), Failure> {
        match self {
            Command::Serve(_) | Command::InstallNames(_) => self.run(),
            Command::Inspect(args) => inspect::run(args.into_inner()),
            Command::Tools(args) => tools::run(args.into_inner()),
            Command::Call(args) => call::run(args.into_inner()),
            Command::Resources(args) => resources::run(args.into_inner()),
            Command::Read(args) => read::run(args.into_inner()),
            Command::Prompts(args) => prompts::run(args.into_inner()),
            Command::Prompt(args) => prompt::run(args.into_inner()),
            Command::Complete(args) => complete::run(args.into_inner()),
            Command::Watch(args) => watch::run(args.into_inner()),
            Command::Ping(args) => ping::run(args.into_inner()),
            Command::Load(args) => load::run(args.into_inner()),
            Command::Auth(args) => auth::run(args.into_inner()),
            Command::Replay(args) => replay::run(args.into_inner()),
            Command::Diff(args) => diff::run(args.into_inner()),
        }
    }
}

/// The words as they are parsed: after `call` and `load`, `--json` followed by an object is the tool's arguments, and
/// without one a wish for JSON. What means several servers is marked so.
pub(crate) fn words(given: Vec<OsString>) -> Vec<OsString> {
    let given = servers::marked(given);
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

/// Help goes to standard output with status 0, a mistake to standard error with status 2. The one line of a terminal that
/// a host shows must be the one that helps, so it comes first.
pub(crate) fn usage(e: &clap::Error, several: bool) -> ExitCode {
    // Nobody can be told when the stream is closed.
    let _ = e.print();
    if several && e.kind() == clap::error::ErrorKind::UnknownArgument {
        crate::shown::note("hint: flags of one of several servers stand in its word: 'git --repository .'");
    }
    ExitCode::from(if e.use_stderr() { 2 } else { 0 })
}
