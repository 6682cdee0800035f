//! `linchpin serve`, and the program invoked under the name of a published server.

use crate::fail::Failure;
use crate::help;
use crate::serve::paste::{self, Card};
use crate::serve::place::without_alias;
use crate::serve::several::{Several, refuse_bare_names};
use crate::serve::{Alone, ENTRIES, Entry, ServingArgs, Tools, keyring, serving};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use linchpin::Server;
use linchpin_kit::Vars;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What to serve.
#[derive(Debug)]
pub(crate) enum Serve {
    /// One server with its published tool names and its own command line.
    One(&'static Entry, ArgMatches),
    /// Several servers, one argument each.
    Several(Box<Several>),
    /// Skills, and nothing else.
    Skills(Box<SkillsArgs>),
}

/// `linchpin serve skills`.
#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    /// The directory of skills, each a directory with a SKILL.md; or one skill.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Do not start if a skill is invalid. Otherwise it is skipped, with a warning.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    serving: ServingArgs,
}

pub(crate) const SKILLS: &str = "skills";
pub(crate) const ABOUT_SKILLS: &str = "Skills: directories of instructions for models";

fn skills_command() -> Command {
    let examples = "Examples:\n  linchpin serve skills ~/skills\n  linchpin serve skills --strict ./refunds\n";
    let command = SkillsArgs::augment_args(Command::new(SKILLS)).mut_arg("skills", |arg| arg.hide(true));
    help::shorten(command).about(ABOUT_SKILLS).before_help(examples)
}

impl Args for Serve {
    fn augment_args(command: Command) -> Command {
        let servers = Arg::new("servers")
            .value_name("SERVER")
            .num_args(0..)
            .help("NAME:, NAME:VALUE or 'NAME --flag'. OTHER=NAME:VALUE renames the server");
        help::shorten(without_alias(Several::augment(command.arg(servers))))
            .override_usage("linchpin serve NAME [OPTIONS] [ARGUMENT]...\n       linchpin serve SERVER... [OPTIONS]")
            .subcommand_value_name("NAME")
            .subcommand_help_heading("Servers")
            .disable_help_subcommand(true)
            .subcommands(ENTRIES.iter().map(Entry::subcommand))
            .subcommand(skills_command())
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
        let mut servers: Vec<String> = matches.get_many("servers").into_iter().flatten().cloned().collect();
        if let Some((SKILLS, _)) = matches.subcommand().filter(|_| !is_given(matches)) {
            let own = matches.remove_subcommand().map(|(_, own)| own).unwrap_or_default();
            return Ok(Serve::Skills(Box::new(SkillsArgs::from_arg_matches(&own)?)));
        }
        if let Some((entry, own)) =
            matches.remove_subcommand().and_then(|(name, own)| Some((Entry::named(&name)?, own)))
        {
            if !is_given(matches) {
                return Ok(Serve::One(entry, own));
            }
            // One of several, behind an option for all of them.
            if servers.is_empty() || is_given(&own) {
                let why = format!("options of `{}` belong after its name\n", entry.name);
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, why));
            }
            servers.push(entry.name.to_owned());
        }
        Several::new(servers, matches).map(|several| Serve::Several(Box::new(several)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Whether anything was given but what all commands have.
fn is_given(matches: &ArgMatches) -> bool {
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    matches.ids().map(clap::Id::as_str).any(|id| id != "verbose" && given(id))
}

pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    match serve {
        Serve::One(entry, matches) => {
            refuse_bare_names(entry, &matches)?;
            alone(entry, matches, Tools::All)
        }
        Serve::Skills(args) => serve_skills(*args),
        Serve::Several(args) => {
            let read = Environment::default();
            let together = args.open(Vars::new(&|name| read.get(name)).keyring(&keyring))?;
            go(together.server, together.serving, &together.name, together.words, read)
        }
    }
}

fn serve_skills(args: SkillsArgs) -> Result<(), Failure> {
    let SkillsArgs { directory, strict, serving } = args;
    let skills = serving::skills(&directory)?.strict(strict);
    let server = Server::new("linchpin-skills", env!("CARGO_PKG_VERSION")).title("Skills").with(skills);
    let whole = std::path::absolute(&directory).unwrap_or(directory).display().to_string();
    let strict = strict.then(|| "--strict".to_owned());
    let words = [SKILLS.to_owned(), whole].into_iter().chain(strict).collect();
    go(server, serving, SKILLS, words, Environment::default())
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
    let command = paste::command("serve", words);
    serving.run(server, Card { name, command, variables: read.names.into_inner().into_iter().collect() })
}
