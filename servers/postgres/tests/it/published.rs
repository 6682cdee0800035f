//! The same calls to the published server-postgres 0.6.2 and to ours, on one database.
//!
//! Deliberate differences, each in a test here or in the other files:
//! - dates and times are PostgreSQL's text; theirs are JavaScript dates, which lose microseconds and move dates by the time zone;
//! - bytea is `\x…`, intervals, points and circles are text; theirs are objects of its driver;
//! - numeric arrays are strings like numeric itself, arrays of types that the driver does not know are arrays;
//! - NaN and Infinity are strings; theirs are null;
//! - a failed statement is a tool result with `isError`, SQLSTATE and a hint; theirs is a JSON-RPC error;
//! - several statements, and whatever else a READ ONLY transaction does not hold back, are refused;
//! - names in URIs are decoded; theirs finds no table whose name has a blank;
//! - the columns of a resource come in the order of the table; theirs in any;
//! - resources also cover other schemas and materialized views, and are of one schema and host: theirs mixes tables of one name
//!   and ignores the host.

use crate::common;

use common::{Cluster, call, connect};
use linchpin::prelude::*;
use linchpin::transport::Child;
use serde_json::{Value, json};
use std::path::PathBuf;

const DATA: &str = "
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
CREATE TABLE items (id int, name text, ok boolean, price numeric(10,2), big int8, real8 float8, doc jsonb, list int[], words text[]);
INSERT INTO items VALUES (1, 'one \"q\" \\ é', true, 1.50, 9007199254740993, 0.1, '{\"b\": [1, {}], \"a\": []}', '{1,NULL}', '{a,\"b c\"}'),
  (2, NULL, false, -0.01, NULL, -7, 'null', '{}', '{}');
CREATE TABLE empty (i int); CREATE VIEW shown AS SELECT id FROM items;
CREATE TABLE \"with space\" (i int);
";

async fn theirs(cluster: &Cluster, user: &str) -> Connection {
    let installed =
        std::env::var("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names the directory of the packages");
    let program = PathBuf::from(installed).join("node_modules/.bin/mcp-server-postgres");
    let child = Child::new(program).args([cluster.url(user)]);
    Client::new("test", "1").connect(child).await.expect("the published server starts")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_text_of_rows_is_the_same() {
    let cluster = Cluster::start();
    cluster.sql(DATA);
    let (theirs, ours) = (theirs(&cluster, "reader").await, connect(cluster.config("reader")).await);
    for sql in [
        "SELECT * FROM items ORDER BY id",
        "SELECT * FROM empty",
        "SELECT 1 AS a, 2 AS b, 3 AS a",
        "SELECT id FROM items ORDER BY id;",
        "SELECT NULL AS nothing, ''::text AS blank",
        "SELECT ARRAY[[1,2],[3,4]] AS grid, ARRAY[true,false] AS flags, ARRAY[1.5::float8] AS floats, ARRAY[9007199254740993] AS bigs",
        "SELECT '[1, \"two\", {\"three\": null}]'::json AS j, '\"x\"'::jsonb AS s, '{}'::jsonb AS o",
        "SELECT 'a'::\"char\" AS c, 'n'::name AS n, 5::oid AS o, 2::int2 AS s, '10.0.0.1'::inet AS i",
        "SELECT '550e8400-e29b-41d4-a716-446655440000'::uuid AS u, time '12:34:56' AS t, int4range(1, 5) AS r, 'x'::char(3) AS p",
        "SELECT id FROM items WHERE false",
        "VALUES (1, 'a'), (2, 'b')",
        "WITH a AS (SELECT 1 AS i) SELECT * FROM a",
        "SELECT count(*), sum(price), avg(real8) FROM items",
        "SELECT 'tab\tnew\nline' AS t, E'\\u2028' AS sep",
        "EXPLAIN SELECT * FROM items",
        "SHOW server_version",
    ] {
        let (theirs, ours) =
            (call(&theirs, "query", json!({ "sql": sql })).await, call(&ours, "query", json!({ "sql": sql })).await);
        assert_eq!((ours.0, ours.1), (theirs.0, theirs.1), "{sql}");
    }
}

/// Where the texts differ, and how.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn these_values_differ_on_purpose() {
    let cluster = Cluster::start();
    cluster.sql(DATA);
    let (theirs, ours) = (theirs(&cluster, "reader").await, connect(cluster.config("reader")).await);
    for (expression, published, own) in [
        ("timestamptz '2024-02-29 12:34:56.789012+00'", json!("2024-02-29T12:34:56.789Z"), None),
        ("'\\x6869'::bytea", json!({ "type": "Buffer", "data": [104, 105] }), Some(json!("\\x6869"))),
        ("interval '1 day 2 hours'", json!({ "days": 1, "hours": 2 }), Some(json!("1 day 02:00:00"))),
        ("point(1, 2)", json!({ "x": 1, "y": 2 }), Some(json!("(1,2)"))),
        ("'NaN'::float8", json!(null), Some(json!("NaN"))),
        ("ARRAY[1.50::numeric]", json!([1.5]), Some(json!(["1.50"]))),
    ] {
        let sql = format!("SELECT {expression} AS v");
        let value = |text: String| serde_json::from_str::<Value>(&text).expect("JSON")[0]["v"].clone();
        assert_eq!(value(call(&theirs, "query", json!({ "sql": sql })).await.1), published, "{sql}");
        let got = value(call(&ours, "query", json!({ "sql": sql })).await.1);
        match own {
            Some(own) => assert_eq!(got, own, "{sql}"),
            None => assert!(got.as_str().is_some_and(|text| text.contains("56.789012")), "{sql}: {got}"),
        }
    }
    // A failed statement.
    let failed =
        theirs.call("query", json!({ "sql": "SELECT * FROM nothing" })).await.expect_err("an error of the protocol");
    assert!(failed.to_string().contains("relation \"nothing\" does not exist"), "{failed}");
    let (failed, text, _) = call(&ours, "query", json!({ "sql": "SELECT * FROM nothing" })).await;
    assert!(failed && text.starts_with("The statement failed: ") && text.contains("(SQLSTATE 42P01"), "{text}");
    assert!(text.ends_with("\nrelation \"nothing\" does not exist"), "{text}");
}

