//! Operations on a graph, independent of files, locks and the protocol.

use crate::format::{ENTITY_BYTES, Entity, Record, Relation, Written, first_of, fitting, indented, shown, written};
use crate::graph::{Change, Edit, Graph, Item, Kind};
use crate::journal::{self, Entry, Journal, Last, When};
use crate::search::{Hit, Query};
use linchpin_kit::{Cursor, Paging, ToolError, clip, unknown_cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::{Borrow, Cow};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Observations shown of an entity that a search found, and bytes of each.
const SHOWN_OBSERVATIONS: usize = 3;
const SHOWN_BYTES: usize = 500;
/// Bytes of a name where it is only mentioned.
const NAME_BYTES: usize = 1_000;
/// Records named of one entry of the history.
const SHOWN_CHANGES: usize = 20;

/// Where entities are, for a batch in which none is removed: a table when the batch is large enough to be worth one.
struct Places(HashMap<String, usize>);

impl Places {
    const WORTH_A_TABLE: usize = 16;

    fn of(graph: &Graph, batch: usize) -> Places {
        let mut table = HashMap::new();
        if batch >= Self::WORTH_A_TABLE {
            for (at, item) in graph.entities().iter().enumerate() {
                table.entry(item.value().name.clone()).or_insert(at);
            }
        }
        Places(table)
    }

    fn find(&self, graph: &Graph, name: &str) -> Option<usize> {
        match self.0.get(name) {
            Some(at) => Some(*at),
            // Not in the table, or there since the table was made, or there is no table.
            None => graph.position(name),
        }
    }
}

/// Adds entities whose names are new; those added.
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

/// Adds relations that are new; those added.
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

fn no_entity(name: &str) -> ToolError {
    ToolError::not_found(format!("Entity with name {} not found", shown(name, NAME_BYTES)))
        .hint("Nothing was saved. Look for it with memory_search, or create it with create_entities.")
}

/// Adds observations that are new, to all or to none.
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

/// The entity with those of `contents` that it does not have, and these.
fn with_observations(entity: &Entity, contents: impl IntoIterator<Item = String>) -> (Entity, Vec<String>) {
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

/// Deletes observations; entities that do not exist are passed over, as published.
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

/// The result of an import.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    entities: usize,
    relations: usize,
    observations: usize,
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Imported { entities, relations, observations } = self;
        write!(f, "{entities} entities, {relations} relations, {observations} observations of known entities")
    }
}

/// Adds the records of another graph that are missing in this one. Idempotent.
pub(crate) fn import(edit: &mut Edit, other: &Graph) -> Imported {
    let mut imported = Imported::default();
    let places = Places::of(&edit.graph, other.entities().len());
    for item in other.entities() {
        match places.find(&edit.graph, &item.value().name) {
            None => {
                imported.entities += 1;
                edit.add_entity(item.record.clone());
            }
            Some(at) => {
                let known = &edit.graph.entities()[at].record;
                let (more, added) = with_observations(&known.value, item.value().observations.iter().cloned());
                let more = known.with(more);
                imported.observations += added.len();
                edit.replace_entity(at, more);
            }
        }
    }
    for item in other.relations() {
        if !edit.graph.has_relation(item.value()) {
            imported.relations += 1;
            edit.add_relation(item.record.clone());
        }
    }
    imported
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

/// Merges the entities of these names into another: their observations, their relations, their unknown keys.
pub(crate) fn merge(edit: &mut Edit, names: &[String], into: &str) -> Result<Merged, ToolError> {
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
    let keeper = &edit.graph.entities()[target].record;
    let (more, _) = with_observations(&keeper.value, texts);
    let keeper = entities.iter().fold(keeper.with(more), |keeper, item| keeper.adopting(&item.record));
    let entity = keeper.value.clone();
    edit.replace_entity(target, keeper);

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
        // What one of them was to another says nothing any more; what it was to itself still does.
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

/// Undoes a change of the history: this one, or the newest that is neither undone nor an undoing.
pub(crate) fn undo(edit: &mut Edit, journal: &Journal, id: Option<u64>) -> Result<Undone, ToolError> {
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

/// A part of a graph that fits into an answer.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// The place of the first of the entities.
    pub(crate) first: usize,
    pub(crate) entities: Vec<Entity>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) paging: Paging,
    /// What is left out of a record that is too large for an answer of its own, or was left to this answer.
    pub(crate) cut: Option<String>,
}

/// How much an answer may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Records.
    pub(crate) most: usize,
    /// Bytes of their text, which is indented; that of programs is shorter. 0 is no bound.
    pub(crate) bytes_max: usize,
    /// Bytes that are added to each entity.
    pub(crate) beside: usize,
}

