//! The tools that take SQL.

use linchpin::{Cx, Error};
use linchpin_kit::{ErrorKind, Provenance, ToolError, ToolOutput, clip};
use rusqlite::{ErrorCode, Statement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::several_statements;
use crate::guard::{GuardedConnection, Policy, Refusal};
use crate::pool;
use crate::rows::{self, Cell, End, Params, Table};
use crate::schema::SCHEMA_URI;
use crate::{Sqlite, View};

/// Arguments of `read_query`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ReadQuery {
    /// One read-only statement: SELECT, WITH … SELECT, VALUES, EXPLAIN, or a PRAGMA that reads a setting.
    pub query: String,
    /// Values for placeholders: an array for ?, or an object for :name. Use them for all values from other sources.
    pub params: Option<Params>,
}

/// Arguments of `write_query`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct WriteQuery {
    /// One statement: INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, …, with RETURNING to get the affected rows.
    pub query: String,
    /// Values for placeholders: an array for ?, or an object for :name. Use them for all values from other sources.
    pub params: Option<Params>,
}

/// Arguments of `create_table`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CreateTable {
    /// One CREATE TABLE statement.
    pub query: String,
}

/// Arguments of `sqlite_explain`.
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
    /// The rows, each with one value per column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
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

/// A query plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Plan {
    /// The steps as a tree; parent 0 is the root.
    pub steps: Vec<PlanStep>,
    /// Whether the result is truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A step of a plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PlanStep {
    /// Its number.
    pub id: i64,
    /// The parent step.
    pub parent: i64,
    /// The operation: SCAN reads all rows, SEARCH uses an index.
    pub detail: String,
}

/// `read_query`.
pub(crate) async fn read_query(db: &Sqlite, cx: &Cx, args: ReadQuery) -> Result<ToolOutput<Rows>, Error> {
    let view = db.view();
    let table = db.read(cx, move |desk| desk.read(&args.query, args.params.as_ref(), view)).await?;
    Ok(shown(table))
}

fn shown(table: Table) -> ToolOutput<Rows> {
    let (truncated, notice) = (table.cut.is_some(), table.notice());
    ToolOutput::outside(table.text, Rows { columns: table.columns, rows: table.rows, truncated }).notice(notice)
}

/// `write_query`.
pub(crate) async fn write_query(db: &Sqlite, cx: &Cx, args: WriteQuery) -> Result<ToolOutput<Written>, Error> {
    let view = db.view();
    let done = db.write(cx, move |desk| desk.write(&args.query, args.params.as_ref(), view)).await?;
    if done.is_schema {
        cx.server().resource_updated(&db.uri(SCHEMA_URI));
    }
    Ok(done.shown)
}

/// `create_table`.
pub(crate) async fn create_table(db: &Sqlite, cx: &Cx, args: CreateTable) -> Result<ToolOutput<Created>, Error> {
    let view = db.view();
    db.write(cx, move |desk| {
        if !Look::at(&args.query).is_some_and(|look| look.begins(&["CREATE", "TABLE"])) {
            return Err(ToolError::invalid("Error: Only CREATE TABLE statements are allowed")
                .hint("Start the query with CREATE TABLE. For other changes use write_query."));
        }
        desk.write(&args.query, None, view)
    })
    .await?;
    cx.server().resource_updated(&db.uri(SCHEMA_URI));
    Ok(ToolOutput::ours("Table created successfully", Created { created: true }))
}

/// `sqlite_explain`.
pub(crate) async fn explain(db: &Sqlite, cx: &Cx, args: Explain) -> Result<ToolOutput<Plan>, Error> {
    let view = db.view();
    let (text, plan) = db.read(cx, move |desk| desk.explain(&args.query, view)).await?;
    let notice = plan.truncated.then(|| "[Truncated: the plan has more steps. Explain parts of the query.]".into());
    Ok(ToolOutput::outside(text, plan).notice(notice))
}

/// What was done by [`GuardedConnection::write`].
pub(crate) struct Done {
    shown: ToolOutput<Written>,
    is_schema: bool,
}

