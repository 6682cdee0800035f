//! The tools that take SQL.

use linchpin::{Cx, Error};
use linchpin_kit::{Fault, Paging, Shown, Told};
use rusqlite::{ErrorCode, Statement, ffi};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::guard::{Desk, Policy, Refusal};
use crate::pool;
use crate::rows::{self, Cell, End, Params, Table};
use crate::schema::SCHEMA_URI;
use crate::sql::Look;
use crate::{Sqlite, View};

/// What `read_query` takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ReadQuery {
    /// One statement that only reads: SELECT, WITH … SELECT, VALUES, EXPLAIN, or a PRAGMA that shows something.
    pub query: String,
    /// Values for placeholders: an array for ?, or an object for :name. Use them for every value that comes from elsewhere.
    pub params: Option<Params>,
}

/// What `write_query` takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct WriteQuery {
    /// One statement: INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, …, with RETURNING if its rows are wanted.
    pub query: String,
    /// Values for placeholders: an array for ?, or an object for :name. Use them for every value that comes from elsewhere.
    pub params: Option<Params>,
}

/// What `create_table` takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CreateTable {
    /// One CREATE TABLE statement.
    pub query: String,
}

/// What `sqlite_explain` takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Explain {
    /// The statement to explain, without EXPLAIN. Placeholders need no values.
    pub query: String,
}

/// Rows of a query.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each a value for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether there are more.
    #[serde(flatten)]
    pub paging: Paging,
}

/// What a statement changed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Written {
    /// Rows that were inserted, updated or deleted; -1 for CREATE, ALTER and DROP; nothing for statements that change no rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affected_rows: Option<i64>,
    /// Rows that the statement gave (RETURNING, PRAGMA), if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<Rows>,
}

/// A table that was created.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Created {
    /// Always true: a failure is an error.
    pub created: bool,
}

/// How SQLite would run a statement.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Plan {
    /// The steps; each belongs below its parent, 0 is the top.
    pub steps: Vec<PlanStep>,
}

/// A step of a plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PlanStep {
    /// Its number.
    pub id: i64,
    /// The step it belongs to.
    pub parent: i64,
    /// What is done: SCAN goes through all rows, SEARCH uses an index.
    pub detail: String,
}

/// `read_query`.
pub(crate) async fn read_query(db: &Sqlite, cx: &Cx, args: ReadQuery) -> Result<Shown<Rows>, Error> {
    let view = db.view();
    let table = db.read(cx, move |desk| desk.read(&args.query, args.params.as_ref(), view)).await?;
    Ok(shown(table))
}

fn shown(table: Table) -> Shown<Rows> {
    let (paging, notice) = (table.paging(), table.notice());
    Shown::outside(table.text, Rows { columns: table.columns, rows: table.rows, paging }).notice(notice)
}

/// `write_query`.
pub(crate) async fn write_query(db: &Sqlite, cx: &Cx, args: WriteQuery) -> Result<Shown<Written>, Error> {
    let view = db.view();
    let done = db.write(cx, move |desk| desk.write(&args.query, args.params.as_ref(), view)).await?;
    if done.is_schema {
        cx.server().resource_updated(&db.uri(SCHEMA_URI));
    }
    Ok(done.shown)
}

/// `create_table`.
pub(crate) async fn create_table(db: &Sqlite, cx: &Cx, args: CreateTable) -> Result<Shown<Created>, Error> {
    let view = db.view();
    db.write(cx, move |desk| {
        if !Look::at(&args.query).is_some_and(|look| look.begins(&["CREATE", "TABLE"])) {
            return Err(Fault::new("Error: Only CREATE TABLE statements are allowed").hint(
                "Begin the query with CREATE TABLE. Everything else that changes something is for write_query.",
            ));
        }
        desk.write(&args.query, None, view)
    })
    .await?;
    cx.server().resource_updated(&db.uri(SCHEMA_URI));
    Ok(Shown::ours("Table created successfully", Created { created: true }))
}

/// `sqlite_explain`.
pub(crate) async fn explain(db: &Sqlite, cx: &Cx, args: Explain) -> Result<Shown<Plan>, Error> {
    let view = db.view();
    let steps = db.read(cx, move |desk| desk.explain(&args.query, view)).await?;
    Ok(Shown::outside(tree(&steps), Plan { steps }))
}

/// What was done by [`Desk::write`].
pub(crate) struct Done {
    shown: Shown<Written>,
    is_schema: bool,
}

