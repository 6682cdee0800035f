//! `describe_table`.

use super::schema::{TABLE_BYTES_MAX, about, no_such};
use crate::Sqlite;
use crate::table::{Bounds, Form};
use crate::value::Cell;
use linchpin::{Cx, Error};
use linchpin_kit::{Paging, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of columns considered for a page. SQLite allows at most 32,767.
const ALL_COLUMNS: Bounds = Bounds { rows: 32_767, bytes: TABLE_BYTES_MAX };

/// Arguments of `describe_table`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct DescribeTable {
    /// As in list_tables
    pub table_name: String,
    /// From next_cursor
    pub cursor: Option<String>,
}

/// The columns of a table.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Columns {
    /// The columns in order.
    pub columns: Vec<Column>,
    /// Whether the result is truncated.
    #[serde(flatten)]
    pub paging: Paging,
}

/// A column, as in PRAGMA table_info.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Column {
    /// Its position, from 0.
    pub cid: i64,
    /// Its name.
    pub name: String,
    /// Its declared type; may be empty.
    #[serde(rename = "type")]
    pub kind: String,
    /// 1 if NULL is not allowed.
    pub notnull: i64,
    /// Its default expression.
    pub dflt_value: Option<String>,
    /// Its position in the primary key, from 1; 0 if it is not part of it.
    pub pk: i64,
}

/// `describe_table`.
pub(crate) async fn describe_table(db: &Sqlite, cx: &Cx, args: DescribeTable) -> Result<ToolOutput<Columns>, Error> {
    let view = db.view();
    let (table, paging) = db
        .read(cx, move |conn| {
            let table = conn.rows(&about("table_info", &args.table_name)?, &[], ALL_COLUMNS, Form::Json)?;
            if table.rows.is_empty() && table.cut.is_none() {
                return Err(no_such(&args.table_name));
            }
            table.page(args.cursor.as_deref(), view.bounds, 0, view.form)
        })
        .await?;
    let text = |cell: Option<&Cell>| cell.and_then(Cell::text).map(str::to_owned);
    let number = |cell: Option<&Cell>| cell.and_then(Cell::integer).unwrap_or_default();
    let columns = table.rows.iter().map(|row| Column {
        cid: number(row.first()),
        name: text(row.get(1)).unwrap_or_default(),
        kind: text(row.get(2)).unwrap_or_default(),
        notnull: number(row.get(3)),
        dflt_value: text(row.get(4)),
        pk: number(row.get(5)),
    });
    let notice = paging.notice().or_else(|| table.notice());
    let value = Columns { columns: columns.collect(), paging };
    Ok(ToolOutput::outside(table.text, value).notice(notice))
}
