//! `create_entities`.

use crate::answer::{Warnings, echo, pretty};
use crate::changes;
use crate::format::Entity;
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const CREATE_ENTITIES: ToolSpec = ToolSpec::writes(
    "create_entities",
    "Create Entities",
    "write",
    "Stores new entities (people, projects, things) with facts about them. Existing names are skipped; for those use \
     add_observations.",
);

#[derive(Deserialize, JsonSchema)]
pub(super) struct CreateEntities {
    /// The entities.
    entities: Vec<Entity>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Entities {
    /// The new ones.
    entities: Vec<Entity>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Problems of the memory file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

pub(super) async fn create_entities(memory: &Memory, args: CreateEntities) -> Result<ToolOutput<Entities>, Error> {
    let mut done =
        memory.change(CREATE_ENTITIES.name, |_, edit| Ok(changes::create_entities(edit, args.entities))).await?;
    let warnings = done.warnings(memory);
    let (entities, truncated, notice) = echo(memory, done.value);
    Ok(ToolOutput::outside(pretty(&entities)?, Entities { entities, truncated, warnings }).notice(notice))
}
