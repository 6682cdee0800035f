//! `read_query`.

use crate::open::GuardedConnection;
use crate::open::authorizer::{Policy, Refusal};
use crate::run::{self, End};
use crate::statement::{outline, single};
use crate::table::Table;
use crate::value::{Cell, Params};
use crate::{Sqlite, View};
use linchpin::{Cx, Error};
use linchpin_kit::{ErrorKind, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `read_query`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ReadQuery {
    /// SELECT, WITH or PRAGMA
    pub query: String,
    /// Values for ? or :name
    pub params: Option<Params>,
}

/// Rows of a query.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with one value per column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// `read_query`.
pub(crate) async fn read_query(db: &Sqlite, cx: &Cx, args: ReadQuery) -> Result<ToolOutput<Rows>, Error> {
    let view = db.view();
    let table = db.read(cx, move |conn| conn.read(&args.query, args.params.as_ref(), view)).await?;
    Ok(shown(table))
}

fn shown(table: Table) -> ToolOutput<Rows> {
    let (truncated, notice) = (table.cut.is_some(), table.notice());
    ToolOutput::outside(table.text, Rows { columns: table.columns, rows: table.rows, truncated }).notice(notice)
}

impl GuardedConnection {
    /// Runs a read-only statement.
    pub(crate) fn read(&self, sql: &str, params: Option<&Params>, view: View) -> Result<Table, ToolError> {
        let only_reads = || {
            ToolError::denied("Error: Only SELECT queries are allowed for read_query")
                .hint("For changes use write_query and create_table, if they are available.")
        };
        let outline = outline(sql)?;
        single(&outline)?;
        // These are read-only only if there is nothing to do.
        if matches!(outline.verb(), "REINDEX" | "ANALYZE" | "VACUUM") {
            return Err(only_reads());
        }
        let prepared = self.prepare(Policy::Read, sql);
        if prepared.is_err() && self.authorizer.refused() == Some(Refusal::Change) {
            return Err(only_reads());
        }
        let mut statement = prepared?;
        // Under this policy a PRAGMA only reads, but SQLite does not report journal_mode as read-only.
        if !statement.readonly() && outline.verb() != "PRAGMA" {
            return Err(only_reads());
        }
        run::bind(&mut statement, params)?;
        let table = run::step(&mut statement, view.bounds, view.form, End::Stop).map_err(|e| self.error(e))?;
        if table.rows.is_empty() && table.cut.is_some() {
            return Err(ToolError::new(format!(
                "Error: the first row alone is longer than {} bytes",
                view.bounds.bytes
            ))
            .kind(ErrorKind::Limited { retry_after: None })
            .hint("Select fewer columns, or parts of long values: substr(column, 1, 1000), length(column)."));
        }
        Ok(table)
    }
}
