//! `linchpin`: MCP servers from one binary, and a look into any other.
//!
//! Reads as a table of contents:
//! - what can be typed is in `cli`, one file per subcommand is in `commands`, how commands end in `exit` and `fail`;
//! - serving: `servers` (one file per server, and several in one process), `place` (where a server listens), `trim` (what the
//!   allocator gives back), `paste` (what to paste into a host's configuration);
//! - reaching servers: `target` (which one is meant), `config` (files that name servers), `login`, `session` (connecting);
//! - talking: `args` (words to JSON), `ask` (answering questions), `inspector` (the flags of another program);
//! - showing: `shown`, `describe`, `content`, `bar`, `lint` (warnings);
//! - keeping: `trace`, `redact` (secrets as dots), `transcript`, `replay` (a transcript as a server), `diff`.
//!
//! Features: one per server, and `client` for everything but serving.

#[cfg(feature = "client")]
mod args;
#[cfg(feature = "client")]
mod ask;
#[cfg(feature = "client")]
mod bar;
mod cli;
mod commands;
#[cfg(feature = "client")]
mod config;
#[cfg(feature = "client")]
mod content;
#[cfg(feature = "client")]
mod describe;
#[cfg(feature = "client")]
mod diff;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod exit;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod fail;
#[cfg(feature = "client")]
mod inspector;
mod later;
#[cfg(feature = "client")]
mod lint;
mod log;
#[cfg(feature = "client")]
mod login;
mod paste;
mod place;
#[cfg(feature = "client")]
mod redact;
#[cfg(feature = "client")]
mod replay;
mod servers;
#[cfg(feature = "client")]
mod session;
mod shell;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod shown;
#[cfg(feature = "client")]
mod target;
#[cfg(feature = "client")]
mod trace;
#[cfg(feature = "client")]
mod transcript;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod trim;

use clap::Parser;
use servers::Entry;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    match given.first().map_or(Ok(None), |program| Entry::called_as(program)) {
        Ok(None) => {}
        Ok(Some(entry)) => return published(entry, given),
        Err(failure) => return failure.report(),
    }
    let words = cli::words(given);
    let args = match cli::Cli::try_parse_from(&words) {
        Ok(args) => args,
        Err(e) => return cli::usage(&e, servers::are_several(&words)),
    };
    log::start(args.verbose, args.command.serves());
    ended(args.command.run())
}

/// The program under the name of a published server, with that one's command line.
fn published(entry: &'static Entry, mut given: Vec<OsString>) -> ExitCode {
    let var = |name: &str| std::env::var(name).ok();
    let (command, words) = entry.published(given.split_off(1), linchpin_kit::Vars::new(&var));
    match command.try_get_matches_from(words) {
        Ok(matches) => {
            log::start(matches.get_count("verbose"), true);
            ended(commands::serve::alone(entry, matches))
        }
        Err(e) => cli::usage(&e, false),
    }
}

fn ended(done: Result<(), fail::Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
