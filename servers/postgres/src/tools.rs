//! Running statements: `query`, `pg_explain`, `pg_execute`.

use crate::cell::{Answer, Cell, Request, cells, cleaned, objects};
use crate::session::Mode;
use crate::{DESCRIBE, EXECUTE, EXPLAIN, HEALTH, LIST_OBJECTS, LIST_SCHEMAS, Postgres, QUERY, TOP_QUERIES, guard, lex};
use fallible_iterator::FallibleIterator;
use linchpin::Tool;
use linchpin::types::tool::ToolAnnotations;
use linchpin_kit::{ToolError, ToolOutput, ToolSet};
use postgres_protocol::message::backend::ErrorFields;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Rows that paging may pass over.
const SKIP_MAX: usize = 1_000_000;

/// Statements of one call of `pg_execute`.
const STATEMENTS_MAX: usize = 100;

/// Indexes to imagine for one plan.
const INDEXES_MAX: usize = 20;

/// Bytes of a name in the words for an error; PostgreSQL's own limit.
const NAME_BYTES_MAX: usize = 63;

/// Lines of a plan.
const PLAN_LINES_MAX: usize = 1_000;

/// Puts the tools on a server.
pub(crate) fn add(toolbox: ToolSet<Postgres>, writes: bool) -> ToolSet<Postgres> {
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
        // The same tool, but what it does is the caller's choice.
        tool.description("Runs one SQL statement, which may change data; for several, use pg_execute.")
            .annotations(hints(true))
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
    toolbox
        .tool_as(&QUERY, query, Postgres::query_tool)
        .tool_as(&LIST_SCHEMAS, items, Postgres::list_schemas)
        .tool_as(&LIST_OBJECTS, items, Postgres::list_objects)
        .tool(&DESCRIBE, Postgres::describe)
        .tool_as(&EXPLAIN, explain, Postgres::explain_tool)
        .tool_as(&TOP_QUERIES, items, Postgres::top_queries)
        .tool(&HEALTH, Postgres::health)
        .tool(&EXECUTE, Postgres::execute_tool)
}

/// The schema of an object with these members. Lists of tools are read by models, and every word of a schema costs.
fn lean(members: &[(&str, &str)]) -> serde_json::Value {
    let properties: serde_json::Map<_, _> =
        members.iter().map(|(name, of)| ((*name).to_owned(), serde_json::json!({ "type": of }))).collect();
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    serde_json::json!({ "type": "object", "properties": properties, "required": required })
}

/// Of a tool that changes something.
fn hints(destructive: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .with_read_only_hint(false)
        .with_destructive_hint(destructive)
        .with_idempotent_hint(false)
        .with_open_world_hint(false)
}

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

/// A list of objects, without saying more.
pub(crate) fn objects_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": "object" } })
}

/// A list of any values. Not every host knows the schema `true`.
fn values_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": {} })
}

/// Arguments of `pg_explain`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Explain {
    /// The statement, without EXPLAIN.
    pub sql: String,
    /// Values for $1, $2, …
    #[serde(default)]
    #[schemars(schema_with = "values_schema")]
    pub params: Vec<serde_json::Value>,
    /// Run it and measure (write mode only); changes are rolled back.
    #[serde(default)]
    pub analyze: bool,
    /// CREATE INDEX statements of hypothetical indexes (requires hypopg).
    #[serde(default)]
    pub indexes: Vec<String>,
    /// The database.
    pub database: Option<String>,
}

/// The result of `pg_explain`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The plan as text.
    pub plan: String,
    /// Whether it is truncated.
    pub truncated: bool,
}

/// Arguments of `pg_execute`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Execute {
    /// The statements in order; one per item.
    pub statements: Vec<String>,
    /// The database.
    pub database: Option<String>,
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// For example `UPDATE 3`.
    pub command: String,
}

