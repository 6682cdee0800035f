//! `sqlite_schema`, and the schema as resources.

use crate::open::GuardedConnection;
use crate::statement::quote;
use crate::table::{Bounds, Form};
use crate::value::Cell;
use crate::{Sqlite, View};
use linchpin::types::content::{Annotations, Role};
use linchpin::{Completion, Cx, Error, NoArgs, Resource};
use linchpin_kit::{Paging, ToolError, ToolOutput, ToolSet, as_listed, clip};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole schema as a resource.
pub(crate) const SCHEMA_URI: &str = "sqlite:///schema";

/// One table's schema as a resource.
const TABLE_URI: &str = "sqlite:///{table}/schema";

/// Maximum number of tables per result of `sqlite_schema`.
const TABLES_MAX: usize = 100;

/// Maximum number of tables considered in all.
pub(super) const OBJECTS_MAX: usize = 10_000;

/// Maximum number of indexes, triggers and keys per table.
const PARTS_MAX: usize = 1_000;

/// Maximum bytes of a table's definitions that are read.
pub(super) const TABLE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of tables considered for a page.
pub(super) const ALL_TABLES: Bounds = Bounds { rows: OBJECTS_MAX, bytes: TABLE_BYTES_MAX };

/// Arguments of `sqlite_schema`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct SchemaOf {
    /// Only this table or view
    pub table: Option<String>,
    /// From next_cursor
    pub cursor: Option<String>,
}

/// The schema.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Schema {
    /// Tables and views, in creation order.
    pub tables: Vec<TableSchema>,
    /// Pagination.
    #[serde(flatten)]
    pub paging: Paging,
}

/// The schema of a table or view.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TableSchema {
    /// Its name.
    pub name: String,
    /// `table` or `view`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The statement that created it.
    pub sql: String,
    /// Its indexes, including those of UNIQUE and PRIMARY KEY.
    pub indexes: Vec<Index>,
    /// Its foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// Its triggers.
    pub triggers: Vec<Trigger>,
}

/// An index.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Whether it is unique.
    pub unique: bool,
    /// Whether it is partial.
    pub partial: bool,
    /// Its columns in order; null for an expression.
    pub columns: Vec<Option<String>>,
    /// The statement that created it; absent for automatic indexes.
    pub sql: Option<String>,
}

/// A foreign key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ForeignKey {
    /// Columns of this table.
    pub columns: Vec<String>,
    /// The referenced table.
    pub table: String,
    /// Columns of the referenced table; null for its primary key.
    pub to: Vec<Option<String>>,
    /// The ON UPDATE action.
    pub on_update: String,
    /// The ON DELETE action.
    pub on_delete: String,
}

/// A trigger.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// The statement that created it.
    pub sql: String,
}

/// `sqlite_schema`.
pub(crate) async fn schema(db: &Sqlite, cx: &Cx, args: SchemaOf) -> Result<ToolOutput<Schema>, Error> {
    let view = db.view();
    let read = move |conn: &GuardedConnection| conn.schema(args.table.as_deref(), args.cursor.as_deref(), view);
    let (text, schema) = db.read(cx, read).await?;
    let notice = schema.paging.notice();
    Ok(ToolOutput::outside(text, schema).notice(notice))
}

impl GuardedConnection {
    /// Names and types of tables and views, and whether the list is complete.
    fn names(&self) -> Result<(Vec<(String, String)>, bool), ToolError> {
        let sql = "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')";
        let table = self.rows(sql, &[], ALL_TABLES, Form::Json)?;
        let name = |row: &Vec<Cell>| Some((row.first()?.text()?.to_owned(), row.get(1)?.text()?.to_owned()));
        Ok((table.rows.iter().filter_map(name).collect(), table.cut.is_none()))
    }

