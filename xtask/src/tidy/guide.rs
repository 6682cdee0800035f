//! Rules about Markdown: links, and the guide of `docs/guide`.

use super::{Finding, Tree};
use crate::guide::{GUIDE, foreign::LANGUAGES};
use crate::markdown::{anchors, beside, blocks, links as links_of};

/// Where the doc tests are that compile the guide's chapters.
const COMPILED_BY: &str = "examples/lib.rs";

/// Relative links that lead nowhere, in any document.
pub(super) fn links(tree: &Tree<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in tree.files.iter().filter(|path| path.ends_with(".md")) {
        let Some(text) = tree.read(path) else {
            continue;
        };
        for (line, target) in links_of(&text) {
            if let Some(what) = broken(tree, path, &target) {
                found.push(Finding::new(format!("{path}:{line}"), what));
            }
        }
    }
    found
}

/// Why a link of the document `path` leads nowhere.
fn broken(tree: &Tree<'_>, path: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { path.to_owned() } else { beside(path, file) };
    if !tree.root.join(&file).exists() {
        return Some(format!("`{target}` is not there"));
    }
    if anchor.is_empty() || !file.ends_with(".md") {
        return None;
    }
    let text = tree.read(&file).unwrap_or_default();
    (!anchors(&text).iter().any(|slug| slug == anchor)).then(|| format!("`{file}` has no heading `#{anchor}`"))
}

/// Chapters that the summary does not name, or whose code no doc test compiles.
pub(super) fn summary(tree: &Tree<'_>) -> Vec<Finding> {
    let place = format!("{GUIDE}SUMMARY.md");
    let Some(summary) = tree.read(&place) else {
        return vec![Finding::new(place, "is missing")];
    };
    let named: Vec<String> = links_of(&summary).into_iter().map(|(_, target)| target).collect();
    let compiled = tree.read(COMPILED_BY).unwrap_or_default();
    let mut found = Vec::new();
    for file in tree.files.iter().filter_map(|path| path.strip_prefix(GUIDE)).filter(|file| *file != "SUMMARY.md") {
        if named.iter().filter(|name| *name == file).count() != 1 {
            found.push(Finding::new(format!("{GUIDE}{file}"), "is not once in SUMMARY.md"));
        }
        if !compiled.contains(&format!("\"{file}\"")) {
            found.push(Finding::new(format!("{GUIDE}{file}"), format!("is not among the chapters of {COMPILED_BY}")));
        }
    }
    found
}

/// Examples that the guide's list does not link.
pub(super) fn examples(tree: &Tree<'_>) -> Vec<Finding> {
    let place = format!("{GUIDE}examples.md");
    let listed = links_of(&tree.read(&place).unwrap_or_default());
    let listed: Vec<String> = listed.into_iter().map(|(_, target)| beside(&place, &target)).collect();
    let programs = tree.files.iter().filter(|path| path.starts_with("examples/") && path.ends_with("/main.rs"));
    let missing = programs.filter(|path| !listed.contains(path));
    missing.map(|path| Finding::new(&place, format!("does not list {path}"))).collect()
}

/// Code blocks of README and the guide that nothing checks.
pub(super) fn code(tree: &Tree<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let guide = |path: &&String| (path.starts_with(GUIDE) && path.ends_with(".md")) || *path == "README.md";
    for path in tree.files.iter().filter(guide) {
        for block in blocks(&tree.read(path).unwrap_or_default()) {
            if let Some(what) = unchecked(&block.language, &block.code) {
                found.push(Finding::new(format!("{path}:{}", block.line), what));
            }
        }
    }
    found
}

/// Why a block is not checked, or that it is wrong.
fn unchecked(language: &str, code: &str) -> Option<String> {
    let wrong = |error: String| Some(format!("is not valid {language}: {error}"));
    match language {
        // Compiled by doc tests; run, too, without `no_run`.
        "rust" | "rust,no_run" => None,
        // `console` is run and compared, command lines in `sh` are parsed: the stage `guide`.
        "console" | "sh" => None,
        "json" => serde_json::from_str::<serde_json::Value>(code).err().and_then(|error| wrong(error.to_string())),
        "toml" => code.parse::<toml::Table>().err().and_then(|error| wrong(error.message().to_owned())),
        // Also the stage `guide`.
        language if LANGUAGES.contains(&language) => None,
        language => Some(format!("nothing checks a block of `{language}`; see xtask/src/tidy/guide.rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_nothing_checks_are_found() {
        let wrong = |language, code| unchecked(language, code).is_some();
        assert!(!wrong("json", "{}") && wrong("json", "{") && !wrong("toml", "[a]\nb = 1") && wrong("toml", "b"));
        assert!(!wrong("rust,no_run", "") && wrong("rust,ignore", "") && wrong("", "x"));
    }
}
