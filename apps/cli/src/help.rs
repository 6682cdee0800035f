//! `-h` and `--help`: what is commonly needed, and everything. clap has the same distinction, but then gives every option of
//! the long help a paragraph of its own.

use clap::{Arg, Command};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether `-h` was given, and not `--help`.
static SHORT: AtomicBool = AtomicBool::new(false);

/// Selects the short help for `-h`.
pub(crate) fn choose(given: &[OsString]) {
    let short = given.iter().take_while(|word| *word != "--").any(|word| word == "-h");
    SHORT.store(short, Ordering::Relaxed);
}

/// Headings of options that many commands share and that are rarely needed.
const SELDOM: [&str; 5] = ["HTTP", "Operation", "Login", "Elicitation and sampling", "MCP Inspector compatibility"];

/// Leaves out those options, and what follows all options, for `-h`.
pub(crate) fn shorten(command: Command) -> Command {
    if !SHORT.load(Ordering::Relaxed) {
        return command;
    }
    let is_seldom = |arg: &Arg| arg.get_help_heading().is_some_and(|heading| SELDOM.contains(&heading));
    let shortened = command.get_after_help().is_some() || command.get_arguments().any(is_seldom);
    let command = command.mut_args(|arg| if is_seldom(&arg) { arg.hide(true) } else { arg });
    if shortened { command.after_help("--help shows more.") } else { command }
}
