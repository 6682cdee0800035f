//! `cargo xtask tidy`: the invariants of the tree that no compiler checks.
//!
//! Each rule is a function from text to findings, so that it is tested with small strings.

mod docs;
mod face;
mod guide;
mod layers;
mod manifests;
mod requirements;
mod rules;
mod servers;
mod source;
mod words;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::context::{Context, Flags};
use crate::report::{Counts, Report};
use source::Source;

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// `path` or `path:line`, relative to the repository.
    place: String,
    /// What is wrong and what to do instead.
    what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { place: place.into(), what: what.into() }
    }
}

/// The tree a rule looks at.
struct Tree<'a> {
    root: &'a Path,
    /// Tracked files and new ones that are not ignored, relative to the root.
    files: Vec<String>,
    /// Rust sources of the workspace, without tests.
    sources: Vec<Source>,
}

impl Tree<'_> {
    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }
}

/// A rule: its name, and the findings it has about a tree.
type Rule = (&'static str, fn(&Tree<'_>) -> Vec<Finding>);

const RULES: &[Rule] = &[
    ("no crate depends on what it must not know", |tree| manifests::check(tree)),
    ("files import downwards, and few import one another", layers::check),
    ("most items that are not private are restricted to their crate", face::check),
    ("files are at most 800 production lines long", |tree| rules::each(tree, rules::long_files)),
    ("functions are at most 100 lines long", |tree| rules::each(tree, rules::long_functions)),
    ("no todo!, unimplemented!, dbg! or unwrap() outside tests", |tree| rules::each(tree, rules::banned_calls)),
    ("only the codecs name an era or compare revisions", |tree| rules::each(tree, rules::era_words)),
    ("a revision is asked for what it has, not whether it is stateless", |tree| rules::each(tree, rules::stateless)),
    ("messages are read, not searched for names", |tree| rules::each(tree, rules::text_searches)),
    ("no crate touches what its room forbids", |tree| rules::each(tree, rules::forbidden_words)),
    ("the facade only re-exports", |tree| rules::each(tree, rules::facade)),
    ("servers are small and stand on the kit", servers::check),
    ("servers know no wire and no era and define nothing of the kit", |tree| rules::each(tree, servers::foreign_code)),
    ("no machine paths in tracked files", docs::machine_paths),
    ("no retired words", words::retired),
    ("every limit is in docs/LIMITS.md", docs::limits),
    ("README code is compiled by the facade's doc tests", docs::readme),
    ("relative links in documents lead somewhere", guide::links),
    ("every chapter of the guide is in its summary and its doc tests", guide::summary),
    ("every example is in the guide's list", guide::examples),
    ("every code block of README and the guide is checked", guide::code),
    ("docs/REQUIREMENTS.md names proofs that exist", requirements::check),
    ("docs/ATTACKS.md and docs/TRANSLATION.md name proofs that exist", requirements::attacks),
];

/// `cargo xtask tidy`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    Flags::parse(words, &[], &[])?;
    Ok(check(context)?.print())
}

/// Applies every rule; each is one check.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let files = files(&context.root)?;
    let sources = source::production(&context.root, &files)?;
    let tree = Tree { root: &context.root, files, sources };
    let mut report = Report::default();
    for (name, rule) in RULES {
        let findings = rule(&tree);
        report.counts.add(Counts::one(findings.is_empty()));
        if !findings.is_empty() {
            report.text.push_str(&format!("not so: {name}\n"));
        }
        for Finding { place, what } in findings {
            report.text.push_str(&format!("  {place}: {what}\n"));
        }
    }
    if !requirements::checklist(&tree).is_file() {
        report.counts.skipped += 1;
        report
            .skips
            .push("docs/REQUIREMENTS.md against the whole checklist: that file is not beside the repository".into());
    }
    Ok(report)
}

fn files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .context("git cannot be started")?;
    if !output.status.success() {
        bail!("git cannot list the files:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut files: Vec<String> = String::from_utf8_lossy(&output.stdout)
        .split('\0')
        .filter(|path| !path.is_empty() && root.join(path).is_file())
        .map(String::from)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
