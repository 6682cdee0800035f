//! What a database is like: schemas, objects, plans' costs, health. All of it is asked of the catalogue, as JSON.

use crate::Postgres;
use crate::cell::{Answer, Cell, Row, Shape, Type, pretty, texts};
use crate::lex::{ours, quote_name};
use crate::session::{Database, lock};
use crate::tools::objects_schema;
use crate::wire::{DISCARD, Described, Step, Value};
use linchpin_kit::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::{Arc, LazyLock};

/// Types whose names are kept.
const TYPES_MAX: usize = 10_000;

/// Objects on a page.
const PAGE_OBJECTS: usize = 200;

/// Bytes of the lists of a description.
const LISTS_BYTES_MAX: usize = 64 << 10;

/// Characters of a comment, a default, a definition; and of the definition of a view.
const TEXT_CHARS_MAX: (usize, usize) = (2_000, 20_000);

/// The lists of a description: columns 1 to 5 of the answer to [`DESCRIPTION`].
const LISTS: [&str; 5] = ["columns", "constraints", "indexes", "referenced_by", "triggers"];

/// Arguments of `pg_list_schemas`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListSchemas {
    /// The database.
    pub database: Option<String>,
}

/// Arguments of `pg_list_objects`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListObjects {
    /// Only objects of this schema.
    pub schema: Option<String>,
    /// table, view, sequence or function (default: all but functions).
    pub kind: Option<String>,
    /// Only names that contain this.
    pub search: Option<String>,
    /// `next_cursor` of the previous result.
    pub cursor: Option<String>,
    /// The database.
    pub database: Option<String>,
}

/// Arguments of `pg_describe`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Describe {
    /// `table` or `schema.table`, without quotes.
    pub table: String,
    /// The database.
    pub database: Option<String>,
}

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

/// By what statements are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TopBy {
    /// Time of all calls.
    #[default]
    Total,
    /// Time of a call.
    Mean,
    /// Calls.
    Calls,
    /// Rows.
    Rows,
}

fn top_by_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "enum": ["total", "mean", "calls", "rows"] })
}

/// Arguments of `pg_health`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Health {
    /// The database.
    pub database: Option<String>,
}

/// A list of objects.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// The objects.
    #[schemars(schema_with = "objects_schema")]
    pub items: Vec<Cell>,
    /// The cursor to continue, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An object.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Report(pub Cell);

