//! `read_graph`.

use super::graph_part::{GraphPart, graph_part};
use crate::answer::Warnings;
use crate::format::{Entity, Relation};
use crate::part::{Budget, part};
use crate::server::Memory;
use linchpin::{Error, NoArgs};
use linchpin_kit::{Paging, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) const READ_GRAPH: ToolSpec = ToolSpec::reads(
    "read_graph",
    "Read Graph",
    "read",
    "Returns the whole memory, as far as it fits. For a large one use memory_search.",
);

#[derive(Serialize, JsonSchema)]
pub(super) struct WholeGraph {
    /// The entities.
    entities: Vec<Entity>,
    /// The relations.
    relations: Vec<Relation>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// The `cursor` to continue with memory_read_page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Problems: relations to unknown entities, invalid lines of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

impl From<GraphPart> for WholeGraph {
    fn from(part: GraphPart) -> WholeGraph {
        let GraphPart { entities, relations, paging: Paging { truncated, next_cursor }, warnings } = part;
        WholeGraph { entities, relations, truncated, next_cursor, warnings }
    }
}

pub(super) async fn read_graph(memory: &Memory, _: NoArgs) -> Result<ToolOutput<WholeGraph>, Error> {
    memory
        .read(|inner, graph| {
            let bytes_max = inner.config.max_result_bytes;
            let room = Budget { most: usize::MAX, bytes_max, beside: 0 };
            let part = part(graph.entities(), graph.relations(), graph.version(), None, room)?;
            let mut warnings = graph.dangling(graph.relations().iter().map(|item| item.value()));
            warnings.extend(graph.warnings());
            graph_part(part, warnings, bytes_max, |paging| {
                let cursor = paging.next_cursor.as_ref()?;
                Some(format!(
                    "[Truncated. Continue with memory_read_page and cursor={cursor:?}, or use memory_search.]"
                ))
            })
        })
        .await
        .map_err(Error::from)
}
