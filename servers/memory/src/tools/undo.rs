//! `memory_undo`.

use crate::answer::Warnings;
use crate::graph::Edit;
use crate::journal::{self, Journal};
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{ToolError, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const UNDO: ToolSpec = ToolSpec::writes(
    "memory_undo",
    "Undo Memory Change",
    "history",
    "Undoes the newest change, or the one with this number. Fails if its records were changed again since. To redo a change, \
     undo its undo.",
).extra().on_request()
.destructive();

#[derive(Deserialize, JsonSchema)]
pub(super) struct Undo {
    /// The number of the change (default: the newest).
    id: Option<u64>,
}

/// The result of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Undone {
    /// The number of the change in the history.
    pub(crate) id: u64,
    /// The tool that made it.
    pub(crate) tool: String,
    /// The number of restored records.
    pub(crate) records: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct UndoneAnswer {
    /// The result of an undo.
    #[serde(flatten)]
    undone: Undone,
    /// Problems of the memory file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

pub(super) async fn undo(memory: &Memory, args: Undo) -> Result<ToolOutput<UndoneAnswer>, Error> {
    let mut done =
        memory.change(UNDO.name, move |inner, edit| undo_change(edit, &inner.store.journal(), args.id)).await?;
    let warnings = done.warnings(memory);
    let Undone { id, tool, records } = &done.value;
    let text = format!("Change {id} ({tool}) was undone: {records} records restored.");
    Ok(ToolOutput::ours(text, UndoneAnswer { undone: done.value, warnings }))
}

/// Undoes this change, or the newest one that is neither undone nor an undo itself.
fn undo_change(edit: &mut Edit, journal: &Journal, id: Option<u64>) -> Result<Undone, ToolError> {
    if journal.keep == 0 {
        return Err(ToolError::new("The history is disabled").hint("The operator can enable it with --history."));
    }
    let entries = journal.entries()?;
    let undone = journal::undone(&entries);
    let entry = match id {
        Some(id) => entries.iter().find(|entry| entry.id == id).ok_or_else(|| {
            ToolError::not_found(format!("Change {id} is not in the history")).hint("memory_history lists them.")
        })?,
        None => entries
            .iter()
            .rev()
            .find(|entry| entry.undoes.is_none() && !undone.contains(&entry.id))
            .ok_or_else(|| ToolError::not_found("There is nothing to undo"))?,
    };
    if undone.contains(&entry.id) {
        return Err(ToolError::conflict(format!("Change {} is already undone", entry.id))
            .hint("To redo it, undo the change that undid it; memory_history lists them."));
    }
    let changes = entry.changes.as_ref().ok_or_else(|| {
        ToolError::new(format!("Change {} was too large for the history and cannot be undone", entry.id))
            .hint("Ask the user to check the backups beside the memory file.")
    })?;
    if !edit.undo(changes) {
        return Err(ToolError::conflict(format!(
            "Change {} cannot be undone: its records were changed again since",
            entry.id
        ))
        .hint("Nothing was saved. Undo the later changes first; memory_history lists them."));
    }
    edit.undoes = Some(entry.id);
    Ok(Undone { id: entry.id, tool: entry.tool.clone(), records: changes.len() })
}
