//! Command lines of other bridges, which become command lines of `linchpin bridge`.
//!
//! What cannot be had stops the start with a sentence; what has no effect here is told. Their open interfaces are not
//! followed: without a host, only this machine is listened to.

mod mcp_proxy;
mod mcp_remote;
#[cfg(test)]
mod readmes;
mod supergateway;

use crate::fail::Failure;
use crate::shell;
use crate::show::out::{Out, near, note};
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::Path;

/// A program whose command line is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    Supergateway,
    McpRemote,
    McpProxy,
}

/// The programs and their names.
pub(crate) const ALL: [(Foreign, &str); 3] =
    [(Foreign::Supergateway, "supergateway"), (Foreign::McpRemote, "mcp-remote"), (Foreign::McpProxy, "mcp-proxy")];

impl Foreign {
    /// The program meant by how this one was called, and the words of its command line: by the name of a symlink, or by the
    /// first word.
    pub(crate) fn called(given: &[OsString]) -> Option<(Foreign, Vec<OsString>)> {
        let named = |name: &OsStr| ALL.iter().find(|(_, known)| *known == name).map(|(foreign, _)| *foreign);
        let file = Path::new(given.first()?).file_stem()?;
        if let Some(foreign) = named(file) {
            return Some((foreign, given[1..].to_vec()));
        }
        let foreign = named(given.get(1)?)?;
        Some((foreign, given[2..].to_vec()))
    }

    fn name(self) -> &'static str {
        ALL.iter().find(|(foreign, _)| *foreign == self).map_or("", |(_, name)| name)
    }

    /// Our command line for theirs. `None` if it was only to be shown.
    pub(crate) fn translated(self, words: Vec<OsString>) -> Result<Option<Vec<OsString>>, Failure> {
        let unreadable = |_| Failure::usage("an argument is not UTF-8 text");
        let mut words =
            words.into_iter().map(OsString::into_string).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let shows = words[..end].iter().position(|word| word == "--show-as-linchpin");
        shows.into_iter().for_each(|at| drop(words.remove(at)));
        if words[..end.min(words.len())].iter().any(|word| word == "--help" || word == "-h") {
            let mut out = Out::new();
            out.line(help(self))?;
            out.flush()?;
            return Ok(None);
        }
        // What follows the first word of a command is the command's.
        let is_ours = |word: &&String| self != Foreign::McpProxy || word.starts_with('-');
        if words[..end.min(words.len())].iter().take_while(is_ours).any(|word| word == "--version") {
            let mut out = Out::new();
            out.line(concat!("linchpin ", env!("CARGO_PKG_VERSION")))?;
            out.flush()?;
            return Ok(None);
        }
        let env = |name: &str| std::env::var(name).ok();
        let mut made = match self {
            Foreign::Supergateway => supergateway::translated(&words)?,
            Foreign::McpRemote => mcp_remote::translated(&words)?,
            Foreign::McpProxy => mcp_proxy::translated(&words, &env)?,
        };
        made.words.splice(0..0, ["linchpin".to_owned(), "bridge".to_owned()]);
        if shows.is_some() {
            let mut out = Out::new();
            out.line(shell::joined(&made.words))?;
            out.flush()?;
            return Ok(None);
        }
        for remark in &made.remarks {
            note(format!("{}: {remark}", self.name()));
        }
        Ok(Some(made.words.into_iter().map(OsString::from).collect()))
    }
}

fn help(foreign: Foreign) -> String {
    let flags = match foreign {
        Foreign::Supergateway => supergateway::FLAGS,
        Foreign::McpRemote => mcp_remote::FLAGS,
        Foreign::McpProxy => mcp_proxy::FLAGS,
    };
    let names: Vec<&str> = flags.iter().map(|flag| flag.names[0]).collect();
    format!(
        "Takes the command line of {0} and runs `linchpin bridge`.\n\n  linchpin {0} [FLAGS]...\n\nFlags: {1}\n\n\
         --show-as-linchpin prints the command line of `linchpin bridge`, and runs nothing.",
        foreign.name(),
        names.join(" ")
    )
}

/// A command line of `linchpin bridge` as it is made.
#[derive(Debug, Default)]
struct Made {
    words: Vec<String>,
    /// What has no effect here.
    remarks: Vec<String>,
}

impl Made {
    fn flag(&mut self, name: &str, value: impl Into<String>) {
        self.words.push(name.to_owned());
        self.words.push(value.into());
    }

    fn remark(&mut self, flag: &str, why: &str) {
        self.remarks.push(format!("{flag} has no effect: {why}"));
    }

    /// Takes the flags that fit the server, and says which do not.
    fn takes(&mut self, fitting: Made, other: &Made, why: &str) {
        self.words.extend(fitting.words);
        let flags = other.words.iter().step_by(2);
        flags.for_each(|flag| self.remarks.push(format!("{flag} has no effect: it is {why}")));
    }

    /// Listens on this port of this machine, or of `host` if there is one.
    fn listens(&mut self, host: Option<&str>, port: &str) -> Result<(), Failure> {
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
    fn command(&mut self, words: &[String]) {
        self.words.push("--".to_owned());
        self.words.extend_from_slice(words);
    }
}

/// A flag of another program.
struct Flag {
    /// Its names, with their hyphens.
    names: &'static [&'static str],
    /// How many values follow it; [`MANY`] are all words up to the next flag, or one behind `=`.
    values: usize,
}

/// See [`Flag::values`].
const MANY: usize = usize::MAX;

const fn flag(names: &'static [&'static str], values: usize) -> Flag {
    Flag { names, values }
}

/// A flag that was given: its first name, and its values.
type Given<'a> = (&'static str, Vec<&'a str>);

/// Takes a command line apart: flags, and the words that belong to none. With `command_ends`, everything from the first such
/// word on is one command line; so is what follows `--`.
fn parsed<'a>(
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
fn refused(flag: &str, why: &str) -> Failure {
    Failure::usage(format!("{flag}: {why}"))
}

/// A duration of theirs: a number of milliseconds.
fn milliseconds(flag: &str, value: &str) -> Result<String, Failure> {
    match value.parse::<u64>() {
        Ok(number) => Ok(format!("{number}ms")),
        Err(_) => Err(refused(flag, &format!("`{value}` is not a number of milliseconds"))),
    }
}

/// Takes `NAME: VALUE` or `NAME:VALUE`. Variables are filled in when the bridge starts, so that none is shown.
fn header(text: &str) -> Result<String, Failure> {
    if text.contains(':') { Ok(text.to_owned()) } else { Err(refused("--header", "expected 'Name: value'")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_meant_by_the_name_of_a_link_or_the_first_word() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        for (line, want) in [
            ("/bin/supergateway --stdio x", Some((Foreign::Supergateway, 2))),
            ("linchpin mcp-remote https://x", Some((Foreign::McpRemote, 1))),
            ("/bin/mcp-proxy.exe x", Some((Foreign::McpProxy, 1))),
            ("linchpin bridge mcp-proxy", None),
            ("linchpin", None),
        ] {
            assert_eq!(Foreign::called(&words(line)).map(|(foreign, rest)| (foreign, rest.len())), want, "{line}");
        }
    }
}
