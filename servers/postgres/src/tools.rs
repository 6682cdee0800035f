//! Running statements: `query`, `pg_explain`, `pg_execute`.

use crate::cell::{Answer, Cell, Request, cells, objects};
use crate::session::Mode;
use crate::wire::ServerError;
use crate::{DESCRIBE, EXECUTE, EXPLAIN, HEALTH, LIST_OBJECTS, LIST_SCHEMAS, Postgres, QUERY, TOP_QUERIES, guard, lex};
use linchpin::Tool;
use linchpin::types::tool::ToolAnnotations;
use linchpin_kit::{Fault, Shown, Toolbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows that paging may pass over.
const SKIP_MAX: usize = 1_000_000;

/// Statements of one call of `pg_execute`.
const STATEMENTS_MAX: usize = 100;

/// Puts the tools on a server.
pub(crate) fn add(toolbox: Toolbox<Postgres>, writes: bool) -> Toolbox<Postgres> {
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
        tool.description("Run one SQL statement, which may change data; for several, use pg_execute.")
            .annotations(hints(true))
    };
    let explain = |tool: Tool| {
        if !writes {
            return tool;
        }
        // Numbers taken from a sequence stay taken.
        tool.description("The plan of a statement; analyze runs it, then undoes it.").annotations(hints(false))
    };
    let items = |tool: Tool| tool.output_schema(lean(&[("items", "array")]));
    toolbox
        .tool_as(&QUERY, query, Postgres::query)
        .tool_as(&LIST_SCHEMAS, items, Postgres::list_schemas)
        .tool_as(&LIST_OBJECTS, items, Postgres::list_objects)
        .tool(&DESCRIBE, Postgres::describe)
        .tool_as(&EXPLAIN, explain, Postgres::explain)
        .tool_as(&TOP_QUERIES, items, Postgres::top_queries)
        .tool(&HEALTH, Postgres::health)
        .tool(&EXECUTE, Postgres::execute)
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
    ToolAnnotations {
        title: None,
        read_only_hint: Some(false),
        destructive_hint: Some(destructive),
        idempotent_hint: Some(false),
        open_world_hint: Some(false),
    }
}

/// Arguments of `query`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Query {
    /// One statement.
    pub sql: String,
    /// Values of $1, $2, …
    #[serde(default)]
    pub params: Vec<serde_json::Value>,
    /// Fewer rows than the server's limit.
    pub max_rows: Option<usize>,
    /// `next_cursor` of the answer before.
    pub cursor: Option<String>,
    /// Which database, if several are configured.
    pub database: Option<String>,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name; not always the only one of that name.
    pub name: String,
    /// Its type as SQL writes it.
    pub r#type: String,
}

/// What `query` answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Rows {
    /// The columns, in order.
    #[schemars(schema_with = "objects_schema")]
    pub columns: Vec<Column>,
    /// The rows, each a list of values in the order of the columns.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows there are here.
    pub row_count: usize,
    /// Whether there were more.
    pub truncated: bool,
    /// What continues, when there were more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// What the statement did, in write mode: for example `UPDATE 3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A list of objects, without saying more.
pub(crate) fn objects_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": { "type": "object" } })
}

/// Arguments of `pg_explain`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Explain {
    /// The statement, without EXPLAIN.
    pub sql: String,
    /// Values of $1, $2, …
    #[serde(default)]
    pub params: Vec<serde_json::Value>,
    /// Run it and measure (write mode only); changes are undone.
    #[serde(default)]
    pub analyze: bool,
    /// CREATE INDEX statements of indexes to imagine (needs hypopg).
    #[serde(default)]
    pub indexes: Vec<String>,
    /// Which database.
    pub database: Option<String>,
}

/// What `pg_explain` answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The plan as text.
    pub plan: String,
}

/// Arguments of `pg_execute`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Execute {
    /// In order; one statement each.
    pub statements: Vec<String>,
    /// Which database.
    pub database: Option<String>,
}

/// What a statement did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// For example `UPDATE 3`.
    pub command: String,
}

/// What `pg_execute` answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Changed {
    /// For each statement.
    #[schemars(schema_with = "objects_schema")]
    pub results: Vec<Ran>,
}