/// Cuts a graph of this version: from `cursor` on, as much as there is room for, entities first. There is always at least
/// one record; an entity that alone is too large is shown in several answers, each with some of its observations.
pub(crate) fn part<E, R>(
    entities: &[E],
    relations: &[R],
    version: u64,
    cursor: Option<&str>,
    room: Budget,
) -> Result<Part, ToolError>
where
    E: Borrow<Item<Entity>>,
    R: Borrow<Item<Relation>>,
{
    let Budget { most, bytes_max, beside } = room;
    let bytes_max = if bytes_max == 0 { usize::MAX } else { bytes_max };
    // The record, and the first of its observations.
    let cursor = Cursor::<2>::parse(cursor)?.map(|cursor| cursor.still(version)).transpose()?;
    let [first, observation] =
        cursor.map_or([0, 0], |cursor| cursor.at.map(|at| usize::try_from(at).unwrap_or(usize::MAX)));
    let next = |record: usize, observation: usize| {
        Paging::more(Cursor { at: [record as u64, observation as u64], of: version }.to_string())
    };
    let (mut part, mut bytes, mut count) = (Part { first, ..Part::default() }, 0_usize, 0_usize);
    let mut fits = |size: usize| {
        bytes = bytes.saturating_add(size);
        count += 1;
        count == 1 || count <= most && bytes <= bytes_max
    };
    let size = |bytes: &dyn Fn() -> usize| if bytes_max == usize::MAX { 0 } else { bytes() };
    for (at, item) in entities.iter().map(Borrow::borrow).enumerate().skip(first) {
        let all = item.value().observations.len();
        let skipped = if at == first { observation.min(all) } else { 0 };
        let entity = match skipped {
            0 => Cow::Borrowed(item.value()),
            _ => Cow::Owned(Entity {
                observations: item.value().observations[skipped..].to_vec(),
                ..item.value().clone()
            }),
        };
        let size = size(&|| indented(&*entity, 2) + beside);
        if !fits(size) {
            part.paging = next(at, 0);
            return Ok(part);
        }
        if size > bytes_max {
            let (shorter, whole) = shorten(&entity, bytes_max.saturating_sub(beside));
            let shown = skipped + whole.max(1);
            part.cut = Some(format!(
                "An entity is too large for one result: of its {all} observations these are {} from number {} on, long ones \
                 truncated.",
                shorter.observations.len(),
                skipped + 1
            ));
            part.entities.push(shorter);
            part.paging = if shown < all {
                next(at, shown)
            } else if at + 1 < entities.len() + relations.len() {
                next(at + 1, 0)
            } else {
                Paging { truncated: true, next_cursor: None }
            };
            return Ok(part);
        }
        if skipped > 0 {
            part.cut = Some(format!("The observations of the first entity start at number {}.", skipped + 1));
        }
        part.entities.push(entity.into_owned());
    }
    let first = first.saturating_sub(entities.len());
    for (at, item) in relations.iter().map(Borrow::borrow).enumerate().skip(first) {
        let size = size(&|| indented(item.value(), 2));
        if !fits(size) {
            part.paging = next(entities.len() + at, 0);
            return Ok(part);
        }
        if size > bytes_max {
            part.cut = Some("A relation is too large for one result: its names are truncated.".to_owned());
            part.paging.truncated = true;
            part.relations.push(item.value().shortened(bytes_max));
        } else {
            part.relations.push(item.value().clone());
        }
    }
    Ok(part)
}

