//! `memory_merge_entities`.

use crate::answer::{Warnings, echo};
use crate::changes::{no_entity, with_observations};
use crate::format::{Entity, Relation, Written};
use crate::graph::Edit;
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{Provenance, ToolError, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

pub(crate) const MERGE: ToolSpec = ToolSpec::writes(
    "memory_merge_entities",
    "Merge Entities",
    "history",
    "Merges duplicate entities into one: their facts and relations are moved to `into`, then they are deleted.",
)
.extra()
.on_request()
.destructive();

#[derive(Deserialize, JsonSchema)]
pub(super) struct Merge {
    /// The names of the entities to merge.
    names: Vec<String>,
    /// The name of the target entity; it keeps its name and type.
    into: String,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Merged {
    /// The resulting entity.
    pub(crate) entity: Entity,
    /// The number of entities merged into it.
    pub(crate) merged: usize,
    /// Relations moved to it.
    pub(crate) redirected: usize,
    /// Relations dropped because they existed already, or connected two of the merged entities.
    pub(crate) dropped: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MergedAnswer {
    /// The result of the merge.
    #[serde(flatten)]
    merged: Merged,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Problems of the memory file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

pub(super) async fn merge(memory: &Memory, args: Merge) -> Result<ToolOutput<MergedAnswer>, Error> {
    let mut done = memory.change(MERGE.name, move |_, edit| merge_entities(edit, &args.names, &args.into)).await?;
    let warnings = done.warnings(memory);
    let (mut entity, truncated, notice) = echo(memory, vec![done.value.entity]);
    let entity = entity.remove(0);
    let merged = Merged { entity, ..done.value };
    Ok(ToolOutput::json(MergedAnswer { merged, truncated, warnings }, Provenance::ThirdParty)?.notice(notice))
}

/// Merges the entities of these names into another: observations, relations and unknown keys.
fn merge_entities(edit: &mut Edit, names: &[String], into: &str) -> Result<Merged, ToolError> {
    let target = edit.graph.position(into).ok_or_else(|| no_entity(into))?;
    if let Some(missing) = names.iter().find(|name| !edit.graph.has(name)) {
        return Err(no_entity(missing));
    }
    let sources: HashSet<&str> = names.iter().map(String::as_str).filter(|name| *name != into).collect();
    if sources.is_empty() {
        return Err(ToolError::invalid("There is nothing to merge").hint("Pass at least one name other than `into`."));
    }
    let (entities, _) = edit.graph.around(|entity| sources.contains(&*entity.name));
    let merged = entities.len();
    let texts = entities.iter().flat_map(|item| item.value().observations.iter().cloned());
    let kept = &edit.graph.entities()[target].record;
    let (more, _) = with_observations(&kept.value, texts);
    let kept = entities.iter().fold(kept.with(more), |kept, item| kept.adopting(&item.record));
    let entity = kept.value.clone();
    edit.replace_entity(target, kept);

    let touched = |relation: &Relation| sources.contains(&*relation.from) || sources.contains(&*relation.to);
    let affected: Vec<Written<Relation>> =
        edit.graph.relations().iter().filter(|item| touched(item.value())).map(|item| item.record.clone()).collect();
    edit.remove_relations(|record| touched(&record.value));
    let renamed = |name: &str| if sources.contains(name) { into.to_owned() } else { name.to_owned() };
    let (mut redirected, mut dropped) = (0, 0);
    for record in &affected {
        let Relation { from, to, relation_type } = &record.value;
        let inner = |name: &String| name == into || sources.contains(name.as_str());
        let moved = Relation { from: renamed(from), to: renamed(to), relation_type: relation_type.clone() };
        // Relations between merged entities are dropped; an entity's relation to itself is kept.
        if from != to && inner(from) && inner(to) || edit.graph.has_relation(&moved) {
            dropped += 1;
        } else {
            redirected += 1;
            edit.add_relation(record.with(moved));
        }
    }
    edit.remove_entities(|record| sources.contains(&*record.value.name));
    Ok(Merged { entity, merged, redirected, dropped })
}
