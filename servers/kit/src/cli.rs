//! Options as arguments of clap (feature `cli`).
//!
//! ```
//! use linchpin_kit::clap::Command;
//! use linchpin_kit::flag;
//! linchpin_kit::options! {
//!     /// The configuration.
//!     #[derive(Debug)]
//!     pub struct Config: "MCP_X" {
//!         /// Maximum number of rows in a result.
//!         pub max_rows: usize = 1_000 => flag::number("N"),
//!     }
//! }
//! let mut command = linchpin_kit::cli::augment::<Config>(Command::new("x"));
//! assert!(command.render_help().to_string().contains("Maximum number of rows in a result [default: 1000] [env: MCP_X_MAX_ROWS]"));
//! let matches = command.get_matches_from(["x", "--max-rows", "5"]);
//! let config: Config = linchpin_kit::cli::from_matches(&matches).unwrap();
//! assert_eq!(config.max_rows, 5);
//! ```

use crate::options::{Form, Hint, Takes};
use crate::setting::first_paragraph;
use crate::{Given, Options, Vars};
use clap::builder::ValueHint;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};

/// Adds the options of a configuration to a command.
#[must_use]
pub fn augment<C: Options>(command: Command) -> Command {
    let mut defaults = C::default();
    let mut command = command;
    for option in C::options(C::VARIABLES).iter().filter(|option| !option.form.hidden) {
        let default = option.default_of(&mut defaults);
        command = command.args(arguments(&option.form, default.as_deref()));
    }
    command
}

/// What was given for the options of a configuration on the command line. Variables are not read.
#[must_use]
pub fn given<C: Options>(matches: &ArgMatches) -> Given {
    match matches.args_present() {
        true => given_of(C::options(C::VARIABLES).into_iter().map(|option| option.form).collect(), matches),
        false => Given::default(),
    }
}

// Of this and what is like it there is one copy, not one for each configuration.
fn given_of(forms: Vec<Form>, matches: &ArgMatches) -> Given {
    let mut given = Given::default();
    for Form { name, word, takes, .. } in forms {
        let ids = word.map(|_| word_id(&name)).into_iter().chain([name.clone()]);
        for id in ids.filter(|id| matches.try_contains_id(id).unwrap_or_default()) {
            if matches.value_source(&id) != Some(ValueSource::CommandLine) {
                continue;
            }
            match takes {
                Takes::Nothing => given.add(&name, ["true".to_owned()]),
                _ => given.add(&name, matches.get_many::<String>(&id).into_iter().flatten().cloned()),
            }
        }
    }
    given
}

/// The configuration of the process's variables and these matches, without a keyring.
///
/// # Errors
/// When a value is invalid.
pub fn from_matches<C: Options>(matches: &ArgMatches) -> Result<C, Error> {
    let get = |name: &str| std::env::var(name).ok();
    C::read(Vars::new(&get), &given::<C>(matches))
        .map_err(|error| Error::raw(ErrorKind::ValueValidation, format!("{error}\n")))
}

fn word_id(name: &str) -> String {
    format!("{name} as a word")
}

/// The arguments of an option: a plain word, a flag, or both.
fn arguments(form: &Form, default: Option<&str>) -> Vec<Arg> {
    let mut help = first_paragraph(form.doc);
    let mut notes = Vec::new();
    notes.extend(default.map(|default| format!("[default: {default}]")));
    let secret = if form.secret { ", also with _FILE or _KEYRING" } else { "" };
    notes.extend(form.variables.first().map(|name| format!("[env: {name}{secret}]")));
    for note in notes {
        help.push(' ');
        help.push_str(&note);
    }
    let mut all = Vec::new();
    let is_list = matches!(form.takes, Takes::Repeated | Takes::List);
    if let Some((name, only)) = form.word {
        let mut word = shaped(Arg::new(word_id(&form.name)).value_name(name), form).help(help.clone());
        if !only && !is_list {
            word = word.conflicts_with(form.name.clone());
        }
        all.push(word.conflicts_with_all(form.excludes.iter().copied()));
        if only {
            return all;
        }
        help = format!("Same as {name}{}", if is_list { ". May be repeated" } else { "" });
    }
    let mut flag = Arg::new(form.name.clone()).long(form.name.clone()).help(help);
    if form.takes != Takes::Nothing {
        flag = flag.value_name(form.value.clone());
    }
    if let Some(short) = form.short {
        flag = flag.short(short);
    }
    if let Some(heading) = form.heading {
        flag = flag.help_heading(heading);
    }
    all.push(shaped(flag, form).conflicts_with_all(form.excludes.iter().copied()));
    all
}

fn shaped(arg: Arg, form: &Form) -> Arg {
    let hint = match form.hint {
        Hint::Nothing => ValueHint::Unknown,
        Hint::File => ValueHint::FilePath,
        Hint::Directory => ValueHint::DirPath,
        Hint::Program => ValueHint::ExecutablePath,
        Hint::Url => ValueHint::Url,
        Hint::Host => ValueHint::Hostname,
    };
    let arg = arg.value_hint(hint);
    match form.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue),
        Takes::OnOff => arg.action(ArgAction::Set).num_args(0..=1).require_equals(true).default_missing_value("true"),
        Takes::Value => arg.action(ArgAction::Set),
        Takes::Repeated => arg.action(ArgAction::Append),
        Takes::List => arg.action(ArgAction::Append).value_delimiter(','),
    }
}
