//! `search_nodes`.

use super::graph_part::{GraphPart, some_nodes};
use crate::format::Entity;
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{Cursor, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const SEARCH_NODES: ToolSpec = ToolSpec::reads(
    "search_nodes",
    "Search Nodes",
    "read",
    "Finds entities whose name, type or an observation contains this exact text, with their relations. For several words use memory_search.",
);

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchNodes {
    /// The text; empty matches everything.
    query: String,
    /// From next_cursor
    cursor: Option<String>,
}

pub(super) async fn search_nodes(memory: &Memory, args: SearchNodes) -> Result<ToolOutput<GraphPart>, Error> {
    let (query, about) = (args.query.to_lowercase(), Cursor::<1>::digest(&args.query));
    let has = move |text: &str| text.to_lowercase().contains(&query);
    let wanted = move |e: &Entity| has(&e.name) || has(&e.entity_type) || e.observations.iter().any(|text| has(text));
    Ok(some_nodes(memory, wanted, about, args.cursor).await?)
}