impl JsonSchema for Report {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Report".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

fn listed(rows: &[Row], next_cursor: Option<String>) -> ToolOutput<Listed> {
    let items: Vec<Cell> = rows.iter().map(|row| Cell::from_json(&clipped(&row.text(0), TEXT_CHARS_MAX.0).0)).collect();
    let array = format!("[{}]", items.iter().map(Cell::get).collect::<Vec<_>>().join(","));
    let mut text = String::new();
    pretty(&array, 0, &mut text);
    let notice = next_cursor.as_ref().map(|cursor| {
        format!("[Truncated. Continue with the same arguments and cursor={cursor:?}, or narrow with schema or search.]")
    });
    ToolOutput::outside(text, Listed { items, next_cursor }).notice(notice)
}

fn report(json: &str) -> ToolOutput<Report> {
    let cell = Cell::from_json(json);
    let mut text = String::new();
    pretty(cell.get(), 0, &mut text);
    ToolOutput::outside(text, Report(cell))
}

/// JSON with at most so many characters in each text, and whether there were more. A text that was cut ends with `…`.
fn clipped(json: &str, chars_max: usize) -> (String, bool) {
    let (mut out, mut cut) = (String::with_capacity(json.len()), false);
    let (mut inside, mut count) = (false, 0_usize);
    let mut letters = json.chars();
    while let Some(letter) = letters.next() {
        if letter == '"' {
            (inside, count) = (!inside, 0);
            out.push(letter);
            continue;
        }
        // What follows a backslash belongs to it.
        let escape = if inside && letter == '\\' { letters.next() } else { None };
        let code: String = if escape == Some('u') { letters.by_ref().take(4).collect() } else { String::new() };
        count += usize::from(inside);
        if count <= chars_max {
            out.push(letter);
            out.extend(escape);
            out.push_str(&code);
        } else if count == chars_max + 1 {
            cut = true;
            out.push('…');
        }
    }
    (out, cut)
}

/// What [`DESCRIPTION`] answered. A table can have 1,600 columns and any number of other things: what is too much is
/// left out, and it is said what.
fn described(row: &Row) -> ToolOutput<Report> {
    let (head, mut cut) = clipped(&row.text(0), TEXT_CHARS_MAX.0);
    let mut json = head.strip_suffix('}').unwrap_or(&head).to_owned();
    let list = |at: usize| {
        let text = row.text(at);
        let items: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
        items.iter().map(|item| clipped(item.get(), TEXT_CHARS_MAX.0)).collect::<Vec<_>>()
    };
    let lists: Vec<(&str, Vec<(String, bool)>)> = LISTS.iter().zip(1..).map(|(name, at)| (*name, list(at))).collect();
    let bytes: usize = lists.iter().flat_map(|(_, items)| items).map(|(item, _)| item.len()).sum();
    let mut left = LISTS_BYTES_MAX;
    let mut fewer = Vec::new();
    for (name, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        // Each leaves half of the place to those behind it.
        let most = if bytes <= LISTS_BYTES_MAX { bytes } else { left / 2 };
        let mut used = 0;
        let fits = items.iter().take_while(|(item, _)| {
            used += item.len();
            used <= most
        });
        let kept = fits.count();
        left -= used.min(most);
        cut |= items[..kept].iter().any(|(_, cut)| *cut);
        if kept < items.len() {
            fewer.push(format!("{kept} of {} {name}", items.len()));
        }
        let texts: Vec<&str> = items[..kept].iter().map(|(item, _)| item.as_str()).collect();
        json.push_str(&format!(",\"{name}\":[{}]", texts.join(",")));
    }
    if let Some(definition) = row.cell(LISTS.len() + 1) {
        let (definition, long) = clipped(&definition, TEXT_CHARS_MAX.1);
        cut |= long;
        json.push_str(&format!(",\"definition\":{definition}"));
    }
    let mut notice = String::new();
    if !fewer.is_empty() {
        notice = format!(
            "[Truncated: these are {}. Query pg_catalog or information_schema for the others.]",
            fewer.join(", ")
        );
    } else if cut {
        notice = "[Truncated: texts that end with … are shortened. Query pg_catalog for the full texts.]".to_owned();
    }
    if !notice.is_empty() {
        json.push_str(",\"truncated\":true");
    }
    json.push('}');
    report(&json).notice((!notice.is_empty()).then_some(notice))
}

fn schemas_of(database: &Database) -> Value {
    Some(texts(&database.target.schemas))
}

impl Postgres {
    /// `pg_list_schemas`
    pub(crate) async fn list_schemas(&self, args: ListSchemas) -> Result<ToolOutput<Listed>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        let (rows, _) = database.own(&SCHEMAS, &[schemas_of(database)]).await?;
        Ok(listed(&rows, None))
    }

