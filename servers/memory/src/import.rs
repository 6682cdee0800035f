//! Imports another memory.

use crate::changes::{Places, with_observations};
use crate::graph::{Edit, Graph};
use std::fmt;

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
        let (y, r, o) = (if *entities == 1 { "y" } else { "ies" }, plural(*relations), plural(*observations));
        write!(f, "{entities} entit{y}, {relations} relation{r}, {observations} observation{o} of known entities")
    }
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
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
