//! The flags of other programs, and a command line of `linchpin bridge` as it is made of them.

use crate::fail::Failure;
use crate::show::out::near;
use std::net::IpAddr;

/// A command line of `linchpin bridge` as it is made.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) words: Vec<String>,
    /// What has no effect here.
    pub(super) remarks: Vec<String>,
}

impl Made {
    pub(super) fn flag(&mut self, name: &str, value: impl Into<String>) {
        self.words.push(name.to_owned());
        self.words.push(value.into());
    }

    pub(super) fn remark(&mut self, flag: &str, why: &str) {
        self.remarks.push(format!("{flag} has no effect: {why}"));
    }

    /// Takes the flags that fit the server, and says which do not.
    pub(super) fn takes(&mut self, fitting: Made, other: &Made, why: &str) {
        self.words.extend(fitting.words);
        let flags = other.words.iter().step_by(2);
        flags.for_each(|flag| self.remarks.push(format!("{flag} has no effect: it is {why}")));
    }

    /// Listens on this port of this machine, or of `host` if there is one.
    pub(super) fn listens(&mut self, host: Option<&str>, port: &str) -> Result<(), Failure> {
        if port.parse::<u16>().is_err() {
            return Err(Failure::usage(format!("`{port}` is not a port")));
        }
        let host = host.unwrap_or("127.0.0.1");
        let shown = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        self.flag("--http", format!("{shown}:{port}"));
        if !matches!(host, "127.0.0.1" | "::1" | "localhost") {
            // It was named, so it is meant.
            self.words.push("--no-auth-i-know".to_owned());
            if host.trim_matches(['[', ']']).parse::<IpAddr>().is_err() {
                self.flag("--accept-host", host);
            }
        }
        Ok(())
    }

    /// The command that starts the server.
    pub(super) fn command(&mut self, words: &[String]) {
        self.words.push("--".to_owned());
        self.words.extend_from_slice(words);
    }
}

/// A flag of another program.
pub(super) struct Flag {
    /// Its names, with their hyphens.
    pub(super) names: &'static [&'static str],
    /// How many values follow it; [`MANY`] are all words up to the next flag, or one behind `=`.
    pub(super) values: usize,
}

/// See [`Flag::values`].
pub(super) const MANY: usize = usize::MAX;

pub(super) const fn flag(names: &'static [&'static str], values: usize) -> Flag {
    Flag { names, values }
}

/// A flag that was given: its first name, and its values.
pub(super) type Given<'a> = (&'static str, Vec<&'a str>);

/// Takes a command line apart: flags, and the words that belong to none. With `command_ends`, everything from the first such
/// word on is one command line; so is what follows `--`.
pub(super) fn parsed<'a>(
    program: &str,
    flags: &'static [Flag],
    words: &'a [String],
    command_ends: bool,
) -> Result<(Vec<Given<'a>>, Vec<&'a str>), Failure> {
    let (mut given, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next().map(String::as_str) {
        if word == "--" || (command_ends && (!word.starts_with('-') || word == "-")) {
            rest.extend((word != "--").then_some(word));
            rest.extend(words.map(String::as_str));
            break;
        }
        if !word.starts_with('-') || word == "-" {
            rest.push(word);
            continue;
        }
        let (name, joined) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let Some(known) = flags.iter().find(|flag| flag.names.contains(&name)) else {
            let failure = Failure::usage(format!("{program} has no flag {name} that is understood here"));
            let all = flags.iter().flat_map(|flag| flag.names.iter().copied());
            return Err(match near(name, all) {
                Some(meant) => failure.hint(format!("did you mean {meant}?")),
                None => failure.hint(format!("`linchpin {program} --help` lists those that are")),
            });
        };
        let is_joined = joined.is_some();
        let mut values: Vec<&str> = joined.into_iter().collect();
        if known.values == MANY {
            while !is_joined && words.as_slice().first().is_some_and(|word| !word.starts_with('-')) {
                values.extend(words.next().map(String::as_str));
            }
            if values.is_empty() && !known.names.contains(&"--cors") {
                return Err(Failure::usage(format!("{name} needs a value")));
            }
            given.push((known.names[0], values));
            continue;
        }
        while values.len() < known.values {
            let missing = || Failure::usage(format!("{name} needs a value"));
            values.push(words.next().ok_or_else(missing)?.as_str());
        }
        given.push((known.names[0], values));
    }
    Ok((given, rest))
}

/// A flag that stops the start.
pub(super) fn refused(flag: &str, why: &str) -> Failure {
    Failure::usage(format!("{flag}: {why}"))
}

/// A duration of theirs: a number of milliseconds.
pub(super) fn milliseconds(flag: &str, value: &str) -> Result<String, Failure> {
    match value.parse::<u64>() {
        Ok(number) => Ok(format!("{number}ms")),
        Err(_) => Err(refused(flag, &format!("`{value}` is not a number of milliseconds"))),
    }
}

/// Takes `NAME: VALUE` or `NAME:VALUE`. Variables are filled in when the bridge starts, so that none is shown.
pub(super) fn header(text: &str) -> Result<String, Failure> {
    if text.contains(':') { Ok(text.to_owned()) } else { Err(refused("--header", "expected 'Name: value'")) }
}