    /// `pg_list_objects`
    pub(crate) async fn list_objects(&self, args: ListObjects) -> Result<ToolOutput<Listed>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        let kinds: &[&str] = match args.kind.as_deref() {
            None => &["r", "p", "v", "m", "f", "S"],
            Some("table") => &["r", "p", "f"],
            Some("view" | "materialized view") => &["v", "m"],
            Some("sequence") => &["S"],
            Some("function") => &[],
            Some(other) => {
                return Err(
                    ToolError::new(format!("Unknown kind: {other}")).hint("Use table, view, sequence or function.")
                );
            }
        };
        let start = match args.cursor.as_deref() {
            None => 0_usize,
            Some(text) => text.parse().map_err(|_| {
                ToolError::new(format!("Unknown cursor: {text}"))
                    .hint("Pass next_cursor of the previous result, or omit it.")
            })?,
        };
        let parameters = [
            schemas_of(database),
            args.schema.clone(),
            args.search.clone(),
            Some((PAGE_OBJECTS + 1).to_string()),
            Some(start.to_string()),
            Some(texts(kinds)),
        ];
        let (rows, _) = match kinds {
            [] => database.own(&FUNCTIONS, &parameters[..5]).await?,
            _ => database.own(&OBJECTS, &parameters).await?,
        };
        let more = rows.len() > PAGE_OBJECTS;
        Ok(listed(&rows[..rows.len().min(PAGE_OBJECTS)], more.then(|| (start + PAGE_OBJECTS).to_string())))
    }

    /// `pg_describe`
    pub(crate) async fn describe(&self, args: Describe) -> Result<ToolOutput<Report>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        // A dot may belong to the name: the whole name is tried first.
        let whole = (None, args.table.as_str());
        let split = args.table.split_once('.').map(|(schema, table)| (Some(schema.to_owned()), table));
        for (schema, table) in std::iter::once(whole).chain(split) {
            let parameters = [schemas_of(database), schema, Some(table.to_owned())];
            let (rows, _) = database.own(&DESCRIPTION, &parameters).await?;
            if let Some(row) = rows.first() {
                return Ok(described(row));
            }
        }
        Err(ToolError::not_found(format!("The table or view {} does not exist.", args.table))
            .hint("pg_list_objects lists all; outside of the search path use schema.table."))
    }

    /// `pg_top_queries`
    pub(crate) async fn top_queries(&self, args: TopQueries) -> Result<ToolOutput<Listed>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        if !database.target.schemas.is_empty() {
            return Err(ToolError::new(
                "Statements of other schemas cannot be filtered out, and this server is limited to some schemas.",
            )
            .hint("The operator can start it without --schemas."));
        }
        let schema = extension(database, "pg_stat_statements").await?.ok_or_else(|| {
            ToolError::new("The extension pg_stat_statements is not installed in this database.").hint(
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

    /// `pg_health`
    pub(crate) async fn health(&self, args: Health) -> Result<ToolOutput<Report>, ToolError> {
        let database = self.database(args.database.as_deref())?;
        let (rows, link) = database.own(&HEALTH, &[schemas_of(database)]).await?;
        let json = rows.first().map(|row| row.text(0)).unwrap_or_default();
        let body = json.strip_prefix('{').unwrap_or(&json);
        Ok(report(&format!("{{\"version\":{},\"encrypted\":{},{body}", link.version, link.encrypted)))
    }

    /// The statement that imagines an index.
    pub(crate) async fn hypopg(&self, database: &Arc<Database>) -> Result<String, ToolError> {
        let schema = extension(database, "hypopg").await?.ok_or_else(|| {
            ToolError::new(
                "Hypothetical indexes require the extension hypopg, which is not installed in this database.",
            )
            .hint("Omit indexes, or ask an administrator to run CREATE EXTENSION hypopg.")
        })?;
        Ok(format!("SELECT {}.hypopg_create_index($1::pg_catalog.text)", quote_name(&schema)))
    }
}

/// The schema that an extension is installed in.
async fn extension(database: &Arc<Database>, name: &str) -> Result<Option<String>, ToolError> {
    let (rows, _) = database.own(&EXTENSION, &[Some(name.to_owned())]).await?;
    Ok(rows.first().map(|row| row.text(0)))
}

impl Database {
    /// The types of columns, as far as they are known.
    pub(crate) fn known_types(&self, described: &Described) -> Vec<Type> {
        let known = lock(&self.types);
        let unknown = |oid| Type { name: format!("oid {oid}"), shape: Shape::of(oid), array: None };
        described
            .fields
            .iter()
            .map(|field| {
                known.get(&(field.type_oid, field.type_modifier)).cloned().unwrap_or_else(|| unknown(field.type_oid))
            })
            .collect()
    }

    /// Says what the columns' types are; asks for those that are not known yet.
    pub(crate) async fn name_types(self: &Arc<Self>, answer: &mut Answer) -> Result<(), ToolError> {
        let mut missing: Vec<(u32, i32)> = {
            let known = lock(&self.types);
            let all = answer.described.fields.iter().map(|field| (field.type_oid, field.type_modifier));
            all.filter(|key| !known.contains_key(key)).collect()
        };
        missing.sort_unstable();
        missing.dedup();
        let asked = if missing.is_empty() { Ok(()) } else { self.look_up_types(&missing).await };
        answer.types = self.known_types(&answer.described);
        asked
    }

    async fn look_up_types(self: &Arc<Self>, missing: &[(u32, i32)]) -> Result<(), ToolError> {
        let list = |items: Vec<String>| Some(texts(items));
        let parameters = [
            list(missing.iter().map(|(oid, _)| oid.to_string()).collect()),
            list(missing.iter().map(|(_, modifier)| modifier.to_string()).collect()),
        ];
        let (rows, _) = self.own(&TYPES, &parameters).await?;
        let mut known = lock(&self.types);
        if known.len() > TYPES_MAX {
            known.clear();
        }
        for row in &rows {
            let number = |at: usize| row.text(at).parse::<u32>().unwrap_or_default();
            let key = (number(0), row.text(1).parse().unwrap_or(-1));
            let array = row.cell(3).and_then(|delimiter| delimiter.chars().next());
            let element = if array.is_some() { number(4) } else { key.0 };
            known.insert(key, Type { name: row.text(2), shape: Shape::of(element), array });
        }
        Ok(())
    }
}

/// The schema of an extension ($1).
static EXTENSION: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
SELECT n.nspname::text FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = $1::name",
    )
});

