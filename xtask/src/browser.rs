//! The browser server with a real Chromium, against sites on this machine.

use anyhow::Result;

use crate::context::Context;
use crate::report::Report;
use crate::{process, stages, tools};

/// Debian's package, and the program that it is for.
const PACKAGE: &str = "chromium-headless-shell";
/// What may be there instead.
const PROGRAMS: &[&str] = &[PACKAGE, "google-chrome", "chromium", "chromium-browser", "microsoft-edge"];
/// The tests of the server and of the program.
const TESTS: &str = "(package(linchpin-browser) - test(/^published::/)) + (package(linchpin-cli) & test(/^browser::/))";
/// How long building and running the tests may take.
const TESTS_S_MAX: u64 = 600;

/// Runs the tests that need a browser.
pub(crate) fn check(context: &Context) -> Result<Report> {
    if !installed(context)? {
        let why = format!("no browser here and none can be installed (`apt-get install {PACKAGE}` as root)");
        return Ok(Report::skipped(why));
    }
    stages::ignored_tests(context, "browser", TESTS, &[], TESTS_S_MAX)
}

/// Whether there is a browser, installed where possible.
pub(crate) fn installed(context: &Context) -> Result<bool> {
    let is_there = || PROGRAMS.iter().any(|program| process::exists(program, "--version"));
    Ok(is_there() || tools::debian(&[PACKAGE], &context.results("browser")?) && is_there())
}
