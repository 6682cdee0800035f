//! The published server beside ours, call by call: PyPI `mcp-server-sqlite` 2025.4.25 under the SDK below 2, with which
//! it still starts.
//!
//! Differences that are meant, each with its reason. The first has a flag that restores the old form.
//! - Rows are JSON; `--compat-repr` gives Python's notation, which is what is compared here for every answer.
//! - Failures are `isError: true`; theirs are ordinary results. The first line is the same; ours may have a `Hint: …`.
//! - `read_query` takes WITH, VALUES, EXPLAIN and PRAGMAs that show something; theirs only what begins with SELECT.
//! - What is misspelt gets SQLite's message, not "Only SELECT queries are allowed".
//! - REPLACE and WITH … INSERT are committed and counted; theirs answers `[]` and loses them.
//! - RETURNING gives its rows; theirs fails and loses the change.
//! - `describe_table` takes its argument as a name, never as SQL; an unknown table is an error, theirs answers `[]`.
//! - `write_query` refuses ATTACH, DETACH, BEGIN and the like, temporary objects, and PRAGMAs that are not on a list.
//! - `create_table` sees the statement behind comments; theirs refuses it.
//! - An unknown tool is an error of the request.
//! - `resources/updated` goes to those who subscribed; theirs goes to everybody.
//! - The text of the prompt is our own.

use crate::common;

use common::{World, sql};
use linchpin::client::{Client, Connection};
use linchpin::transport::Child;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn installed() -> PathBuf {
    let root = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    PathBuf::from(root).join("py1/bin/mcp-server-sqlite")
}

async fn theirs(db: &Path) -> Connection {
    let child = Child::new(installed()).arg("--db-path").arg(db).env("PYTHONIOENCODING", "utf-8");
    Client::new("test", "0").cache(false).connect(child).await.expect("the published server starts")
}

/// What the published server says of an error: SQLite's message where ours has it, in a block of its own behind the hint.
fn theirs_in(ours: &str) -> String {
    let (first, rest) = ours.split_once("\nHint: ").unwrap_or((ours, ""));
    rest.split_once('\n').map_or_else(|| first.to_owned(), |(_, detail)| format!("Database error: {detail}"))
}

/// Both, each with a database of its own.
struct Pair {
    theirs: Connection,
    ours: World,
    _dir: tempfile::TempDir,
}

impl Pair {
    async fn new() -> Pair {
        let dir = tempfile::tempdir().unwrap();
        let theirs = theirs(&dir.path().join("x.db")).await;
        Pair { theirs, ours: World::with(|c| c.compat_repr = true).await, _dir: dir }
    }

    async fn both(&self, tool: &str, args: &Value) -> (String, String, bool) {
        let theirs = self.theirs.call(tool, args).await.unwrap_or_else(|error| panic!("{tool} {args}: {error}"));
        let ours = self.ours.call(tool, args.clone()).await;
        (theirs.text(), ours.text(), ours.is_error())
    }

    /// The same text, and an error exactly where theirs says one in words.
    async fn same(&self, tool: &str, args: Value) {
        let (theirs, ours, is_error) = self.both(tool, &args).await;
        let said = if is_error { theirs_in(&ours) } else { ours };
        assert_eq!(said, theirs, "{tool} {args}");
        let failed = theirs.starts_with("Database error: ") || theirs.starts_with("Error: ");
        assert_eq!(is_error, failed, "{tool} {args}");
    }

    /// A difference that is meant.
    async fn differs(&self, tool: &str, args: Value, theirs: &str, ours: &str) {
        let (found, own, _) = self.both(tool, &args).await;
        assert_eq!(found, theirs, "theirs: {tool} {args}");
        assert!(own == ours || own.starts_with(&format!("{ours}\nHint: ")), "ours: {tool} {args}: {own}");
    }
}

