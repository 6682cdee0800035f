//! `linchpin`: serves MCP servers, and inspects any other.
//!
//! Modules:
//! - command line: `cli`, `commands` (one file per subcommand), `exit` and `fail` (exit codes and failures), `flags`
//!   (library messages in terms of flags);
//! - serving: `servers` (one file per server, and several in one process), `place` (transports), `trim` (returning
//!   freed memory to the system), `paste` (configuration snippets for hosts);
//! - connecting: `target` (server selection), `config` (configuration files), `login`, `session`;
//! - requests: `args` (words to JSON), `ask` (elicitation and sampling), `inspector` (the MCP Inspector's flags);
//! - output: `shown`, `wrap`, `describe`, `content`, `bar`, `exact` (JSON with every digit), `lint` (warnings);
//! - recording: `trace`, `redact` (masking secrets), `transcript`, `replay` (a transcript as a server), `diff`.
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
mod deferred;
#[cfg(feature = "client")]
mod describe;
#[cfg(feature = "client")]
mod diff;
mod duration;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod exact;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod exit;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod fail;
#[cfg(feature = "client")]
mod flags;
#[cfg(feature = "client")]
mod inspector;
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
mod serving;
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
mod wrap;

use clap::Parser;
use servers::{Entry, Tools};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    #[cfg(feature = "fetch")]
    if let Some(done) = servers::fetch::converts(&given) {
        return done;
    }
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

/// Runs as a published server, with its command line.
fn published(entry: &'static Entry, mut given: Vec<OsString>) -> ExitCode {
    let var = |name: &str| std::env::var(name).ok();
    let (command, words) = entry.published(given.split_off(1), linchpin_kit::Vars::new(&var));
    match command.try_get_matches_from(words) {
        Ok(matches) => {
            log::start(matches.get_count("verbose"), true);
            ended(commands::serve::alone(entry, matches, Tools::Published))
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
