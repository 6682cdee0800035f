//! `query`.

use super::{objects_schema, values_schema};
use crate::Postgres;
use crate::answer::{Answer, Request};
use crate::session::Mode;
use crate::sql::{rules, write};
use crate::value::{Cell, cells, objects};
use linchpin_kit::{ToolError, ToolOutput, unknown_cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum rows that paging may skip.
const SKIP_MAX: usize = 1_000_000;

/// Arguments of `query`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Query {
    /// One statement.
    pub sql: String,
    /// Values for $1, $2, …
    #[serde(default)]
    #[schemars(schema_with = "values_schema")]
    pub params: Vec<serde_json::Value>,
    /// Maximum number of rows, below the server's limit.
    #[schemars(range(min = 1))]
    pub max_rows: Option<usize>,
    /// `next_cursor` of the previous result.
    pub cursor: Option<String>,
    /// The database, if several are configured.
    pub database: Option<String>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name; not necessarily unique.
    pub name: String,
    /// Its SQL type.
    pub r#type: String,
}

/// The result of `query`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Rows {
    /// The columns, in order.
    #[schemars(schema_with = "objects_schema")]
    pub columns: Vec<Column>,
    /// The rows, each a list of values in the order of the columns.
    pub rows: Vec<Vec<Cell>>,
    /// The number of rows in this result.
    pub row_count: usize,
    /// Whether the result is truncated.
    pub truncated: bool,
    /// The cursor to continue, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The command tag, in write mode: for example `UPDATE 3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Postgres {
    /// Converted with `?`, an error keeps its blocks and its kind.
    pub(super) async fn query_tool(&self, args: Query) -> linchpin::Result<ToolOutput<Rows>> {
        Ok(self.query(args).await?)
    }

    async fn query(&self, args: Query) -> Result<ToolOutput<Rows>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        self.touch_list();
        let limited = !database.target.schemas.is_empty();
        let vetted = rules::read(&args.sql, limited);
        let writes = self.config.writes();
        let skip = match args.cursor.as_deref() {
            None => 0,
            Some(_) if writes => return Err(no_cursors()),
            Some(text) => text
                .split_once('-')
                .filter(|(_, of)| *of == fingerprint(&args))
                .and_then(|(skip, _)| skip.parse().ok())
                .filter(|skip| *skip <= SKIP_MAX)
                .ok_or_else(|| unknown_cursor(text))?,
        };
        let rows_max = args.max_rows.unwrap_or(usize::MAX).clamp(1, self.config.max_rows);
        let (mode, length) = match (&vetted, writes) {
            (Ok(seen), false) => (Mode::Read, seen.length),
            (Err(fault), false) => return Err(fault.clone()),
            (_, true) => (Mode::Write, write::writable(&args.sql)?),
        };
        let request = Request { sql: &args.sql[..length], parameters: &args.params, skip, rows_max };
        let seen = vetted.as_ref().ok().filter(|_| mode == Mode::Read);
        let answer = database.ask(mode, seen, &[], request).await?;
        if writes && vetted.is_err() {
            database.forget_types();
        }
        let next =
            (answer.truncated && !writes).then(|| format!("{}-{}", skip + answer.rows.len(), fingerprint(&args)));
        Ok(shown(&answer, next, writes.then(|| answer.tag.clone())))
    }
}

/// A cursor runs its statement again, and there a SELECT can change something too, through the functions that it calls.
fn no_cursors() -> ToolError {
    ToolError::invalid("`cursor` is not supported in write mode: it would run the statement again.")
        .hint("Omit it, and read on with ORDER BY, LIMIT and OFFSET in the statement.")
}

/// Ties a cursor to its arguments, so that it cannot continue another statement.
fn fingerprint(args: &Query) -> String {
    let mut hasher = DefaultHasher::new();
    (&args.sql, &args.database).hash(&mut hasher);
    args.params.iter().for_each(|value| value.to_string().hash(&mut hasher));
    format!("{:08x}", hasher.finish() >> 32)
}

fn shown(answer: &Answer, next_cursor: Option<String>, command: Option<String>) -> ToolOutput<Rows> {
    let rows: Vec<Vec<Cell>> = answer.rows.iter().map(|row| cells(row, &answer.types)).collect();
    let names: Vec<&str> = answer.described.fields.iter().map(|field| field.name.as_str()).collect();
    let text = objects(&names, &rows);
    let columns = names.iter().zip(&answer.types);
    let columns = columns.map(|(name, of)| Column { name: (*name).to_owned(), r#type: of.name.clone() }).collect();
    let count = rows.len();
    let notice = answer.truncated.then(|| match &next_cursor {
        Some(cursor) => format!(
            "[Truncated after {count} rows. Continue with the same arguments and cursor={cursor:?} (add ORDER BY), or narrow the query.]"
        ),
        None => format!("[Truncated after {count} rows. For others, use ORDER BY, LIMIT and OFFSET in the statement.]"),
    });
    let value = Rows { columns, row_count: count, rows, truncated: answer.truncated, next_cursor, command };
    ToolOutput::outside(text, value).notice(notice)
}
