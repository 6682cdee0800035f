//! Command lines of other bridges, which become command lines of `linchpin bridge`.
//!
//! What cannot be had stops the start with a sentence; what has no effect here is told. Their open interfaces are not
//! followed: without a host, only this machine is listened to.

mod flags;
mod mcp_proxy;
mod mcp_remote;
#[cfg(test)]
mod readmes;
mod supergateway;

use crate::fail::Failure;
use crate::shell;
use crate::show::out::{Out, note};
use std::ffi::{OsStr, OsString};
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
