//! `linchpin serve`, and the program invoked under the name of a published server.

use crate::fail::Failure;
use crate::place::{Card, without_alias};
use crate::servers::{Alone, ENTRIES, Entry, SeveralArgs, Tools, keyring};
use crate::serving::ServingArgs;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use linchpin::Server;
use linchpin_kit::Vars;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What to serve.
#[derive(Debug)]
pub(crate) enum Serve {
    /// One server with its published tool names and its own command line.
    One(&'static Entry, ArgMatches),
    /// Several servers, one argument each.
    Several(Box<SeveralArgs>),
}

impl Args for Serve {
    fn augment_args(command: Command) -> Command {
        without_alias(SeveralArgs::augment_args(command))
            .args_conflicts_with_subcommands(true)
            .subcommand_value_name("NAME")
            .subcommand_help_heading("Servers")
            .disable_help_subcommand(true)
            .subcommands(ENTRIES.iter().map(Entry::subcommand))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Serve, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Serve, clap::Error> {
        match matches.remove_subcommand().and_then(|(name, own)| Some((Entry::named(&name)?, own))) {
            Some((entry, own)) => Ok(Serve::One(entry, own)),
            None => SeveralArgs::from_arg_matches_mut(matches).map(|args| Serve::Several(Box::new(args))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    match serve {
        Serve::One(entry, matches) => alone(entry, matches, Tools::All),
        Serve::Several(args) => {
            let read = Environment::default();
            let together = args.open(Vars::new(&|name| read.get(name)).keyring(&keyring))?;
            go(together.server, together.serving, &together.name, together.words, read)
        }
    }
}

/// Serves one server with its published tool names.
pub(crate) fn alone(entry: &'static Entry, matches: ArgMatches, tools: Tools) -> Result<(), Failure> {
    let read = Environment::default();
    let Alone { server, serving, words } =
        entry.alone(matches, Vars::new(&|name| read.get(name)).keyring(&keyring), tools)?;
    go(server, serving, entry.name, words, read)
}

/// The environment, recording which variables were read and set.
#[derive(Default)]
struct Environment {
    names: RefCell<BTreeSet<String>>,
}

impl Environment {
    fn get(&self, name: &str) -> Option<String> {
        let value = std::env::var(name).ok()?;
        // Set in every process, with the same meaning.
        if !["HOME", "PATH", "TZ", "USER", "XDG_DATA_HOME"].contains(&name) {
            self.names.borrow_mut().insert(name.to_owned());
        }
        Some(value)
    }
}

fn go(server: Server, serving: ServingArgs, name: &str, words: Vec<String>, read: Environment) -> Result<(), Failure> {
    let program = std::env::current_exe().map_or_else(|_| "linchpin".into(), |p| p.display().to_string());
    let command = [program, "serve".to_owned()].into_iter().chain(words).collect();
    serving.run(server, &Card { name, command, variables: read.names.into_inner().into_iter().collect() })
}
