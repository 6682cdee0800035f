//! Changes of a graph, independent of files, locks and the protocol.

use crate::format::{Entity, Record, Relation, shown};
use crate::graph::{Edit, Graph};
use linchpin_kit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Maximum bytes of a name that is only mentioned.
pub(crate) const NAME_BYTES: usize = 1_000;

/// Positions of entities, for a batch that removes none: a map if the batch is large enough to be worth one.
pub(crate) struct Places(HashMap<String, usize>);

impl Places {
    const WORTH_A_TABLE: usize = 16;

    pub(crate) fn of(graph: &Graph, batch: usize) -> Places {
        let mut table = HashMap::new();
        if batch >= Self::WORTH_A_TABLE {
            for (at, item) in graph.entities().iter().enumerate() {
                table.entry(item.value().name.clone()).or_insert(at);
            }
        }
        Places(table)
    }

    pub(crate) fn find(&self, graph: &Graph, name: &str) -> Option<usize> {
        match self.0.get(name) {
            Some(at) => Some(*at),
            // Added after the map was built, or there is no map.
            None => graph.position(name),
        }
    }
}

/// Adds entities with new names; returns those.
pub(crate) fn create_entities(edit: &mut Edit, entities: Vec<Entity>) -> Vec<Entity> {
    let mut added = Vec::new();
    for entity in entities {
        if !edit.graph.has(&entity.name) {
            edit.add_entity(entity.clone().plain());
            added.push(entity);
        }
    }
    added
}

/// Adds new relations; returns those.
pub(crate) fn create_relations(edit: &mut Edit, relations: Vec<Relation>) -> Vec<Relation> {
    let mut added = Vec::new();
    for relation in relations {
        if !edit.graph.has_relation(&relation) {
            edit.add_relation(relation.clone().plain());
            added.push(relation);
        }
    }
    added
}

/// Observations to add to an entity.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewObservations {
    /// The name of the entity.
    pub(crate) entity_name: String,
    /// The observations to add.
    pub(crate) contents: Vec<String>,
}

/// Observations added to an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddedObservations {
    /// The name of the entity.
    pub(crate) entity_name: String,
    /// The new observations.
    pub(crate) added_observations: Vec<String>,
}

pub(crate) fn no_entity(name: &str) -> ToolError {
    ToolError::not_found(format!("Entity with name {} not found", shown(name, NAME_BYTES)))
        .hint("Nothing was saved. Look for it with memory_search, or create it with create_entities.")
}

/// Adds new observations, to all entities or to none.
pub(crate) fn add_observations(
    edit: &mut Edit,
    all: Vec<NewObservations>,
) -> Result<Vec<AddedObservations>, ToolError> {
    let mut results = Vec::new();
    let places = Places::of(&edit.graph, all.len());
    for NewObservations { entity_name, contents } in all {
        let at = places.find(&edit.graph, &entity_name).ok_or_else(|| no_entity(&entity_name))?;
        let record = &edit.graph.entities()[at].record;
        let (more, added) = with_observations(&record.value, contents);
        let more = record.with(more);
        edit.replace_entity(at, more);
        results.push(AddedObservations { entity_name, added_observations: added });
    }
    Ok(results)
}

/// The entity with the `contents` that it lacks, and these.
pub(crate) fn with_observations(entity: &Entity, contents: impl IntoIterator<Item = String>) -> (Entity, Vec<String>) {
    let mut known: HashSet<&str> = entity.observations.iter().map(String::as_str).collect();
    let contents: Vec<String> = contents.into_iter().collect();
    let added: Vec<String> = contents.iter().filter(|text| known.insert(text.as_str())).cloned().collect();
    let mut more = entity.clone();
    more.observations.extend(added.iter().cloned());
    (more, added)
}

/// The number of deleted records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Deleted {
    /// Entities.
    pub(crate) entities: usize,
    /// Relations.
    pub(crate) relations: usize,
    /// Observations.
    pub(crate) observations: usize,
}

/// Deletes entities and every relation that touches one of the names.
pub(crate) fn delete_entities(edit: &mut Edit, names: &[String]) -> Deleted {
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    let named = |name: &str| names.contains(name);
    let entities = edit.remove_entities(|record| named(&record.value.name));
    let relations = edit.remove_relations(|record| named(&record.value.from) || named(&record.value.to));
    Deleted { entities, relations, observations: 0 }
}

/// Observations to delete from an entity.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deletion {
    /// The name of the entity.
    pub(crate) entity_name: String,
    /// The observations to delete, verbatim.
    pub(crate) observations: Vec<String>,
}

/// Deletes observations; missing entities are skipped, as in the published server.
pub(crate) fn delete_observations(edit: &mut Edit, deletions: &[Deletion]) -> Deleted {
    let mut deleted = Deleted::default();
    let places = Places::of(&edit.graph, deletions.len());
    for Deletion { entity_name, observations } in deletions {
        let Some(at) = places.find(&edit.graph, entity_name) else { continue };
        let unwanted: HashSet<&str> = observations.iter().map(String::as_str).collect();
        let record = &edit.graph.entities()[at].record;
        let mut less = record.value.clone();
        less.observations.retain(|text| !unwanted.contains(text.as_str()));
        deleted.observations += record.value.observations.len() - less.observations.len();
        let less = record.with(less);
        edit.replace_entity(at, less);
    }
    deleted
}

/// Deletes relations.
pub(crate) fn delete_relations(edit: &mut Edit, relations: Vec<Relation>) -> Deleted {
    let unwanted: HashSet<Relation> = relations.into_iter().collect();
    Deleted { relations: edit.remove_relations(|record| unwanted.contains(&record.value)), ..Deleted::default() }
}
