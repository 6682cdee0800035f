//! The parts of a graph that fit into a result.

use crate::changes::AddedObservations;
use crate::format::{ENTITY_BYTES, Entity, Relation, first_of, fitting, indented, written};
use crate::graph::Item;
use linchpin_kit::{Cursor, Paging, ToolError};
use serde::Serialize;
use std::borrow::{Borrow, Cow};

/// A part of a graph that fits into a result.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// The index of the first of these entities.
    pub(crate) first: usize,
    pub(crate) entities: Vec<Entity>,
    pub(crate) relations: Vec<Relation>,
    pub(crate) paging: Paging,
    /// What is left out of a record that is too large for a result of its own, or was continued from the previous one.
    pub(crate) cut: Option<String>,
}

/// The size limit of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Records.
    pub(crate) most: usize,
    /// Bytes of the indented text; structured content is shorter. 0 is unlimited.
    pub(crate) bytes_max: usize,
    /// Additional bytes for each entity.
    pub(crate) beside: usize,
}

/// The part of this graph that fits, from `cursor` on, entities first. Contains at least one record; an entity that is
/// too large is returned in several results, each with some of its observations.
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
    // The index of the record, and of its first observation.
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

/// An item in the result of a change.
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

/// The items of a change, cut to about `bytes_max` bytes (0: unlimited), and their total if cut. Contains at least one,
/// in part if it is too large.
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

/// The entity with as many observations as fit, and the number of complete ones.
fn shorten(entity: &Entity, bytes_max: usize) -> (Entity, usize) {
    let name = fitting(&entity.name, bytes_max / 3);
    let entity_type = fitting(&entity.entity_type, bytes_max / 3);
    let room = bytes_max.saturating_sub(written(&name) + written(&entity_type) + ENTITY_BYTES);
    let observations = first_of(&entity.observations, room);
    let whole = observations.iter().zip(&entity.observations).filter(|(shown, all)| shown == all).count();
    (Entity { name: name.to_owned(), entity_type: entity_type.to_owned(), observations }, whole)
}