/// One of the things that a change answers with.
pub(crate) trait Piece: Serialize {
    /// As much of it as fits into about `bytes_max` bytes.
    fn shortened(&self, bytes_max: usize) -> Self;
}

impl Piece for Entity {
    fn shortened(&self, bytes_max: usize) -> Self {
        shorten(self, bytes_max).0
    }
}

impl Piece for Relation {
    fn shortened(&self, bytes_max: usize) -> Self {
        let part = |text: &str| fitting(text, bytes_max / 3).to_owned();
        Relation { from: part(&self.from), to: part(&self.to), relation_type: part(&self.relation_type) }
    }
}

impl Piece for AddedObservations {
    fn shortened(&self, bytes_max: usize) -> Self {
        let name = fitting(&self.entity_name, bytes_max / 2);
        let room = bytes_max.saturating_sub(written(&name));
        AddedObservations { entity_name: name.to_owned(), added_observations: first_of(&self.added_observations, room) }
    }
}

/// What a change answers with, cut to about `bytes_max` bytes (0 is no bound), and how many it was when it was cut.
/// There is always at least one; if it alone is too large, in part.
pub(crate) fn fit<T: Piece>(mut values: Vec<T>, bytes_max: usize) -> (Vec<T>, Option<usize>) {
    let mut bytes = 0_usize;
    let fits = |value: &T| {
        bytes = bytes.saturating_add(indented(value, 1));
        bytes <= bytes_max
    };
    if bytes_max == 0 {
        return (values, None);
    }
    let Some(end) = values.iter().map(fits).position(|fits| !fits) else { return (values, None) };
    let all = values.len();
    values.truncate(end.max(1));
    if let (0, Some(first)) = (end, values.first_mut()) {
        *first = first.shortened(bytes_max);
    }
    (values, Some(all))
}

/// The entity with as many observations as fit, and how many of them are whole.
fn shorten(entity: &Entity, bytes_max: usize) -> (Entity, usize) {
    let name = fitting(&entity.name, bytes_max / 3);
    let entity_type = fitting(&entity.entity_type, bytes_max / 3);
    let room = bytes_max.saturating_sub(written(&name) + written(&entity_type) + ENTITY_BYTES);
    let observations = first_of(&entity.observations, room);
    let whole = observations.iter().zip(&entity.observations).filter(|(shown, all)| shown == all).count();
    (Entity { name: name.to_owned(), entity_type: entity_type.to_owned(), observations }, whole)
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    /// Its name; open_nodes returns the whole entity.
    pub(crate) name: String,
    /// Its type.
    pub(crate) entity_type: String,
    /// The best matching observations, truncated if long.
    pub(crate) observations: Vec<String>,
    /// The number of all its observations.
    pub(crate) observation_count: usize,
    /// The relevance; comparable only within one result.
    pub(crate) score: f32,
    /// When it was created and changed.
    #[serde(flatten)]
    pub(crate) when: When,
}

/// A page of search results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct FoundPage {
    /// The number of entities with at least one of the words.
    pub(crate) total: usize,
    /// Best first; without words, last changed first.
    pub(crate) results: Vec<Found>,
    /// With changedSince: the number of entities omitted because the time of their last change is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undated: Option<usize>,
    /// Pagination.
    #[serde(flatten)]
    pub(crate) paging: Paging,
}

/// What to search for.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) text: &'a str,
    pub(crate) entity_type: Option<&'a str>,
    /// Only what was changed at this time or later.
    pub(crate) changed_since: Option<&'a str>,
    pub(crate) cursor: Option<&'a str>,
    pub(crate) most: usize,
    pub(crate) bytes_max: usize,
}

/// What sets the cursors of different requests apart.
pub(crate) fn hash(about: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    about.hash(&mut hasher);
    hasher.finish()
}