impl GuardedConnection {
    /// Runs a statement that only reads.
    pub(crate) fn read(&self, sql: &str, params: Option<&Params>, view: View) -> Result<Table, ToolError> {
        let only_reads = || {
            ToolError::denied("Error: Only SELECT queries are allowed for read_query")
                .hint("For changes use write_query and create_table, if they are available.")
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
        // Under this policy a PRAGMA only shows something, and SQLite does not say so of journal_mode.
        if !statement.readonly() && look.verb() != "PRAGMA" {
            return Err(only_reads());
        }
        rows::bind(&mut statement, params)?;
        let table = rows::step(&mut statement, view.bounds, view.form, End::Stop).map_err(|e| self.error(e))?;
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

    /// Runs a statement that may change something. It is a transaction of its own.
    pub(crate) fn write(&self, sql: &str, params: Option<&Params>, view: View) -> Result<Done, ToolError> {
        let look = look(sql)?;
        single(&look)?;
        match look.verb() {
            "SELECT" => Err(ToolError::invalid("Error: SELECT queries are not allowed for write_query")
                .hint("Use read_query, which also takes WITH, VALUES and EXPLAIN.")),
            "BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => {
                Err(ToolError::denied("Database error: not authorized").hint(Refusal::Transaction.advice()))
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
    ) -> Result<Done, ToolError> {
        let mut statement = self.prepare(policy, sql)?;
        rows::bind(&mut statement, params)?;
        let is_data = match look.verb() {
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => true,
            "WITH" => !statement.readonly(),
            _ => false,
        };
        let is_schema = matches!(look.verb(), "CREATE" | "DROP" | "ALTER");
        let table = rows::step(&mut statement, view.bounds, view.form, End::Finish).map_err(|e| self.error(e))?;
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

    /// The plan as a tree and as steps.
    fn explain(&self, sql: &str, view: View) -> Result<(String, Plan), ToolError> {
        let look = look(sql)?;
        single(&look)?;
        if !matches!(look.verb(), "SELECT" | "WITH" | "VALUES" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE") {
            return Err(ToolError::invalid(format!("Error: {} cannot be explained", look.verb()))
                .hint("Pass the query without EXPLAIN, as for read_query or write_query."));
        }
        let mut statement = self.prepare(Policy::Explain, &format!("EXPLAIN QUERY PLAN {}", &sql[look.start..]))?;
        if statement.is_explain() != 2 {
            return Err(ToolError::invalid("Error: this statement cannot be explained"));
        }
        let table = rows::step(&mut statement, view.bounds, view.form, End::Stop).map_err(|error| self.error(error))?;
        let steps = table.rows.iter().filter_map(|row| match row.as_slice() {
            [Cell::Integer(id), Cell::Integer(parent), _, Cell::Text(detail)] => {
                Some(PlanStep { id: *id, parent: *parent, detail: detail.clone() })
            }
            _ => None,
        });
        let steps: Vec<PlanStep> = steps.collect();
        let text = tree(&steps);
        let cut = clip(&text, view.bounds.bytes);
        let truncated = table.cut.is_some() || cut.left_out > 0;
        Ok((cut.text.to_owned(), Plan { steps, truncated }))
    }

    /// Compiles one statement under a policy, which stays in force for the rest of the call: SQLite may compile it
    /// again.
    pub(crate) fn prepare(&self, policy: Policy, sql: &str) -> Result<Statement<'_>, ToolError> {
        // SQLite would show where the file is, which nobody who only has its name need know.
        let shown = format!("SELECT 0 AS seq, 'main' AS name, '{}' AS file", self.named.replace('\'', "''"));
        let lists = Look::at(sql).is_some_and(|look| look.begins(&["PRAGMA", "DATABASE_LIST"]));
        let sql = if lists { shown.as_str() } else { sql };
        self.limit_preparation().map_err(|error| self.error(error))?;
        self.gate.set(policy);
        let prepared = match self.conn.prepare(sql) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
                // Something may be missing only because SQLite goes by the schema it knew before, while another program
                // holds the lock. Ask for the present one.
                let version = self.conn.query_row("PRAGMA main.schema_version", [], |row| row.get::<_, i64>(0));
                version.map_err(|error| self.error(error))?;
                self.gate.set(policy);
                self.conn.prepare(sql)
            }
            prepared => prepared,
        };
        let statement = prepared.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => pool::unprepared(),
            _ => self.error(error),
        })?;
        self.limit_values().map_err(|error| self.error(error))?;
        Ok(statement)
    }
}

fn look(sql: &str) -> Result<Look, ToolError> {
    if sql.contains('\0') {
        return Err(
            ToolError::invalid("Error: the query contains a NUL character").hint("SQL text ends there; remove it.")
        );
    }
    Look::at(sql).ok_or_else(|| ToolError::invalid("Error: the query contains no statement"))
}

fn single(look: &Look) -> Result<(), ToolError> {
    if look.more { Err(several_statements()) } else { Ok(()) }
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

// A look at SQL text before SQLite sees it. Some PRAGMAs act while they are prepared, so text behind a first statement
// must be refused before any of it is prepared. This is no parser, and nothing rests on it alone: the authorizer
// decides what a statement may do, and rusqlite refuses a second statement that was not recognised here.

/// What a piece of SQL text begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// Where the first token begins, behind blanks, comments and semicolons.
    pub(crate) start: usize,
    /// The words it begins with, in capitals; at most [`WORDS_MAX`].
    words: Vec<String>,
    /// Whether anything but comments follows the first statement.
    pub(crate) more: bool,
}

/// Words that are enough to tell the statements apart.
const WORDS_MAX: usize = 4;

