//! `delete_observations`.

use super::delete_entities::{Deletions, deletions};
use crate::changes::{self, Deletion};
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const DELETE_OBSERVATIONS: ToolSpec = ToolSpec::writes(
    "delete_observations",
    "Delete Observations",
    "delete",
    "Deletes facts from entities; pass them verbatim.",
)
.destructive()
.idempotent();

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteObservations {
    /// The observations to delete, by entity.
    deletions: Vec<Deletion>,
}

pub(super) async fn delete_observations(
    memory: &Memory,
    args: DeleteObservations,
) -> Result<ToolOutput<Deletions>, Error> {
    let done = memory
        .change(DELETE_OBSERVATIONS.name, move |_, edit| Ok(changes::delete_observations(edit, &args.deletions)))
        .await?;
    Ok(deletions(memory, "Observations", done))
}
