//! `memory_read_page`.

use crate::answer::{Warnings, notice, within};
use crate::format::{Entity, Relation};
use crate::journal::When;
use crate::part::{Budget, Part, part};
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{Paging, Provenance, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) const READ_PAGE: ToolSpec = ToolSpec::reads(
    "memory_read_page",
    "Read Memory by Pages",
    "read",
    "Returns the whole memory page by page: first all entities, then all relations.",
)
.extra();

/// Default records per page.
const PAGE_RECORDS: usize = 100;

/// Bytes that times add to an entity: two lines.
const TIMES_BYTES: usize = 90;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadPage {
    /// Default 100.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// From next_cursor
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page {
    /// The total number of entities.
    total_entities: usize,
    /// The total number of relations.
    total_relations: usize,
    /// The entities on this page.
    entities: Vec<Dated>,
    /// The relations on this page.
    relations: Vec<Relation>,
    /// Pagination.
    #[serde(flatten)]
    paging: Paging,
    /// Problems: relations to unknown entities, invalid lines of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Dated {
    /// The entity.
    #[serde(flatten)]
    entity: Entity,
    /// When it was created and changed.
    #[serde(flatten)]
    when: When,
}

pub(super) async fn read_page(memory: &Memory, args: ReadPage) -> Result<ToolOutput<Page>, Error> {
    memory
        .read_dated(move |inner, graph, times| {
            let bytes_max = inner.config.max_result_bytes;
            let beside = if times.is_some() { TIMES_BYTES } else { 0 };
            let room = Budget { most: args.limit.unwrap_or(PAGE_RECORDS), bytes_max, beside };
            let part = part(graph.entities(), graph.relations(), graph.version(), args.cursor.as_deref(), room)?;
            let Part { first, entities, relations, paging, cut } = part;
            let notice = notice(cut.as_deref(), paging.notice());
            let mut warnings: Warnings = cut.into_iter().collect();
            warnings.extend(graph.dangling(relations.iter()));
            warnings.extend(graph.warnings());
            let warnings = within(warnings, bytes_max);
            let items = graph.entities().iter().skip(first).map(|item| &**item);
            let dated =
                |(entity, item)| Dated { entity, when: times.map(|times| times.when(graph, item)).unwrap_or_default() };
            let page = Page {
                total_entities: graph.entities().len(),
                total_relations: graph.relations().len(),
                entities: entities.into_iter().zip(items).map(dated).collect(),
                relations,
                paging,
                warnings,
            };
            Ok(ToolOutput::json(page, Provenance::ThirdParty)?.notice(notice))
        })
        .await
        .map_err(Error::from)
}
