//! Subcommand arguments that are built only when the subcommand is selected. With two dozen subcommands, building all of them
//! took more than half of the instructions at startup.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// The arguments `T` of a subcommand.
#[derive(Debug)]
pub(crate) struct Deferred<T>(Box<T>);

impl<T> Deferred<T> {
    pub(crate) fn into_inner(self) -> T {
        *self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| {
            // The subcommand's about takes precedence over that of its argument type.
            let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
            let command = short(T::augment_args(command));
            let command = match about {
                Some(about) => command.about(about),
                None => command.about(None),
            };
            match long {
                Some(long) => command.long_about(long),
                None => command.long_about(None),
            }
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Whether `-h` was given, and not `--help`.
static SHORT: AtomicBool = AtomicBool::new(false);

/// Selects the short help for `-h`.
pub(crate) fn choose_help(given: &[OsString]) {
    let short = given.iter().take_while(|word| *word != "--").any(|word| word == "-h");
    SHORT.store(short, Ordering::Relaxed);
}

/// Headings of options that most commands share and that are rarely needed.
const SELDOM: [&str; 3] = ["Login", "Elicitation and sampling", "MCP Inspector compatibility"];

/// Hides those options in the short help. (With clap's own short help, the long help would take twice the lines.)
fn short(command: Command) -> Command {
    let is_seldom = |arg: &Arg| arg.get_help_heading().is_some_and(|heading| SELDOM.contains(&heading));
    if !SHORT.load(Ordering::Relaxed) || !command.get_arguments().any(is_seldom) {
        return command;
    }
    let command = command.mut_args(|arg| if is_seldom(&arg) { arg.hide(true) } else { arg });
    command.after_help("--help shows all options, including login, elicitation and sampling, and the exit codes.")
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(|args| Self(Box::new(args)))
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches_mut(matches).map(|args| Self(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
