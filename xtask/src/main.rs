//! `cargo xtask`: everything a developer runs, as one plain program.
//!
//! Owns: the order of the checks, where their tools live (`target/tools`), how their results are
//! judged. Must not know: how any crate under test works inside.

#![allow(clippy::print_stdout, reason = "printing its findings is what this program is for")]

mod bench;
mod browser;
mod collector;
mod conformance;
mod context;
mod deps;
mod dist;
mod fuzz;
mod guide;
mod interop;
mod keyring;
mod login;
mod longer;
mod markdown;
mod msrv;
mod postgres;
mod process;
mod published;
mod redis;
mod release;
mod report;
mod schedule;
mod server;
mod stages;
mod tidy;
mod times;
mod tools;
mod world;

use std::process::ExitCode;

use context::Context;

const HELP: &str = "\
Examples
  cargo xtask test                       everything CI runs, one line per stage
  cargo xtask test --all                 before a release: full matrices, long fuzzing, MSRV, features, Windows
  cargo xtask test --only tidy           one stage (--list names them; repeatable)
  cargo xtask test --skip interop        all but one (repeatable)
  cargo xtask conformance                the official suite against our server and our client
  cargo xtask conformance --revision 2026-07-28 --scenario caching
  cargo xtask conformance --role client --scenario auth/dpop
  cargo xtask interop --client py-2 --transport http --revision 2025-11-25
  cargo xtask interop --reference        the same drivers against npm server-everything
  cargo xtask interop-client             our client against servers of others
  cargo xtask login --all                clients of others log in at our servers, and at providers of others
  cargo xtask tidy                       the house rules of ARCHITECTURE.md
  cargo xtask deps                       crates per build, against their budgets
  cargo xtask guide [--write]            what README and the guide show, run again; --write keeps what is printed now
  cargo xtask guide --html               the guide as a book under target/guide
  cargo xtask fuzz --seconds 60          every fuzz target for a while
  cargo xtask bench [ARGS]               bench/run.py with the same arguments
  cargo xtask bench client               the same for one part: client, servers, browser, gateway, auth, tasks
  cargo xtask dist                       packages of a release under target/packages: tarballs, deb, npm, wheels, image, bundles
  cargo xtask release                    version numbers, release notes, whether all crates can be published
  cargo xtask dist --profile dev --check quickly, and each of them installed and called
  cargo xtask dist --add FILE.tar.gz     also packages of the program in a tarball that another machine made

Tools are installed once, pinned, under target/tools; nothing outside target/ is written.";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    let outcome = Context::locate().and_then(|context| match command.as_str() {
        "test" => stages::command(&context, &rest),
        "conformance" => conformance::command(&context, &rest),
        "interop" => interop::command(&context, &rest),
        "interop-client" => interop::servers::command(&context, &rest),
        "login" => login::command(&context, &rest),
        "tidy" => tidy::command(&context, &rest),
        "deps" => deps::command(&context, &rest),
        "msrv" => msrv::command(&context, &rest),
        "guide" => guide::command(&context, &rest),
        "fuzz" => fuzz::command(&context, &rest),
        "release" => release::command(&context, &rest),
        "dist" => dist::command(&context, &rest),
        "bench" => bench::command(&context, &rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        "" => {
            println!("{HELP}");
            Ok(false)
        }
        unknown => {
            anyhow::bail!("there is no `{unknown}`; `cargo xtask help` lists what there is")
        }
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
