//! `open_nodes`.

use super::graph_part::{GraphPart, some_nodes};
use crate::format::Entity;
use crate::server::Memory;
use linchpin::Error;
use linchpin_kit::{Cursor, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const OPEN_NODES: ToolSpec =
    ToolSpec::reads("open_nodes", "Open Nodes", "read", "Returns entities by their exact names, with their relations.");

#[derive(Deserialize, JsonSchema)]
pub(super) struct OpenNodes {
    /// The exact names of the entities.
    names: Vec<String>,
    /// From next_cursor
    cursor: Option<String>,
}

pub(super) async fn open_nodes(memory: &Memory, args: OpenNodes) -> Result<ToolOutput<GraphPart>, Error> {
    let about = Cursor::<1>::digest(&args.names);
    let names: std::collections::HashSet<String> = args.names.into_iter().collect();
    Ok(some_nodes(memory, move |entity: &Entity| names.contains(&entity.name), about, args.cursor).await?)
}