/// The result of `pg_execute`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Changed {
    /// The results, by statement.
    #[schemars(schema_with = "objects_schema")]
    pub results: Vec<Ran>,
}

/// By `?` a failure keeps its mark of whose words it has, which may be the database's.
impl Postgres {
    async fn query_tool(&self, args: Query) -> linchpin::Result<ToolOutput<Rows>> {
        Ok(self.query(args).await?)
    }

    async fn explain_tool(&self, args: Explain) -> linchpin::Result<ToolOutput<Plan>> {
        Ok(self.explain(args).await?)
    }

    async fn execute_tool(&self, args: Execute) -> linchpin::Result<ToolOutput<Changed>> {
        Ok(self.execute(args).await?)
    }

    /// `query`
    pub(crate) async fn query(&self, args: Query) -> Result<ToolOutput<Rows>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        self.touch_list();
        let limited = !database.target.schemas.is_empty();
        let vetted = guard::read(&args.sql, limited);
        let skip = match args.cursor.as_deref() {
            None => 0,
            Some(text) => text
                .split_once('-')
                .filter(|(_, of)| *of == fingerprint(&args))
                .and_then(|(skip, _)| skip.parse().ok())
                .filter(|skip| *skip <= SKIP_MAX && vetted.is_ok())
                .ok_or_else(|| {
                    ToolError::new("Invalid cursor.").hint(
                        "Pass next_cursor of the previous result with otherwise the same arguments, or omit cursor.",
                    )
                })?,
        };
        let rows_max = args.max_rows.unwrap_or(usize::MAX).clamp(1, self.config.max_rows);
        let (mode, length) = match (&vetted, self.config.writes()) {
            (Ok(seen), false) => (Mode::Read, seen.length),
            (Err(fault), false) => return Err(fault.clone()),
            (_, true) => (Mode::Write, writable(&args.sql)?),
        };
        let request = Request { sql: &args.sql[..length], parameters: &args.params, skip, rows_max };
        let seen = vetted.as_ref().ok().filter(|_| mode == Mode::Read);
        let answer = database.ask(mode, seen, &[], request).await?;
        let pages = vetted.is_ok();
        if mode == Mode::Write && !pages {
            database.forget_types();
        }
        let next = (answer.truncated && pages).then(|| format!("{}-{}", skip + answer.rows.len(), fingerprint(&args)));
        Ok(shown(&answer, next, (mode == Mode::Write).then(|| answer.tag.clone())))
    }

    /// `pg_explain`
    pub(crate) async fn explain(&self, args: Explain) -> Result<ToolOutput<Plan>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        if args.analyze && !self.config.writes() {
            return Err(ToolError::new("analyze runs the statement, which read-only mode does not allow.")
                .hint("Omit it; the operator can allow it with --access-mode write."));
        }
        if args.indexes.len() > INDEXES_MAX {
            return Err(ToolError::new(format!(
                "indexes has {} items; the maximum is {INDEXES_MAX}.",
                args.indexes.len()
            ))
            .hint("Pass fewer at a time."));
        }
        let limited = !database.target.schemas.is_empty();
        let vetted = guard::read(&args.sql, limited);
        let (mut seen, length) = match vetted {
            Ok(seen) if seen.statement == guard::Statement::Query => {
                let length = seen.length;
                (Some(seen), length)
            }
            Ok(_) => return Err(ToolError::new("sql is EXPLAIN or SHOW.").hint("Pass the statement itself.")),
            Err(fault) if !self.config.writes() => return Err(fault),
            Err(_) => (None, writable(&args.sql)?),
        };
        let options = "FORMAT TEXT";
        let statement = &args.sql[..length];
        let wanted = parameters(statement);
        let mut sql = format!("EXPLAIN ({options}) {statement}");
        let mut prepare = String::new();
        if args.analyze {
            sql = format!("EXPLAIN ({options}, ANALYZE, BUFFERS) {statement}");
        } else if args.params.is_empty() && wanted > 0 {
            // The plan for any values. EXPLAIN has an option for it that servers before 16 do not know, and that looks
            // at the values where it gets some, as it must here.
            prepare = format!("PREPARE linchpin_plan AS {statement}");
            sql = format!("EXPLAIN ({options}) EXECUTE linchpin_plan({})", vec!["NULL"; wanted].join(", "));
        }
        let mut imagined = Vec::with_capacity(args.indexes.len());
        for text in &args.indexes {
            let index = guard::index(text, limited)?;
            imagined.push([Some(text[..index.length].to_owned())]);
            if let Some(seen) = &mut seen {
                seen.add(index);
            }
        }
        let (mode, seen) = if self.config.writes() { (Mode::Try, None) } else { (Mode::Read, seen) };
        let hypopg = if imagined.is_empty() { String::new() } else { self.hypopg(database).await? };
        let mut before: Vec<(&str, &[crate::wire::Value])> =
            imagined.iter().map(|index| (hypopg.as_str(), index.as_slice())).collect();
        if !prepare.is_empty() {
            before.extend([("SET LOCAL plan_cache_mode TO force_generic_plan", &[][..]), (prepare.as_str(), &[][..])]);
        }
        let request = Request { sql: &sql, parameters: &args.params, skip: 0, rows_max: PLAN_LINES_MAX };
        let answer = database.ask(mode, seen.as_ref(), &before, request).await?;
        let lines: Vec<String> = answer.rows.iter().map(|row| row.text(0)).collect();
        let plan = lines.join("\n");
        let notice = format!("[Truncated after {} lines. Explain a part of the statement.]", lines.len());
        let truncated = answer.truncated;
        Ok(ToolOutput::outside(plan.clone(), Plan { plan, truncated }).notice(truncated.then_some(notice)))
    }

    /// `pg_execute`
    pub(crate) async fn execute(&self, args: Execute) -> Result<ToolOutput<Changed>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        if args.statements.is_empty() || args.statements.len() > STATEMENTS_MAX {
            return Err(ToolError::new(format!("statements must have 1 to {STATEMENTS_MAX} items."))
                .hint("Pass each statement as a separate item."));
        }
        let requests: Result<Vec<Request<'_>>, ToolError> = args
            .statements
            .iter()
            .map(|sql| {
                Ok(Request { sql: &sql[..writable(sql)?], parameters: &[], skip: 0, rows_max: self.config.max_rows })
            })
            .collect();
        let answers = database.ask_all(&requests?).await?;
        database.forget_types();
        self.touch_list();
        let results = answers.into_iter().map(|answer| Ran { command: answer.tag }).collect();
        ToolOutput::json(Changed { results }, linchpin_kit::Provenance::Server)
    }
}

