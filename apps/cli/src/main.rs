//! `linchpin`: serves MCP servers, and inspects any other.
//!
//! Files import downwards, in this order:
//!
//! ```text
//! cli
//! commands
//! foreign
//! serve
//! record/diff
//! client
//! record
//! show/bar  show/content  show/describe  show/lint
//! fail  log  shell
//! show
//! deferred  duration  exit  help
//! ```
//!
//! - `cli`: the command line; `commands`: one file per subcommand; `deferred`: arguments that are built when they are needed;
//! - `serve`: built-in servers, one or several in a process, and the transports they are served on;
//! - `foreign`: command lines of other bridges;
//! - `client`: connecting to other servers; `record`: traces, transcripts, replaying and comparing them;
//! - `show`: output; `exit` and `fail`: exit codes and failures; `help`: short and long help.
//!
//! Features: one per server, and `client` for everything but serving.

mod cli;
#[cfg(feature = "client")]
mod client;
mod commands;
mod deferred;
mod duration;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod exit;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
mod fail;
#[cfg(feature = "client")]
mod foreign;
mod help;
mod log;
#[cfg(feature = "client")]
mod record;
mod serve;
mod shell;
mod show;

use serve::{Entry, Tools};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    #[cfg(feature = "fetch")]
    if let Some(done) = serve::convert::run(&given) {
        return done;
    }
    match given.first().map_or(Ok(None), |program| Entry::called_as(program)) {
        Ok(None) => {}
        Ok(Some(entry)) => return published(entry, given),
        Err(failure) => return failure.report(),
    }
    #[cfg(feature = "client")]
    let given = match foreign::Foreign::called(&given) {
        None => given,
        Some((foreign, words)) => match foreign.translated(words) {
            Ok(Some(ours)) => ours,
            Ok(None) => return ExitCode::SUCCESS,
            Err(failure) => return failure.report(),
        },
    };
    let args = match cli::Cli::parsed(&given) {
        Ok(args) => args,
        Err(e) => return cli::usage(e, &given),
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
        Err(e) => cli::usage(e, &[]),
    }
}

fn ended(done: Result<(), fail::Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let name = failure.missing_program().filter(|name| serve::ENTRIES.iter().any(|entry| entry.name == *name));
            let hint = name.map(|name| format!("did you mean `-- linchpin serve {name} …`?"));
            match hint {
                Some(hint) => failure.hint(hint).report(),
                None => failure.report(),
            }
        }
    }
}
