//! The flags of [`options!`](crate::options): what a value is, and how it is written.

use crate::options::{Form, Hint, Set, Takes};
use crate::vars::boolean;
use crate::{ConfigOption, Options, RootsPolicy, Secret, ToolError};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// How an option of the type `T` is given: as a flag, a plain word or a variable.
pub struct Flag<T> {
    form: Form,
    set: Set<T>,
    clear: fn(&mut T),
    shown: fn(&T) -> Option<String>,
}

/// All options of a configuration inside another one.
pub struct Group(());

/// Text as it is, without a format.
pub trait Text: Sized {
    /// From this text.
    fn from_text(text: &str) -> Self;

    /// As help texts show it; `None` if there is nothing to show.
    fn shown(&self) -> Option<String> {
        None
    }
}

impl Text for String {
    fn from_text(text: &str) -> Self {
        text.to_owned()
    }

    fn shown(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Text for PathBuf {
    fn from_text(text: &str) -> Self {
        text.into()
    }

    fn shown(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl Text for Secret {
    fn from_text(text: &str) -> Self {
        Self::new(text)
    }
}

impl<T: Text> Text for Option<T> {
    fn from_text(text: &str) -> Self {
        Some(T::from_text(text))
    }

    fn shown(&self) -> Option<String> {
        self.as_ref().and_then(T::shown)
    }
}

/// Off unless given.
#[must_use]
pub fn switch() -> Flag<bool> {
    switch_with(|on, given| *on = given)
}

/// The same for what is not a `bool`.
#[must_use]
pub fn switch_with<T: 'static>(set: fn(&mut T, bool)) -> Flag<T> {
    let mut flag = with("", |_, _| Ok(()));
    flag.set = Box::new(move |target, text| boolean(text).map(|on| set(target, on)));
    flag.form.takes = Takes::Nothing;
    flag
}

/// `--name=true` or `--name=false`; `--name` is true.
#[must_use]
pub fn on_off() -> Flag<bool> {
    let mut flag = with("true|false", |on, text| boolean(text).map(|given| *on = given));
    flag.form.takes = Takes::OnOff;
    flag.shown = |on| Some(on.to_string());
    flag
}

/// A number.
#[must_use]
pub fn number<N: FromStr + Display + 'static>(value: &str) -> Flag<N> {
    let mut flag = with(value, read_number);
    flag.shown = |number: &N| Some(number.to_string());
    flag
}

/// A number that may be absent.
#[must_use]
pub fn maybe_number<N: FromStr + 'static>(value: &str) -> Flag<Option<N>> {
    with(value, |target, text| number_in(text).map(|number| *target = Some(number)))
}

/// A number of bytes.
#[must_use]
pub fn bytes<N: FromStr + Display + 'static>() -> Flag<N> {
    let mut flag = with("BYTES", read_number);
    flag.shown = |number: &N| {
        let text = number.to_string();
        let shown = |unit: u64, name: &str| {
            let count = text.parse::<u64>().ok().filter(|bytes| *bytes > 0 && bytes.is_multiple_of(unit))? / unit;
            Some(format!("{count} {name}"))
        };
        [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
            .into_iter()
            .find_map(|(unit, name)| shown(unit, name))
            .or_else(|| Some(text.clone()))
    };
    flag
}

/// A time in whole seconds.
#[must_use]
pub fn seconds() -> Flag<Duration> {
    let mut flag = with("SECONDS", |time, text| number_in(text).map(|n| *time = Duration::from_secs(n)));
    flag.shown = |time| Some(time.as_secs().to_string());
    flag
}

/// A time in whole seconds, kept as milliseconds.
#[must_use]
pub fn seconds_in_ms() -> Flag<u64> {
    let mut flag = with("SECONDS", |ms: &mut u64, text| number_in(text).map(|n: u64| *ms = n.saturating_mul(1_000)));
    flag.shown = |ms| Some((ms / 1_000).to_string());
    flag
}

/// A time in milliseconds.
#[must_use]
pub fn millis() -> Flag<Duration> {
    let mut flag = with("MS", |time, text| number_in(text).map(|n| *time = Duration::from_millis(n)));
    flag.shown = |time| Some(time.as_millis().to_string());
    flag
}

/// Text of any form.
#[must_use]
pub fn text<T: Text + 'static>(value: &str) -> Flag<T> {
    let mut flag = with(value, |target, text| {
        *target = T::from_text(text);
        Ok(())
    });
    flag.shown = T::shown;
    flag
}

/// A file.
#[must_use]
pub fn file<T: Text + 'static>(value: &str) -> Flag<T> {
    text(value).hint(Hint::File)
}

/// A directory.
#[must_use]
pub fn directory<T: Text + 'static>(value: &str) -> Flag<T> {
    text(value).hint(Hint::Directory)
}

/// A program.
#[must_use]
pub fn program<T: Text + 'static>(value: &str) -> Flag<T> {
    text(value).hint(Hint::Program)
}

/// A connection string.
#[must_use]
pub fn url<T: Text + 'static>(value: &str) -> Flag<T> {
    text(value).hint(Hint::Url)
}

/// One of several words, which `T` parses.
#[must_use]
pub fn choice<T: FromStr<Err = ToolError> + 'static>(value: &str) -> Flag<T> {
    with(value, |target, text| text.parse().map(|choice| *target = choice))
}

/// The effect of a client's roots, one of those that a server supports.
#[must_use]
pub fn roots(supported: &'static [RootsPolicy]) -> Flag<Option<RootsPolicy>> {
    let words: Vec<&str> = supported.iter().map(|policy| policy.word()).collect();
    let mut flag = with(&words.join("|"), |_, _| Ok(()));
    flag.set = Box::new(|roots, text| RootsPolicy::parse(text, supported).map(|policy| *roots = Some(policy)));
    flag
}

