//! What is kept in a real Redis, which tests start for themselves on a private socket and whose time they move.

use std::path::PathBuf;

use anyhow::Result;

use crate::context::Context;
use crate::report::Report;
use crate::{process, stages, tools};

/// The variable that tells tests where the server is.
const SERVER: &str = "LINCHPIN_REDIS_SERVER";
const PACKAGES: &[&str] = &["redis-server"];

/// The tests of the store, of what is built on it (issuer, tasks), and of the program.
const TESTS: &str =
    "test(/redis/) & (package(linchpin-store) + package(linchpin-issuer) + package(linchpin) + package(linchpin-cli))";
/// How long building and running the tests may take.
const TESTS_S_MAX: u64 = 600;

/// Runs the tests that need a Redis server.
pub(crate) fn check(context: &Context) -> Result<Report> {
    match program(context)? {
        Ok(program) => stages::ignored_tests(context, "redis", TESTS, &[(SERVER, program)], TESTS_S_MAX),
        Err(why) => Ok(Report::skipped(why)),
    }
}

/// The server, installed where possible; or why there is none.
pub(crate) fn program(context: &Context) -> Result<Result<PathBuf, String>> {
    if let Some(said) = std::env::var_os(SERVER) {
        return Ok(Ok(said.into()));
    }
    let there = || process::exists("redis-server", "--version");
    let home = context.results("redis")?;
    if there() || tools::debian(PACKAGES, &home) && there() {
        return Ok(Ok("redis-server".into()));
    }
    let why = format!(
        "no Redis here and it cannot be installed (`apt-get install {}` as root, or set {SERVER}; see {})",
        PACKAGES.join(" "),
        context.short(&home)
    );
    Ok(Err(why))
}
