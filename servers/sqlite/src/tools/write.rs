//! `write_query` and `create_table`.

use super::read::Rows;
use super::schema::SCHEMA_URI;
use crate::open::GuardedConnection;
use crate::open::authorizer::{Policy, Refusal};
use crate::run::{self, End};
use crate::statement::{Outline, outline, single};
use crate::table::Form;
use crate::value::Params;
use crate::{Sqlite, View};
use linchpin::{Cx, Error};
use linchpin_kit::{Provenance, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `write_query`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct WriteQuery {
    /// INSERT, UPDATE, DELETE, …
    pub query: String,
    /// Values for ? or :name
    pub params: Option<Params>,
}

/// Arguments of `create_table`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CreateTable {
    /// CREATE TABLE …
    pub query: String,
}

/// The result of a write.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Written {
    /// The number of inserted, updated or deleted rows; -1 for CREATE, ALTER and DROP; absent for statements that
    /// change no rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affected_rows: Option<i64>,
    /// The rows of the statement (RETURNING, PRAGMA), if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<Rows>,
}

/// A table that was created.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Created {
    /// Always true: a failure is an error.
    pub created: bool,
}

/// `write_query`.
pub(crate) async fn write_query(db: &Sqlite, cx: &Cx, args: WriteQuery) -> Result<ToolOutput<Written>, Error> {
    let view = db.view();
    let done = db.write(cx, move |conn| conn.write(&args.query, args.params.as_ref(), view)).await?;
    if done.is_schema {
        cx.server().resource_updated(&db.uri(SCHEMA_URI));
    }
    Ok(done.shown)
}

/// `create_table`.
pub(crate) async fn create_table(db: &Sqlite, cx: &Cx, args: CreateTable) -> Result<ToolOutput<Created>, Error> {
    let view = db.view();
    db.write(cx, move |conn| {
        if !Outline::at(&args.query).is_some_and(|outline| outline.begins(&["CREATE", "TABLE"])) {
            return Err(ToolError::invalid("Error: Only CREATE TABLE statements are allowed")
                .hint("Start the query with CREATE TABLE. For other changes use write_query."));
        }
        conn.write(&args.query, None, view)
    })
    .await?;
    cx.server().resource_updated(&db.uri(SCHEMA_URI));
    Ok(ToolOutput::ours("Table created successfully", Created { created: true }))
}

/// The outcome of [`GuardedConnection::write`].
pub(crate) struct Done {
    shown: ToolOutput<Written>,
    is_schema: bool,
}

impl GuardedConnection {
    /// Runs a statement that may make changes, in its own transaction.
    pub(crate) fn write(&self, sql: &str, params: Option<&Params>, view: View) -> Result<Done, ToolError> {
        let outline = outline(sql)?;
        single(&outline)?;
        match outline.verb() {
            "SELECT" => Err(ToolError::invalid("Error: SELECT queries are not allowed for write_query")
                .hint("Use read_query, which also takes WITH, VALUES and EXPLAIN.")),
            "BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => {
                Err(ToolError::denied("Database error: not authorized").hint(Refusal::Transaction.advice()))
            }
            "VACUUM" => self.vacuum(|conn| conn.change(&outline, Policy::Vacuum, sql, params, view)),
            "PRAGMA" => self.change(&outline, Policy::WritePragma, sql, params, view),
            _ => self.change(&outline, Policy::Write, sql, params, view),
        }
    }

    fn change(
        &self,
        outline: &Outline,
        policy: Policy,
        sql: &str,
        params: Option<&Params>,
        view: View,
    ) -> Result<Done, ToolError> {
        let mut statement = self.prepare(policy, sql)?;
        run::bind(&mut statement, params)?;
        let is_data = match outline.verb() {
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => true,
            "WITH" => !statement.readonly(),
            _ => false,
        };
        let is_schema = matches!(outline.verb(), "CREATE" | "DROP" | "ALTER");
        let table = run::step(&mut statement, view.bounds, view.form, End::Finish).map_err(|e| self.error(e))?;
        drop(statement);
        let affected_rows = match (is_data, is_schema) {
            (true, _) => Some(i64::try_from(self.conn.changes()).unwrap_or(i64::MAX)),
            (_, true) => Some(-1),
            _ => None,
        };
        let (truncated, notice) = (table.cut.is_some(), table.notice());
        let returned =
            (!table.columns.is_empty()).then_some(Rows { columns: table.columns, rows: table.rows, truncated });
        let (text, provenance) = match (affected_rows, &returned) {
            (Some(n), None) => (affected(n, view), Provenance::Server),
            _ => (table.text, Provenance::ThirdParty),
        };
        let shown = ToolOutput { provenance, ..ToolOutput::ours(text, Written { affected_rows, returned }) };
        Ok(Done { shown: shown.notice(notice), is_schema })
    }
}

fn affected(rows: i64, view: View) -> String {
    match view.form {
        Form::Json => format!("[{{\"affected_rows\":{rows}}}]"),
        Form::Python => format!("[{{'affected_rows': {rows}}}]"),
    }
}
