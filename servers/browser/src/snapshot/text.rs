//! Snapshots as text: a line for each element, indented as they are nested.
//!
//! What the page says stands in double quotes, with quotes and line breaks escaped, so that a page cannot write lines or
//! references of ours.

use super::tree::{Node, Tree};
use linchpin_kit::{ToolError, unknown_cursor};
use std::fmt::Write as _;
use std::ops::Range;

/// Most bytes of a snapshot in a result: about 10,000 tokens.
pub(crate) const SNAPSHOT_BYTES_MAX: usize = 40_000;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// How far it is indented.
    pub(crate) depth: usize,
    /// Without indentation.
    pub(crate) text: String,
    /// The element that it is about.
    pub(crate) reference: Option<u32>,
}

/// The lines of a page, or of one of its elements and what is inside, down to a depth.
pub(crate) fn lines(tree: &Tree, only: Option<usize>, depth_max: Option<usize>) -> Vec<Line> {
    let ends = tree.ends();
    let range: Range<usize> = only.map_or(0..tree.nodes.len(), |index| index..ends[index]);
    let base = only.map_or(0, |index| tree.nodes[index].depth);
    let mut lines = Vec::with_capacity(range.len());
    for index in range {
        let node = &tree.nodes[index];
        let depth = node.depth - base;
        if depth_max.is_some_and(|most| depth >= most) {
            continue;
        }
        let inside = ends[index] - index - 1;
        let left_out = if depth_max.is_some_and(|most| depth + 1 >= most) { inside } else { 0 };
        lines.push(Line { depth, text: line(node, left_out, inside > 0), reference: node.reference });
        if let Some(url) = node.url.as_deref().filter(|_| left_out == 0) {
            lines.push(Line { depth: depth + 1, text: format!("- /url: {}", quoted(url)), reference: None });
        }
    }
    lines
}

fn line(node: &Node, left_out: usize, more: bool) -> String {
    let mut out = format!("- {}", node.role);
    if !node.name.is_empty() {
        let _ = write!(out, " {}", quoted(&node.name));
    }
    if !node.states.is_empty() {
        let _ = write!(out, " {}", node.states);
    }
    if let Some(reference) = node.reference {
        let _ = write!(out, " [ref=e{reference}]");
    }
    if left_out > 0 {
        let _ = write!(out, " [{left_out} inside left out]");
    }
    match node.text.is_empty() {
        false => _ = write!(out, ": {}", quoted(&node.text)),
        true if left_out == 0 && (more || node.url.is_some()) => out.push(':'),
        true => {}
    }
    out
}

/// The text in double quotes, on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Part of a snapshot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its lines.
    pub(crate) text: String,
    /// Where it continues.
    pub(crate) next: Option<String>,
    /// How many lines come after it.
    pub(crate) left_out: usize,
}

/// As many lines from `start` on as fit.
pub(crate) fn part(lines: &[Line], start: usize, bytes_max: usize, round: u32) -> Part {
    let mut text = String::new();
    let mut end = start;
    for line in &lines[start.min(lines.len())..] {
        // Deep pages are not paid for by their indentation.
        let indent = 2 * line.depth.min(30);
        if end > start && text.len() + indent + line.text.len() + 1 > bytes_max {
            break;
        }
        let _ = writeln!(text, "{:indent$}{}", "", line.text);
        end += 1;
    }
    let left_out = lines.len().saturating_sub(end);
    Part { text, next: (left_out > 0).then(|| format!("{round}-{end}")), left_out }
}

/// The line where a cursor of this snapshot continues.
///
/// # Errors
/// When it belongs to another snapshot, or to none.
pub(crate) fn start(cursor: &str, round: u32, lines: usize) -> Result<usize, ToolError> {
    let (of, line) = cursor.split_once('-').ok_or_else(|| unknown_cursor(cursor))?;
    let (of, line): (u32, usize) = of.parse().ok().zip(line.parse().ok()).ok_or_else(|| unknown_cursor(cursor))?;
    if of != round || line >= lines {
        return Err(ToolError::conflict("The cursor belongs to an earlier snapshot")
            .hint("Take a new snapshot with browser_snapshot, without cursor."));
    }
    Ok(line)
}