/// What a cursor is for: nobody continues one statement with what another one gave.
fn fingerprint(args: &Query) -> String {
    let mut hasher = DefaultHasher::new();
    (&args.sql, &args.database).hash(&mut hasher);
    args.params.iter().for_each(|value| value.to_string().hash(&mut hasher));
    format!("{:08x}", hasher.finish() >> 32)
}

/// Statements that would end or escape the transaction, or that only a session could use.
const NOT_WRITABLE: [&str; 20] = [
    "abort",
    "begin",
    "close",
    "commit",
    "copy",
    "deallocate",
    "declare",
    "discard",
    "end",
    "execute",
    "fetch",
    "listen",
    "load",
    "move",
    "prepare",
    "release",
    "rollback",
    "savepoint",
    "start",
    "unlisten",
];

/// The bytes of a statement for write mode.
fn writable(sql: &str) -> Result<usize, ToolError> {
    let tokens = lex::tokens(sql)?;
    let (tokens, length) = guard::single(&tokens, sql.len())?;
    let word = guard::leading(tokens);
    if NOT_WRITABLE.contains(&word) {
        return Err(ToolError::new(format!("{} is not allowed.", word.to_uppercase())).hint(
            "Every call is its own transaction, without session state; pg_execute runs several statements in one transaction.",
        ));
    }
    Ok(length)
}

