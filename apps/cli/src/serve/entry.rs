//! The command line of a built-in server.

use super::native::{Entry, Part};
use super::place::without_alias;
use super::report::tell_long_name;
use super::servers::ENTRIES;
use super::serving::ServingArgs;
use super::words;
use crate::fail::Failure;
use crate::help;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use linchpin::Server;
use linchpin_kit::Vars;

/// The tools that a server offers unless some are chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tools {
    /// All but the rare ones.
    All,
    /// Those of the published server.
    Published,
}

/// The end of the help text of every server.
const PRECEDENCE: &str =
    "The command line takes precedence over environment variables. An empty variable counts as unset.";

impl Entry {
    /// Returns the server of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Entry> {
        ENTRIES.iter().find(|entry| entry.name == name)
    }

    /// Its command line without where to serve: what a word of several can hold.
    pub(super) fn own_command(&self) -> Command {
        self.own(Command::new(self.name))
    }

    fn own(&self, command: Command) -> Command {
        let command = self.configured.augment(command);
        let notes =
            [self.notes, PRECEDENCE].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        command.about(self.about).before_help(format!("Examples:\n{}", self.examples)).after_help(notes)
    }

    /// Its whole command line.
    pub(super) fn command(&self) -> Command {
        self.whole(Command::new(self.name))
    }

    fn whole(&self, command: Command) -> Command {
        let command = self.own(command);
        let taken = command.get_arguments().any(|arg| arg.get_long() == Some("allow-host"));
        let command = ServingArgs::augment_args(command);
        let command = if taken { without_alias(command) } else { command };
        let version = match (self.data)() {
            Some(data) => format!("{} ({data})", env!("CARGO_PKG_VERSION")),
            None => env!("CARGO_PKG_VERSION").to_owned(),
        };
        help::shorten(command).about(self.about).display_name(format!("linchpin-{}", self.name)).version(version)
    }

    /// The subcommand, whose arguments are only put together when it is the one that was typed.
    pub(crate) fn subcommand(&self) -> Command {
        let fill = |command: Command| match Entry::named(command.get_name()) {
            Some(entry) => entry.whole(command),
            None => command,
        };
        Command::new(self.name).about(self.about).defer(fill)
    }

    /// Builds it as the only server, with the published tool names.
    pub(crate) fn alone(
        &'static self,
        mut matches: ArgMatches,
        vars: Vars<'_>,
        offered: Tools,
    ) -> Result<Alone, Failure> {
        let mut serving = ServingArgs::from_arg_matches_mut(&mut matches).map_err(Failure::usage)?;
        // A host that starts it is told nothing.
        let words = if serving.tells() { self.words(&self.own_command(), &matches) } else { Vec::new() };
        let part = self.part(&matches, vars, &[])?;
        let server = Server::new(format!("linchpin-{}", self.name), env!("CARGO_PKG_VERSION")).title(self.title);
        let mut tools = part.tools.clone();
        tools.published = matches!(offered, Tools::Published);
        tell_long_name([(&part.service, &tools)])?;
        serving.find_tools(&[(&part.service, &tools)])?;
        let server = part.add_to((self.introduce)(server), tools, serving.clients())?;
        Ok(Alone { server, serving, words })
    }

    /// What was given on the command line, to be pasted elsewhere: its name, its flags, and paths in full.
    pub(super) fn words(&self, command: &Command, matches: &ArgMatches) -> Vec<String> {
        let mut all = vec![self.name.to_owned()];
        all.extend(words::given(command, matches, Some(self)));
        all
    }

    /// Configures it by its variables and these matches. The variables of the options in `masked` are not read.
    pub(super) fn part(&'static self, matches: &ArgMatches, vars: Vars<'_>, masked: &[&str]) -> Result<Part, Failure> {
        self.configured.part(self, matches, vars, masked)
    }
}

/// A single server.
pub(crate) struct Alone {
    pub(crate) server: Server,
    pub(crate) serving: ServingArgs,
    /// The words after `linchpin serve` that start it on stdio.
    pub(crate) words: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::super::native::Main;
    use super::*;
    use clap::ArgAction;

    #[test]
    fn every_main_argument_is_one_of_its_server() {
        for entry in ENTRIES {
            let command = entry.own_command();
            match entry.main {
                Main::Flag(flag) => {
                    let flag = flag.strip_prefix("--").expect("as it is typed");
                    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(flag));
                    let arg = arg.unwrap_or_else(|| panic!("{} has no --{flag}", entry.name));
                    assert_eq!(entry.takes_several, matches!(arg.get_action(), ArgAction::Append), "{}", entry.name);
                }
                Main::Word => assert!(command.get_positionals().next().is_some(), "{}", entry.name),
                Main::Nothing => assert!(!entry.takes_several, "{}", entry.name),
            }
            entry.command().debug_assert();
        }
    }

    /// The one name that a rule of its own makes longer: the published name with the server's before it.
    const LONGER: &str = "everything_trigger-long-running-operation";

    #[test]
    fn names_of_tools_leave_room_for_a_prefix_of_the_host() {
        let prefix = linchpin_kit::ToolPrefix::Auto;
        for entry in ENTRIES {
            for tool in entry.service.tools {
                let name = prefix.of(entry.service.name, tool);
                assert_eq!(name.len() > linchpin_kit::NAME_CHARS_GOOD, name == LONGER, "{name} has {}", name.len());
            }
        }
    }

    #[test]
    fn old_names_of_tools_mean_one_tool_and_are_no_tools_name_now() {
        let prefix = linchpin_kit::ToolPrefix::Auto;
        for Entry { service, .. } in ENTRIES {
            let forms = |name: &'static str| {
                let mut forms = vec![name.to_owned(), prefix.apply(service.name, name)];
                forms.dedup();
                forms
            };
            let all = service.tools.iter().flat_map(|tool| {
                let old = tool.aliases.iter().map(|alias| alias.name);
                std::iter::once(tool.name).chain(old).flat_map(forms)
            });
            let mut known = std::collections::BTreeSet::new();
            for name in all {
                assert!(known.insert(name.clone()), "{}: {name} means two tools", service.name);
            }
        }
    }
}
