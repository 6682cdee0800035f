//! Subcommand arguments that are built only when the subcommand is selected. With two dozen subcommands, building all of them
//! took more than half of the instructions at startup.

use crate::help;
use clap::{ArgMatches, Args, Command, FromArgMatches};

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
            let command = help::shorten(T::augment_args(command));
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
