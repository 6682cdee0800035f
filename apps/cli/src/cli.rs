//! What can be typed.

use crate::place::PlaceArgs;
use clap::{Args, Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  linchpin serve filesystem ~/notes            a file server on stdio, for a host's configuration
  linchpin serve filesystem --read-only . --http 127.0.0.1:8931
                                               the same over HTTP; prints what to paste where
  linchpin serve everything                    every feature of the protocol, for trying out clients
";

/// MCP servers from one binary: every revision of the protocol, every transport, safe as it comes.
#[derive(Debug, Parser)]
#[command(name = "linchpin", version, before_help = EXAMPLES, disable_help_subcommand = true, max_term_width = 110)]
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
    #[command(before_help = EXAMPLES)]
    Serve(Serve),
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
