//! Names of types, cached after one lookup.

use super::{Database, lock};
use crate::answer::Answer;
use crate::sql::TYPES;
use crate::value::{Shape, Type, texts};
use crate::wire::Described;
use linchpin_kit::ToolError;
use std::sync::Arc;

/// Maximum number of cached types.
const TYPES_MAX: usize = 10_000;

impl Database {
    /// Clears the cache: the types may have changed.
    pub(crate) fn forget_types(&self) {
        lock(&self.types).clear();
    }

    /// The types of columns, from the cache.
    fn known_types(&self, described: &Described) -> Vec<Type> {
        let known = lock(&self.types);
        let unknown = |oid| Type { name: format!("oid {oid}"), shape: Shape::of(oid), array: None };
        described
            .fields
            .iter()
            .map(|field| {
                known.get(&(field.type_oid, field.type_modifier)).cloned().unwrap_or_else(|| unknown(field.type_oid))
            })
            .collect()
    }

    /// Says what the columns' types are; asks for those that are not known yet. Those that cannot be looked up are shown
    /// by their numbers: the rows are there, and what was written is written.
    pub(super) async fn name_types(self: &Arc<Self>, answer: &mut Answer) {
        let mut missing: Vec<(u32, i32)> = {
            let known = lock(&self.types);
            let all = answer.described.fields.iter().map(|field| (field.type_oid, field.type_modifier));
            all.filter(|key| !known.contains_key(key)).collect()
        };
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let _ = self.look_up_types(&missing).await;
        }
        answer.types = self.known_types(&answer.described);
    }

    async fn look_up_types(self: &Arc<Self>, missing: &[(u32, i32)]) -> Result<(), ToolError> {
        let list = |items: Vec<String>| Some(texts(items));
        let parameters = [
            list(missing.iter().map(|(oid, _)| oid.to_string()).collect()),
            list(missing.iter().map(|(_, modifier)| modifier.to_string()).collect()),
        ];
        let (rows, _) = self.own(TYPES, &parameters).await?;
        let mut known = lock(&self.types);
        if known.len() > TYPES_MAX {
            known.clear();
        }
        for row in &rows {
            let number = |at: usize| row.text(at).parse::<u32>().unwrap_or_default();
            let key = (number(0), row.text(1).parse().unwrap_or(-1));
            let array = row.cell(3).and_then(|delimiter| delimiter.chars().next());
            let element = if array.is_some() { number(4) } else { key.0 };
            known.insert(key, Type { name: row.text(2), shape: Shape::of(element), array });
        }
        Ok(())
    }
}
