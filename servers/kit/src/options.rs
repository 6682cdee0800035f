//! Options of a server, declared once: a field of its configuration with its default, its variable, its flag and its
//! help text.

use crate::{ToolError, Vars};
use std::collections::BTreeMap;

/// A configuration whose options were declared with [`options!`](crate::options).
pub trait Options: Default + 'static {
    /// The prefix of its variables, without the last `_`: `MCP_GIT`.
    const VARIABLES: &'static str = "";

    /// The options in the order of help texts, with this prefix of variables.
    fn options(variables: &str) -> Vec<ConfigOption<Self>>;

    /// Reads what is not an option of its own, after all options: variables that other programs define.
    ///
    /// # Errors
    /// When a variable is invalid.
    fn settle(&mut self, _vars: Vars<'_>, _given: &Given) -> Result<(), ToolError> {
        Ok(())
    }

    /// The defaults, overridden by the variables, overridden by what was given on a command line. The variable of an
    /// option that was given is not read, unless both add up.
    ///
    /// # Errors
    /// When a value is invalid; the message names the variable or the flag.
    fn read(vars: Vars<'_>, given: &Given) -> Result<Self, ToolError> {
        Self::read_as(Self::VARIABLES, vars, given)
    }

    /// The same with another prefix of variables, for a configuration that several servers have.
    ///
    /// # Errors
    /// As [`Options::read`].
    fn read_as(variables: &str, vars: Vars<'_>, given: &Given) -> Result<Self, ToolError> {
        let mut config = Self::default();
        for option in Self::options(variables) {
            option.read(&mut config, vars, given)?;
        }
        config.settle(vars, given)?;
        Ok(config)
    }
}

/// What was given on a command line: names of options (flags without `--`) and their values, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given(BTreeMap<String, Vec<String>>);

impl Given {
    /// Adds values of an option.
    pub fn add(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        self.0.entry(name.to_owned()).or_default().extend(values);
    }

    /// Whether an option was given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn values(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

pub(crate) type Set<C> = Box<dyn Fn(&mut C, &str) -> Result<(), ToolError>>;
type Shown<C> = Box<dyn Fn(&mut C) -> Option<String>>;

/// One option of the configuration `C`.
pub struct ConfigOption<C> {
    pub(crate) form: Form,
    set: Set<C>,
    clear: Box<dyn Fn(&mut C)>,
    shown: Shown<C>,
}

/// How an option is written and explained.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "for command lines"))]
pub(crate) struct Form {
    /// The flag, without `--`.
    pub(crate) name: String,
    pub(crate) short: Option<char>,
    /// What stands for its value in help texts.
    pub(crate) value: String,
    pub(crate) takes: Takes,
    pub(crate) hint: Hint,
    /// The positional argument with the same meaning, and whether there is no flag beside it.
    pub(crate) word: Option<(&'static str, bool)>,
    /// Whether it asks for something else than serving.
    pub(crate) command: bool,
    /// Whether there is only a variable.
    pub(crate) hidden: bool,
    /// The variables, the first that is set counts.
    pub(crate) variables: Vec<String>,
    /// Separates the items of a list in a variable, beside line breaks.
    pub(crate) separator: char,
    /// Whether values are secrets, which may also come from `<NAME>_FILE` and `<NAME>_KEYRING`.
    pub(crate) secret: bool,
    /// Whether a command line adds to the variable.
    pub(crate) adds: bool,
    /// Options that exclude it; where one is given, its variable is not read.
    pub(crate) excludes: &'static [&'static str],
    pub(crate) default: Option<&'static str>,
    pub(crate) heading: Option<&'static str>,
    /// The documentation of the field; its first paragraph is the help text.
    pub(crate) doc: &'static str,
}

/// What follows a flag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing.
    Nothing,
    /// Nothing, or `=true` or `=false`.
    OnOff,
    /// A value.
    #[default]
    Value,
    /// A value; the flag may be repeated.
    Repeated,
    /// Values between commas; the flag may be repeated.
    List,
}

