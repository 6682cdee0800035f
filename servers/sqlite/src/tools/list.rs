//! `list_tables`.

use super::schema::{ALL_TABLES, OBJECTS_MAX};
use crate::Sqlite;
use crate::open::GuardedConnection;
use crate::table::Form;
use crate::value::Cell;
use linchpin::{Cx, Error};
use linchpin_kit::{Paging, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of each entry's type, which is in the structured content but not in the text.
const KIND_BYTES: usize = 16;

/// Arguments of `list_tables`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListTables {
    /// Also list views
    pub include_views: Option<bool>,
    /// From next_cursor
    pub cursor: Option<String>,
}

/// Tables by name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Tables {
    /// In creation order.
    pub tables: Vec<TableName>,
    /// Whether the result is truncated.
    #[serde(flatten)]
    pub paging: Paging,
}

/// A table or view.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TableName {
    /// Its name.
    pub name: String,
    /// `table` or `view`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// `list_tables`.
pub(crate) async fn list_tables(db: &Sqlite, cx: &Cx, args: ListTables) -> Result<ToolOutput<Tables>, Error> {
    let view = db.view();
    let views = args.include_views.unwrap_or(false);
    let sql = if views {
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"
    } else {
        "SELECT name FROM sqlite_master WHERE type = 'table'"
    };
    let page = move |conn: &GuardedConnection| {
        conn.rows(sql, &[], ALL_TABLES, Form::Json)?.page(args.cursor.as_deref(), view.bounds, KIND_BYTES, view.form)
    };
    let (table, paging) = db.read(cx, page).await?;
    let tables = table.rows.iter().filter_map(|row| {
        let kind = row.get(1).and_then(Cell::text).unwrap_or("table").to_owned();
        Some(TableName { name: row.first()?.text()?.to_owned(), kind })
    });
    let notice = paging.notice().or_else(|| all_that_is_looked_at(paging.truncated));
    let value = Tables { tables: tables.collect(), paging };
    Ok(ToolOutput::outside(table.text, value).notice(notice))
}

fn all_that_is_looked_at(truncated: bool) -> Option<String> {
    truncated.then(|| format!("[Truncated: there are more than {OBJECTS_MAX}. Query sqlite_master to list them.]"))
}