/// $1: the schemas that may be read; empty means all but the system's. PostgreSQL's functions for comments are written
/// in SQL, and find operators on the search path before version 14.
static SCHEMAS: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'owner', pg_catalog.pg_get_userbyid(n.nspowner),
  'tables', pg_catalog.count(*) FILTER (WHERE c.relkind = ANY ('{r,p,f}')), 'views', pg_catalog.count(*) FILTER (WHERE c.relkind = ANY ('{v,m}')),
  'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid = n.oid AND about.classoid = 'pg_catalog.pg_namespace'::regclass AND about.objsubid = 0)))::text
FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid
WHERE CASE WHEN $1::name[] = '{}' THEN pg_catalog.left(n.nspname::text, 3) <> 'pg_' AND n.nspname <> 'information_schema'
  ELSE n.nspname = ANY ($1::name[]) END AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
GROUP BY n.oid, n.nspname, n.nspowner ORDER BY n.nspname",
    )
});

/// $1 as above, $2 one schema, $3 part of the name, $4 how many, $5 from where, $6 kinds.
static OBJECTS: LazyLock<String> = LazyLock::new(|| {
    ours(
        r#"
SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname, 'kind', pg_catalog.jsonb_extract_path_text(
    '{"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table", "S": "sequence"}',
    c.relkind::text),
  'estimated_rows', CASE WHEN c.relkind = ANY ('{r,p,m}') AND c.reltuples >= 0 THEN c.reltuples::int8 END,
  'bytes', CASE WHEN c.relkind = ANY ('{r,m}') THEN pg_catalog.pg_total_relation_size(c.oid) END,
  'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid = c.oid AND about.classoid = 'pg_catalog.pg_class'::regclass AND about.objsubid = 0)))::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind::text = ANY ($6::text[])
  AND CASE WHEN $1::name[] <> '{}' THEN n.nspname = ANY ($1::name[]) AND n.nspname = coalesce($2, n.nspname::text)
    WHEN $2 IS NOT NULL THEN n.nspname = $2::name
    ELSE pg_catalog.left(n.nspname::text, 3) <> 'pg_' AND n.nspname <> 'information_schema' END
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.strpos(pg_catalog.lower(c.relname::text), pg_catalog.lower(coalesce($3, ''))) > 0
ORDER BY n.nspname, c.relname LIMIT $4::int8 OFFSET $5::int8"#,
    )
});

