//! The words and arguments of a tool's call.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// The target, a tool's name and its arguments.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) words: Vec<String>,
    /// The arguments as a JSON object.
    pub(crate) json: Option<String>,
    /// Whether `--json` stood before that object, and does not ask for JSON as output.
    pub(crate) by_json: bool,
}

const WORDS: &str = "words";
const ARGS_JSON: &str = "args_json";

impl Args for Input {
    fn augment_args(command: Command) -> Command {
        command
            .arg(Arg::new(WORDS).value_name("WORDS").num_args(0..).help(
                "The target, unless set by an option; the tool's name; and its arguments: key=value, key:=JSON, \
                 key=@FILE, a.b=value, or an object as '{…}', @FILE or - (standard input)",
            ))
            .arg(
                Arg::new(ARGS_JSON)
                    .long("args-json")
                    .value_name("JSON")
                    .help("The arguments as a JSON object. `--json '{…}'` is equivalent"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Input {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Input, Error> {
        let mut words: Vec<String> = matches.get_many(WORDS).into_iter().flatten().cloned().collect();
        let mut json = matches.get_one::<String>(ARGS_JSON).cloned();
        let behind = matches.get_flag("json").then(|| matches.index_of("json")).flatten().map(|at| at + 1);
        let object = matches.indices_of(WORDS).into_iter().flatten().position(|at| Some(at) == behind);
        let object = object.filter(|at| words[*at].trim_start().starts_with('{'));
        if let Some(at) = object {
            if json.is_some() {
                let why = "the arguments are given twice, with --args-json and --json: leave one of them out\n";
                return Err(Error::raw(ErrorKind::ArgumentConflict, why));
            }
            json = Some(words.remove(at));
        }
        Ok(Input { words, json, by_json: object.is_some() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
