//! `linchpin man`: writes manual pages.

use crate::fail::Failure;
use clap::{Args, Command, ValueHint};
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory for the pages, for example ~/.local/share/man/man1. Created if missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

/// Writes a page for this command and each of its subcommands: `linchpin.1`, `linchpin-serve.1`, `linchpin-serve-git.1`.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let written = std::fs::create_dir_all(&args.dir).and_then(|()| pages(&args.dir, command, "linchpin"));
    written.map_err(|e| Failure::new(format!("{}: {e}", args.dir.display())))
}

fn pages(dir: &Path, command: Command, name: &str) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        pages(dir, sub.clone(), &format!("{name}-{}", sub.get_name()))?;
    }
    let mut page = Vec::new();
    write_page(&mut page, command.display_name(name.to_owned()), name)?;
    // Every section that clap renders begins with these definitions.
    let page = String::from_utf8_lossy(&page);
    let body = page.replace(DEFINITIONS, "");
    std::fs::write(dir.join(format!("{name}.1")), format!("{DEFINITIONS}{body}"))
}

fn write_page(page: &mut Vec<u8>, mut command: Command, name: &str) -> io::Result<()> {
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let (examples, notes) = (text(command.get_before_help()), text(command.get_after_help()));
    let usage = command.render_usage().to_string();
    let has_subcommands = command.has_subcommands();
    let man = Man::new(command).title(name.to_owned()).manual("Linchpin Manual").source(format!("linchpin {VERSION}"));
    man.render_title(page)?;
    man.render_name_section(page)?;
    section(page, "SYNOPSIS", usage.strip_prefix("Usage: ").unwrap_or(&usage))?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if has_subcommands {
        man.render_subcommands_section(page)?;
    }
    section(page, "EXAMPLES", examples.strip_prefix("Examples:\n").unwrap_or(&examples))?;
    section(page, "NOTES", &notes)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

const DEFINITIONS: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// A section of lines that are shown as they are.
fn section(page: &mut Vec<u8>, heading: &str, text: &str) -> io::Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    writeln!(page, ".SH {heading}\n.nf")?;
    for line in text.trim_end().lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        let control = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        writeln!(page, "{control}{line}")?;
    }
    writeln!(page, ".fi")
}