/// As above, without kinds.
static FUNCTIONS: LazyLock<String> = LazyLock::new(|| {
    ours(
        r#"
SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'name', p.proname,
  'kind', pg_catalog.jsonb_extract_path_text(
    '{"f": "function", "p": "procedure", "a": "aggregate", "w": "window function"}', p.prokind::text),
  'arguments', pg_catalog.pg_get_function_identity_arguments(p.oid), 'returns', pg_catalog.pg_get_function_result(p.oid),
  'volatility', pg_catalog.jsonb_extract_path_text(
    '{"i": "immutable", "s": "stable", "v": "volatile"}', p.provolatile::text),
  'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid = p.oid AND about.classoid = 'pg_catalog.pg_proc'::regclass AND about.objsubid = 0)))::text
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE CASE WHEN $1::name[] <> '{}' THEN n.nspname = ANY ($1::name[]) AND n.nspname = coalesce($2, n.nspname::text)
    WHEN $2 IS NOT NULL THEN n.nspname = $2::name
    ELSE pg_catalog.left(n.nspname::text, 3) <> 'pg_' AND n.nspname <> 'information_schema' END
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.strpos(pg_catalog.lower(p.proname::text), pg_catalog.lower(coalesce($3, ''))) > 0
ORDER BY n.nspname, p.proname, p.oid LIMIT $4::int8 OFFSET $5::int8"#,
    )
});

/// $1 as above, $2 a schema or nothing for the search path, $3 the name. An object, [`LISTS`], and the definition of a
/// view.
static DESCRIPTION: LazyLock<String> = LazyLock::new(|| {
    ours(
        r#"
SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname, 'kind', pg_catalog.jsonb_extract_path_text(
    '{"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table", "S": "sequence"}',
    c.relkind::text),
  'owner', pg_catalog.pg_get_userbyid(c.relowner), 'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid = c.oid AND about.classoid = 'pg_catalog.pg_class'::regclass AND about.objsubid = 0),
  'estimated_rows', CASE WHEN c.relkind = ANY ('{r,p,m}') AND c.reltuples >= 0 THEN c.reltuples::int8 END,
  'bytes', CASE WHEN c.relkind = ANY ('{r,m}') THEN pg_catalog.pg_total_relation_size(c.oid) END,
  'row_security', CASE WHEN c.relrowsecurity THEN true END,
  'partitioned_by', CASE WHEN c.relkind = 'p' THEN pg_catalog.pg_get_partkeydef(c.oid) END))::text,
  (SELECT pg_catalog.json_strip_nulls(pg_catalog.json_agg(pg_catalog.json_build_object('name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
      'nullable', NOT a.attnotnull, 'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid),
      'identity', pg_catalog.jsonb_extract_path_text('{"a": "always", "d": "by default"}', a.attidentity::text),
      'generated', CASE WHEN a.attgenerated <> '' THEN true END,
      'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid = c.oid AND about.classoid = 'pg_catalog.pg_class'::regclass AND about.objsubid = a.attnum)) ORDER BY a.attnum))::text
    FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', k.conname, 'kind', pg_catalog.jsonb_extract_path_text(
      '{"p": "primary key", "u": "unique", "f": "foreign key", "c": "check", "x": "exclusion"}', k.contype::text),
      'definition', pg_catalog.pg_get_constraintdef(k.oid)) ORDER BY k.contype DESC, k.conname)::text
    FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = ANY ('{p,u,f,c,x}')),
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', i.relname, 'definition', pg_catalog.pg_get_indexdef(i.oid),
      'valid', x.indisvalid) ORDER BY i.relname)::text
    FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid),
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('table', k.conrelid::regclass::text, 'definition',
      pg_catalog.pg_get_constraintdef(k.oid)) ORDER BY k.conname)::text
    FROM pg_catalog.pg_constraint k WHERE k.confrelid = c.oid AND k.contype = 'f'),
  (SELECT pg_catalog.json_agg(pg_catalog.pg_get_triggerdef(t.oid) ORDER BY t.tgname)::text
    FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
  CASE WHEN c.relkind = ANY ('{v,m}') THEN pg_catalog.to_json(pg_catalog.pg_get_viewdef(c.oid, true))::text END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $3::name AND c.relkind = ANY ('{r,p,v,m,f,S}')
  AND CASE WHEN $2::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2::name END
  AND ($1::name[] = '{}' OR n.nspname = ANY ($1::name[]))
LIMIT 1"#,
    )
});

