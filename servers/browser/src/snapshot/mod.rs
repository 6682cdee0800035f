//! Accessibility snapshots: what is on a page, as text for a model, with references to its elements.
//!
//! Files import downwards: `diff`, `text`, `refs`, `tree`, `ax`. Nothing here knows of a browser: trees come in, text goes
//! out.

mod ax;
mod diff;
mod refs;
mod text;
mod tree;

#[cfg(test)]
mod tests;

pub(crate) use ax::{AxTree, Frame};
pub(crate) use refs::Known;
pub(crate) use text::{SNAPSHOT_BYTES_MAX, quoted};

use diff::Diff;
use linchpin_kit::ToolError;
use refs::Refs;
use text::{Line, Part};
use tree::Tree;

/// The snapshots of a tab.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    refs: Refs,
    /// The last tree, to look elements up in.
    tree: Tree,
    /// What the client saw last: the whole page.
    shown: Option<Shown>,
    /// What the last cursor continues.
    paged: Vec<Line>,
    round: u32,
}

#[derive(Debug)]
struct Shown {
    document: String,
    lines: Vec<Line>,
}

/// What of a page is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Want {
    /// Only this element and what is inside.
    pub(crate) only: Option<u32>,
    /// Only so many levels.
    pub(crate) depth: Option<usize>,
}

/// A snapshot, or what changed since the last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Its text.
    pub(crate) text: String,
    /// How it relates to the last one.
    pub(crate) kind: Kind,
    /// Where it continues.
    pub(crate) next: Option<String>,
    /// How many lines are left out after it.
    pub(crate) left_out: usize,
    /// Whether the page has more elements than a snapshot reads.
    pub(crate) truncated: bool,
}

/// How a snapshot relates to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It does not: it is whole.
    Whole,
    /// It is what changed.
    Changes,
    /// Nothing changed.
    Same,
}

impl Snapshots {
    /// Reads the page anew, so that references are up to date.
    pub(crate) fn update(&mut self, frames: &[Frame]) {
        let mut tree = tree::read(frames);
        self.refs.assign(&mut tree);
        self.tree = tree;
    }

    /// The element with this number.
    ///
    /// # Errors
    /// When no snapshot ever had it, or it is gone.
    pub(crate) fn known(&self, reference: u32) -> Result<&Known, ToolError> {
        self.refs.get(reference).ok_or_else(|| {
            ToolError::not_found(format!("No snapshot of this tab has an element e{reference}"))
                .hint("Use a reference of the last browser_snapshot of this tab.")
        })
    }

    /// The same, as of the last update.
    ///
    /// # Errors
    /// When no snapshot ever had it, or it is gone.
    pub(crate) fn current(&self, reference: u32) -> Result<&Known, ToolError> {
        let known = self.known(reference)?;
        if self.refs.is_current(reference) { Ok(known) } else { Err(stale(reference, known)) }
    }

    /// The number of the element that shows this DOM node.
    pub(crate) fn reference_of(&self, frame: &str, backend: i64) -> Option<u32> {
        let is = |node: &&tree::Node| node.backend == Some(backend) && self.tree.frames[node.frame].id == frame;
        self.tree.nodes.iter().find(is)?.reference
    }

    /// A whole snapshot of what was read last.
    ///
    /// # Errors
    /// When the wanted element is gone.
    pub(crate) fn whole(&mut self, want: Want) -> Result<Snapshot, ToolError> {
        let only = match want.only {
            None => None,
            Some(reference) => {
                self.current(reference)?;
                self.tree.find(reference)
            }
        };
        let lines = text::lines(&self.tree, only, want.depth);
        if want.only.is_none() {
            let all = if want.depth.is_some() { text::lines(&self.tree, None, None) } else { lines.clone() };
            self.shown = Some(Shown { document: self.document(), lines: all });
        }
        self.round += 1;
        self.paged = lines;
        Ok(self.shown_from(0))
    }

    /// The next part of the last whole snapshot.
    ///
    /// # Errors
    /// When the cursor belongs to another snapshot.
    pub(crate) fn more(&self, cursor: &str) -> Result<Snapshot, ToolError> {
        Ok(self.shown_from(text::start(cursor, self.round, self.paged.len())?))
    }

    /// What changed since the client last saw the page, or the whole page if that says it better.
    pub(crate) fn changes(&mut self) -> Snapshot {
        let document = self.document();
        let lines = text::lines(&self.tree, None, None);
        let known = self.shown.take().filter(|shown| shown.document == document);
        let found = known.map_or(Diff::Everything, |shown| diff::diff(&shown.lines, &lines));
        self.shown = Some(Shown { document, lines: lines.clone() });
        let (kind, text) = match found {
            Diff::Same => (Kind::Same, String::new()),
            Diff::Changes(text) => (Kind::Changes, text),
            Diff::Everything => {
                self.round += 1;
                self.paged = lines;
                return self.shown_from(0);
            }
        };
        Snapshot { text, kind, next: None, left_out: 0, truncated: self.tree.truncated }
    }

    /// Forgets what the client saw, so that it is shown the whole page next time.
    pub(crate) fn forget_shown(&mut self) {
        self.shown = None;
    }

    /// The title of the page.
    pub(crate) fn title(&self) -> String {
        self.tree.title.clone()
    }

    fn document(&self) -> String {
        self.tree.frames.first().map(|frame| frame.document.clone()).unwrap_or_default()
    }

    fn shown_from(&self, start: usize) -> Snapshot {
        let Part { text, next, left_out } = text::part(&self.paged, start, SNAPSHOT_BYTES_MAX, self.round);
        Snapshot { text, kind: Kind::Whole, next, left_out, truncated: self.tree.truncated }
    }
}

/// The name in what `Accessibility.getPartialAXTree` returns of one node; none if it is not told of.
pub(crate) fn name_in(tree: &AxTree) -> Option<String> {
    tree.nodes.first().filter(|node| !node.ignored).map(tree::name_of)
}

/// The error for an element that became another: lists that scroll use their nodes again.
pub(crate) fn became(reference: u32, known: &Known, name: &str) -> ToolError {
    ToolError::conflict(format!("The element e{reference} has another name now, and may be another one"))
        .hint("If it is the right one nevertheless, call the tool again; otherwise take browser_snapshot.")
        .detail(format!("It was: {}\nIt is: {}", known.label(), quoted(name)))
}

/// The error for an element that is gone.
pub(crate) fn stale(reference: u32, known: &Known) -> ToolError {
    ToolError::conflict(format!("The reference e{reference} is stale: its element is no longer on the page"))
        .hint("Take browser_snapshot and use a reference of it.")
        .detail(format!("It was: {}", known.label()))
}
