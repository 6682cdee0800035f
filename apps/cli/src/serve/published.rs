//! The program under the name of a published server: `mcp-server-NAME`.

use super::native::Entry;
use super::servers::ENTRIES;
use crate::fail::Failure;
use clap::{Arg, ArgAction, Command};
use linchpin_kit::Vars;
use std::ffi::{OsStr, OsString};
use std::path::Path;

impl Entry {
    /// The server that the program was called as: `mcp-server-NAME`. A name of that form that is not a server's is an error.
    pub(crate) fn called_as(program: &OsStr) -> Result<Option<&'static Entry>, Failure> {
        let file = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
        let file = file.strip_suffix(".exe").unwrap_or(file);
        let Some(name) = file.strip_prefix("mcp-server-") else { return Ok(None) };
        let unknown = || {
            let names: Vec<String> = ENTRIES.iter().map(|entry| format!("mcp-server-{}", entry.published_as)).collect();
            Failure::usage(format!("linchpin has no server named {file}"))
                .hint(format!("known names: {}", names.join(", ")))
        };
        ENTRIES.iter().find(|entry| entry.published_as == name).map(Some).ok_or_else(unknown)
    }

    /// Its whole command line under the published name, and what was given in its words.
    pub(crate) fn published(&self, given: Vec<OsString>, vars: Vars<'_>) -> (Command, Vec<OsString>) {
        let name = format!("mcp-server-{}", self.published_as);
        let examples = self.examples.replace(&format!("linchpin serve {}", self.name), &name);
        let verbose =
            Arg::new("verbose").short('v').long("verbose").action(ArgAction::Count).help("Show more on standard error");
        let command = self.command().display_name(&name).bin_name(name);
        let command = command.before_help(format!("Examples:\n{examples}")).arg(verbose).no_binary_name(true);
        (command, (self.original)(given, vars))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_told_apart() {
        let named = |program: &str| Entry::called_as(OsStr::new(program)).map(|entry| entry.map(|entry| entry.name));
        for entry in ENTRIES {
            let name = entry.published_as;
            for program in [format!("mcp-server-{name}"), format!("/usr/bin/mcp-server-{name}.exe")] {
                assert_eq!(named(&program).unwrap(), Some(entry.name));
            }
        }
        for program in ["linchpin", "/x/mcp-server-git/linchpin", "mcp-serve", ""] {
            assert_eq!(named(program).unwrap(), None, "{program}");
        }
        assert!(named("mcp-server-zebra").is_err());
    }
}