/// $1 as above.
static HEALTH: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
WITH mine AS (
  SELECT s.*, pg_catalog.quote_ident(s.schemaname) || '.' || pg_catalog.quote_ident(s.relname) AS label
  FROM pg_catalog.pg_stat_user_tables s WHERE $1::name[] = '{}' OR s.schemaname = ANY ($1::name[])
), figures AS (
  SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend') AS connections,
    pg_catalog.current_setting('max_connections')::int4 AS connections_max,
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE pg_catalog.cardinality(pg_catalog.pg_blocking_pids(pid)) > 0) AS waiting,
    (SELECT pg_catalog.max(extract(epoch FROM pg_catalog.now() - xact_start))::int8 FROM pg_catalog.pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid()) AS oldest,
    (SELECT CASE WHEN blks_hit + blks_read > 0 THEN pg_catalog.round(100.0 * blks_hit / (blks_hit + blks_read), 1) END FROM pg_catalog.pg_stat_database
      WHERE datname = pg_catalog.current_database()) AS hit,
    (SELECT pg_catalog.max(pg_catalog.age(datfrozenxid)) FROM pg_catalog.pg_database) AS age,
    (SELECT pg_catalog.json_agg(x.indexrelid::regclass::text) FROM pg_catalog.pg_index x JOIN mine m ON m.relid = x.indrelid
      WHERE NOT x.indisvalid) AS invalid,
    (SELECT pg_catalog.json_agg(u) FROM (SELECT i.indexrelid::regclass::text AS index, pg_catalog.pg_relation_size(i.indexrelid) AS bytes
      FROM pg_catalog.pg_stat_user_indexes i JOIN mine m ON m.relid = i.relid
      JOIN pg_catalog.pg_index x ON x.indexrelid = i.indexrelid
      WHERE i.idx_scan = 0 AND NOT x.indisunique AND pg_catalog.pg_relation_size(i.indexrelid) > 1048576
      ORDER BY 2 DESC LIMIT 10) AS u) AS unused,
    (SELECT pg_catalog.json_agg(d) FROM (SELECT label AS table, n_dead_tup AS dead, n_live_tup AS live, last_autovacuum FROM mine
      WHERE n_dead_tup > 10000 AND n_dead_tup > (n_live_tup / 5) ORDER BY n_dead_tup DESC LIMIT 10) AS d) AS dead,
    (SELECT pg_catalog.json_agg(r) FROM (SELECT application_name AS name, state, sync_state,
      extract(epoch FROM replay_lag)::float8 AS lag_s FROM pg_catalog.pg_stat_replication LIMIT 20) AS r) AS replicas,
    pg_catalog.pg_is_in_recovery() AS replica
)
SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object(
  'up_since', pg_catalog.pg_postmaster_start_time(), 'database', pg_catalog.current_database(),
  'bytes', pg_catalog.pg_database_size(pg_catalog.current_database()), 'is_replica', replica,
  'connections', connections, 'connections_max', connections_max, 'waiting_for_locks', waiting,
  'oldest_transaction_s', oldest, 'cache_hit_percent', hit, 'oldest_xid_age', age,
  'tables', (SELECT pg_catalog.count(*) FROM mine), 'invalid_indexes', invalid, 'unused_indexes', unused, 'tables_to_vacuum', dead,
  'replicas', replicas,
  'warnings', pg_catalog.array_remove(ARRAY[
    CASE WHEN connections > (0.8 * connections_max) THEN 'More than 80 % of the connections are in use.' END,
    CASE WHEN waiting > 0 THEN waiting || ' sessions wait for locks.' END,
    CASE WHEN oldest > 300 THEN 'A transaction is open for more than 5 minutes; it keeps vacuum from working.' END,
    CASE WHEN hit < 90 THEN 'The cache hit rate is below 90 %.' END,
    CASE WHEN age > 1000000000 THEN 'Transaction numbers are half used up; check that vacuum runs.' END,
    CASE WHEN invalid IS NOT NULL THEN 'Some indexes are invalid; rebuild them.' END,
    CASE WHEN dead IS NOT NULL THEN 'Some tables have many dead rows; check autovacuum.' END], NULL)))::text
