//! `pg_top_queries`.

use super::list::{Listed, listed};
use crate::Postgres;
use crate::session::Database;
use crate::sql::lexer::quote_name;
use crate::sql::{EXTENSION, TOP_QUERIES};
use linchpin::Error;
use linchpin_kit::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Arguments of `pg_top_queries`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct TopQueries {
    /// Sort order: total, mean (time), calls or rows.
    #[serde(default)]
    #[schemars(schema_with = "top_by_schema")]
    pub sort: TopBy,
    /// Maximum number of statements (default 10, at most 100).
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// The database.
    pub database: Option<String>,
}

/// Sort orders of statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TopBy {
    /// Total execution time.
    #[default]
    Total,
    /// Mean execution time.
    Mean,
    /// Number of calls.
    Calls,
    /// Number of rows.
    Rows,
}

fn top_by_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "enum": ["total", "mean", "calls", "rows"] })
}

impl Postgres {
    /// `pg_top_queries`
    pub(super) async fn top_queries(&self, args: TopQueries) -> Result<ToolOutput<Listed>, Error> {
        let database = self.database(args.database.as_deref())?;
        if !database.target.schemas.is_empty() {
            return Err(ToolError::denied(
                "Statements of other schemas cannot be filtered out, and this server is limited to some schemas.",
            )
            .hint("The operator can start it without --schemas.")
            .into());
        }
        let schema = extension(database, "pg_stat_statements").await?.ok_or_else(|| {
            ToolError::not_found("The extension pg_stat_statements is not installed in this database.").hint(
                "An administrator must add it to shared_preload_libraries, restart, and run CREATE EXTENSION pg_stat_statements.",
            )
        })?;
        let order = match args.sort {
            TopBy::Total => "total",
            TopBy::Mean => "mean",
            TopBy::Calls => "calls",
            TopBy::Rows => "rows",
        };
        let sql = TOP_QUERIES.replace("extension.", &format!("{}.", quote_name(&schema)));
        let sql = format!("{sql} ORDER BY {order} DESC LIMIT $1");
        let limit = args.limit.unwrap_or(10).clamp(1, 100);
        let (rows, _) = database.own(&sql, &[Some(limit.to_string())]).await?;
        Ok(listed(&rows, None))
    }
}

/// The schema in which an extension is installed.
pub(super) async fn extension(database: &Arc<Database>, name: &str) -> Result<Option<String>, ToolError> {
    let (rows, _) = database.own(EXTENSION, &[Some(name.to_owned())]).await?;
    Ok(rows.first().map(|row| row.text(0)))
}
