//! `add_observations`.

use crate::answer::{Warnings, echo, pretty};
use crate::changes::{self, AddedObservations, NewObservations};
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const ADD_OBSERVATIONS: ToolSpec = ToolSpec::writes(
    "add_observations",
    "Add Observations",
    "write",
    "Adds facts to existing entities. Existing facts are skipped. If one of the entities does not exist, nothing is \
     saved.",
);

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddObservations {
    /// The observations to add, by entity.
    observations: Vec<NewObservations>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Results {
    /// The new observations, by entity.
    results: Vec<AddedObservations>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Problems of the memory file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

pub(super) async fn add_observations(memory: &Memory, args: AddObservations) -> Result<ToolOutput<Results>, Error> {
    let mut done =
        memory.change(ADD_OBSERVATIONS.name, |_, edit| changes::add_observations(edit, args.observations)).await?;
    let warnings = done.warnings(memory);
    let (results, truncated, notice) = echo(memory, done.value);
    Ok(ToolOutput::outside(pretty(&results)?, Results { results, truncated, warnings }).notice(notice))
}