FROM figures",
    )
});

/// Without an order and a limit, for which parameter 1 is; `extension` stands for the extension's schema. Its columns
/// have had other names before version 13.
static TOP_QUERIES: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
SELECT pg_catalog.json_build_object('query', pg_catalog.left(query, 1000), 'calls', calls,
  'total_ms', pg_catalog.round(total::numeric, 2), 'mean_ms', pg_catalog.round(mean::numeric, 2), 'rows', rows,
  'blocks_hit', hit, 'blocks_read', read)::text
FROM (SELECT s.query, s.calls, s.rows, s.shared_blks_hit AS hit, s.shared_blks_read AS read,
  coalesce((pg_catalog.to_jsonb(s) ->> 'total_exec_time')::float8, (pg_catalog.to_jsonb(s) ->> 'total_time')::float8) AS total,
  coalesce((pg_catalog.to_jsonb(s) ->> 'mean_exec_time')::float8, (pg_catalog.to_jsonb(s) ->> 'mean_time')::float8) AS mean
  FROM extension.pg_stat_statements s JOIN pg_catalog.pg_database d ON d.oid = s.dbid
  WHERE d.datname = pg_catalog.current_database()) AS q",
    )
});

/// What the role is: superuser, which of the dangerous roles it belongs to, whether it owns data, whether it may read
/// protected settings; the server's version, encoding and process. The role of the login counts too: it can be returned
/// to.
pub(crate) static WHO: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
SELECT pg_catalog.bool_or(r.rolsuper),
  coalesce((SELECT pg_catalog.min(g.rolname::text) FROM pg_catalog.pg_roles g
    WHERE g.rolname = ANY ('{pg_execute_server_program,pg_read_server_files,pg_write_server_files}')
    AND (pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, g.oid, 'MEMBER'))), ''),
  EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = ANY ('{r,p,v,m,S,f}') AND pg_catalog.left(n.nspname::text, 3) <> 'pg_' AND n.nspname <> 'information_schema'
    AND (pg_catalog.pg_has_role(session_user, c.relowner, 'MEMBER') OR pg_catalog.pg_has_role(current_user, c.relowner, 'MEMBER')))
  OR EXISTS (SELECT FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
    AND (pg_catalog.pg_has_role(session_user, d.datdba, 'MEMBER') OR pg_catalog.pg_has_role(current_user, d.datdba, 'MEMBER'))),
  pg_catalog.bool_or(r.rolsuper) OR EXISTS (SELECT FROM pg_catalog.pg_roles g WHERE g.rolname = 'pg_read_all_settings'
    AND (pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, g.oid, 'MEMBER'))),
  pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_encoding'),
  pg_catalog.pg_backend_pid()
