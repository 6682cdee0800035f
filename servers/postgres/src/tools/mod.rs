//! The tools.

mod describe;
mod execute;
mod explain;
mod health;
mod list;
mod query;
mod report;
mod top;

pub use describe::Describe;
pub use execute::{Changed, Execute, Ran};
pub use explain::{Explain, Plan};
pub use health::Health;
pub use list::{ListObjects, ListSchemas, Listed};
pub use query::{Column, Query, Rows};
pub use report::Report;
pub use top::{TopBy, TopQueries};

use crate::{DESCRIBE, EXECUTE, EXPLAIN, HEALTH, LIST_OBJECTS, LIST_SCHEMAS, Postgres, QUERY, TOP_QUERIES};
use linchpin::Tool;
use linchpin::types::tool::ToolAnnotations;
use linchpin_kit::ToolSet;

/// Registers the tools on a server.
pub(crate) fn add(toolset: ToolSet<Postgres>, writes: bool) -> ToolSet<Postgres> {
    let several = toolset.listed(&EXECUTE).map(|name| format!("; for several, use {name}")).unwrap_or_default();
    let query = |tool: Tool| {
        let tool = tool.output_schema(lean(&[
            ("columns", "array"),
            ("rows", "array"),
            ("row_count", "integer"),
            ("truncated", "boolean"),
        ]));
        if !writes {
            return tool;
        }
        // The same tool, but its effect is up to the caller.
        tool.description(format!("Runs one SQL statement, which may change data{several}.")).annotations(hints(true))
    };
    let explain = |tool: Tool| {
        if !writes {
            return tool;
        }
        // Numbers taken from a sequence stay taken.
        tool.description("Returns the plan of a statement; analyze runs it and rolls it back.")
            .annotations(hints(false))
    };
    let items = |tool: Tool| tool.output_schema(lean(&[("items", "array")]));
    toolset
        .tool_as(&QUERY, query, Postgres::query_tool)
        .tool_as(&LIST_SCHEMAS, items, Postgres::list_schemas)
        .tool_as(&LIST_OBJECTS, items, Postgres::list_objects)
        .tool(&DESCRIBE, Postgres::describe)
        .tool_as(&EXPLAIN, explain, Postgres::explain_tool)
        .tool_as(&TOP_QUERIES, items, Postgres::top_queries)
        .tool(&HEALTH, Postgres::health)
        .tool(&EXECUTE, Postgres::execute_tool)
}

/// The schema of an object with these members, without descriptions: models pay for every word of a tool list.
fn lean(members: &[(&str, &str)]) -> serde_json::Value {
    let properties: serde_json::Map<_, _> =
        members.iter().map(|(name, of)| ((*name).to_owned(), serde_json::json!({ "type": of }))).collect();
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    serde_json::json!({ "type": "object", "properties": properties, "required": required })
}

/// Annotations of a tool that makes changes.
fn hints(destructive: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .with_read_only_hint(false)
        .with_destructive_hint(destructive)
        .with_idempotent_hint(false)
        .with_open_world_hint(false)
}

/// A list of objects, not described further.
fn objects_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": "object" } })
}

/// A list of any values. Not every host understands the schema `true`.
fn values_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": {} })
}