    /// The schema as text and as structured content, from a cursor on, as far as it fits.
    fn schema(&self, only: Option<&str>, cursor: Option<&str>, view: View) -> Result<(String, Schema), ToolError> {
        let (mut names, all) = self.names()?;
        if let Some(only) = only {
            names.retain(|(name, _)| name.eq_ignore_ascii_case(only));
            if names.is_empty() {
                return Err(no_such(only));
            }
        }
        let (page, mut paging) = Paging::of(&names, cursor, TABLES_MAX)?;
        let start = names.len() - Paging::of(&names, cursor, usize::MAX)?.0.len();
        let (mut text, mut tables, mut structured) = (String::new(), Vec::new(), 0);
        for (at, (name, kind)) in page.iter().enumerate() {
            let (table, whole) = self.table_schema(name, kind)?;
            let mut part = format!("{};\n", table.sql);
            for sql in table.indexes.iter().filter_map(|index| index.sql.as_deref()) {
                part.push_str(&format!("{sql};\n"));
            }
            for trigger in &table.triggers {
                part.push_str(&format!("{};\n", trigger.sql));
            }
            let size = serde_json::to_string(&table).map_or(0, |json| json.len() + 1);
            if whole && text.len() + part.len() <= view.bounds.bytes && structured + size <= view.bounds.bytes {
                text.push_str(&part);
                structured += size;
                tables.push(table);
                continue;
            }
            let mut next = start + at;
            if tables.is_empty() {
                // Even a single table is too long: its text is cut, and the structured content has only its name.
                let (name, kind) = (table.name, table.kind);
                text = format!(
                    "{}\n-- Truncated: the definition is too long for a result.\n",
                    clip(&part, view.bounds.bytes).text
                );
                let (indexes, foreign_keys, triggers) = Default::default();
                tables.push(TableSchema { name, kind, sql: String::new(), indexes, foreign_keys, triggers });
                next += 1;
            }
            paging = Paging { truncated: true, next_cursor: (next < names.len()).then(|| next.to_string()) };
            break;
        }
        if names.is_empty() {
            text.push_str("-- The database has no tables.\n");
        }
        if !paging.truncated && !all && only.is_none() {
            paging.truncated = true;
            text.push_str(&format!("-- Truncated: only the first {OBJECTS_MAX} tables and views are included.\n"));
        }
        Ok((text, Schema { tables, paging }))
    }

    /// The schema of one table, and whether it is complete.
    fn table_schema(&self, name: &str, kind: &str) -> Result<(TableSchema, bool), ToolError> {
        let bounds = Bounds { rows: PARTS_MAX, bytes: TABLE_BYTES_MAX };
        let mut whole = true;
        let mut rows = |sql: &str, params: &[&str]| {
            let table = self.rows(sql, params, bounds, Form::Json)?;
            whole &= table.cut.is_none();
            Ok::<_, ToolError>(table.rows)
        };
        let text = |cell: Option<&Cell>| cell.and_then(Cell::text).map(str::to_owned);
        let mut table = TableSchema {
            name: name.to_owned(),
            kind: kind.to_owned(),
            sql: String::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            triggers: Vec::new(),
        };
        let mut created = Vec::new();
        for row in rows("SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? COLLATE NOCASE", &[name])? {
            let (kind, own, sql) = (text(row.first()), text(row.get(1)).unwrap_or_default(), text(row.get(2)));
            match kind.as_deref() {
                Some("table" | "view") if own == name => table.sql = sql.unwrap_or_default(),
                Some("index") => created.push((own, sql)),
                Some("trigger") => table.triggers.push(Trigger { name: own, sql: sql.unwrap_or_default() }),
                _ => {}
            }
        }
        for row in rows(&about("index_list", name)?, &[])? {
            let own = text(row.get(1)).unwrap_or_default();
            let columns = rows(&about("index_info", &own)?, &[])?.iter().map(|row| text(row.get(2))).collect();
            let sql = created.iter().find(|(other, _)| *other == own).and_then(|(_, sql)| sql.clone());
            let flag = |at: usize| row.get(at).and_then(Cell::integer) == Some(1);
            table.indexes.push(Index { unique: flag(2), partial: flag(4), name: own, columns, sql });
        }
        // SQLite returns the newest first.
        table.indexes.reverse();
        let mut last = None;
        for row in rows(&about("foreign_key_list", name)?, &[])? {
            let id = row.first().and_then(Cell::integer);
            if last != id || table.foreign_keys.is_empty() {
                table.foreign_keys.push(ForeignKey {
                    columns: Vec::new(),
                    table: text(row.get(2)).unwrap_or_default(),
                    to: Vec::new(),
                    on_update: text(row.get(5)).unwrap_or_default(),
                    on_delete: text(row.get(6)).unwrap_or_default(),
                });
                last = id;
            }
            if let Some(key) = table.foreign_keys.last_mut() {
                key.columns.push(text(row.get(3)).unwrap_or_default());
                key.to.push(text(row.get(4)));
            }
        }
        table.foreign_keys.reverse();
        Ok((table, whole))
    }
}