/// What statements of PostgreSQL begin with, in any version, apart from those that read.
const STATEMENTS: &str = "abort alter analyse analyze begin call checkpoint close cluster comment commit copy create deallocate \
    declare delete discard do drop end execute explain fetch grant import insert listen load lock merge move \
    notify prepare reassign refresh reindex release repack reset revoke rollback savepoint security set show \
    start truncate unlisten update vacuum wait";

/// What is wrong where a statement begins with what none begins with: a slip of the pen, and no wish to write.
pub(crate) fn slip(word: &str) -> Option<ToolError> {
    if word.is_empty() || STATEMENTS.split(' ').any(|known| known == word) {
        return None;
    }
    let word: String = word.chars().take(40).collect();
    let fault = ToolError::new(format!("Syntax error: no PostgreSQL statement starts with {}.", word.to_uppercase()));
    Some(fault.hint("Read-only statements start with SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW."))
}

/// How many parameters a statement has: the highest number, as far as there can be so many.
fn parameters(sql: &str) -> usize {
    let tokens = lex::tokens(sql).unwrap_or_default();
    let number = |token: &lex::Token| {
        let digits = &sql[token.at + 1..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().unwrap_or(usize::MAX)
    };
    let numbers = tokens.iter().filter(|token| token.kind == lex::Kind::Param).map(number);
    numbers.max().unwrap_or(0).min(usize::from(u16::MAX))
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
        None => format!("[Truncated after {count} rows.]"),
    });
    let value = Rows { columns, row_count: count, rows, truncated: answer.truncated, next_cursor, command };
    ToolOutput::outside(text, value).notice(notice)
}

/// An error that the server reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The SQLSTATE.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The character (from 1) of the statement that it is about.
    pub(crate) position: Option<usize>,
    /// Whether it was raised inside of a function.
    pub(crate) inside: bool,
    /// What it is about: constraint, column, table, where these are plain names: others may be whole sentences. Nothing
    /// where it was raised inside of a function, which can write there what it likes, also what rows hold.
    pub(crate) about: Vec<String>,
}

/// The error that these fields of a message tell of.
pub(crate) fn server_error(mut fields: ErrorFields<'_>) -> ServerError {
    let mut error = ServerError::default();
    while let Ok(Some(field)) = fields.next() {
        let text = cleaned(&String::from_utf8_lossy(field.value_bytes()));
        let plain = text.len() <= NAME_BYTES_MAX && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        match field.type_() {
            b'C' => error.code = text,
            b'M' => error.message = text,
            b'H' => error.hint = Some(text),
            b'P' => error.position = text.parse().ok(),
            b'W' => error.inside = true,
            b'n' if plain => error.about.insert(0, format!("constraint {text}")),
            b'c' if plain => error.about.push(format!("column {text}")),
            b't' if plain => error.about.push(format!("table {text}")),
            _ => {}
        }
    }
    if error.inside {
        error.about.clear();
    }
    error
}

/// Why a statement that takes and has so many parameters has no answer, if it failed or these are not as many.
pub(crate) fn wrong_count((wants, has): (usize, usize), failure: Option<ServerError>) -> Option<ServerError> {
    // A statement that could not be parsed takes nothing.
    if wants == has || failure.as_ref().is_some_and(|error| error.code != "08P01") {
        return failure;
    }
    Some(ServerError {
        code: "08P01".to_owned(),
        message: format!("The statement takes {wants} params and {has} were passed"),
        hint: Some("Pass one item in params for each of $1, $2, …".to_owned()),
        ..ServerError::default()
    })
}

/// What is said when COMMIT was sent and nobody knows how it went.
pub(crate) fn unknown(why: &str) -> ToolError {
    ToolError::new(format!("{why} It is unknown whether the change was made."))
        .hint("Check with a SELECT before you repeat it.")
}