/// A value that this function reads.
#[must_use]
pub fn with<T>(value: &str, set: fn(&mut T, &str) -> Result<(), ToolError>) -> Flag<T>
where
    T: 'static,
{
    let form = Form { value: value.to_owned(), separator: ',', ..Form::default() };
    Flag { form, set: Box::new(set), clear: |_| {}, shown: |_| None }
}

/// Values between commas.
#[must_use]
pub fn list<T: Text + 'static>(value: &str) -> Flag<Vec<T>> {
    Flag { form: Form { takes: Takes::List, ..repeated::<T>(value, ',').form }, ..repeated(value, ',') }
}

/// A flag that may be repeated. In a variable, values are separated by this character or line breaks.
#[must_use]
pub fn repeated<T: Text + 'static>(value: &str, separator: char) -> Flag<Vec<T>> {
    repeated_with(value, separator, |text| Ok(T::from_text(text)))
}

/// The same for values that this function reads.
#[must_use]
pub fn repeated_with<T: 'static>(value: &str, separator: char, read: fn(&str) -> Result<T, ToolError>) -> Flag<Vec<T>> {
    let mut flag = with(value, |_, _| Ok(()));
    flag.set = Box::new(move |all: &mut Vec<T>, text| read(text).map(|one| all.push(one)));
    flag.clear = Vec::clear;
    flag.form.takes = Takes::Repeated;
    flag.form.separator = separator;
    flag
}

/// The options of a configuration in a field, without a prefix of their own.
#[must_use]
pub fn group() -> Group {
    Group(())
}

impl<T: 'static> Flag<T> {
    /// Names the flag and its variable, where the field has another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.form.name);
        self
    }

    /// Names the variable in full; of several, the first that is set counts.
    #[must_use]
    pub fn variable(mut self, name: &str) -> Self {
        self.form.variables.push(name.to_owned());
        self
    }

    /// A flag of one letter too.
    #[must_use]
    pub fn short(mut self, letter: char) -> Self {
        self.form.short = Some(letter);
        self
    }

    /// A plain word of the command line too.
    #[must_use]
    pub fn word(mut self, name: &'static str) -> Self {
        self.form.word = Some((name, false));
        self
    }

    /// A plain word of the command line, and no flag.
    #[must_use]
    pub fn only_word(mut self, name: &'static str) -> Self {
        self.form.word = Some((name, true));
        self
    }

    /// Asks for something else than serving, such as a login: no host is told to give it.
    #[must_use]
    pub fn command(mut self) -> Self {
        self.form.command = true;
        self
    }

    /// A variable only, without a flag.
    #[must_use]
    pub fn only_variable(mut self) -> Self {
        self.form.hidden = true;
        self
    }

    /// What the command line gives is added to the variable.
    #[must_use]
    pub fn adds(mut self) -> Self {
        self.form.adds = true;
        self
    }

    /// A secret, which may also be in a file or a keyring. Several have a line each.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.form.secret = true;
        self
    }

    /// Refuses these options beside it on a command line; where one of them is given, its variable is not read.
    #[must_use]
    pub fn excludes(mut self, others: &'static [&'static str]) -> Self {
        self.form.excludes = others;
        self
    }

    /// What help texts show as the default, where the value does not say it.
    #[must_use]
    pub fn default(mut self, text: &'static str) -> Self {
        self.form.default = Some(text);
        self
    }

    /// The names of hosts, for shells that complete them.
    #[must_use]
    pub fn host(self) -> Self {
        self.hint(Hint::Host)
    }

    /// Directories, for shells that complete them.
    #[must_use]
    pub fn directories(self) -> Self {
        self.hint(Hint::Directory)
    }

    pub(crate) fn heading(mut self, heading: &'static str) -> Self {
        self.form.heading = Some(heading);
        self
    }

    fn hint(mut self, hint: Hint) -> Self {
        self.form.hint = hint;
        self
    }

    /// For [`options!`](crate::options): the option of a field with this documentation and prefix of variables.
    #[must_use]
    pub fn declare<C: 'static>(
        self,
        field: &str,
        doc: &'static str,
        variables: &str,
        get: fn(&mut C) -> &mut T,
    ) -> Vec<ConfigOption<C>> {
        let Self { mut form, set, clear, shown } = self;
        let own_name = !form.name.is_empty();
        if !own_name {
            form.name = field.replace('_', "-");
        }
        if form.variables.is_empty() && !variables.is_empty() {
            let name = if own_name { form.name.replace('-', "_") } else { field.to_owned() };
            form.variables.push(format!("{variables}_{}", name.to_uppercase()));
        }
        form.doc = doc;
        vec![ConfigOption::new(
            form,
            Box::new(move |config, text| set(get(config), text)),
            move |config| clear(get(config)),
            move |config| shown(get(config)),
        )]
    }
}

impl Group {
    /// For [`options!`](crate::options): the options of a field with this prefix of variables.
    #[must_use]
    pub fn declare<C: 'static, T: Options>(
        self,
        _field: &str,
        _doc: &str,
        variables: &str,
        get: fn(&mut C) -> &mut T,
    ) -> Vec<ConfigOption<C>> {
        T::options(variables).into_iter().map(|option| option.within(get)).collect()
    }
}

fn read_number<N: FromStr>(target: &mut N, text: &str) -> Result<(), ToolError> {
    number_in(text).map(|number| *target = number)
}

fn number_in<N: FromStr>(text: &str) -> Result<N, ToolError> {
    text.trim().parse().map_err(|_| ToolError::new(format!("invalid number: {text}")))
}