const FILL: &[(&str, &str)] = &[
    ("create_table", "CREATE TABLE t(id INTEGER PRIMARY KEY, n TEXT, b BLOB, f REAL, d NUMERIC DEFAULT 'x''y')"),
    (
        "create_table",
        "  create table Other (a NOT NULL, \"odd name\" VARCHAR(10) UNIQUE, PRIMARY KEY (a, \"odd name\"))",
    ),
    (
        "write_query",
        "INSERT INTO t(n,b,f) VALUES('it''s',x'0102',1.5),(NULL,NULL,NULL),('\"both\" ''kinds''',x'27ff22',1e16)",
    ),
    ("write_query", "INSERT INTO t(n,f,d) VALUES('tab\tnew\nline\\',1e-5,7),('é日本😀\u{200b}\u{a0}',-0.0,'text')"),
    ("write_query", "CREATE VIEW v AS SELECT n, f FROM t"),
    ("write_query", "CREATE INDEX i ON t(n)"),
    ("write_query", "CREATE TRIGGER g AFTER DELETE ON t BEGIN INSERT INTO Other VALUES (old.id, old.n); SELECT 1; END"),
];

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn answers_are_the_same_texts() {
    let pair = Pair::new().await;
    for (tool, query) in FILL {
        pair.same(tool, sql(query)).await;
    }
    for query in [
        "SELECT * FROM t",
        "select id from t order by id desc",
        "\n\tSELECT 1",
        "SELECT 1;",
        "SELECT 1 -- comment",
        "SELECT 1 AS a, 2 AS a, 3 AS A",
        "SELECT 9223372036854775807, -9223372036854775808, 0.1 + 0.2, 1e300, 9e999, -9e999, 1.0, 100000000000000000000",
        "SELECT x'', 'a' || char(0) || 'b', char(127, 128, 160, 173, 8232, 57344), ''''",
        "SELECT * FROM t WHERE 0",
        "SELECT count(*), max(f), group_concat(n) FROM t",
        "SELECT * FROM v",
        "SELECT name, type FROM sqlite_master ORDER BY name",
        "SELECT \"no such column\" FROM t",
        "SELECT nope FROM t",
        "SELECT * FROM nope",
        "SELECT FROM",
        "SELECT 1; DROP TABLE t",
        "SELECT 1; SELECT 2",
        "SELECT max()",
        "SELECT ?",
        "SELECT nofunction(1)",
        "SELECT 'unclosed",
        "SELECT * FROM t WHERE n = \"it's\"",
        "SELECT abs(-9223372036854775808)",
        "SELECT json('{')",
        "INSERT INTO t(n) VALUES('x')",
        "DROP TABLE t",
    ] {
        pair.same("read_query", sql(query)).await;
    }
    // Before ANALYZE: this build of SQLite keeps more statistics, in a table of its own.
    pair.same("list_tables", json!({})).await;
    for query in [
        "UPDATE t SET d = d",
        "UPDATE t SET d = 1 WHERE id > 100",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t SELECT id + 100, n, b, f, d FROM t",
        "INSERT OR IGNORE INTO t(id) VALUES (101)",
        "INSERT INTO t(id) VALUES (101)",
        "INSERT INTO Other VALUES (NULL, 1)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO nope VALUES (1)",
        "SELECT 1",
        "  select 1",
        "CREATE TABLE IF NOT EXISTS t(x)",
        "CREATE TABLE t(x)",
        "CREATE TABLE u AS SELECT * FROM t",
        "ALTER TABLE u RENAME TO w",
        "ALTER TABLE w ADD COLUMN z DEFAULT 5",
        "DROP TABLE w",
        "DROP TABLE w",
        "DROP VIEW v",
        "PRAGMA journal_mode",
        "PRAGMA user_version",
        "PRAGMA user_version = 7",
        "PRAGMA table_info(t)",
        "VACUUM",
        "ANALYZE",
        "REINDEX",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        "EXPLAIN QUERY PLAN SELECT 1",
        "UPDATE nope SET a = 1",
        "nonsense",
        "DELETE FROM t; DELETE FROM Other",
        "UPDATE sqlite_master SET name = 'x'",
    ] {
        pair.same("write_query", sql(query)).await;
    }
    pair.same("read_query", sql("SELECT * FROM t ORDER BY id")).await;
    for query in [
        "CREATE TABLE t(id)",
        "CREATE TEMP TABLE q(a)",
        "DROP TABLE t",
        "CREATE INDEX j ON t(n)",
        "",
        "CREATE TABLE",
        "CREATE TABLE z(a,a)",
    ] {
        pair.same("create_table", sql(query)).await;
    }
    for table in ["t", "T", "Other", "sqlite_master"] {
        pair.same("describe_table", json!({"table_name": table})).await;
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn what_differs_is_what_is_meant_to() {
    const ONLY: &str = "Error: Only SELECT queries are allowed for read_query";
    const DENIED: &str = "Database error: not authorized";
    let pair = Pair::new().await;
    for (tool, query) in FILL {
        pair.same(tool, sql(query)).await;
    }
    let t = |name: &str| json!({ "table_name": name });
    for (tool, args, theirs, ours) in [
        ("read_query", sql("WITH x AS (SELECT 1 a) SELECT * FROM x"), ONLY, "[{'a': 1}]"),
        ("read_query", sql("VALUES (1)"), ONLY, "[{'column1': 1}]"),
        ("read_query", sql("-- first\nSELECT 1 AS a"), ONLY, "[{'a': 1}]"),
        ("read_query", sql("PRAGMA user_version = 3"), ONLY, DENIED),
        ("read_query", sql(""), ONLY, "Error: the query contains no statement"),
        ("read_query", sql("SELEC"), ONLY, "Database error: the statement failed"),
        ("write_query", sql("REPLACE INTO t(id, n) VALUES (1, 'r')"), "[]", "[{'affected_rows': 1}]"),
        (
            "write_query",
            sql("WITH x(a) AS (VALUES (1)) INSERT INTO t(n) SELECT a FROM x"),
            "[]",
            "[{'affected_rows': 1}]",
        ),
        (
            "write_query",
            sql("INSERT INTO t(id, n) VALUES (50, 'z') RETURNING id"),
            "Database error: cannot commit transaction - SQL statements in progress",
            "[{'id': 50}]",
        ),
        ("write_query", sql("BEGIN"), "[]", DENIED),
        ("write_query", sql("ATTACH ':memory:' AS e"), "[]", DENIED),
        ("write_query", sql("CREATE TEMP TABLE q(a)"), "[{'affected_rows': -1}]", DENIED),
        ("write_query", sql("PRAGMA foreign_keys = ON"), "[]", DENIED),
        ("write_query", sql("PRAGMA writable_schema = 1"), "[]", DENIED),
        ("write_query", sql(""), "[]", "Error: the query contains no statement"),
        (
            "create_table",
            sql("/* x */ CREATE TABLE c(a)"),
            "Error: Only CREATE TABLE statements are allowed",
            "Table created successfully",
        ),
        ("create_table", sql("CREATE TABLE temp.c(a)"), "Table created successfully", DENIED),
        ("describe_table", t("nope"), "[]", "Database error: no such table: nope"),
        (
            "describe_table",
            t("t) UNION SELECT 1 --"),
            "Database error: near \"UNION\": syntax error",
            "Database error: no such table: t) UNION SELECT 1 --",
        ),
    ] {
        pair.differs(tool, args, theirs, ours).await;
    }
    assert_eq!(pair.ours.number("SELECT count(*) FROM t WHERE n IN ('r', '1', 'z')"), 3);
    let theirs = pair.theirs.call("nosuch", json!({"x": 1})).await.unwrap();
    assert_eq!(theirs.text(), "Error: Unknown tool: nosuch");
    assert!(pair.ours.client.call("nosuch", json!({"x": 1})).await.is_err());
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn json_answers_hold_what_the_published_rows_hold() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let theirs = theirs(&path).await;
    for (tool, query) in FILL {
        assert!(!theirs.call(tool, sql(query)).await.unwrap().text().contains("rror: "), "{query}");
    }
    // Our server on the file that theirs has made, and theirs on what ours adds.
    let ours = World::over(dir, |_| {}).await;
    assert_eq!(
        ours.read("SELECT id, n, b FROM t WHERE id < 3").await,
        r#"[{"id":1,"n":"it's","b":{"base64":"AQI="}},{"id":2,"n":null,"b":null}]"#
    );
    ours.write("INSERT INTO t(id, n) VALUES (77, 'from ours')").await;
    let text = theirs.call("read_query", sql("SELECT n FROM t WHERE id = 77")).await.unwrap().text();
    assert_eq!(text, "[{'n': 'from ours'}]");
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn lists_memo_and_prompt_have_the_same_names_and_forms() {
    let pair = Pair::new().await;
    let (theirs, ours) = (&pair.theirs, &pair.ours.client);
    let (their_tools, our_tools) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!(their_tools.len(), 6);
    for (tool, own) in their_tools.iter().zip(our_tools.iter()) {
        assert_eq!(tool.name, own.name, "the same order, before our own");
        let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let (tool, own) = (schema(tool.input_schema.get()), schema(own.input_schema.get()));
        let required = |schema: &Value| schema.get("required").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(required(&tool), required(&own));
        for (name, property) in tool["properties"].as_object().unwrap() {
            assert_eq!(property["type"], own["properties"][name]["type"], "{name}");
        }
    }
    let (their_resources, our_resources) = (theirs.resources().await.unwrap(), ours.resources().await.unwrap());
    let fact = |r: &linchpin::types::resource::Resource| (r.uri.clone(), r.name.clone(), r.mime_type.clone());
    assert_eq!(fact(&their_resources[0]), fact(&our_resources[0]));
    let (their_prompts, our_prompts) = (theirs.prompts().await.unwrap(), ours.prompts().await.unwrap());
    let arguments = |p: &linchpin::types::prompt::Prompt| {
        let named = p.arguments.iter().map(|a| (a.name.clone(), a.required));
        (p.name.clone(), named.collect::<Vec<_>>())
    };
    assert_eq!(arguments(&their_prompts[0]), arguments(&our_prompts[0]));
    for insight in ["", "one", "two\nlines", "- three"] {
        if !insight.is_empty() {
            pair.same("append_insight", json!({ "insight": insight })).await;
        }
        let (a, b) = (theirs.read("memo://insights").await.unwrap(), ours.read("memo://insights").await.unwrap());
        assert_eq!(a.text(), b.text());
    }
}
