//! Arguments of a subcommand that are put together only when it is the one that was typed. With two dozen subcommands, putting
//! together all of them took more than half of the instructions of a start.

use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The arguments `T` of a subcommand.
#[derive(Debug)]
pub(crate) struct Later<T>(Box<T>);

impl<T> Later<T> {
    pub(crate) fn into_inner(self) -> T {
        *self.0
    }
}

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| {
            // What the subcommand says of itself wins over what the type of its arguments says.
            let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
            let command = T::augment_args(command);
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

impl<T: FromArgMatches> FromArgMatches for Later<T> {
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
