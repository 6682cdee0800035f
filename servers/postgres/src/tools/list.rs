//! `pg_list_schemas` and `pg_list_objects`.

use super::objects_schema;
use super::report::{TEXT_CHARS_MAX, clipped};
use crate::Postgres;
use crate::sql::{LIST_FUNCTIONS, LIST_OBJECTS, LIST_SCHEMAS};
use crate::value::{Cell, texts};
use crate::wire::Row;
use linchpin::Error;
use linchpin_kit::json::pretty;
use linchpin_kit::{ToolError, ToolOutput, unknown_cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Objects per page.
const PAGE_OBJECTS: usize = 200;

/// Arguments of `pg_list_schemas`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListSchemas {
    /// The database.
    pub database: Option<String>,
}

/// Arguments of `pg_list_objects`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListObjects {
    /// Only objects of this schema.
    pub schema: Option<String>,
    /// table, view, sequence or function (default: all but functions).
    pub kind: Option<String>,
    /// Only names that contain this.
    pub search: Option<String>,
    /// `next_cursor` of the previous result.
    pub cursor: Option<String>,
    /// The database.
    pub database: Option<String>,
}

/// A list of objects.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// The objects.
    #[schemars(schema_with = "objects_schema")]
    pub items: Vec<Cell>,
    /// The cursor to continue, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The answer of a list of JSON objects.
pub(super) fn listed(rows: &[Row], next_cursor: Option<String>) -> ToolOutput<Listed> {
    let items: Vec<Cell> = rows.iter().map(|row| Cell::from_json(&clipped(&row.text(0), TEXT_CHARS_MAX).0)).collect();
    let array = format!("[{}]", items.iter().map(Cell::get).collect::<Vec<_>>().join(","));
    let text = pretty(&array);
    let notice = next_cursor.as_ref().map(|cursor| {
        format!("[Truncated. Continue with the same arguments and cursor={cursor:?}, or narrow with schema or search.]")
    });
    ToolOutput::outside(text, Listed { items, next_cursor }).notice(notice)
}

impl Postgres {
    /// `pg_list_schemas`
    pub(super) async fn list_schemas(&self, args: ListSchemas) -> Result<ToolOutput<Listed>, Error> {
        let database = self.database(args.database.as_deref())?;
        let (rows, _) = database.own(LIST_SCHEMAS, &[Some(texts(&database.target.schemas))]).await?;
        Ok(listed(&rows, None))
    }

    /// `pg_list_objects`
    pub(super) async fn list_objects(&self, args: ListObjects) -> Result<ToolOutput<Listed>, Error> {
        let database = self.database(args.database.as_deref())?;
        let kinds: &[&str] = match args.kind.as_deref() {
            None => &["r", "p", "v", "m", "f", "S"],
            Some("table") => &["r", "p", "f"],
            Some("view" | "materialized view") => &["v", "m"],
            Some("sequence") => &["S"],
            Some("function") => &[],
            Some(other) => {
                return Err(ToolError::invalid(format!("Unknown kind: {other}"))
                    .hint("Use table, view, sequence or function.")
                    .into());
            }
        };
        let start = match args.cursor.as_deref() {
            None => 0_usize,
            Some(text) => text.parse().map_err(|_| unknown_cursor(text))?,
        };
        let parameters = [
            Some(texts(&database.target.schemas)),
            args.schema.clone(),
            args.search.clone(),
            Some((PAGE_OBJECTS + 1).to_string()),
            Some(start.to_string()),
            Some(texts(kinds)),
        ];
        let (rows, _) = match kinds {
            [] => database.own(LIST_FUNCTIONS, &parameters[..5]).await?,
            _ => database.own(LIST_OBJECTS, &parameters).await?,
        };
        let more = rows.len() > PAGE_OBJECTS;
        Ok(listed(&rows[..rows.len().min(PAGE_OBJECTS)], more.then(|| (start + PAGE_OBJECTS).to_string())))
    }
}
