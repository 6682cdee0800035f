//! `create_relations`.

use crate::answer::{Warnings, echo, pretty, within};
use crate::changes;
use crate::format::Relation;
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const CREATE_RELATIONS: ToolSpec = ToolSpec::writes(
    "create_relations",
    "Create Relations",
    "write",
    "Stores relations between entities, in active voice: from `works at` to. Existing relations are skipped.",
);

#[derive(Deserialize, JsonSchema)]
pub(super) struct Relations {
    /// The relations.
    pub(super) relations: Vec<Relation>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct NewRelations {
    /// The new ones.
    relations: Vec<Relation>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Problems: relations to unknown entities, invalid lines of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

pub(super) async fn create_relations(memory: &Memory, args: Relations) -> Result<ToolOutput<NewRelations>, Error> {
    let mut done =
        memory.change(CREATE_RELATIONS.name, |_, edit| Ok(changes::create_relations(edit, args.relations))).await?;
    let mut warnings = done.graph.dangling(done.value.iter());
    warnings.extend(done.warnings(memory));
    let warnings = within(warnings, memory.inner.config.max_result_bytes);
    let (relations, truncated, notice) = echo(memory, done.value);
    Ok(ToolOutput::outside(pretty(&relations)?, NewRelations { relations, truncated, warnings }).notice(notice))
}