/// The words for an error of the database. `writing` is the statement, in write mode, where a failure must not carry
/// what rows hold: the text that somebody stored would be read right after something was about to be changed.
pub(crate) fn failure(error: &ServerError, writing: Option<&str>) -> ToolError {
    let code = &error.code;
    let place = error.position.map(|at| format!(", at character {at}")).unwrap_or_default();
    let own = match code.as_str() {
        "57014" => {
            "The statement timed out. Narrow it: fewer rows, an indexed condition, LIMIT; pg_explain returns the plan."
        }
        "55P03" => "Another session holds a lock on it; try again in a moment.",
        "42P01" => "pg_list_objects lists the objects; names with capitals need double quotes.",
        "42703" => "pg_describe lists the columns; names with capitals need double quotes.",
        "42883" => "The function or operator does not exist for these types; a cast may be missing.",
        "42501" => "The role of this server lacks the privilege.",
        "25006" => "This server is read-only.",
        "42601" => "Correct the syntax near the position.",
        "22P02" | "22007" | "22003" => "Correct the value; pass values as params instead of writing them into sql.",
        "55000" if error.message.contains("shared_preload_libraries") => {
            "An administrator must add the library to shared_preload_libraries and restart PostgreSQL."
        }
        "42P18" | "42804" => "Specify the type of a parameter with a cast, for example $1::int.",
        _ => "Correct the statement and try again.",
    };
    if writing.is_some_and(|sql| may_quote_rows(error, sql)) {
        let about: String = error.about.iter().map(|name| format!(", {name}")).collect();
        let message = format!("The statement failed: {} (SQLSTATE {code}{about}{place})", condition(code));
        return ToolError::new(message)
            .hint(format!("{own} The database's message is omitted: it may contain data."))
            .as_outside();
    }
    let message = format!("{} (SQLSTATE {code}{place})", error.message);
    ToolError::new(message).hint(error.hint.clone().unwrap_or_else(|| own.to_owned())).as_outside()
}

/// Whether the message may hold a value of a row. It does not where it is the parser's, which has seen the statement
/// only, or where what it quotes stands in the statement.
fn may_quote_rows(error: &ServerError, sql: &str) -> bool {
    if error.inside || ["22", "23", "44", "P0"].iter().any(|class| error.code.starts_with(class)) {
        return true;
    }
    // That is said here, about parameters.
    if error.code == "08P01" {
        return false;
    }
    // In other languages other marks quote.
    let text = [&*error.message, error.hint.as_deref().unwrap_or_default()].join(" ");
    let quoted = text.find('"').zip(text.rfind('"')).map(|(start, end)| &text[start..=end]);
    let known = quoted.is_none_or(|quoted| sql.to_lowercase().contains(&quoted.trim_matches('"').to_lowercase()));
    error.position.is_none() && !(known && text.is_ascii())
}

/// What an SQLSTATE means, for the most frequent ones.
fn condition(code: &str) -> &'static str {
    match code {
        "22001" => "a string is too long for its column",
        "22003" => "a number is out of range",
        "22007" | "22008" => "a date or time is invalid or out of range",
        "22012" => "division by zero",
        "22P02" => "a string is not a valid value of its type",
        "23502" => "a column must not be NULL",
        "23503" => "a foreign key constraint is violated",
        "23505" => "a unique value exists already",
        "23514" => "a check constraint is violated",
        "2BP01" => "other objects depend on it",
        "3F000" | "42703" | "42704" | "42883" | "42P01" => "it does not exist",
        "42701" | "42710" | "42723" | "42P06" | "42P07" => "it already exists",
        "P0001" => "a function or trigger of the database raised an error",
        code if code.starts_with("22") => "a value is invalid",
        code if code.starts_with("23") => "a constraint is violated",
        _ => "the database rejected the statement",
    }
}