/// Runs a PRAGMA with a name as argument. It is addressed to `main`, so no table of the file can shadow it, as one
/// could shadow the table-valued function.
pub(crate) fn about(pragma: &str, name: &str) -> Result<String, ToolError> {
    if name.contains('\0') {
        return Err(no_such(&name.replace('\0', "\u{fffd}")));
    }
    Ok(format!("PRAGMA main.{pragma}({})", quote(name)))
}

pub(crate) fn no_such(name: &str) -> ToolError {
    let shown: String = name.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect();
    ToolError::not_found(format!("Database error: no such table: {shown}"))
        .hint("list_tables lists the names; pass one exactly as listed.")
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ByTable {
    /// The name of the table or view.
    table: String,
}

/// Adds the resources.
pub(crate) fn add(toolset: ToolSet<Sqlite>, db: &Sqlite) -> ToolSet<Sqlite> {
    let annotations = Annotations::new().with_audience([Role::Assistant]);
    let whole = Resource::new(db.uri(SCHEMA_URI))
        .name("schema")
        .title("Database schema")
        .description("The CREATE statements of the tables, views, indexes and triggers of the database.")
        .mime_type("application/sql")
        .annotations(annotations.clone());
    let mut table = Resource::new(db.uri(TABLE_URI))
        .name("table-schema")
        .title("Table schema")
        .description("The CREATE statements of a table or view, with its indexes and triggers.")
        .mime_type("application/sql")
        .annotations(annotations);
    // Completion cannot ask the client for its roots.
    if db.scope_for_all().is_some() {
        let db = db.clone();
        table = table.complete("table", move |typed: Completion| {
            let db = db.clone();
            async move {
                let Some(scope) = db.scope_for_all() else { return Vec::new() };
                let (names, _) = db.read_as(scope, GuardedConnection::names).await.unwrap_or_default();
                typed.filter(names.into_iter().map(|(name, _)| name))
            }
        });
    }
    toolset.resource(whole, whole_schema).resource(table, one_schema)
}

async fn whole_schema(db: &Sqlite, cx: &Cx, _: NoArgs) -> Result<String, Error> {
    contents(db, cx, None).await
}

async fn one_schema(db: &Sqlite, cx: &Cx, at: ByTable) -> Result<String, Error> {
    contents(db, cx, Some(at.table)).await
}

async fn contents(db: &Sqlite, cx: &Cx, table: Option<String>) -> Result<String, Error> {
    let view = db.view();
    let scope = db.roots_scope(cx).await?;
    let schema = db.read_as(scope, move |conn| conn.schema(table.as_deref(), None, view)).await;
    let (text, schema) = schema.map_err(ToolError::for_resource)?;
    if !schema.paging.truncated {
        return Ok(text);
    }
    let tool = as_listed("sqlite_schema");
    Ok(format!("{text}-- Truncated. The tool {tool} returns the rest.\n"))
}