/// What a value names, for shells that complete it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Hint {
    #[default]
    Nothing,
    File,
    Directory,
    Program,
    Url,
    Host,
}

impl<C: 'static> ConfigOption<C> {
    pub(crate) fn new(
        form: Form,
        set: Set<C>,
        clear: impl Fn(&mut C) + 'static,
        shown: impl Fn(&mut C) -> Option<String> + 'static,
    ) -> Self {
        Self { form, set, clear: Box::new(clear), shown: Box::new(shown) }
    }

    /// The same option of a configuration that contains this one.
    pub(crate) fn within<D: 'static>(self, get: fn(&mut D) -> &mut C) -> ConfigOption<D> {
        let Self { form, set, clear, shown } = self;
        ConfigOption {
            form,
            set: Box::new(move |config, text| set(get(config), text)),
            clear: Box::new(move |config| clear(get(config))),
            shown: Box::new(move |config| shown(get(config))),
        }
    }

    /// The default as help texts show it.
    #[cfg(feature = "cli")]
    pub(crate) fn default_of(&self, config: &mut C) -> Option<String> {
        self.form.default.map(str::to_owned).or_else(|| (self.shown)(config))
    }

    fn read(&self, config: &mut C, vars: Vars<'_>, given: &Given) -> Result<(), ToolError> {
        self.form.read(vars, given, &mut |step| match step {
            Step::Clear => {
                (self.clear)(config);
                Ok(())
            }
            Step::Set(text) => (self.set)(config, text),
        })
    }
}

/// What is done to a field.
enum Step<'a> {
    /// The default is taken away.
    Clear,
    /// A value is set, or added.
    Set(&'a str),
}

