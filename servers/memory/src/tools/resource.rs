//! The graph as a resource.

use crate::answer::{PublishedGraph, pretty};
use crate::part::{Budget, part};
use crate::server::{GRAPH_URI, Memory};
use linchpin::types::content::ResourceContents;
use linchpin::{Error, NoArgs};

/// The whole graph, never truncated: resources are read by programs.
pub(super) async fn resource(memory: &Memory, _: NoArgs) -> Result<ResourceContents, Error> {
    let text = memory
        .read(|_, graph| {
            let room = Budget { most: usize::MAX, bytes_max: 0, beside: 0 };
            let part = part(graph.entities(), graph.relations(), graph.version(), None, room)?;
            pretty(&PublishedGraph { entities: &part.entities, relations: &part.relations })
        })
        .await?;
    Ok(ResourceContents::text(memory.inner.config.tools.uri(GRAPH_URI), text).with_mime_type("application/json"))
}
