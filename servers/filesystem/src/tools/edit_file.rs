//! `edit_file`: finds and replaces text, and returns a diff.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::diff::{diff_text, fenced, with_endings};
use crate::error::io_fault;
use crate::inner::Inner;
use crate::open::read_whole;
use crate::os::{self, Temp};
use crate::resolve::Last;
use crate::text::{self, Editable};

pub(crate) const EDIT_FILE: ToolSpec = ToolSpec::writes(
        "edit_file",
        "Edit File",
        "write",
        "Replaces text in a file and returns a diff. Each edit replaces the first occurrence of oldText: exact, or lines that differ only in leading and trailing whitespace. Nothing is written if any edit fails.",
    ).destructive();

/// Arguments of `edit_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditFile {
    /// The file to edit.
    pub path: String,
    /// The replacements, in order.
    pub edits: Vec<Edit>,
    /// Only return the diff
    #[serde(default)]
    pub dry_run: bool,
}

/// One replacement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// Text to search for - must match exactly
    pub old_text: String,
    /// Text to replace with
    pub new_text: String,
    /// Replace every occurrence
    #[serde(default)]
    pub replace_all: bool,
    /// Fail unless it occurs this often
    #[serde(default)]
    pub expected_occurrences: Option<u64>,
}

/// The structured content of `edit_file` in addition to the diff.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EditMore {
    /// A report for each edit that matched more than once or only with whitespace ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EditReport>,
    /// The encoding of the file, if it is not UTF-8; it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
}

/// How one edit matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EditReport {
    /// The index of the edit, from 0.
    pub index: usize,
    /// Occurrences of its text.
    pub occurrences: usize,
    /// Occurrences replaced.
    pub replaced: usize,
    /// Whether the match was ambiguous.
    pub ambiguous: bool,
    /// Whether it matched only line by line with leading and trailing whitespace ignored.
    pub ignored_blanks: bool,
}

impl Inner {
    pub(crate) fn edit_file(&self, args: &EditFile) -> Result<Answer<EditMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let shown = place.shown();
        place.existing("open")?;
        let _turn = self.turns.take(&place.path());
        let (file, meta, bytes) = read_whole(&place, self.config.max_read_bytes, "edit a smaller file")?;
        let editable = Editable::new(&bytes, &shown)?;
        let before = text::to_lf(&editable.text);
        let (after, reports) = apply(&before, &args.edits, self.config.compat)?;
        let (diff, lines) = diff_text(&shown, &before, &after);
        let answer = Answer::new(
            fenced(&diff),
            EditMore {
                edits: reports.into_iter().filter(|report| report.ambiguous || report.ignored_blanks).collect(),
                encoding: editable.coding.name(),
            },
        );
        if args.dry_run || after == before {
            return Ok(answer);
        }
        let stored = if self.config.compat { after } else { with_endings(&editable.text, &lines, &after) };
        let Some(bytes) = editable.coding.encode(&stored) else {
            return Err(ToolError::new(format!(
                "The new text contains characters that the file's encoding ({}) cannot represent: {shown}",
                editable.coding.name().unwrap_or_default()
            ))
            .hint("Use other characters, or replace the whole file with write_file, which stores UTF-8."));
        };
        let failed = |error| io_fault(error, "write", &shown);
        let mut temp = Temp::create(place.dir(), place.name(), true).map_err(failed)?;
        temp.write(&bytes).map_err(failed)?;
        temp.dress_as(&file, &meta).map_err(failed)?;
        // Changes by another program since the read must not be lost.
        let now = os::meta(place.dir(), place.name()).map_err(failed)?;
        if (now.identity, now.size, now.modified) != (meta.identity, meta.size, meta.modified) {
            return Err(ToolError::new(format!(
                "The file was changed by another program while it was edited: {shown}"
            ))
            .hint("Nothing was changed. Read the file again and repeat the edit on its current content."));
        }
        temp.replace().map_err(failed)?;
        Ok(answer)
    }
}

/// Applies all edits to LF text.
fn apply(before: &str, edits: &[Edit], allow_empty: bool) -> Result<(String, Vec<EditReport>), ToolError> {
    let mut text = before.to_owned();
    let mut reports = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let (old, new) = (text::to_lf(&edit.old_text), text::to_lf(&edit.new_text));
        if old.is_empty() && !allow_empty {
            return Err(ToolError::new(format!("oldText of edit {index} is empty")).hint(
                "To insert, put an adjacent line into oldText and repeat it in newText; for an empty file use write_file.",
            ));
        }
        let exact = if old.is_empty() { 1 } else { text.matches(&old).count() };
        let found = if exact > 0 { Vec::new() } else { loose_matches(&text, &old) };
        let occurrences = exact.max(found.len());
        if occurrences == 0 {
            let error = ToolError::new(format!("Could not find exact match for edit:\n{}", edit.old_text));
            return Err(error.hint("Nothing was changed. Read the file again and copy oldText from it."));
        }
        if edit.expected_occurrences.is_some_and(|expected| expected != occurrences as u64) {
            return Err(ToolError::new(format!(
                "oldText of edit {index} occurs {occurrences} times, not expectedOccurrences times"
            ))
            .hint("Nothing was changed. Add surrounding lines to oldText, or correct expectedOccurrences."));
        }
        let replaced = if edit.replace_all { occurrences } else { 1 };
        text = match exact {
            0 => replace_loose(&text, &old, &new, &found[..replaced]),
            _ if edit.replace_all => text.replace(&old, &new),
            _ => text.replacen(&old, &new, 1),
        };
        let ambiguous = occurrences > replaced && edit.expected_occurrences.is_none();
        reports.push(EditReport { index, occurrences, replaced, ambiguous, ignored_blanks: exact == 0 });
    }
    Ok((text, reports))
}

/// The lines at which `old` matches with leading and trailing whitespace of each line ignored; matches do not overlap.
fn loose_matches(text: &str, old: &str) -> Vec<usize> {
    let wanted: Vec<&str> = old.split('\n').map(str::trim).collect();
    let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + wanted.len() <= lines.len() {
        if lines[at..at + wanted.len()] == wanted[..] {
            found.push(at);
            at += wanted.len();
        } else {
            at += 1;
        }
    }
    found
}

/// Replaces the matches at the given lines and indents the new lines like the file.
fn replace_loose(text: &str, old: &str, new: &str, at: &[usize]) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let old: Vec<&str> = old.split('\n').collect();
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut line = 0;
    let mut next = at.iter().copied().peekable();
    while line < lines.len() {
        if next.next_if_eq(&line).is_none() {
            out.push(lines[line].to_owned());
            line += 1;
            continue;
        }
        let indent = indent_of(lines[line]);
        out.extend(new.split('\n').enumerate().map(|(index, new)| {
            let body = &new[indent_of(new).len()..];
            if index == 0 {
                return format!("{indent}{body}");
            }
            let was = old.get(index).map_or("", |old| indent_of(old));
            let is = indent_of(new);
            if was.is_empty() || is.is_empty() {
                return new.to_owned();
            }
            let deeper = is.chars().count().saturating_sub(was.chars().count());
            format!("{indent}{}{body}", " ".repeat(deeper))
        }));
        line += old.len();
    }
    out.join("\n")
}

fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