type Take<'a> = &'a mut dyn FnMut(Step<'_>) -> Result<(), ToolError>;

// One copy for all configurations.
impl Form {
    fn read(&self, vars: Vars<'_>, given: &Given, take: Take<'_>) -> Result<(), ToolError> {
        let values = given.values(&self.name);
        let excluded = self.excludes.iter().any(|other| given.has(other));
        if (!given.has(&self.name) || self.adds) && !excluded {
            self.read_variable(vars, take)?;
        }
        if !self.adds && !values.is_empty() {
            take(Step::Clear)?;
        }
        let flag = match self.word {
            Some((word, true)) => word.to_owned(),
            _ => format!("--{}", self.name),
        };
        values.iter().try_for_each(|value| set(take, value, &flag))
    }

    fn read_variable(&self, vars: Vars<'_>, take: Take<'_>) -> Result<(), ToolError> {
        let names: Vec<&str> = self.variables.iter().map(String::as_str).collect();
        let Some(first) = names.first() else { return Ok(()) };
        let is_list = matches!(self.takes, Takes::Repeated | Takes::List);
        if self.secret {
            let secrets = match is_list {
                true => vars.secret_lines(first)?,
                false => vars.secret_of(&names)?.into_iter().collect(),
            };
            return secrets.iter().try_for_each(|secret| set(take, secret.reveal(), first));
        }
        let Some((name, text)) = names.iter().find_map(|name| Some((name, vars.text(name)?))) else { return Ok(()) };
        if !is_list {
            return set(take, &text, name);
        }
        take(Step::Clear)?;
        let mut items = text.split([self.separator, '\n']).map(str::trim).filter(|item| !item.is_empty());
        items.try_for_each(|item| set(take, item, name))
    }
}

fn set(take: Take<'_>, text: &str, source: &str) -> Result<(), ToolError> {
    take(Step::Set(text)).map_err(|error| {
        let named = ToolError::new(format!("{source}: {}", error.message()));
        error.advice().map_or(named.clone(), |advice| named.hint(advice))
    })
}

/// Declares a configuration: a struct whose fields have defaults, and those that are options a [`flag`](crate::flag).
///
/// The first paragraph of a field's documentation is its help text. A field `max_rows` is the flag `--max-rows` and, after
/// `: "MCP_X"`, the variable `MCP_X_MAX_ROWS`. The struct gets `Default`, `with` and (with a prefix of variables) `from_env`;
/// with the crate's feature `cli` it is a `clap::Args`. After `then`, a method of the struct reads what is not an option of its
/// own.
///
/// ```
/// use linchpin_kit::{ToolChoice, Vars, flag};
/// linchpin_kit::options! {
///     /// The configuration.
///     #[derive(Debug)]
///     pub struct Config: "MCP_X" {
///         /// Maximum number of rows in a result.
///         ///
///         /// At least 1.
///         pub max_rows: usize = 1_000 => flag::number("N"),
///         /// The enabled tools.
///         pub tools: ToolChoice = ToolChoice::default() => flag::group(),
///     }
/// }
/// let get = |name: &str| (name == "MCP_X_MAX_ROWS").then(|| "5".to_owned());
/// assert_eq!(Config::from_env(Vars::new(&get)).unwrap().max_rows, 5);
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$meta:meta])*
        pub struct $Config:ident $(: $variables:literal $(then $settle:ident)?)? {
            $(
                $(#[doc = $doc:literal])*
                $(#[cfg($($cfg:tt)*)])?
                pub $field:ident: $Type:ty = $default:expr $(=> $flag:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $Config {
            $(
                $(#[doc = $doc])*
                #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")]
                $(#[cfg($($cfg)*)])?
                pub $field: $Type,
            )*
        }

        impl Default for $Config {
            fn default() -> Self {
                Self { $($(#[cfg($($cfg)*)])? $field: $default,)* }
            }
        }

        impl $Config {
            /// Changes some of these options.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }

            $(
                /// The defaults, overridden by environment variables.
                #[doc = concat!("Their names are `", $variables, "_` and the names of the flags; see the README.")]
                ///
                /// # Errors
                /// When the value of a variable is invalid; the message names the variable.
                pub fn from_env(vars: $crate::Vars<'_>) -> ::std::result::Result<Self, $crate::ToolError> {
                    $crate::Options::read(vars, &$crate::Given::default())
                }
            )?
        }

        impl $crate::Options for $Config {
            $(const VARIABLES: &'static str = $variables;)?

            fn options(variables: &str) -> ::std::vec::Vec<$crate::ConfigOption<Self>> {
                let mut all = ::std::vec::Vec::new();
                $(
                    $(#[cfg($($cfg)*)])?
                    {
                        let doc = concat!($($doc, "\n"),*);
                        let field = stringify!($field);
                        $(all.extend($flag.declare(field, doc, variables, |config: &mut Self| &mut config.$field));)?
                        let _ = (doc, field);
                    }
                )*
                let _ = variables;
                all
            }

            $($(
                fn settle(
                    &mut self,
                    vars: $crate::Vars<'_>,
                    given: &$crate::Given,
                ) -> ::std::result::Result<(), $crate::ToolError> {
                    $Config::$settle(self, vars, given)
                }
            )?)?
        }

        $crate::as_clap_args!($Config);
    };
}

/// Makes a configuration a `clap::Args`, with the feature `cli` of its crate.
#[doc(hidden)]
#[macro_export]
macro_rules! as_clap_args {
    ($Config:ident) => {
        #[cfg(feature = "cli")]
        impl $crate::clap::Args for $Config {
            fn augment_args(command: $crate::clap::Command) -> $crate::clap::Command {
                $crate::cli::augment::<Self>(command)
            }

            fn augment_args_for_update(command: $crate::clap::Command) -> $crate::clap::Command {
                $crate::cli::augment::<Self>(command)
            }
        }

        #[cfg(feature = "cli")]
        impl $crate::clap::FromArgMatches for $Config {
            fn from_arg_matches(
                matches: &$crate::clap::ArgMatches,
            ) -> ::std::result::Result<Self, $crate::clap::Error> {
                $crate::cli::from_matches(matches)
            }

            fn update_from_arg_matches(
                &mut self,
                matches: &$crate::clap::ArgMatches,
            ) -> ::std::result::Result<(), $crate::clap::Error> {
                *self = $crate::cli::from_matches(matches)?;
                Ok(())
            }
        }
    };
}
