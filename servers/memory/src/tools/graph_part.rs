//! Shared by the tools that return a part of the graph.

use crate::answer::{PublishedGraph, Warnings, notice, pretty, within};
use crate::format::{Entity, Relation};
use crate::part::{Budget, Part, part};
use crate::server::Memory;
use linchpin_kit::{Paging, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub(super) struct GraphPart {
    /// The entities.
    pub(super) entities: Vec<Entity>,
    /// The relations.
    pub(super) relations: Vec<Relation>,
    /// Pagination.
    #[serde(flatten)]
    pub(super) paging: Paging,
    /// Problems: relations to unknown entities, invalid lines of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Warnings,
}

/// A part of the graph in the published format. `next` says how to continue.
pub(super) fn graph_part<T: From<GraphPart>>(
    part: Part,
    mut more: Warnings,
    bytes_max: usize,
    next: impl FnOnce(&Paging) -> Option<String>,
) -> Result<ToolOutput<T>, ToolError> {
    let Part { entities, relations, paging, cut, .. } = part;
    let text = pretty(&PublishedGraph { entities: &entities, relations: &relations })?;
    let notice = notice(cut.as_deref(), next(&paging));
    let mut warnings: Warnings = cut.into_iter().collect();
    warnings.append(&mut more);
    let warnings = within(warnings, bytes_max);
    let part = GraphPart { entities, relations, paging, warnings };
    Ok(ToolOutput::outside(text, T::from(part)).notice(notice))
}

/// The wanted entities with all their relations, from `cursor` on. `about` ties the cursor to this request.
pub(super) async fn some_nodes(
    memory: &Memory,
    wanted: impl Fn(&Entity) -> bool + Send + 'static,
    about: u64,
    cursor: Option<String>,
) -> Result<ToolOutput<GraphPart>, ToolError> {
    memory
        .read(move |inner, graph| {
            let (entities, relations) = graph.around(wanted);
            let bytes_max = inner.config.max_result_bytes;
            let room = Budget { most: usize::MAX, bytes_max, beside: 0 };
            let part = part(&entities, &relations, graph.version() ^ about, cursor.as_deref(), room)?;
            // Reported once, on the first page, for all relations.
            let mut warnings = match &cursor {
                None => graph.dangling(relations.iter().map(|item| item.value())),
                Some(_) => Vec::new(),
            };
            warnings.extend(graph.warnings());
            graph_part(part, warnings, bytes_max, Paging::notice)
        })
        .await
}
