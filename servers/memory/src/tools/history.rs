//! `memory_history`.

use crate::answer::{Warnings, notice, within};
use crate::changes::NAME_BYTES;
use crate::format::{Relation, indented, shown};
use crate::graph::{Change, Kind};
use crate::journal::{self, Entry};
use crate::part::Budget;
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{Paging, Provenance, ToolError, ToolOutput, ToolSpec, unknown_cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const HISTORY: ToolSpec = ToolSpec::reads(
    "memory_history",
    "Memory History",
    "history",
    "Lists the changes to the memory, newest first, with their numbers for memory_undo.",
)
.extra()
.on_request();

/// Default changes per page.
const PAGE_HITS: usize = 20;

/// Maximum records listed per change.
const SHOWN_CHANGES: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(super) struct History {
    /// Only changes of this entity and its relations.
    name: Option<String>,
    /// Maximum number of changes (default 20).
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// From next_cursor
    cursor: Option<String>,
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

#[derive(Serialize, JsonSchema)]
pub(super) struct HistoryAnswer {
    /// The changes.
    #[serde(flatten)]
    page: HistoryPage,
    /// Problems of the memory file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

pub(super) async fn history(memory: &Memory, args: History) -> Result<ToolOutput<HistoryAnswer>, Error> {
    memory
        .read(move |inner, graph| {
            let entries = inner.store.journal().entries()?;
            let bytes_max = inner.config.max_result_bytes;
            let room = Budget { most: args.limit.unwrap_or(PAGE_HITS), bytes_max, beside: 0 };
            let (page, cut) = listed(&entries, args.name.as_deref(), args.cursor.as_deref(), room)?;
            let notice = notice(cut.as_deref(), page.paging.notice());
            let mut warnings: Warnings = cut.into_iter().collect();
            warnings.extend(graph.warnings());
            let warnings = within(warnings, bytes_max);
            Ok(ToolOutput::json(HistoryAnswer { page, warnings }, Provenance::ThirdParty)?.notice(notice))
        })
        .await
        .map_err(Error::from)
}

/// The history, newest first; with `name`, only changes that touched this entity. Also what was omitted from a change
/// that is too large for a result.
fn listed(
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
    /// Truncates long names.
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