FROM pg_catalog.pg_roles r WHERE r.rolname = ANY (ARRAY[session_user, current_user])",
    )
});

/// Pins what the rest relies on, for this transaction. A pooler between us and the server need not keep anything.
/// Compiling our own questions would take longer than answering them; what callers ask is compiled as the server is
/// set. $4 is the search path, or nothing for the role's, and $5 a schema before it, or nothing.
pub(crate) static SETTINGS: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true),
  pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true),
  pg_catalog.set_config('search_path', pg_catalog.concat_ws(', ', $5::text, CASE WHEN path <> '' THEN path END), true),
  pg_catalog.set_config('standard_conforming_strings', 'on', true), pg_catalog.set_config('bytea_output', 'hex', true),
  pg_catalog.set_config('datestyle', 'ISO', true), pg_catalog.set_config('intervalstyle', 'postgres', true),
  pg_catalog.set_config('extra_float_digits', '1', true), pg_catalog.set_config('jit', 'off', true)
FROM coalesce($4, pg_catalog.current_setting('search_path')) AS path",
    )
});

/// Number, modifier, name, what separates elements (of arrays), and the elements' type, of types.
pub(crate) static TYPES: LazyLock<String> = LazyLock::new(|| {
    ours(
        r"
SELECT c.oid, c.modifier, pg_catalog.format_type(c.oid, c.modifier),
  CASE WHEN t.typinput = 'pg_catalog.array_in'::regproc THEN e.typdelim END,
  CASE WHEN e.typtype = 'd' THEN e.typbasetype ELSE e.oid END
FROM ROWS FROM (pg_catalog.unnest($1::oid[]), pg_catalog.unnest($2::int4[])) AS c(oid, modifier)
LEFT JOIN pg_catalog.pg_type t ON t.oid = c.oid LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem",
    )
});

const fn kept(name: &'static str, sql: &'static str) -> Step<'static> {
    Step { name, sql, parameters: &[] }
}

/// The end of a transaction that only reads.
pub(crate) const ROLLBACK: [Step<'static>; 1] = [kept("linchpin_rollback", "ROLLBACK")];
pub(crate) const ROLLBACK_ONCE: [Step<'static>; 1] = [kept("", "ROLLBACK")];

pub(crate) const DISCARD_ALL: [Step<'static>; 1] = [kept("", DISCARD)];

/// What `DISCARD ALL` does, without forgetting plans and statements.
pub(crate) const RESET: [Step<'static>; 7] = [
    kept("linchpin_close", "CLOSE ALL"),
    kept("linchpin_authorization", "SET SESSION AUTHORIZATION DEFAULT"),
    kept("linchpin_reset", "RESET ALL"),
    kept("linchpin_unlisten", "UNLISTEN *"),
    kept("linchpin_unlock", "SELECT pg_catalog.pg_advisory_unlock_all()"),
    kept("linchpin_sequences", "DISCARD SEQUENCES"),
    kept("linchpin_temporary", "DISCARD TEMP"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_stay_json() {
        for (json, expected) in [
            (r#"{"a": "abc", "b": 12345}"#, r#"{"a": "abc", "b": 12345}"#),
            (r#"{"a" : "abcd"}"#, r#"{"a" : "abc…"}"#),
            (
                r#"["äöü", "äöüß", "\"\\\n", "\u0001\u0002\u0003\u0004"]"#,
                r#"["äöü", "äöü…", "\"\\\n", "\u0001\u0002\u0003…"]"#,
            ),
        ] {
            let (out, cut) = clipped(json, 3);
            assert_eq!((out.as_str(), cut), (expected, json != expected));
            serde_json::from_str::<serde_json::Value>(&out).unwrap();
        }
    }
}