/// Ranked search; without words but with a time, what was changed since, the newest first.
pub(crate) fn search(graph: &Graph, times: Option<&Journal>, wanted: &Wanted<'_>) -> Result<FoundPage, ToolError> {
    let query = Query::of(wanted.text);
    let since = wanted.changed_since.map(since).transpose()?;
    let kind = wanted.entity_type.map(str::to_lowercase);
    let of_type = |entity: &Entity| kind.as_ref().is_none_or(|kind| entity.entity_type.to_lowercase() == *kind);
    let entities = graph.entities().iter().enumerate().filter(|(_, item)| of_type(item.value()));
    let mut hits: Vec<Hit> = match (&query, since) {
        (Some(query), _) => query.rank(entities),
        (None, Some(_)) => entities.map(|(at, _)| Hit { at, score: 0.0 }).collect(),
        (None, None) => {
            return Err(ToolError::invalid("The query contains no words")
                .hint("Pass letters or digits, or changedSince; memory_read_page lists everything."));
        }
    };
    let undated = since.map(|since| only_since(graph, times, since, query.is_none(), &mut hits));
    // Of this memory, and of this search.
    let of = graph.version() ^ hash(&(wanted.text, wanted.entity_type, wanted.changed_since));
    let cursor = Cursor::<1>::parse(wanted.cursor)?.map(|cursor| cursor.still(of)).transpose()?;
    let start = cursor.map_or(0, |cursor| usize::try_from(cursor.at[0]).unwrap_or(usize::MAX).min(hits.len()));
    let page = &hits[start..hits.len().min(start.saturating_add(wanted.most.max(1)))];
    let (mut results, mut bytes) = (Vec::new(), 0_usize);
    let bytes_max = if wanted.bytes_max == 0 { usize::MAX } else { wanted.bytes_max };
    for hit in page {
        let item = &graph.entities()[hit.at];
        let entity = item.value();
        let best: Vec<&str> = match &query {
            Some(query) => query.best(entity, SHOWN_OBSERVATIONS),
            None => entity.observations.iter().rev().take(SHOWN_OBSERVATIONS).rev().map(String::as_str).collect(),
        };
        // Three quarters of the room at most, so that at least one always fits.
        let found = Found {
            name: shown(&entity.name, bytes_max / 4),
            entity_type: shown(&entity.entity_type, bytes_max / 4),
            observations: best.into_iter().map(|text| shown(text, SHOWN_BYTES.min(bytes_max / 12))).collect(),
            observation_count: entity.observations.len(),
            score: (hit.score * 1_000.0).round() / 1_000.0,
            when: times.map(|times| times.when(graph, item)).unwrap_or_default(),
        };
        bytes = bytes.saturating_add(indented(&found, 2));
        if bytes > bytes_max && !results.is_empty() {
            break;
        }
        results.push(found);
    }
    let end = start + results.len();
    let paging = match end < hits.len() {
        true => Paging::more(Cursor { at: [end as u64], of }.to_string()),
        false => Paging::whole(),
    };
    Ok(FoundPage { total: hits.len(), results, undated, paging })
}

fn since(text: &str) -> Result<u64, ToolError> {
    journal::seconds(text).ok_or_else(|| {
        ToolError::invalid(format!("Invalid time: {}", clip(text, 40).text))
            .hint("Use 2026-11-21 or 2026-11-21T09:14:06Z, in UTC, for changedSince.")
    })
}

/// Leaves those that were certainly changed at `since` or later, in their order or the newest first; how many may have
/// been.
fn only_since(graph: &Graph, times: Option<&Journal>, since: u64, newest_first: bool, hits: &mut Vec<Hit>) -> usize {
    let mut undated = 0;
    let last = |hit: &Hit| times.map_or(Last::Unknown, |times| times.last(graph, &graph.entities()[hit.at]));
    let mut dated: Vec<(u64, Hit)> = Vec::new();
    for hit in hits.drain(..) {
        match last(&hit) {
            Last::At(at) | Last::After(at) if at >= since => dated.push((at, hit)),
            Last::At(_) => {}
            Last::After(_) | Last::Unknown => undated += 1,
        }
    }
    if newest_first {
        dated.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.at.cmp(&b.1.at)));
    }
    hits.extend(dated.into_iter().map(|(_, hit)| hit));
    undated
}

/// A record of a change in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownChange {
    /// `added`, `changed` or `removed`.
    pub(crate) change: &'static str,
    /// The name, for an entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entity: Option<String>,
    /// The relation, for a relation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relation: Option<Relation>,
}

