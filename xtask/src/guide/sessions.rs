//! Blocks of `console`: `$ ` and a command, then what it prints. `…` stands for any text.
//! And command lines in blocks of `sh`: the program must know each flag, and have the servers that `serve` starts.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Shell, documents, note};
use crate::context::Context;
use crate::markdown::{Block, blocks};
use crate::report::Report;

pub(super) fn check(context: &Context, shell: &Shell, write: bool, report: &mut Report) -> Result<()> {
    let known: Value = serde_json::from_str(&shell.run("linchpin servers --json", &[])?.output)?;
    let known = known["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (path, mut text) in documents(context)? {
        for Block { line, language, code } in blocks(&text.clone()) {
            let place = format!("{path}:{line}");
            match language.as_str() {
                "console" => {
                    let now = session(shell, &code, write)?;
                    let same = now == code;
                    if write && !same {
                        text = text.replacen(&code, &now, 1);
                    }
                    let wrong = (!same && !write).then(|| format!("--- written\n{code}--- now\n{now}"));
                    note(report, &place, wrong);
                }
                "sh" => {
                    for command in command_lines(&code) {
                        let done = shell.run(&command, &[])?;
                        let unknown =
                            named(&command).into_iter().find(|name| known.iter().all(|one| one["name"] != *name));
                        let wrong = match unknown {
                            Some(name) => Some(format!("$ {command}\nthere is no server {name}")),
                            None => (!done.ok).then(|| format!("$ {command}\n{}", done.output)),
                        };
                        note(report, &format!("{place}: the program understands its command line"), wrong);
                    }
                }
                _ => {}
            }
        }
        if write {
            std::fs::write(context.root.join(&path), text).with_context(|| format!("cannot write {path}"))?;
        }
    }
    Ok(())
}

/// The block with what its commands print now, where that is something else.
fn session(shell: &Shell, code: &str, write: bool) -> Result<String> {
    let mut now = String::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        now.push_str(line);
        now.push('\n');
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            expected.push_str(line);
            expected.push('\n');
        }
        let printed = shell.run(command, &[])?.output;
        let fill = write && expected == "…\n";
        now.push_str(if !fill && fits(&expected, &printed) { &expected } else { &printed });
    }
    Ok(now)
}

/// Whether a text is as written, where `…` is any text.
fn fits(written: &str, text: &str) -> bool {
    let mut parts = written.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            // The line end after a `…` that stands for nothing.
            return rest.ends_with(part) || (part == "\n" && rest.is_empty());
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// The program's command lines in a block, each with `--help` at the end of its own words, where it is read last.
pub(super) fn command_lines(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in code.replace("\\\n", " ").lines() {
        let line = line.split("  #").next().unwrap_or_default().trim();
        let words = line.strip_prefix("cargo run -p linchpin-cli -- ").map(|rest| format!("linchpin {rest}"));
        let words = match words {
            Some(words) => words,
            None if line.starts_with("linchpin ") => line.to_owned(),
            None => match line.find("-- linchpin ") {
                Some(at) => line[at + 3..].to_owned(),
                None => continue,
            },
        };
        found.push(match words.split_once(" -- ") {
            Some((own, others)) => format!("{own} --help -- {others}"),
            None => format!("{words} --help"),
        });
    }
    found
}

/// The servers that a command line starts: a bare name and what belongs to it, or several of `NAME`, `NAME:VALUE` and
/// `OTHER=NAME:VALUE`, in quotes with flags of their own, before the options for all of them.
fn named(command: &str) -> Vec<String> {
    let words = command.strip_prefix("linchpin serve ").unwrap_or_default().replace('"', "'");
    let is_one = words.split(' ').next().is_some_and(|first| !first.contains([':', '=', '\'']));
    let mut own = Vec::new();
    for (at, part) in words.split('\'').enumerate() {
        // In quotes, the name comes first.
        let take = if at % 2 == 1 { 1 } else { usize::MAX };
        own.extend(part.split_whitespace().take(take));
    }
    let own = own.into_iter().skip_while(|word| *word == "-v").take_while(|word| !word.starts_with('-'));
    let own = own.take(if is_one { 1 } else { usize::MAX });
    let own = own.filter(|word| !word.contains("://"));
    // `OTHER=NAME:VALUE`; the value may hold both signs.
    own.map(|word| {
        let before = word.split(':').next().unwrap_or_default();
        before.split_once('=').map_or(before, |(_, name)| name).to_owned()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_stand_for_any_text() {
        assert!(fits("a\n…\nd\n", "a\nb\nc\nd\n") && fits("at …, \"b\"\n", "at 12:30, \"b\"\n"));
        assert!(fits("…\n", "anything\n") && fits("…\n", "") && fits("", ""));
        assert!(!fits("a…\n", "b\n") && !fits("a\n", "a\nb\n") && !fits("a…c…b\n", "axb\n"));
    }

    #[test]
    fn the_servers_of_a_command_line_are_found() {
        assert_eq!(named("linchpin serve filesystem ~/notes --help"), ["filesystem"]);
        assert_eq!(named("linchpin serve filesystem:. n=git:. memory --help"), ["filesystem", "git", "memory"]);
        assert_eq!(named("linchpin serve notes=sqlite:a.db 'git . --allow-remote' --read-only"), ["sqlite", "git"]);
        assert_eq!(named("linchpin tools x --help"), [""; 0]);
    }

    #[test]
    fn the_programs_words_end_before_those_of_others() {
        let code = "linchpin tools -- npx x  # lists\nclaude mcp add n -- linchpin serve git .\ncargo build\n\
                    cargo run -p linchpin-cli -- serve time \\\n    --http 1:2\n";
        let lines = command_lines(code);
        assert_eq!(lines[0], "linchpin tools --help -- npx x");
        assert_eq!(lines[1], "linchpin serve git . --help");
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>().join(" "), "linchpin serve time --http 1:2 --help");
    }
}
