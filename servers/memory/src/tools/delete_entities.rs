//! `delete_entities`.

use crate::answer::Warnings;
use crate::changes::{self, Deleted};
use crate::server::Memory;
use crate::store::Done;
use linchpin::Error;
use linchpin_kit::{ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const DELETE_ENTITIES: ToolSpec =
    ToolSpec::writes("delete_entities", "Delete Entities", "delete", "Deletes entities and all their relations.")
        .destructive()
        .idempotent();

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteEntities {
    /// The names of the entities.
    entity_names: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Deletions {
    /// Always true.
    success: bool,
    /// Same as the text.
    message: String,
    /// The number of deleted records.
    deleted: Deleted,
    /// Problems of the memory file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

/// The result of a deletion.
pub(super) fn deletions(memory: &Memory, what: &str, mut done: Done<Deleted>) -> ToolOutput<Deletions> {
    let message = format!("{what} deleted successfully");
    let warnings = done.warnings(memory);
    ToolOutput::ours(message.clone(), Deletions { success: true, message, deleted: done.value, warnings })
}

pub(super) async fn delete_entities(memory: &Memory, args: DeleteEntities) -> Result<ToolOutput<Deletions>, Error> {
    let done = memory
        .change(DELETE_ENTITIES.name, move |_, edit| Ok(changes::delete_entities(edit, &args.entity_names)))
        .await?;
    Ok(deletions(memory, "Entities", done))
}