/// A change in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ShownEntry {
    /// Its number, for memory_undo.
    pub(crate) id: u64,
    /// When, UTC.
    pub(crate) time: String,
    /// The tool that made it.
    pub(crate) tool: String,
    /// The number of changed records.
    pub(crate) records: usize,
    /// The first of these records.
    pub(crate) changes: Vec<ShownChange>,
    /// The change that this one undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<u64>,
    /// Whether it has been undone.
    pub(crate) undone: bool,
}

/// A page of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct HistoryPage {
    /// Newest first.
    pub(crate) changes: Vec<ShownEntry>,
    /// Pagination.
    #[serde(flatten)]
    pub(crate) paging: Paging,
}

/// The history, newest first; only what touched the entity `name`, if one is given. With it what is left out of a change
/// that is too large for an answer.
pub(crate) fn history(
    entries: &[Entry],
    name: Option<&str>,
    cursor: Option<&str>,
    room: Budget,
) -> Result<(HistoryPage, Option<String>), ToolError> {
    let before = match cursor {
        None => u64::MAX,
        Some(cursor) => cursor.parse().map_err(|_| unknown_cursor(cursor))?,
    };
    let bytes_max = if room.bytes_max == 0 { usize::MAX } else { room.bytes_max };
    let undone = journal::undone(entries);
    let (mut changes, mut paging, mut cut, mut bytes) = (Vec::<ShownEntry>::new(), Paging::whole(), None, 0_usize);
    for entry in entries.iter().rev().filter(|entry| entry.id < before) {
        let records: Vec<ShownChange> = entry.changes.iter().flatten().filter_map(shown_change).collect();
        if name.is_some_and(|name| !records.iter().any(|change| change.touches(name))) {
            continue;
        }
        let names_max = NAME_BYTES.min(bytes_max / 8);
        let mut shown = ShownEntry {
            id: entry.id,
            time: shown(&entry.time, names_max),
            tool: shown(&entry.tool, names_max),
            records: entry.records,
            changes: records.into_iter().take(SHOWN_CHANGES).map(|change| change.shortened(names_max)).collect(),
            undoes: entry.undoes,
            undone: undone.contains(&entry.id),
        };
        bytes = bytes.saturating_add(indented(&shown, 2));
        if let Some(last) = changes.last().filter(|_| changes.len() == room.most || bytes > bytes_max) {
            paging = Paging::more(last.id.to_string());
            break;
        }
        if bytes > bytes_max {
            while shown.changes.len() > 1 && indented(&shown, 2) > bytes_max {
                shown.changes.pop();
            }
            let few = shown.changes.len();
            paging.truncated = true;
            cut = Some(format!(
                "Change {} is too large for one result: of its {} records {few} are shown.",
                entry.id, entry.records
            ));
        }
        changes.push(shown);
    }
    paging.truncated |= cut.is_some();
    Ok((HistoryPage { changes, paging }, cut))
}

impl ShownChange {
    /// With names that are cut where they are long.
    fn shortened(self, bytes_max: usize) -> Self {
        let part = |text: String| shown(&text, bytes_max);
        let relation = self.relation.map(|Relation { from, to, relation_type }| Relation {
            from: part(from),
            to: part(to),
            relation_type: part(relation_type),
        });
        Self { entity: self.entity.map(part), relation, ..self }
    }

    fn touches(&self, name: &str) -> bool {
        let ends = self.relation.iter().flat_map(|relation| [&relation.from, &relation.to]);
        ends.chain(&self.entity).any(|known| known == name)
    }
}

fn shown_change(change: &Change) -> Option<ShownChange> {
    let (what, line) = match (&change.before, &change.after) {
        (None, Some(after)) => ("added", after),
        (Some(_), Some(after)) => ("changed", after),
        (Some(before), None) => ("removed", before),
        (None, None) => return None,
    };
    let (entity, relation) = match change.kind {
        Kind::Entity => (Some(crate::graph::entity_of(line)?.value.name), None),
        Kind::Relation => (None, Some(crate::graph::relation_of(line)?.value)),
    };
    Some(ShownChange { change: what, entity, relation })
}