impl Desk {
    /// Runs a statement that only reads.
    pub(crate) fn read(&self, sql: &str, params: Option<&Params>, view: View) -> Result<Table, Fault> {
        let only_reads = || {
            Fault::new("Error: Only SELECT queries are allowed for read_query")
                .hint("Statements that change something are for write_query and create_table, if they are offered.")
        };
        let look = look(sql)?;
        single(&look)?;
        // These read only as long as there is nothing to do for them.
        if matches!(look.verb(), "REINDEX" | "ANALYZE" | "VACUUM") {
            return Err(only_reads());
        }
        let prepared = self.prepare(Policy::Read, sql);
        if prepared.is_err() && self.gate.refused() == Some(Refusal::Change) {
            return Err(only_reads());
        }
        let mut statement = prepared?;
        if !statement.readonly() {
            return Err(only_reads());
        }
        rows::bind(&mut statement, params)?;
        let table = rows::step(&mut statement, view.bounds, view.form, End::Stop).map_err(|e| self.fault(e))?;
        if table.rows.is_empty() && table.cut.is_some() {
            return Err(Fault::new(format!("Error: the first row alone is longer than {} bytes", view.bounds.bytes))
                .hint("Select fewer columns, or parts of long values: substr(column, 1, 1000), length(column)."));
        }
        Ok(table)
    }

    /// Runs a statement that may change something. It is a transaction of its own.
    pub(crate) fn write(&self, sql: &str, params: Option<&Params>, view: View) -> Result<Done, Fault> {
        let look = look(sql)?;
        single(&look)?;
        match look.verb() {
            "SELECT" => Err(Fault::new("Error: SELECT queries are not allowed for write_query")
                .hint("Use read_query, which also takes WITH, VALUES and EXPLAIN.")),
            "BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => {
                Err(Fault::new("Database error: not authorized").hint(Refusal::Transaction.advice()))
            }
            "VACUUM" => self.vacuum(|desk| desk.change(&look, Policy::Vacuum, sql, params, view)),
            "PRAGMA" => self.change(&look, Policy::WritePragma, sql, params, view),
            _ => self.change(&look, Policy::Write, sql, params, view),
        }
    }

    fn change(
        &self,
        look: &Look,
        policy: Policy,
        sql: &str,
        params: Option<&Params>,
        view: View,
    ) -> Result<Done, Fault> {
        let mut statement = self.prepare(policy, sql)?;
        rows::bind(&mut statement, params)?;
        let is_data = match look.verb() {
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => true,
            "WITH" => !statement.readonly(),
            _ => false,
        };
        let is_schema = matches!(look.verb(), "CREATE" | "DROP" | "ALTER");
        let table = rows::step(&mut statement, view.bounds, view.form, End::Finish).map_err(|e| self.fault(e))?;
        drop(statement);
        let affected_rows = match (is_data, is_schema) {
            (true, _) => Some(i64::try_from(self.conn.changes()).unwrap_or(i64::MAX)),
            (_, true) => Some(-1),
            _ => None,
        };
        let (paging, notice) = (table.paging(), table.notice());
        let returned = (!table.columns.is_empty()).then_some(Rows { columns: table.columns, rows: table.rows, paging });
        let (text, told) = match (affected_rows, &returned) {
            (Some(n), None) => (affected(n, view), Told::ByUs),
            _ => (table.text, Told::Outside),
        };
        let shown = Shown { told, ..Shown::ours(text, Written { affected_rows, returned }) };
        Ok(Done { shown: shown.notice(notice), is_schema })
    }

    fn explain(&self, sql: &str, view: View) -> Result<Vec<PlanStep>, Fault> {
        let look = look(sql)?;
        single(&look)?;
        if !matches!(look.verb(), "SELECT" | "WITH" | "VALUES" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE") {
            return Err(Fault::new(format!("Error: {} cannot be explained", look.verb()))
                .hint("Pass the query that you want explained, as you would pass it to read_query or write_query."));
        }
        let mut statement = self.prepare(Policy::Explain, &format!("EXPLAIN QUERY PLAN {}", &sql[look.start..]))?;
        if statement.is_explain() != 2 {
            return Err(Fault::new("Error: this statement cannot be explained"));
        }
        let table = rows::step(&mut statement, view.bounds, view.form, End::Stop).map_err(|error| self.fault(error))?;
        let steps = table.rows.iter().filter_map(|row| match row.as_slice() {
            [Cell::Integer(id), Cell::Integer(parent), _, Cell::Text(detail)] => {
                Some(PlanStep { id: *id, parent: *parent, detail: detail.clone() })
            }
            _ => None,
        });
        Ok(steps.collect())
    }

    /// Compiles one statement under a policy, which stays in force for the rest of the call: SQLite may compile it again.
    pub(crate) fn prepare(&self, policy: Policy, sql: &str) -> Result<Statement<'_>, Fault> {
        self.gate.set(policy);
        match self.conn.prepare(sql) {
            Err(error) if message(&error).is_some_and(|text| text.starts_with("no such")) => {
                // While another program holds the lock, SQLite goes by the schema it knew before. Ask for the present one.
                let version = self.conn.query_row("PRAGMA main.schema_version", [], |row| row.get::<_, i64>(0));
                version.map_err(|error| self.fault(error))?;
                self.gate.set(policy);
                self.conn.prepare(sql).map_err(|error| self.fault(error))
            }
            prepared => prepared.map_err(|error| self.fault(error)),
        }
    }

    /// An error of SQLite in words for the model.
    pub(crate) fn fault(&self, error: rusqlite::Error) -> Fault {
        let (code, extended, message) = match error {
            rusqlite::Error::SqliteFailure(error, message) => (error.code, error.extended_code, message),
            rusqlite::Error::SqlInputError { error, msg, .. } => (error.code, error.extended_code, Some(msg)),
            rusqlite::Error::MultipleStatement => return several(),
            other => return Fault::new(format!("Database error: {}", cleaned(&other.to_string()))),
        };
        let message = message.unwrap_or_else(|| ffi::code_to_str(extended).to_owned());
        let fault = Fault::new(format!("Database error: {}", cleaned(&message)));
        match code {
            ErrorCode::OperationInterrupted => pool::interrupted(),
            // The commit was turned down because the call was over.
            ErrorCode::ConstraintViolation if extended == ffi::SQLITE_CONSTRAINT_COMMITHOOK => pool::interrupted(),
            ErrorCode::AuthorizationForStatementDenied => {
                let refusal = self.gate.refused().unwrap_or(Refusal::Other);
                Fault::new("Database error: not authorized").hint(refusal.advice())
            }
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                fault.hint("Another program holds the lock. Nothing was changed; try again later.")
            }
            ErrorCode::TooBig => fault.hint("A value, a row or the query is larger than this server allows."),
            ErrorCode::OutOfMemory => {
                fault.hint("The statement needs more memory than it may have. Let it sort or group fewer rows.")
            }
            ErrorCode::ReadOnly => fault.hint("The database cannot be written to. Nothing was changed."),
            ErrorCode::NotADatabase => fault.hint("The file is no SQLite database, or it is encrypted."),
            ErrorCode::DatabaseCorrupt => fault.hint("The file is damaged; PRAGMA integrity_check tells more."),
            ErrorCode::DiskFull => fault.hint("Nothing was changed."),
            ErrorCode::ConstraintViolation if extended == ffi::SQLITE_CONSTRAINT_TRIGGER => {
                fault.hint("Nothing was changed. These are the words of a trigger in the database, not of the server.")
            }
            ErrorCode::ConstraintViolation => fault.hint("Nothing was changed."),
            _ if message.starts_with("no such") => fault.hint("list_tables and describe_table show what there is."),
            _ => fault,
        }
    }
}

