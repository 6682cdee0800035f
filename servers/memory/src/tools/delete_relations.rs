//! `delete_relations`.

use super::create_relations::Relations;
use super::delete_entities::{Deletions, deletions};
use crate::changes;
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{ToolOutput, ToolSpec};

pub(crate) const DELETE_RELATIONS: ToolSpec = ToolSpec::writes(
    "delete_relations",
    "Delete Relations",
    "delete",
    "Deletes relations, given by their three parts.",
)
.destructive()
.idempotent();

pub(super) async fn delete_relations(memory: &Memory, args: Relations) -> Result<ToolOutput<Deletions>, Error> {
    let done = memory
        .change(DELETE_RELATIONS.name, move |_, edit| Ok(changes::delete_relations(edit, args.relations)))
        .await?;
    Ok(deletions(memory, "Relations", done))
}