/// What was published runs this; ours does not.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn stacked_statements_run_there_and_not_here() {
    let cluster = Cluster::start();
    cluster.sql(DATA);
    cluster.sql("GRANT CREATE ON SCHEMA public TO reader");
    let there = |name: &str| cluster.sql(&format!("SELECT count(*) FROM pg_class WHERE relname = '{name}'"));
    let sql = |name: &str| json!({ "sql": format!("SELECT 1; COMMIT; CREATE TABLE {name} (i int)") });
    let (failed, _, _) = call(&connect(cluster.config("reader")).await, "query", sql("pwn_ours")).await;
    assert!(failed);
    assert_eq!(there("pwn_ours"), "0");
    let _ = theirs(&cluster, "reader").await.call("query", sql("pwn_theirs")).await;
    assert_eq!(there("pwn_theirs"), "1");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn resources_of_schema_public_are_the_same() {
    let cluster = Cluster::start();
    cluster.sql(DATA);
    let (theirs, ours) = (theirs(&cluster, "reader").await, connect(cluster.config("reader")).await);
    let list = async |client: &Connection| {
        let listed = client.resources().await.expect("a list").items;
        let mut listed: Vec<(String, String, Option<String>)> =
            listed.into_iter().map(|r| (r.uri, r.name, r.mime_type)).collect();
        listed.sort();
        listed
    };
    let (there, here) = (list(&theirs).await, list(&ours).await);
    assert_eq!(here, there);
    assert_eq!(there.len(), 4);
    for (uri, ..) in there {
        let there = theirs.read(&uri).await.expect("columns").into_inner();
        let here = ours.read(&uri).await.expect("columns").into_inner();
        if uri.contains("%20") {
            // Theirs does not decode names.
            assert_eq!(text(&there.contents[0]), "[]");
            assert!(text(&here.contents[0]).contains("column_name"));
            continue;
        }
        // Theirs come in any order, ours as in the table.
        let columns = |contents: &ResourceContents| {
            let mut columns: Vec<Value> = serde_json::from_str(text(contents)).expect("JSON");
            columns.sort_by_key(Value::to_string);
            (contents.uri().to_owned(), contents.mime_type().map(str::to_owned), columns, text(contents).len())
        };
        assert_eq!(columns(&here.contents[0]), columns(&there.contents[0]), "{uri}");
    }
}

fn text(contents: &ResourceContents) -> &str {
    let ResourceContents::Text(text) = contents else { panic!("{contents:?}") };
    &text.text
}