impl Postgres {
    /// `query`
    pub(crate) async fn query(&self, args: Query) -> Result<Shown<Rows>, Fault> {
        let database = self.database(args.database.as_deref())?;
        self.touch_list();
        let limited = !database.target.schemas.is_empty();
        let vetted = guard::read(&args.sql, limited);
        let skip = match args.cursor.as_deref() {
            None => 0,
            Some(text) => text.parse().ok().filter(|skip| *skip <= SKIP_MAX && vetted.is_ok()).ok_or_else(|| {
                Fault::new("This cursor continues nothing.").hint(
                    "Pass next_cursor of the answer before, with otherwise the same arguments, or leave cursor out.",
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
        let next = (answer.truncated && pages).then(|| (skip + answer.rows.len()).to_string());
        Ok(shown(&answer, next, (mode == Mode::Write).then(|| answer.tag.clone())))
    }

    /// `pg_explain`
    pub(crate) async fn explain(&self, args: Explain) -> Result<Shown<Plan>, Fault> {
        let database = self.database(args.database.as_deref())?;
        if args.analyze && !self.config.writes() {
            return Err(Fault::new("analyze runs the statement, which read-only mode does not allow.")
                .hint("Leave it out; the operator can allow it with --access-mode write."));
        }
        let vetted = guard::read(&args.sql, !database.target.schemas.is_empty());
        let (seen, length) = match vetted {
            Ok(seen) if seen.statement == guard::Statement::Query => (Some(seen.clone()), seen.length),
            Ok(_) => return Err(Fault::new("sql is EXPLAIN or SHOW.").hint("Pass the statement itself.")),
            Err(fault) if !self.config.writes() => return Err(fault),
            Err(_) => (None, writable(&args.sql)?),
        };
        let mut options = "FORMAT TEXT".to_owned();
        if args.analyze {
            options.push_str(", ANALYZE, BUFFERS");
        } else if args.params.is_empty() && has_parameters(&args.sql) {
            options.push_str(", GENERIC_PLAN");
        }
        let sql = format!("EXPLAIN ({options}) {}", &args.sql[..length]);
        let (mode, seen) = if self.config.writes() { (Mode::Try, None) } else { (Mode::Read, seen) };
        let imagined: Vec<_> = args.indexes.iter().take(20).map(|index| [Some(index.clone())]).collect();
        let hypopg = if imagined.is_empty() { String::new() } else { self.hypopg(database).await? };
        let before: Vec<(&str, &[crate::wire::Value])> =
            imagined.iter().map(|index| (hypopg.as_str(), index.as_slice())).collect();
        let request = Request { sql: &sql, parameters: &args.params, skip: 0, rows_max: self.config.max_rows };
        let answer = database.ask(mode, seen.as_ref(), &before, request).await.map_err(|fault| {
            if !fault.message().contains("generic_plan") {
                return fault;
            }
            Fault::new("The statement has parameters, and servers before version 16 cannot plan it without values.")
                .hint("Pass example values in params.")
        })?;
        let lines: Vec<String> = answer.rows.iter().map(|row| row.text(0)).collect();
        let plan = lines.join("\n");
        Ok(Shown::outside(plan.clone(), Plan { plan }))
    }

    /// `pg_execute`
    pub(crate) async fn execute(&self, args: Execute) -> Result<Shown<Changed>, Fault> {
        let database = self.database(args.database.as_deref())?;
        if args.statements.is_empty() || args.statements.len() > STATEMENTS_MAX {
            return Err(Fault::new(format!("statements must have 1 to {STATEMENTS_MAX} items."))
                .hint("Pass each statement as an item of its own."));
        }
        let requests: Result<Vec<Request<'_>>, Fault> = args
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
        Shown::json(Changed { results }, linchpin_kit::Told::ByUs)
    }
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
fn writable(sql: &str) -> Result<usize, Fault> {
    let tokens = lex::tokens(sql)?;
    let (tokens, length) = guard::single(&tokens, sql.len())?;
    let word = guard::leading(tokens);
    if NOT_WRITABLE.contains(&word) {
        return Err(Fault::new(format!("{} is not allowed.", word.to_uppercase())).hint(
            "Every call is a transaction of its own, and nothing of a session stays; pg_execute runs several statements as one.",
        ));
    }
    Ok(length)
}

fn has_parameters(sql: &str) -> bool {
    lex::tokens(sql).is_ok_and(|tokens| tokens.iter().any(|t| t.kind == lex::Kind::Param))
}

fn shown(answer: &Answer, next_cursor: Option<String>, command: Option<String>) -> Shown<Rows> {
    let rows: Vec<Vec<Cell>> = answer.rows.iter().map(|row| cells(row, &answer.types)).collect();
    let names: Vec<&str> = answer.described.fields.iter().map(|field| field.name.as_str()).collect();
    let text = objects(&names, &rows);
    let columns = names.iter().zip(&answer.types);
    let columns = columns.map(|(name, of)| Column { name: (*name).to_owned(), r#type: of.name.clone() }).collect();
    let count = rows.len();
    let notice = answer.truncated.then(|| match &next_cursor {
        Some(cursor) => format!(
            "[Cut after {count} rows: there is more. Continue with the same arguments and cursor={cursor:?} (add ORDER BY), or narrow the query.]"
        ),
        None => format!("[Cut after {count} rows: there is more.]"),
    });
    let value = Rows { columns, row_count: count, rows, truncated: answer.truncated, next_cursor, command };
    Shown::outside(text, value).notice(notice)
}

/// The words for what the server says is wrong.
pub(crate) fn server_fault(error: &ServerError) -> Fault {
    let place = error.position.map(|at| format!(", at character {at}")).unwrap_or_default();
    let message = format!("{} (SQLSTATE {}{place})", error.message, error.code);
    let own = match error.code.as_str() {
        "57014" => "It ran out of time. Narrow it: fewer rows, an indexed condition, LIMIT; pg_explain shows the plan.",
        "55P03" => "Somebody else holds a lock on it; try again in a moment.",
        "42P01" => "See pg_list_objects for what there is; names with capitals need double quotes.",
        "42703" => "See pg_describe for the columns; names with capitals need double quotes.",
        "42883" => "There is no such function or operator for these types; a cast may be missing.",
        "42501" => "The role of this server has no right to that.",
        "25006" => "This server only reads here.",
        "42601" => "Correct the syntax near the position.",
        "22P02" | "22007" | "22003" => "Correct the value; pass values as params instead of writing them into sql.",
        "42P18" | "42804" => "Say the type of a parameter with a cast, for example $1::int.",
        _ => "Correct the statement and try again.",
    };
    Fault::new(message).hint(error.hint.clone().unwrap_or_else(|| own.to_owned()))
}
