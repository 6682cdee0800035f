//! `linchpin`: MCP servers from one binary.
//!
//! Reads as a table of contents: what can be typed is in `cli`, one file per subcommand is in `commands`, where a server
//! listens is in `place`, what to paste into a host's configuration is in `paste`.

mod cli;
mod commands;
mod fail;
mod log;
mod paste;
mod place;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match cli::Cli::try_parse() {
        Ok(args) => args,
        Err(e) => return cli::usage(&e),
    };
    log::start(args.verbose);
    let done = match args.command {
        cli::Command::Serve(serve) => commands::serve::run(serve),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
