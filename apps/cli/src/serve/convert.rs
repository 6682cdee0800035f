//! The hidden command that converts pages in a process of its own, for the server `fetch`.

use std::ffi::OsString;
use std::process::ExitCode;

/// The command that the server gives this very program. It is not for people.
pub(super) const COMMAND: &str = "__convert";

/// Converts the page on standard input, if these arguments ask for that.
pub(crate) fn run(given: &[OsString]) -> Option<ExitCode> {
    let asked = given.len() == 2 && given[1] == COMMAND;
    asked.then(|| linchpin_fetch::convert_stdin().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}
