//! `linchpin`: MCP servers from one binary, and a look into any other.
//!
//! Reads as a table of contents:
//! - what can be typed is in `cli`, one file per subcommand is in `commands`, how commands end in `exit` and `fail`;
//! - serving: `place` (where a server listens), `paste` (what to paste into a host's configuration);
//! - reaching servers: `target` (which one is meant), `config` (files that name servers), `login`, `session` (connecting);
//! - talking: `args` (words to JSON), `ask` (answering questions), `inspector` (the flags of another program);
//! - showing: `shown`, `describe`, `content`, `bar`, `lint` (warnings);
//! - keeping: `trace`, `redact` (secrets as dots), `transcript`, `replay` (a transcript as a server), `diff`.

mod args;
mod ask;
mod bar;
mod cli;
mod commands;
mod config;
mod content;
mod describe;
mod diff;
mod exit;
mod fail;
mod inspector;
mod lint;
mod log;
mod login;
mod paste;
mod place;
mod redact;
mod replay;
mod session;
mod shown;
mod target;
mod trace;
mod transcript;

use clap::Parser;
use cli::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match cli::Cli::try_parse_from(cli::words(std::env::args_os())) {
        Ok(args) => args,
        Err(e) => return cli::usage(&e),
    };
    log::start(args.verbose, matches!(args.command, Command::Serve(_) | Command::Replay(_)));
    let done = match args.command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Inspect(args) => commands::inspect::run(*args),
        Command::Tools(args) => commands::tools::run(*args),
        Command::Call(args) => commands::call::run(*args),
        Command::Resources(args) => commands::resources::run(*args),
        Command::Read(args) => commands::read::run(*args),
        Command::Prompts(args) => commands::prompts::run(*args),
        Command::Prompt(args) => commands::prompt::run(*args),
        Command::Complete(args) => commands::complete::run(*args),
        Command::Watch(args) => commands::watch::run(*args),
        Command::Ping(args) => commands::ping::run(*args),
        Command::Load(args) => commands::load::run(*args),
        Command::Auth(args) => commands::auth::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Diff(args) => commands::diff::run(*args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
