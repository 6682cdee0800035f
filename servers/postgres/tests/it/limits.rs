//! What answers beside rows may hold, and that it is said when something is left out.

use crate::common;

use common::{Cluster, connect, error, ok, query};
use linchpin::prelude::*;
use linchpin_postgres::Access;
use serde_json::{Value, json};

/// The last block of an answer, when there are several.
async fn notice(client: &Connection, tool: &str, args: Value) -> Option<String> {
    let result = client.call(tool, args).await.expect("an answer");
    let content = result.content().expect("content");
    (content.len() > 1).then(|| content[content.len() - 1].as_text().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn descriptions_of_large_tables_are_cut_and_say_so() {
    let cluster = Cluster::start();
    cluster.sql(
        "CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
         CREATE TABLE small (i int PRIMARY KEY, t text DEFAULT 'x');
         CREATE VIEW looks AS SELECT * FROM small;
         CREATE TABLE wordy (i int); COMMENT ON COLUMN wordy.i IS 'none';
         SELECT format('CREATE TABLE wide (%s)', string_agg(format('c%s int DEFAULT %s CHECK (c%s > 0)', i, i, i), ','))
           FROM generate_series(1, 1000) i \\gexec
         SELECT format('COMMENT ON COLUMN wide.c%s IS %L', i, repeat('Ä', 2000)) FROM generate_series(1, 1000) i \\gexec
         SELECT format('CREATE INDEX ON wide (c%s)', i) FROM generate_series(1, 200) i \\gexec
         SELECT format('COMMENT ON TABLE wordy IS %L', repeat('w', 500000)) \\gexec
         SELECT format('CREATE VIEW long AS SELECT %s', string_agg(format('%s AS \"column %s\"', i, i), ',')) FROM generate_series(1, 1500) i \\gexec",
    );
    let client = connect(cluster.config("reader")).await;
    for table in ["small", "looks"] {
        let (_, whole) = ok(&client, "pg_describe", json!({ "table": table })).await;
        assert_eq!((whole.get("truncated"), whole["columns"].as_array().unwrap().len()), (None, 2));
        assert_eq!(notice(&client, "pg_describe", json!({ "table": table })).await, None);
    }
    let (text, wide) = ok(&client, "pg_describe", json!({ "table": "wide" })).await;
    assert!(text.len() < 150_000, "{} bytes", text.len());
    assert_eq!(wide["truncated"], json!(true));
    let count = |list: &str| wide[list].as_array().map_or(0, Vec::len);
    assert!(count("columns") > 5 && count("columns") < 1000 && count("constraints") > 50 && count("indexes") > 50);
    let said = notice(&client, "pg_describe", json!({ "table": "wide" })).await.unwrap();
    assert!(said.contains(&format!("{} of 1000 columns", count("columns"))), "{said}");
    let (text, wordy) = ok(&client, "pg_describe", json!({ "table": "wordy" })).await;
    assert!(text.len() < 5_000 && wordy["truncated"] == json!(true), "{} bytes", text.len());
    assert!(wordy["comment"].as_str().unwrap().ends_with("www…"));
    let (text, long) = ok(&client, "pg_describe", json!({ "table": "long" })).await;
    assert!(text.len() < 300_000 && long["truncated"] == json!(true), "{} bytes", text.len());
    let (text, _) = ok(&client, "pg_list_objects", json!({ "search": "wordy" })).await;
    assert!(text.len() < 5_000 && text.contains("www…"), "{} bytes", text.len());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn long_plans_are_cut_and_say_so() {
    let cluster = Cluster::start();
    cluster.sql("CREATE ROLE reader LOGIN; CREATE TABLE t (i int); GRANT SELECT ON t TO reader");
    let client = connect(cluster.config("reader")).await;
    for (parts, truncated) in [(1, false), (1200, true)] {
        let args = json!({ "sql": vec!["SELECT i FROM t"; parts].join(" UNION ALL ") });
        let (plan, value) = ok(&client, "pg_explain", args.clone()).await;
        assert_eq!(value["truncated"], json!(truncated), "{parts}");
        assert_eq!(plan.lines().count() == 1_000, truncated, "{parts}");
        assert_eq!(
            notice(&client, "pg_explain", args).await.is_some_and(|said| said.contains("1000 lines")),
            truncated
        );
    }
    query(&client, "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn advice_is_about_what_is_wrong() {
    let cluster = Cluster::with("", "shared_preload_libraries=''");
    cluster.sql("CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE EXTENSION pg_stat_statements");
    let client = connect(cluster.config("reader")).await;
    for text in [
        error(&client, "pg_top_queries", json!({})).await,
        error(&client, "query", json!({ "sql": "SELECT * FROM pg_stat_statements", "max_rows": 1 })).await,
    ] {
        let hint = text.split("Hint: ").nth(1).unwrap_or_default();
        assert!(text.contains("SQLSTATE 55000") && hint.contains("shared_preload_libraries"), "{text}");
        assert!(!text.contains("Correct the statement"), "{text}");
    }
    // What cannot be any statement is a slip, for which nobody has to allow writing.
    for sql in ["SELEC 1", "(selec 1)", "EXPLAIN selec 1"] {
        let text = error(&client, "query", json!({ "sql": sql })).await;
        assert!(text.contains("Syntax error") && text.contains("SELEC."), "{sql}: {text}");
        assert!(!text.contains("--access-mode") && !text.contains("read-only"), "{sql}: {text}");
    }
    let text = error(&client, "query", json!({ "sql": "TRUNCATE items" })).await;
    assert!(
        text.contains("TRUNCATE is not allowed in read-only mode") && text.contains("--access-mode write"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_cannot_work_is_said_at_once_and_what_can_works() {
    let cluster = Cluster::start();
    cluster.sql("CREATE ROLE reader LOGIN");
    for access in [Access::ReadOnly, Access::Write] {
        let client = connect(cluster.config("reader").with(|config| config.access = access)).await;
        // The protocol cannot carry it: not a lost connection, after which to try again.
        for (tool, args) in
            [("query", json!({ "sql": "SELECT 'a\0b'" })), ("pg_explain", json!({ "sql": "SELECT 'a\0b'" }))]
        {
            let text = error(&client, tool, args).await;
            assert!(text.contains("NUL") && !text.contains("lost") && !text.contains("Try again"), "{tool}: {text}");
        }
        let (_, rows) =
            ok(&client, "query", json!({ "sql": "SELECT $1::int, $2::int8, $3::float8", "params": [1.0, 2e3, 1.5] }))
                .await;
        assert_eq!(rows["rows"], json!([[1, "2000", 1.5]]));
        if access == Access::Write {
            continue;
        }
        // A cursor is for one statement with its values.
        let all = "SELECT i FROM generate_series(1, $1::int) i";
        let args = |sql: &str, most: i32, cursor: &Value| json!({ "sql": sql, "params": [most], "max_rows": 4, "cursor": cursor });
        let (_, page) = ok(&client, "query", args(all, 10, &Value::Null)).await;
        let cursor = &page["next_cursor"];
        let (_, page) = ok(&client, "query", args(all, 10, cursor)).await;
        assert_eq!(page["rows"], json!([[5], [6], [7], [8]]));
        for (sql, most) in [("SELECT i FROM generate_series(2, $1::int) i", 10), (all, 11)] {
            let text = error(&client, "query", args(sql, most, cursor)).await;
            assert!(text.contains("Unknown cursor"), "{text}");
        }
        error(&client, "query", args(all, 10, &json!("1000"))).await;
    }
}
