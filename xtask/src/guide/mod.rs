//! `cargo xtask guide`: what README and the guide show is what happens.
//!
//! Their commands are run and compared, their command lines are parsed by the program, their requests with curl are sent, the
//! picture is made anew, and the examples are started. That code compiles is the doc tests' affair, that links lead somewhere is tidy's.
//!
//! ```text
//! mod ─► book, curl, picture, foreign ─► examples, sessions ─► shell
//! ```

mod book;
mod curl;
mod examples;
pub(crate) mod foreign;
mod picture;
mod sessions;
mod shell;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use crate::context::{Context, Flags};
use crate::report::{Counts, Report};
use crate::world;
use shell::Shell;

/// Where the guide's chapters are.
pub(crate) const GUIDE: &str = "docs/guide/src/";

/// `cargo xtask guide`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &[], &["--write", "--html"])?;
    if flags.has("--html") {
        return Ok(book::html(context)?.print());
    }
    world::with_examples(context)?;
    Ok(run(context, flags.has("--write"))?.print())
}

/// The stage `guide`.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let mut report = run(context, false)?;
    if context.all {
        report.absorb(book::html(context)?);
    }
    Ok(report)
}

fn run(context: &Context, write: bool) -> Result<Report> {
    let mut report = Report::default();
    let shell = Shell::new(context)?;
    sessions::check(context, &shell, write, &mut report)?;
    foreign::check(context, &shell, &mut report)?;
    curl::check(context, &shell, &mut report)?;
    picture::check(context, &shell, write, &mut report)?;
    examples::check(context, &shell, &mut report)?;
    Ok(report)
}

/// README and the chapters of the guide, by path.
fn documents(context: &Context) -> Result<BTreeMap<String, String>> {
    let mut paths = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(context.root.join(GUIDE)).context("cannot read the guide")? {
        paths.push(format!("{GUIDE}{}", entry?.file_name().to_string_lossy()));
    }
    let read = |path: String| {
        let text = std::fs::read_to_string(context.root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
}

/// Notes the outcome of one check.
fn note(report: &mut Report, what: &str, wrong: Option<String>) {
    report.counts.add(Counts::one(wrong.is_none()));
    if let Some(wrong) = wrong {
        report.text.push_str(&format!("not so: {what}\n{}\n", wrong.trim_end()));
    }
}