fn message(error: &rusqlite::Error) -> Option<&str> {
    match error {
        rusqlite::Error::SqliteFailure(_, message) => message.as_deref(),
        rusqlite::Error::SqlInputError { msg, .. } => Some(msg),
        _ => None,
    }
}

/// Messages may hold names from the database: one line of a bounded length.
fn cleaned(message: &str) -> String {
    const CHARS_MAX: usize = 500;
    let mut text: String = message.chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if message.chars().nth(CHARS_MAX).is_some() {
        text.push('…');
    }
    text
}

fn look(sql: &str) -> Result<Look, Fault> {
    if sql.contains('\0') {
        return Err(Fault::new("Error: the query contains a NUL character").hint("SQL text ends there; leave it out."));
    }
    Look::at(sql).ok_or_else(|| Fault::new("Error: the query holds no statement"))
}

fn single(look: &Look) -> Result<(), Fault> {
    if look.more { Err(several()) } else { Ok(()) }
}

fn several() -> Fault {
    Fault::new("Database error: You can only execute one statement at a time.")
        .hint("Make one call for each statement.")
}

fn affected(rows: i64, view: View) -> String {
    match view.form {
        rows::Form::Json => format!("[{{\"affected_rows\":{rows}}}]"),
        rows::Form::Python => format!("[{{'affected_rows': {rows}}}]"),
    }
}

/// The plan as SQLite's own shell draws it.
fn tree(steps: &[PlanStep]) -> String {
    let mut text = String::from("QUERY PLAN");
    draw(steps, 0, "", 0, &mut text);
    text
}

fn draw(steps: &[PlanStep], parent: i64, indent: &str, depth: usize, text: &mut String) {
    // Plans are not deep; a bound costs nothing.
    const DEPTH_MAX: usize = 100;
    let mut children = steps.iter().filter(|step| step.parent == parent && step.id != parent).peekable();
    while let Some(step) = children.next() {
        let last = children.peek().is_none();
        let branch = if last { "`--" } else { "|--" };
        text.push_str(&format!("\n{indent}{branch}{}", step.detail));
        if depth < DEPTH_MAX {
            let below = format!("{indent}{}", if last { "   " } else { "|  " });
            draw(steps, step.id, &below, depth + 1, text);
        }
    }
}
