//! `--max-bytes` and `--max-rows` hold for every tool, for the text and for the structured content, and pages reach the end.

use crate::common;

use common::{World, sql};
use serde_json::{Value, json};

const BYTES: usize = 1_000;
/// What is around rows: brackets, column names, the notice.
const HELD: usize = BYTES + 300;

/// Many tables, one of them with more columns than an answer has rows, one with many indexes that have no text of their own.
async fn full() -> World {
    let columns: Vec<String> = (0..300).map(|n| format!("column_{n} INTEGER DEFAULT {n}")).collect();
    let unique: Vec<String> = (0..60).map(|n| format!("UNIQUE (a, b{n})")).collect();
    let more: Vec<String> = (0..60).map(|n| format!("b{n}")).collect();
    let mut script: String = (0..120).map(|n| format!("CREATE TABLE table_{n}(a INTEGER PRIMARY KEY);")).collect();
    script.push_str(&format!("CREATE TABLE wide({});", columns.join(",")));
    script.push_str(&format!("CREATE TABLE keys(a,{},{});", more.join(","), unique.join(",")));
    script.push_str("CREATE TABLE last(a DEFAULT 'x'); CREATE VIEW gone AS SELECT * FROM nowhere;");
    World::made(&script, |c| c.max_bytes = BYTES).await
}

/// An answer, held against the limit.
async fn answer(w: &World, tool: &str, args: &Value) -> Value {
    let result = w.call(tool, args.clone()).await;
    assert!(!result.is_error(), "{tool} {args}: {}", result.text());
    let (text, structured) = (result.text(), result.structured().unwrap());
    assert!(text.len() <= HELD && structured.len() <= HELD, "{tool} {args}: {} {}", text.len(), structured.len());
    let value: Value = result.json().unwrap();
    let truncated = value["truncated"] == true || value["returned"]["truncated"] == true;
    assert_eq!(text.contains("Truncated"), truncated, "{tool}: {text}");
    value
}

async fn pages(w: &World, tool: &str, mut args: Value, list: &str) -> Vec<String> {
    let (mut names, mut count) = (Vec::new(), 0);
    loop {
        let page = answer(w, tool, &args).await;
        names.extend(page[list].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        args["cursor"] = page["next_cursor"].clone();
        count += 1;
        if args["cursor"].is_null() {
            assert!(count > 1 && page["truncated"].is_null(), "{tool}: {count} pages");
            return names;
        }
        assert!(count < 1_000, "{tool} comes to no end");
    }
}

#[tokio::test]
async fn every_answer_holds_the_limit_and_pages_reach_the_end() {
    let w = full().await;
    let mut tables: Vec<String> = (0..120).map(|n| format!("table_{n}")).collect();
    tables.extend(["wide", "keys", "last"].map(str::to_owned));
    assert_eq!(pages(&w, "list_tables", json!({}), "tables").await, tables);
    tables.push("gone".into());
    assert_eq!(pages(&w, "list_tables", json!({ "include_views": true }), "tables").await, tables);
    assert_eq!(pages(&w, "sqlite_schema", json!({}), "tables").await, tables);
    let columns: Vec<String> = (0..300).map(|n| format!("column_{n}")).collect();
    assert_eq!(pages(&w, "describe_table", json!({ "table_name": "wide" }), "columns").await, columns);
    for (tool, args) in [
        ("sqlite_schema", json!({ "table": "keys" })),
        ("read_query", sql("SELECT * FROM sqlite_master")),
        ("sqlite_explain", sql(&format!("SELECT 1 {}", "UNION ALL SELECT a FROM last ".repeat(100)))),
        ("write_query", sql("INSERT INTO last SELECT name FROM sqlite_master RETURNING *")),
    ] {
        let value = answer(&w, tool, &args).await;
        assert!(value["truncated"] == true || value["returned"]["truncated"] == true, "{tool}");
    }
    for tool in ["list_tables", "sqlite_schema"] {
        assert!(w.error(tool, json!({ "cursor": "x" })).await.contains("Unknown cursor"), "{tool}");
    }
}

/// Of more columns than an answer has rows, or than one answer holds, none is out of reach.
#[tokio::test]
async fn a_table_with_many_columns_or_a_long_default_is_described() {
    let columns: Vec<String> = (0..400).map(|n| format!("c{n}")).collect();
    let script =
        format!("CREATE TABLE wide({}); CREATE TABLE odd(a DEFAULT '{}', b);", columns.join(","), "x".repeat(5_000));
    let w = World::made(&script, |c| c.max_bytes = BYTES).await;
    assert_eq!(pages(&w, "describe_table", json!({ "table_name": "wide" }), "columns").await.len(), 400);
    let error = w.error("describe_table", json!({ "table_name": "odd" })).await;
    assert!(error.contains("longer than 1000 bytes") && error.contains("cursor=\"1\""), "{error}");
    let rest = w.value("describe_table", json!({ "table_name": "odd", "cursor": "1" })).await;
    assert_eq!(rest["columns"][0]["name"], "b");
}