impl Look {
    /// Looks at a text. `None` when it holds no statement at all.
    pub(crate) fn at(sql: &str) -> Option<Look> {
        let mut tokens = Tokens { sql, at: 0 };
        let (start, mut token) = tokens.by_ref().find(|(_, token)| *token != Token::Semicolon)?;
        let mut words = Vec::new();
        while let Token::Word(word) = token {
            words.push(word.to_ascii_uppercase());
            if words.len() == WORDS_MAX {
                break;
            }
            match tokens.next() {
                Some((_, next)) => token = next,
                None => break,
            }
        }
        let mut look = Look { start, words, more: false };
        // A trigger has semicolons inside. There SQLite has to say where it ends.
        if !look.is_trigger() {
            let ended = token == Token::Semicolon || tokens.by_ref().any(|(_, token)| token == Token::Semicolon);
            look.more = ended && tokens.any(|(_, token)| token != Token::Semicolon);
        }
        Some(look)
    }

    /// The first word; empty when the text begins with something else.
    pub(crate) fn verb(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Whether it begins with these words.
    pub(crate) fn begins(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && self.words.iter().zip(words).all(|(have, want)| have == want)
    }

    fn is_trigger(&self) -> bool {
        self.begins(&["CREATE", "TRIGGER"])
            || self.begins(&["CREATE", "TEMP", "TRIGGER"])
            || self.begins(&["CREATE", "TEMPORARY", "TRIGGER"])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Semicolon,
    Other,
}

/// Tokens with where they begin, as SQLite's own tokenizer cuts them, as far as it matters here.
struct Tokens<'a> {
    sql: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = &self.sql[self.at..];
            let first = rest.chars().next()?;
            let begin = self.at;
            let (length, token) = match first {
                ' ' | '\t' | '\n' | '\r' | '\x0c' | '\u{feff}' => (first.len_utf8(), None),
                '-' if rest.starts_with("--") => (until(rest, 2, "\n"), None),
                '/' if rest.starts_with("/*") => (until(rest, 2, "*/"), None),
                ';' => (1, Some(Token::Semicolon)),
                '\'' | '"' | '`' => (quoted(rest, first), Some(Token::Other)),
                '[' => (until(rest, 1, "]"), Some(Token::Other)),
                c if is_word(c) => {
                    let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                    (length, Some(Token::Word(&rest[..length])))
                }
                other => (other.len_utf8(), Some(Token::Other)),
            };
            self.at += length;
            if let Some(token) = token {
                return Some((begin, token));
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || (!c.is_ascii() && c != '\u{feff}')
}

/// The length up to and with `end`, which is looked for from `from` on; everything if it does not come.
fn until(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

/// The length of a quoted text, in which the quote is written twice to mean itself.
fn quoted(text: &str, quote: char) -> usize {
    let mut at = 1;
    loop {
        match text[at..].find(quote) {
            None => return text.len(),
            Some(found) => {
                at += found + 1;
                if !text[at..].starts_with(quote) {
                    return at;
                }
                at += 1;
            }
        }
    }
}

/// A name as SQL can hold it, whatever is in it.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_statement_is_found_behind_comments_and_semicolons() {
        for (sql, words) in [
            ("SELECT 1", "SELECT 1"),
            ("  -- SELECT\n /* x; */ ; ;\u{feff}insert INTO t VALUES (1)", "INSERT INTO T VALUES"),
            ("create Table if not exists t(a)", "CREATE TABLE IF NOT"),
            ("pragma main.x", "PRAGMA MAIN"),
            ("(SELECT 1)", ""),
            ("'a'", ""),
            ("VALUES(1)", "VALUES"),
        ] {
            assert_eq!(Look::at(sql).unwrap().words.join(" "), words, "{sql}");
        }
        for empty in ["", " ;; ", "-- only", "/* never closed", ";\u{feff}\n"] {
            assert_eq!(Look::at(empty), None, "{empty:?}");
        }
        assert_eq!(Look::at(" /*x*/ SELECT").unwrap().start, 7);
    }

    #[test]
    fn a_second_statement_is_seen_and_a_semicolon_in_a_text_is_not() {
        for (sql, more) in [
            ("SELECT 1", false),
            ("SELECT 1;", false),
            ("SELECT 1; -- end", false),
            ("SELECT 1;; /* ; x */ ;", false),
            ("SELECT 1; x", true),
            ("SELECT 1; DROP TABLE t", true),
            ("SELECT;x", true),
            (";;SELECT ';' ; /**/ DROP TABLE t", true),
            ("SELECT ';x', \"a;b\", `;`, [;] FROM t", false),
            ("SELECT 'it''s; fine'", false),
            ("SELECT 'never closed; DROP TABLE t", false),
            ("SELECT 1 -- ; DROP TABLE t", false),
            ("SELECT 1 /* ; */; 'x'", true),
            ("CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END", false),
            ("CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END", false),
            ("CREATE TABLE a(b); CREATE TABLE c(d)", true),
        ] {
            assert_eq!(Look::at(sql).unwrap().more, more, "{sql}");
        }
    }

    #[test]
    fn a_quoted_name_holds_anything() {
        assert_eq!(quote("a\"b; --"), "\"a\"\"b; --\"");
    }
}
