//! What each tool answers: the rows of the specification's table of tools.

use crate::common;

use common::{World, sql};
use serde_json::{Value, json};

const FILLED: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, n TEXT, b BLOB, f REAL);
    INSERT INTO t(n, b, f) VALUES('it''s', x'0102', 1.5), (NULL, NULL, NULL);
    CREATE VIEW v AS SELECT n FROM t;";

async fn filled() -> World {
    World::made(FILLED, |_| {}).await
}

#[tokio::test]
async fn the_transcript_of_the_published_server_holds_as_json() {
    let w = World::new().await;
    // Tool, query, text; `!` begins the first line of an error.
    for (tool, query, expected) in [
        (
            "create_table",
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n TEXT, b BLOB, f REAL)",
            "Table created successfully",
        ),
        (
            "write_query",
            "INSERT INTO t(n,b,f) VALUES('it''s',x'0102',1.5),(NULL,NULL,NULL)",
            r#"[{"affected_rows":2}]"#,
        ),
        (
            "read_query",
            "SELECT * FROM t",
            r#"[{"id":1,"n":"it's","b":{"base64":"AQI="},"f":1.5},{"id":2,"n":null,"b":null,"f":null}]"#,
        ),
        ("read_query", "WITH x AS (SELECT 1 a) SELECT * FROM x", r#"[{"a":1}]"#),
        ("read_query", "SELECT 1; DROP TABLE t", "!Database error: You can only execute one statement at a time."),
        ("write_query", "PRAGMA journal_mode", r#"[{"journal_mode":"delete"}]"#),
        ("write_query", "ATTACH '/srv/demo/evil.db' AS e", "!Database error: not authorized"),
        ("write_query", "INSERT INTO t(n) VALUES('z') RETURNING id", r#"[{"id":3}]"#),
        ("read_query", "SELEC", "!Database error: the statement failed"),
        ("create_table", "CREATE TABLE t(id)", "!Database error: the statement failed"),
        ("write_query", "CREATE TABLE q(a)", r#"[{"affected_rows":-1}]"#),
        ("create_table", "CREATE TEMP TABLE q2(a)", "!Error: Only CREATE TABLE statements are allowed"),
        ("read_query", "INSERT INTO t(n) VALUES('x')", "!Error: Only SELECT queries are allowed for read_query"),
        ("write_query", " select 1", "!Error: SELECT queries are not allowed for write_query"),
    ] {
        let result = w.call(tool, sql(query)).await;
        let text = result.text();
        match expected.strip_prefix('!') {
            None => assert_eq!((text.as_str(), result.is_error()), (expected, false), "{tool} {query}"),
            Some(expected) => {
                assert!(result.is_error(), "{tool} {query}: {text}");
                let (first, hint) = text.split_once("\nHint: ").unwrap_or((&text, "none"));
                assert_eq!(first, expected, "{tool} {query}");
                assert!(!hint.is_empty());
            }
        }
    }
    assert_eq!(w.number("SELECT count(*) FROM t"), 3, "the refused ones changed nothing");
    assert_eq!(w.text("list_tables", json!({})).await, r#"[{"name":"t"},{"name":"q"}]"#);
}

#[tokio::test]
async fn read_query_takes_every_statement_that_only_reads_and_no_other() {
    let w = filled().await;
    for query in [
        "SELECT 1",
        "  -- why\n /* because */ SELECT 1;",
        "VALUES (1), (2)",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3) SELECT * FROM c",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN QUERY PLAN SELECT * FROM t",
        "PRAGMA table_info(t)",
        "PRAGMA main.user_version",
        "PRAGMA integrity_check",
        "SELECT * FROM pragma_table_info('t')",
        "SELECT * FROM v",
        "SELECT name FROM sqlite_master",
        "(SELECT 1)",
    ] {
        let result = w.call("read_query", sql(query)).await;
        // SQLite itself has no statement in parentheses.
        assert_eq!(result.is_error(), query.starts_with('('), "{query}: {}", result.text());
    }
    for query in [
        "INSERT INTO t(n) VALUES('x')",
        "UPDATE t SET n = 'x'",
        "DELETE FROM t",
        "REPLACE INTO t(id) VALUES(1)",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "CREATE TABLE u(a)",
        "CREATE TABLE u AS SELECT 1",
        "CREATE TEMP TABLE u(a)",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN x",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = WAL",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT s",
        "INSERT INTO t(n) VALUES('x') RETURNING *",
        "EXPLAIN DELETE FROM t",
        "SELECT 1; SELECT 2",
        "SELECT 1;;; /* x */ DELETE FROM t",
        "",
        " ; -- nothing",
        "SELECT 1\0; DELETE FROM t",
    ] {
        w.error("read_query", sql(query)).await;
    }
    assert_eq!(w.number("SELECT count(*) FROM t"), 2);
    assert_eq!(w.number("PRAGMA user_version"), 0);
    assert_eq!(w.number("SELECT count(*) FROM sqlite_master"), 2);
}

#[tokio::test]
async fn rows_are_text_and_structure_and_marked_as_data() {
    let w = filled().await;
    let result = w.call("read_query", sql("SELECT id, n, n AS id FROM t ORDER BY 1")).await;
    assert_eq!(result.text(), r#"[{"id":1,"n":"it's","id:1":"it's"},{"id":2,"n":null,"id:1":null}]"#);
    let value: Value = result.json().unwrap();
    assert_eq!(value, json!({"columns": ["id", "n", "id"], "rows": [[1, "it's", "it's"], [2, null, null]]}));
    let whole: Value = serde_json::from_str(result.as_json()).unwrap();
    assert_eq!(whole["content"][0]["annotations"]["audience"], json!(["assistant"]));
    assert_eq!(w.value("read_query", sql("SELECT 1 AS a WHERE 0")).await, json!({"columns": ["a"], "rows": []}));
    assert_eq!(w.read("SELECT 1 AS a WHERE 0").await, "[]");
}

#[tokio::test]
async fn values_that_json_lacks_have_a_form_of_their_own() {
    let w = World::new().await;
    for (expression, shown) in [
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9007199254740993", "9007199254740993"),
        ("9e999", "\"Infinity\""),
        ("-9e999", "\"-Infinity\""),
        ("9e999 - 9e999", "null"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1e300", "1e+300"),
        ("2.0", "2.0"),
        ("x''", "{\"base64\":\"\"}"),
        ("x'ff00'", "{\"base64\":\"/wA=\"}"),
        ("CAST(x'ff41' AS TEXT)", "{\"base64\":\"/0E=\"}"),
        ("'a' || char(0) || 'b'", "\"a\\u0000b\""),
        ("'日本 😀'", "\"日本 😀\""),
        ("NULL", "null"),
    ] {
        let text = w.read(&format!("SELECT {expression} AS x")).await;
        assert_eq!(text, format!("[{{\"x\":{shown}}}]"), "{expression}");
    }
}

#[tokio::test]
async fn params_are_bound_and_never_read_as_sql() {
    let w = filled().await;
    for (query, params, expected) in [
        ("SELECT ? AS a, ? AS b", json!(["x'); DROP TABLE t;--", 7]), r#"[{"a":"x'); DROP TABLE t;--","b":7}]"#),
        ("SELECT ?2 AS a, ?1 AS b", json!([1, 2]), r#"[{"a":2,"b":1}]"#),
        (
            "SELECT :a AS a, @b AS b, $c AS c, :a AS d",
            json!({"a": 1, "@b": true, "c": null}),
            r#"[{"a":1,"b":1,"c":null,"d":1}]"#,
        ),
        ("SELECT ? AS a", json!([{"base64": "AQI="}]), r#"[{"a":{"base64":"AQI="}}]"#),
        ("SELECT ? AS a, typeof(?1) AS b", json!([2.5]), r#"[{"a":2.5,"b":"real"}]"#),
        ("SELECT count(*) AS n FROM t WHERE n = ?", json!(["it's"]), r#"[{"n":1}]"#),
        ("SELECT 1 AS a", json!([]), r#"[{"a":1}]"#),
    ] {
        assert_eq!(w.text("read_query", json!({"query": query, "params": params})).await, expected, "{query}");
    }
    for (query, params, says) in [
        (
            "SELECT ?",
            json!([]),
            "Database error: Incorrect number of bindings supplied. The current statement uses 1, and there are 0 supplied.",
        ),
        ("SELECT ?", json!([1, 2]), "uses 1, and there are 2 supplied"),
        ("SELECT 1", json!([1]), "uses 0, and there are 1 supplied"),
        ("SELECT :a", json!({}), "Database error: You did not supply a value for binding parameter :a."),
        ("SELECT :a", json!({"a": 1, "b": 2}), "no placeholder named b"),
        ("SELECT ?", json!({"a": 1}), "placeholder 1 has no name"),
        ("SELECT ?", json!([[1]]), "pass JSON as a string"),
        ("SELECT ?", json!([18_446_744_073_709_551_615_u64]), "exceeds 64 bits"),
    ] {
        let error = w.error("read_query", json!({"query": query, "params": params})).await;
        assert!(error.contains(says), "{query} {params}: {error}");
    }
    let insert = json!({"query": "INSERT INTO t(n, b) VALUES (:n, :b)", "params": {"n": "n", "b": {"base64": "/w=="}}});
    assert_eq!(w.text("write_query", insert).await, r#"[{"affected_rows":1}]"#);
    assert_eq!(w.number("SELECT count(*) FROM t WHERE b = x'ff'"), 1);
}

#[tokio::test]
async fn write_query_counts_and_commits_each_statement() {
    let w = filled().await;
    for (query, n) in [
        ("UPDATE t SET f = 2", 2),
        ("UPDATE t SET f = 2 WHERE id = 99", 0),
        ("REPLACE INTO t(id, n) VALUES (2, 'r')", 1),
        ("WITH x(a) AS (VALUES ('w'), ('w')) INSERT INTO t(n) SELECT a FROM x", 2),
        ("DELETE FROM t WHERE n = 'w'", 2),
        ("ALTER TABLE t ADD COLUMN x", -1),
        ("ALTER TABLE t RENAME TO r", -1),
        ("ALTER TABLE r RENAME COLUMN x TO y", -1),
        ("ALTER TABLE r DROP COLUMN y", -1),
        ("ALTER TABLE r RENAME TO t", -1),
        ("ALTER TABLE t ADD COLUMN x", -1),
        ("CREATE INDEX i ON t(n)", -1),
        ("CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET x = 1; DELETE FROM t WHERE 0; END", -1),
        ("DROP INDEX i", -1),
        ("CREATE VIEW w AS SELECT 1", -1),
        ("CREATE TABLE c AS SELECT * FROM t", -1),
        ("DELETE FROM t", 2),
    ] {
        assert_eq!(w.write(query).await, format!("[{{\"affected_rows\":{n}}}]"), "{query}");
    }
    assert_eq!(w.number("SELECT count(*) FROM c"), 2, "another connection sees what was committed");
    for query in
        ["ANALYZE", "REINDEX", "VACUUM", "PRAGMA optimize", "PRAGMA user_version = 5", "PRAGMA incremental_vacuum(10)"]
    {
        assert_eq!(w.write(query).await, "[]", "{query}");
    }
    assert_eq!(w.number("PRAGMA user_version"), 5);
    assert_eq!(w.write("PRAGMA journal_mode = WAL").await, r#"[{"journal_mode":"wal"}]"#);
    assert_eq!(w.read("SELECT count(*) AS n FROM c").await, r#"[{"n":2}]"#, "readers go on in the new mode");
    assert_eq!(w.write("PRAGMA wal_checkpoint(TRUNCATE)").await, r#"[{"busy":0,"log":0,"checkpointed":0}]"#);
}

#[tokio::test]
async fn returning_gives_rows_and_the_count_and_changes_everything_even_when_the_rows_are_cut() {
    let w = World::with(|c| c.max_rows = 2).await;
    w.write("CREATE TABLE t(a)").await;
    let result = w
        .call("write_query", sql("INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 5) SELECT x FROM c RETURNING a"))
        .await;
    let value: Value = result.json().unwrap();
    assert_eq!(
        value,
        json!({"affected_rows": 5, "returned": {"columns": ["a"], "rows": [[1], [2]], "truncated": true}})
    );
    assert!(result.text().starts_with("[{\"a\":1},{\"a\":2}]\n[Truncated after 2 rows"), "{}", result.text());
    assert_eq!(w.number("SELECT count(*) FROM t"), 5);
}

#[tokio::test]
async fn a_statement_that_fails_changes_nothing() {
    let w = World::new().await;
    w.write("CREATE TABLE t(a INTEGER PRIMARY KEY, b CHECK (b < 10))").await;
    for (query, says) in [
        ("INSERT INTO t VALUES (1, 1), (2, 2), (1, 3)", "UNIQUE constraint failed: t.a"),
        ("INSERT INTO t VALUES (5, 1), (6, 99)", "CHECK constraint failed: b < 10"),
        ("INSERT INTO nope VALUES (1)", "no such table: nope"),
        ("INSERT INTO t(c) VALUES (1)", "table t has no column named c"),
        ("DROP TABLE nope", "no such table: nope"),
    ] {
        let error = w.error("write_query", sql(query)).await;
        assert!(error.starts_with("Database error: ") && error.ends_with(&format!("\n{says}")), "{query}: {error}");
    }
    assert_eq!(w.number("SELECT count(*) FROM t"), 0);
}

#[tokio::test]
async fn create_table_creates_tables_and_nothing_else() {
    let w = World::new().await;
    for query in [
        "CREATE TABLE a(x)",
        "create table if not exists a(x)",
        "-- first\nCREATE TABLE b AS SELECT 1 AS x;",
        "CREATE TABLE \"odd; name\"(x)",
    ] {
        assert_eq!(w.text("create_table", sql(query)).await, "Table created successfully");
    }
    for query in [
        "CREATE TEMP TABLE c(x)",
        "CREATE VIRTUAL TABLE c USING fts5(x)",
        "CREATE VIEW c AS SELECT 1",
        "CREATE INDEX c ON a(x)",
        "DROP TABLE a",
        "INSERT INTO a VALUES (1)",
        "CREATE TABLE c(x); DROP TABLE a",
        "CREATE TABLE c(x); INSERT INTO a VALUES (1)",
        "CREATE TABLE temp.c(x)",
        "",
    ] {
        w.error("create_table", sql(query)).await;
    }
    assert_eq!(
        w.text("list_tables", json!({})).await,
        r#"[{"name":"a"},{"name":"b"},{"name":"odd; name"}]"#,
        "the refused ones left nothing behind"
    );
    assert_eq!(w.number("SELECT count(*) FROM a"), 0);
}

#[tokio::test]
async fn tables_are_listed_in_order_and_views_on_request() {
    let w = filled().await;
    assert_eq!(w.text("list_tables", json!({})).await, r#"[{"name":"t"}]"#);
    let both = json!({"include_views": true});
    assert_eq!(
        w.text("list_tables", both.clone()).await,
        r#"[{"name":"t","type":"table"},{"name":"v","type":"view"}]"#
    );
    assert_eq!(
        w.value("list_tables", both).await,
        json!({"tables": [{"name": "t", "type": "table"}, {"name": "v", "type": "view"}]})
    );
    assert_eq!(w.text("list_tables", json!({"random_string": "x"})).await, r#"[{"name":"t"}]"#, "hosts add members");
}

#[tokio::test]
async fn describe_table_shows_the_published_columns_and_refuses_unknown_names() {
    let w = filled().await;
    assert_eq!(
        w.text("describe_table", json!({"table_name": "t"})).await,
        concat!(
            r#"[{"cid":0,"name":"id","type":"INTEGER","notnull":0,"dflt_value":null,"pk":1},"#,
            r#"{"cid":1,"name":"n","type":"TEXT","notnull":0,"dflt_value":null,"pk":0},"#,
            r#"{"cid":2,"name":"b","type":"BLOB","notnull":0,"dflt_value":null,"pk":0},"#,
            r#"{"cid":3,"name":"f","type":"REAL","notnull":0,"dflt_value":null,"pk":0}]"#
        )
    );
    let value = w.value("describe_table", json!({"table_name": "v"})).await;
    assert_eq!(value["columns"][0]["name"], "n");
    let error = w.error("describe_table", json!({"table_name": "nope"})).await;
    assert!(error.starts_with("Database error: no such table: nope\nHint: list_tables"), "{error}");
}

#[tokio::test]
async fn the_schema_shows_everything_that_was_created() {
    let w = World::made(
        "CREATE TABLE a(id INTEGER PRIMARY KEY, x TEXT UNIQUE);
         CREATE TABLE b(a1 INTEGER, y, z, FOREIGN KEY (a1) REFERENCES a ON DELETE CASCADE, FOREIGN KEY (y, z) REFERENCES c(p, q));
         CREATE INDEX b_y ON b(y, lower(z)) WHERE y > 0;
         CREATE TRIGGER b_g AFTER INSERT ON b BEGIN SELECT 1; END;
         CREATE VIEW v AS SELECT * FROM a;",
        |_| {},
    )
    .await;
    let result = w.call("sqlite_schema", json!({"table": "B"})).await;
    assert_eq!(
        result.text(),
        "CREATE TABLE b(a1 INTEGER, y, z, FOREIGN KEY (a1) REFERENCES a ON DELETE CASCADE, FOREIGN KEY (y, z) REFERENCES c(p, q));\n\
         CREATE INDEX b_y ON b(y, lower(z)) WHERE y > 0;\nCREATE TRIGGER b_g AFTER INSERT ON b BEGIN SELECT 1; END;\n"
    );
    let value: Value = result.json().unwrap();
    let b = &value["tables"][0];
    assert_eq!(b["indexes"][0]["columns"], json!(["y", null]));
    assert_eq!((&b["indexes"][0]["partial"], &b["indexes"][0]["unique"]), (&json!(true), &json!(false)));
    assert_eq!(b["triggers"][0]["name"], "b_g");
    assert_eq!(
        b["foreign_keys"],
        json!([
            {"columns": ["a1"], "table": "a", "to": [null], "on_update": "NO ACTION", "on_delete": "CASCADE"},
            {"columns": ["y", "z"], "table": "c", "to": ["p", "q"], "on_update": "NO ACTION", "on_delete": "NO ACTION"}
        ])
    );
    let all = w.value("sqlite_schema", json!({})).await;
    let names: Vec<&Value> = all["tables"].as_array().unwrap().iter().map(|table| &table["name"]).collect();
    assert_eq!(names, ["a", "b", "v"]);
    assert_eq!(all["tables"][0]["indexes"][0]["unique"], true);
    assert_eq!(all["tables"][0]["indexes"][0]["sql"], Value::Null);
    w.error("sqlite_schema", json!({"table": "nope"})).await;
    let empty = World::new().await;
    assert_eq!(empty.text("sqlite_schema", json!({})).await, "-- The database has no tables.\n");
}

#[tokio::test]
async fn a_long_schema_comes_in_pages() {
    let mut made = String::new();
    for n in 0..250 {
        made.push_str(&format!("CREATE TABLE t{n}(a);"));
    }
    let w = World::made(&made, |_| {}).await;
    let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let mut args = json!({});
        if let Some(cursor) = cursor.take() {
            args["cursor"] = cursor;
        }
        let page = w.value("sqlite_schema", args).await;
        pages += 1;
        seen.extend(page["tables"].as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap().to_owned()));
        match page.get("next_cursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(pages, 3);
    assert_eq!(seen, (0..250).map(|n| format!("t{n}")).collect::<Vec<_>>());
    w.error("sqlite_schema", json!({"cursor": "x"})).await;

    let long = format!("CREATE TABLE a(x); CREATE TABLE b(x /* {} */); CREATE TABLE c(x);", "long ".repeat(1_000));
    let w = World::made(&long, |c| c.max_bytes = 1_000).await;
    let first = w.value("sqlite_schema", json!({})).await;
    assert_eq!((first["tables"][0]["name"].as_str(), first["next_cursor"].as_str()), (Some("a"), Some("1")));
    let second = w.value("sqlite_schema", json!({"cursor": "1"})).await;
    assert_eq!((second["tables"][0]["name"].as_str(), second["next_cursor"].as_str()), (Some("b"), Some("2")));
    let third = w.value("sqlite_schema", json!({"cursor": "2"})).await;
    assert_eq!((third["tables"][0]["name"].as_str(), third.get("next_cursor")), (Some("c"), None));
}

#[tokio::test]
async fn plans_are_a_tool_on_request() {
    let w = World::with(|c| c.tools.toolsets = ["read", "write", "insights", "import"].map(str::to_owned).into()).await;
    let names: Vec<String> = w.client.tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    assert!(names.iter().any(|name| name == "sqlite_schema") && !names.iter().any(|name| name == "sqlite_explain"));
    assert!(linchpin_sqlite::SERVICE.tools.iter().any(|tool| tool.name == "sqlite_explain" && tool.on_request));
}

#[tokio::test]
async fn a_plan_is_shown_and_nothing_is_run() {
    let w = World::made(&format!("{FILLED} CREATE INDEX i ON t(n);"), |_| {}).await;
    assert_eq!(
        w.text("sqlite_explain", sql(" -- x\nSELECT * FROM t WHERE n = ?;")).await,
        "QUERY PLAN\n`--SEARCH t USING INDEX i (n=?)"
    );
    let text = w.text("sqlite_explain", sql("SELECT * FROM t JOIN v USING (n) UNION SELECT * FROM t")).await;
    assert!(text.starts_with("QUERY PLAN\n`--COMPOUND QUERY\n   |--LEFT-MOST SUBQUERY\n   |  |--"), "{text}");
    for query in ["DELETE FROM t", "UPDATE t SET n = 1", "INSERT INTO t(n) SELECT n FROM t"] {
        w.text("sqlite_explain", sql(query)).await;
    }
    for query in [
        "PRAGMA user_version = 9",
        "PRAGMA table_info(t)",
        "EXPLAIN SELECT 1",
        "DROP TABLE t",
        "SELECT 1; DELETE FROM t",
        "nonsense",
    ] {
        w.error("sqlite_explain", sql(query)).await;
    }
    assert_eq!((w.number("SELECT count(*) FROM t"), w.number("PRAGMA user_version")), (2, 0));
}

#[tokio::test]
async fn compat_repr_answers_in_the_published_notation() {
    let w = World::made(FILLED, |c| c.compat_repr = true).await;
    assert_eq!(
        w.read("SELECT * FROM t").await,
        "[{'id': 1, 'n': \"it's\", 'b': b'\\x01\\x02', 'f': 1.5}, {'id': 2, 'n': None, 'b': None, 'f': None}]"
    );
    assert_eq!(w.write("DELETE FROM t WHERE id = 9").await, "[{'affected_rows': 0}]");
    assert_eq!(w.write("PRAGMA journal_mode").await, "[{'journal_mode': 'delete'}]");
    assert_eq!(w.text("list_tables", json!({})).await, "[{'name': 't'}]");
    assert!(
        w.text("describe_table", json!({"table_name": "v"}))
            .await
            .starts_with("[{'cid': 0, 'name': 'n', 'type': 'TEXT', ")
    );
    let value = w.value("read_query", sql("SELECT b FROM t WHERE id = 1")).await;
    assert_eq!(value["rows"], json!([[{"base64": "AQI="}]]), "the structure stays JSON");
}

#[tokio::test]
async fn foreign_keys_are_enforced_on_request_only() {
    let made = "CREATE TABLE a(id INTEGER PRIMARY KEY); CREATE TABLE b(a REFERENCES a);";
    let w = World::made(made, |_| {}).await;
    w.write("INSERT INTO b VALUES (7)").await;
    let w = World::made(made, |c| c.foreign_keys = true).await;
    let error = w.error("write_query", sql("INSERT INTO b VALUES (7)")).await;
    assert!(error.starts_with("Database error: FOREIGN KEY constraint failed"), "{error}");
}

#[tokio::test]
async fn settings_are_shown_by_reading_and_the_file_by_the_name_it_was_given() {
    let w = World::made("CREATE TABLE t(a)", |_| {}).await;
    for setting in ["journal_mode", "locking_mode", "auto_vacuum", "page_size", "synchronous", "wal_autocheckpoint"] {
        let shown = w.value("read_query", sql(&format!("PRAGMA {setting}"))).await;
        assert_eq!(shown["rows"].as_array().unwrap().len(), 1, "{setting}: {shown}");
    }
    for change in ["PRAGMA journal_mode = WAL", "PRAGMA journal_mode(wal)", "PRAGMA page_size = 512"] {
        w.error("read_query", sql(change)).await;
    }
    assert_eq!(w.read("PRAGMA journal_mode").await, r#"[{"journal_mode":"delete"}]"#);
    assert!(!w.path("x.db-wal").exists());

    let folder = tempfile::tempdir().unwrap();
    let named = format!("{}/./it's.db", folder.path().display());
    let w = World::with(|c| c.db_path = named.clone().into()).await;
    for tool in ["read_query", "write_query"] {
        let list = w.value(tool, sql("/* which? */ pragma Database_List;")).await;
        let list = if tool == "read_query" { list } else { list["returned"].clone() };
        assert_eq!(list["columns"], json!(["seq", "name", "file"]));
        assert_eq!(list["rows"], json!([[0, "main", named]]));
        for other in ["SELECT * FROM pragma_database_list", "PRAGMA main.database_list"] {
            w.error(tool, sql(other)).await;
        }
    }
    let w = World::with(|c| c.db_path = ":memory:".into()).await;
    assert_eq!(w.read("PRAGMA database_list").await, r#"[{"seq":0,"name":"main","file":""}]"#);
}
