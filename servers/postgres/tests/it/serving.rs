//! What calls answer, and what happens when the database is slow, away, or full: against a real PostgreSQL.

use crate::common;

use common::{Cluster, call, connect, connect_as, error, ok, query};
use linchpin::types::content::ResourceContents;
use linchpin::types::version::Revision;
use linchpin_postgres::{Access, Config};
use serde_json::{Value, json};
use std::time::Duration;

const DATA: &str = "
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
CREATE ROLE writer LOGIN; GRANT ALL ON SCHEMA public TO writer;
CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL DEFAULT 'x', price numeric(10,2));
INSERT INTO items SELECT i, 'item ' || i, i * 1.5 FROM generate_series(1, 5000) i;
COMMENT ON TABLE items IS 'Things'; COMMENT ON COLUMN items.name IS 'What it is called';
CREATE INDEX items_name ON items (name);
CREATE TABLE parts (id int PRIMARY KEY, item int REFERENCES items);
CREATE VIEW cheap AS SELECT * FROM items WHERE price < 10;
CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM items;
CREATE SCHEMA app; CREATE TABLE app.items (other text, list int[]); CREATE TABLE \"we/ird.name {x}\" (a int);
CREATE TABLE app.\"dotted.table\" (b int);
GRANT ALL ON ALL TABLES IN SCHEMA public TO writer; ANALYZE;
";

fn cluster() -> Cluster {
    let cluster = Cluster::start();
    cluster.sql(DATA);
    cluster
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn every_type_comes_out_as_psql_shows_it() {
    let cluster = cluster();
    cluster.sql(
        "CREATE TYPE mood AS ENUM ('happy', 'sad'); CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN doc AS jsonb;
         CREATE TYPE pair AS (a int, b text); CREATE EXTENSION hstore;",
    );
    let client = connect(cluster.config("reader")).await;
    let texts = [
        "'9223372036854775807'::int8",
        "12345678901234567890.0123456789::numeric",
        "'NaN'::numeric",
        "'Infinity'::float8",
        "1.5::money",
        "'a''b\"c\\d'::text",
        "'abc'::char(3)",
        "'\\xdeadbeef'::bytea",
        "date '2024-02-29'",
        "timestamp '2024-02-29 12:34:56.789012'",
        "timestamptz '2024-02-29 12:34:56.789012+02'",
        "'infinity'::timestamptz",
        "time '12:34:56'",
        "interval '1 year 2 mons 3 days 04:05:06'",
        "int4range(1, 5)",
        "'{[1,3),[5,7)}'::int4multirange",
        "'happy'::mood",
        "ROW(1, 'a b')::pair",
        "point(1, 2)",
        "'10.0.0.0/8'::cidr",
        "'a=>1'::hstore",
        "'550e8400-e29b-41d4-a716-446655440000'::uuid",
        "B'101'",
        "'a & b'::tsquery",
        "'<a/>'::xml",
        "'public.items'::regclass",
        "'1 2'::int2vector",
    ];
    for expression in texts {
        if expression.contains("multirange") && cluster.major() < 14 {
            continue;
        }
        let rows = query(&client, &format!("SELECT {expression} AS v")).await;
        let shown = cluster.sql(&format!("SET extra_float_digits = 1; SELECT {expression}"));
        assert_eq!(rows["rows"], json!([[shown]]), "{expression}");
    }
    for (expression, expected) in [
        ("NULL::int", json!(null)),
        ("true", json!(true)),
        ("7::int2", json!(7)),
        ("(-7)::int4", json!(-7)),
        ("0.1::float4", json!(0.1)),
        ("7::positive", json!(7)),
        ("'{\"b\": 1, \"a\": [true]}'::json", json!({ "b": 1, "a": [true] })),
        ("'{\"b\": 1}'::doc", json!({ "b": 1 })),
        ("ARRAY[1,NULL,3]", json!([1, null, 3])),
        ("ARRAY[[true,false]]", json!([[true, false]])),
        ("ARRAY['a','b \"q\"','NULL']", json!(["a", "b \"q\"", "NULL"])),
        ("ARRAY[9223372036854775807]", json!(["9223372036854775807"])),
        ("ARRAY['happy','sad']::mood[]", json!(["happy", "sad"])),
        ("ARRAY['{\"a\": 1}'::jsonb]", json!([{ "a": 1 }])),
        ("ARRAY[7]::positive[]", json!([7])),
        ("'{}'::int[]", json!([])),
    ] {
        let rows = query(&client, &format!("SELECT {expression} AS v")).await;
        assert_eq!(rows["rows"], json!([[expected]]), "{expression}");
    }
    let (text, rows) =
        ok(&client, "query", json!({ "sql": "SELECT 1 AS a, 2.50::numeric(5,2) AS b, 'x' AS a, ARRAY['y'] AS c" }))
            .await;
    assert_eq!(text, "[\n  {\n    \"a\": \"x\",\n    \"b\": \"2.50\",\n    \"c\": [\n      \"y\"\n    ]\n  }\n]");
    assert_eq!(
        rows["columns"],
        json!([{ "name": "a", "type": "integer" }, { "name": "b", "type": "numeric(5,2)" }, { "name": "a", "type": "text" }, { "name": "c", "type": "text[]" }])
    );
    assert_eq!(rows["rows"], json!([[1, "2.50", "x", ["y"]]]));
    assert_eq!((&rows["row_count"], &rows["truncated"]), (&json!(1), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn params_are_values_and_never_sql() {
    let cluster = cluster();
    let client = connect(cluster.config("reader")).await;
    for (sql, params, expected) in [
        ("SELECT $1::text", json!(["'; DROP TABLE items; --"]), json!([["'; DROP TABLE items; --"]])),
        ("SELECT name FROM items WHERE id = $1", json!([7]), json!([["item 7"]])),
        ("SELECT count(*) FROM items WHERE id = ANY($1)", json!([[1, 2, 3]]), json!([["3"]])),
        ("SELECT $1::jsonb -> 'a'", json!([{ "a": [1] }]), json!([[[1]]])),
        ("SELECT $1::bool, $2::numeric, $3::int IS NULL", json!([true, 1.5, null]), json!([[true, "1.5", true]])),
        ("SELECT $1::text[]", json!([["a\"", null, "{x}"]]), json!([[["a\"", null, "{x}"]]])),
    ] {
        let (_, rows) = ok(&client, "query", json!({ "sql": sql, "params": params })).await;
        assert_eq!(rows["rows"], expected, "{sql}");
    }
    for (sql, params, says) in [
        ("SELECT $1::int", json!([]), "takes 1 params and 0"),
        ("SELECT 1", json!([1]), "takes 0 params and 1"),
        ("SELECT $1::int", json!(["x"]), "SQLSTATE 22P02"),
        ("SELECT nope FROM items", json!([]), "SQLSTATE 42703, at character 8"),
        ("SELECT FROM FROM", json!([]), "SQLSTATE 42601"),
        ("SELECT 1/0", json!([]), "SQLSTATE 22012"),
    ] {
        let text = error(&client, "query", json!({ "sql": sql, "params": params })).await;
        assert!(text.contains(says) && text.contains("Hint: "), "{sql}: {text}");
    }
    let result = client.call("query", json!({})).await.expect("an answer");
    assert!(result.is_error() && result.text().contains("sql"), "{}", result.text());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn rows_and_bytes_have_limits_and_cursors_continue() {
    let cluster = cluster();
    let client = connect(cluster.config("reader").with(|config| {
        config.max_rows = 300;
        config.max_bytes = 100_000;
    }))
    .await;
    let (mut cursor, mut seen) = (Value::Null, Vec::new());
    loop {
        let (_, page) =
            ok(&client, "query", json!({ "sql": "SELECT id FROM items ORDER BY id LIMIT 1000", "cursor": cursor }))
                .await;
        let rows = page["rows"].as_array().unwrap();
        assert!(rows.len() <= 300);
        seen.extend(rows.iter().map(|row| row[0].as_u64().unwrap()));
        assert_eq!(page["truncated"], json!(page["next_cursor"].is_string()));
        match page["next_cursor"].clone() {
            Value::Null => break,
            next => cursor = next,
        }
    }
    assert_eq!(seen, (1..=1000).collect::<Vec<_>>());
    let (_, page) = ok(&client, "query", json!({ "sql": "SELECT id FROM items", "max_rows": 5 })).await;
    assert_eq!((page["row_count"].as_u64(), &page["truncated"]), (Some(5), &json!(true)));
    let (_, page) = ok(&client, "query", json!({ "sql": "SELECT id FROM items LIMIT 5", "max_rows": 5 })).await;
    assert_eq!(page["truncated"], json!(false));
    // Bytes: 10 kB a row.
    let (text, page) =
        ok(&client, "query", json!({ "sql": "SELECT id, repeat('x', 10000) FROM items ORDER BY id" })).await;
    assert!(page["truncated"] == json!(true) && text.len() < 120_000 && page["row_count"].as_u64().unwrap() > 5);
    // A row that is larger than everything: no answer, and soon the next one.
    let text = error(&client, "query", json!({ "sql": "SELECT repeat('x', 300000000)" })).await;
    assert!(text.contains("exceeds the maximum result size"), "{text}");
    let (_, page) = ok(
        &client,
        "query",
        json!({ "sql": "SELECT CASE id WHEN 3 THEN repeat('x', 200000000) END FROM items ORDER BY id LIMIT 4" }),
    )
    .await;
    assert_eq!((page["row_count"].as_u64(), &page["truncated"]), (Some(2), &json!(true)));
    // Endless rows stop where the limit is.
    let (_, page) = ok(
        &client,
        "query",
        json!({ "sql": "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT * FROM r" }),
    )
    .await;
    assert_eq!(page["row_count"], json!(300));
    for cursor in ["x", "-1", "99999999999"] {
        error(&client, "query", json!({ "sql": "SELECT 1", "cursor": cursor })).await;
    }
    query(&client, "SELECT 1").await;
}

/// How many of our connections run the slow statement.
fn active(cluster: &Cluster) -> String {
    cluster.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'linchpin-postgres' AND state = 'active'
         AND query LIKE '%generate_series(1, 100000)%'",
    )
}

async fn until(what: &str, mut good: impl FnMut() -> bool) {
    for _ in 0..200 {
        if good() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}");
}

const SLOW: &str = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn slow_statements_end_by_timeouts_and_when_nobody_waits_any_more() {
    let cluster = cluster();
    let quick = cluster.config("reader").with(|config| {
        config.statement_timeout = Duration::from_millis(300);
        config.lock_timeout = Duration::from_millis(200);
    });
    let client = connect(quick).await;
    let text = error(&client, "query", json!({ "sql": SLOW })).await;
    assert!(text.contains("57014") && text.contains("pg_explain"), "{text}");
    // Somebody holds a lock.
    let dir = cluster.dir().to_owned();
    let port = cluster.port;
    let holder = std::process::Command::new("sh")
        .args([
            "-c",
            "(echo 'BEGIN; LOCK TABLE parts;'; sleep 3) | \"$2\" -X -q -U postgres -d postgres -h \"$0\" -p \"$1\"",
        ])
        .arg(&dir)
        .arg(port.to_string())
        .arg(common::bin().join("psql"))
        .spawn();
    let mut holder = holder.unwrap();
    until("the lock is taken", || {
        cluster.sql("SELECT count(*) FROM pg_locks WHERE relation = 'parts'::regclass AND granted") == "1"
    })
    .await;
    let text = error(&client, "query", json!({ "sql": "SELECT * FROM parts" })).await;
    assert!(text.contains("55P03"), "{text}");
    holder.wait().unwrap();
    query(&client, "SELECT 1").await;
    // A call that is dropped.
    let client = connect(cluster.config("reader")).await;
    let calling = client.clone();
    let task = tokio::spawn(async move { calling.call("query", json!({ "sql": SLOW })).await });
    until("it runs", || active(&cluster) == "1").await;
    task.abort();
    until("it is cancelled", || active(&cluster) == "0").await;
    query(&client, "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_database_that_goes_away_is_an_error_until_it_is_back() {
    let mut cluster = cluster();
    let client = connect(cluster.config("reader")).await;
    query(&client, "SELECT 1").await;
    // The server closes our connection while it is idle: nobody notices.
    for _ in 0..3 {
        cluster
            .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'linchpin-postgres'");
        query(&client, "SELECT 1").await;
    }
    // In the middle of a statement: an error, and the next call works.
    let calling = client.clone();
    let task = tokio::spawn(async move { call(&calling, "query", json!({ "sql": SLOW })).await });
    until("it runs", || active(&cluster) == "1").await;
    cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'linchpin-postgres'");
    let (failed, text, _) = task.await.unwrap();
    assert!(failed && text.contains("Hint: "), "{text}");
    query(&client, "SELECT 1").await;
    cluster.stop();
    for _ in 0..5 {
        let text = error(&client, "query", json!({ "sql": "SELECT 1" })).await;
        assert!(text.contains("connect") || text.contains("connection"), "{text}");
    }
    assert!(cluster.run());
    let mut answered = false;
    for _ in 0..200 {
        answered = !call(&client, "query", json!({ "sql": "SELECT 1" })).await.0;
        if answered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(answered, "it never came back");
    // Not there at the start either.
    cluster.stop();
    let late = connect(cluster.config("reader")).await;
    error(&late, "query", json!({ "sql": "SELECT 1" })).await;
    let failed = late.resources().await.unwrap_err().to_string();
    assert!(failed.contains("Cannot connect") && failed.contains("-32603"), "{failed}");
    assert!(late.tools().await.unwrap().items.len() > 3);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn write_mode_writes_whole_transactions_and_keeps_nothing_of_a_session() {
    let cluster = cluster();
    let client = connect(cluster.config("writer").with(|config| {
        config.access = Access::Write;
        config.connections = 1;
    }))
    .await;
    let (_, rows) = ok(
        &client,
        "query",
        json!({ "sql": "UPDATE items SET name = $1 WHERE id <= 3 RETURNING id", "params": ["new"] }),
    )
    .await;
    assert_eq!((&rows["command"], &rows["row_count"]), (&json!("UPDATE 3"), &json!(3)));
    assert_eq!(cluster.sql("SELECT count(*) FROM items WHERE name = 'new'"), "3");
    let (_, done) = ok(&client, "pg_execute", json!({ "statements": ["CREATE TABLE made (i int)", "INSERT INTO made VALUES (1), (2);", "DELETE FROM made WHERE i = 2"] })).await;
    assert_eq!(
        done["results"],
        json!([{ "command": "CREATE TABLE" }, { "command": "INSERT 0 2" }, { "command": "DELETE 1" }])
    );
    let text = error(
        &client,
        "pg_execute",
        json!({ "statements": ["INSERT INTO made VALUES (7)", "INSERT INTO made VALUES ('x')"] }),
    )
    .await;
    assert!(text.starts_with("Statement 2:") && text.contains("Nothing was changed"), "{text}");
    assert_eq!(cluster.sql("SELECT string_agg(i::text, ',') FROM made"), "1");
    for sql in [
        "COMMIT",
        "BEGIN",
        "COPY made FROM '/etc/passwd'",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "SELECT 1; SELECT 2",
        "PREPARE TRANSACTION 'x'",
    ] {
        error(&client, "query", json!({ "sql": sql })).await;
        error(&client, "pg_execute", json!({ "statements": ["INSERT INTO made VALUES (8)", sql] })).await;
    }
    assert_eq!(cluster.sql("SELECT string_agg(i::text, ',') FROM made"), "1");
    // Settings, locks and temporary tables of one call are gone in the next.
    for sql in
        ["SET work_mem = '77MB'", "SELECT pg_advisory_lock(5)", "CREATE TEMP TABLE gone (i int)", "SET ROLE writer"]
    {
        query(&client, sql).await;
    }
    assert_eq!(cluster.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
    assert_ne!(query(&client, "SHOW work_mem").await["rows"], json!([["77MB"]]));
    error(&client, "query", json!({ "sql": "SELECT * FROM gone" })).await;
    // What analyze runs is undone.
    let (plan, _) = ok(&client, "pg_explain", json!({ "sql": "DELETE FROM made", "analyze": true })).await;
    assert!(plan.contains("actual"), "{plan}");
    assert_eq!(cluster.sql("SELECT count(*) FROM made"), "1");
    // A deferred constraint fails at the end.
    query(&client, "ALTER TABLE made ADD CONSTRAINT u UNIQUE (i) DEFERRABLE INITIALLY DEFERRED").await;
    let text = error(&client, "query", json!({ "sql": "INSERT INTO made VALUES (1)" })).await;
    assert!(text.contains("23505"), "{text}");
    // An answer that is too large to be given means that nothing was done.
    let text = error(
        &client,
        "query",
        json!({ "sql": "INSERT INTO made SELECT i FROM generate_series(100, 200) i RETURNING repeat('x', 100000)" }),
    )
    .await;
    assert!(text.contains("nothing was changed"), "{text}");
    until("it is rolled back", || cluster.sql("SELECT count(*) FROM made") == "1").await;
    // Hints say what it is, and --read-only beats it.
    let tools = client.tools().await.unwrap().items;
    let hint = |name: &str| tools.iter().find(|t| t.name == name).map(|t| t.annotations.clone().unwrap_or_default());
    assert_eq!(hint("query").unwrap().destructive_hint, Some(true));
    assert_eq!(hint("query").unwrap().read_only_hint, Some(false));
    assert_eq!(hint("pg_execute").unwrap().destructive_hint, Some(true));
    let mut config = cluster.config("reader").with(|config| config.access = Access::Write);
    config.tools.read_only = true;
    let client = connect(config).await;
    error(&client, "query", json!({ "sql": "DELETE FROM items" })).await;
    assert!(client.tools().await.unwrap().items.iter().all(|t| t.name != "pg_execute"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn tables_are_resources_of_their_own_schema_and_host() {
    let cluster = cluster();
    let base = format!("postgres://reader@127.0.0.1:{}", cluster.port);
    let eras: [(&[Revision], i32); 2] = [(&[Revision::V2025_11_25], -32002), (&[Revision::V2026_07_28], -32602)];
    for (revisions, missing) in eras {
        let client = connect_as(cluster.config("reader"), revisions).await;
        let listed = client.resources().await.unwrap().items;
        let uris: Vec<&str> = listed.iter().map(|r| r.uri.as_str()).collect();
        for name in
            ["items", "cheap", "counted", "parts", "app.items", "we%2Fird%2Ename%20%7Bx%7D", "app.dotted%2Etable"]
        {
            assert!(uris.contains(&format!("{base}/{name}/schema").as_str()), "{name}: {uris:?}");
        }
        assert!(listed.iter().any(|r| r.name == "\"items\" database schema"));
        let read = async |uri: String| {
            let result = client.read(&uri).await?.into_inner();
            let ResourceContents::Text(contents) = &result.contents[0] else { panic!("{result:?}") };
            assert_eq!(
                (contents.uri.as_str(), contents.mime_type.as_deref()),
                (uri.as_str(), Some("application/json"))
            );
            Ok::<_, linchpin::client::Error>(serde_json::from_str::<Value>(&contents.text).unwrap())
        };
        let columns = read(format!("{base}/items/schema")).await.unwrap();
        let expected = [("id", "integer"), ("name", "text"), ("price", "numeric")];
        let expected: Vec<Value> = expected.iter().map(|(n, t)| json!({ "column_name": n, "data_type": t })).collect();
        assert_eq!(columns, json!(expected), "only the table of public");
        let columns = read(format!("{base}/app.items/schema")).await.unwrap();
        assert_eq!(
            columns,
            json!([{ "column_name": "other", "data_type": "text" }, { "column_name": "list", "data_type": "ARRAY" }])
        );
        let columns = read(format!("{base}/we%2Fird%2Ename%20%7Bx%7D/schema")).await.unwrap();
        assert_eq!(columns[0]["column_name"], json!("a"));
        // Those that the list does not have as they are written are found through the template.
        assert_eq!(read(format!("{base}/app.dotted.table/schema")).await.unwrap()[0]["column_name"], json!("b"));
        assert_eq!(read(format!("{base}/public.items/schema")).await.unwrap().as_array().unwrap().len(), 3);
        for uri in [
            format!("{base}/nothing/schema"),
            format!("{base}/items/data"),
            "postgres://reader@otherhost:5432/items/schema".to_owned(),
            format!("postgres://someone@127.0.0.1:{}/items/schema", cluster.port),
            format!("{base}/items'; DROP TABLE items; --/schema"),
        ] {
            let failed = read(uri.clone()).await.expect_err(&uri);
            assert_eq!(failed.rpc().map(|rpc| rpc.code), Some(missing), "{uri}: {failed}");
        }
    }
    // The list is read when it is asked for, by nobody before, and kept for a while.
    for (name, (revisions, _)) in ["first", "second"].into_iter().zip(eras) {
        let open = || cluster.sql(&format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"));
        let url = format!("{}?application_name={name}", cluster.url("reader"));
        let config = Config::default().with(|config| config.url = Some(linchpin_postgres::Secret::new(url)));
        let client = connect_as(config, revisions).await;
        assert!(client.tools().await.unwrap().items.len() > 3);
        assert_eq!(open(), "0", "the start and the tools need no database");
        let listed = client.resources().await.unwrap().items.len();
        assert!(listed > 5 && open() == "1", "{listed}");
        cluster.sql("CREATE TABLE unlisted (i int)");
        assert_eq!(client.resources().await.unwrap().items.len(), listed);
        cluster.sql("DROP TABLE unlisted");
    }
    // A new table is found by the template at once, and listed soon.
    let client = connect(cluster.config("reader")).await;
    cluster.sql("CREATE TABLE later (i int)");
    client.read(&format!("{base}/later/schema")).await.unwrap();
}

/// A server that takes connections and says nothing: everything that needs none is answered, the rest in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_hangs_keeps_nobody_from_starting() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let taken = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = taken.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            held.push(stream);
        }
    });
    let url = format!("postgres://reader@127.0.0.1:{port}/postgres?connect_timeout=2&sslmode=disable");
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let config = Config::default().with(|config| config.url = Some(linchpin_postgres::Secret::new(url.clone())));
        let client = connect_as(config, &[revision]).await;
        let before = taken.load(std::sync::atomic::Ordering::SeqCst);
        assert!(client.tools().await.unwrap().items.len() > 3);
        assert_eq!(client.resource_templates().await.unwrap().items.len(), 1);
        assert_eq!(taken.load(std::sync::atomic::Ordering::SeqCst), before, "nothing has asked for the database");
        // Several that ask at once wait for one answer.
        let (first, second) = tokio::join!(client.resources(), client.resources());
        for failed in [first.unwrap_err().to_string(), second.unwrap_err().to_string()] {
            assert!(failed.contains("did not answer within 2 s"), "{failed}");
        }
        assert_eq!(taken.load(std::sync::atomic::Ordering::SeqCst), before + 1, "and nobody waits twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn the_catalogue_tools_say_what_there_is() {
    let cluster = cluster();
    cluster.sql("CREATE FUNCTION add(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + b'");
    let client = connect(cluster.config("reader")).await;
    let (_, schemas) = ok(&client, "pg_list_schemas", json!({})).await;
    let names: Vec<&str> = schemas["items"].as_array().unwrap().iter().map(|s| s["schema"].as_str().unwrap()).collect();
    assert_eq!(names, ["app", "public"]);
    let (text, objects) = ok(&client, "pg_list_objects", json!({ "schema": "public" })).await;
    let items = objects["items"].as_array().unwrap();
    let of = |name: &str| items.iter().find(|o| o["name"] == name).cloned().unwrap_or_default();
    assert_eq!(
        (&of("items")["kind"], &of("items")["estimated_rows"], &of("items")["comment"]),
        (&json!("table"), &json!(5000), &json!("Things"))
    );
    assert_eq!(of("counted")["kind"], json!("materialized view"));
    assert!(text.starts_with("[\n  {\n    \"schema\": \"public\""), "{text}");
    let (_, functions) = ok(&client, "pg_list_objects", json!({ "kind": "function", "search": "ADD" })).await;
    assert_eq!(functions["items"][0]["arguments"], json!("a integer, b integer"));
    error(&client, "pg_list_objects", json!({ "kind": "nonsense" })).await;
    cluster.sql(
        "SELECT format('CREATE TABLE many_%s (i int)', lpad(i::text, 3, '0')) FROM generate_series(1, 250) i \\gexec",
    );
    let (_, page) = ok(&client, "pg_list_objects", json!({ "search": "many_" })).await;
    let (_, rest) = ok(&client, "pg_list_objects", json!({ "search": "many_", "cursor": page["next_cursor"] })).await;
    assert_eq!((page["items"].as_array().unwrap().len(), rest["items"].as_array().unwrap().len()), (200, 50));
    let (_, table) = ok(&client, "pg_describe", json!({ "table": "items" })).await;
    assert_eq!(
        table["columns"][1],
        json!({ "name": "name", "type": "text", "nullable": false, "default": "'x'::text", "comment": "What it is called" })
    );
    assert_eq!(table["columns"][2]["type"], json!("numeric(10,2)"));
    assert_eq!(table["constraints"][0]["definition"], json!("PRIMARY KEY (id)"));
    assert_eq!(table["indexes"].as_array().unwrap().len(), 2);
    assert_eq!(table["referenced_by"][0]["table"], json!("parts"));
    assert_eq!(
        ok(&client, "pg_describe", json!({ "table": "app.items" })).await.1["columns"][0]["name"],
        json!("other")
    );
    assert_eq!(
        ok(&client, "pg_describe", json!({ "table": "we/ird.name {x}" })).await.1["columns"][0]["name"],
        json!("a")
    );
    assert!(
        ok(&client, "pg_describe", json!({ "table": "cheap" })).await.1["definition"]
            .as_str()
            .unwrap()
            .contains("SELECT")
    );
    assert!(error(&client, "pg_describe", json!({ "table": "nothing" })).await.contains("pg_list_objects"));
    let (plan, value) =
        ok(&client, "pg_explain", json!({ "sql": "SELECT * FROM items WHERE id = $1", "params": [7] })).await;
    assert!(plan.contains("items_pkey") && value["plan"] == json!(plan), "{plan}");
    error(&client, "pg_explain", json!({ "sql": "SELECT 1", "analyze": true })).await;
    assert!(
        error(&client, "pg_explain", json!({ "sql": "SELECT 1", "indexes": ["CREATE INDEX ON items (price)"] }))
            .await
            .contains("hypopg")
    );
    assert!(error(&client, "pg_top_queries", json!({})).await.contains("CREATE EXTENSION pg_stat_statements"));
    cluster.sql("CREATE EXTENSION pg_stat_statements");
    query(&client, "SELECT count(*) FROM items").await;
    for sort in ["total", "mean", "calls", "rows"] {
        let (_, top) = ok(&client, "pg_top_queries", json!({ "sort": sort, "limit": 3 })).await;
        assert!(!top["items"].as_array().unwrap().is_empty());
    }
    let (_, health) = ok(&client, "pg_health", json!({})).await;
    assert!(health["version"].as_u64().unwrap() > 120_000 && health["warnings"].is_array(), "{health}");
    assert_eq!(health["encrypted"], json!(false));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn several_databases_are_told_apart() {
    let cluster = cluster();
    cluster.sql("CREATE DATABASE second");
    let path = tempfile::NamedTempFile::new().unwrap();
    let url = |database: &str| format!("postgres://reader@127.0.0.1:{}/{database}", cluster.port);
    std::fs::write(
        path.path(),
        format!(
            "default = \"one\"\n[databases.two]\nurl = \"{}\"\n[databases.one]\nurl = \"{}\"\n",
            url("second"),
            url("postgres")
        ),
    )
    .unwrap();
    let client = connect(Config::default().with(|config| config.file = Some(path.path().to_owned()))).await;
    let name = async |database: Value| {
        ok(&client, "query", json!({ "sql": "SELECT current_database()", "database": database })).await.1["rows"][0][0]
            .clone()
    };
    assert_eq!(name(Value::Null).await, json!("postgres"));
    assert_eq!(name(json!("two")).await, json!("second"));
    let text = error(&client, "query", json!({ "sql": "SELECT 1", "database": "three" })).await;
    assert!(text.contains("one, two"), "{text}");
    let read = client.read(&format!("postgres://reader@127.0.0.1:{}/items/schema", cluster.port)).await;
    assert!(read.is_ok());
    let read = client.read(&format!("postgres://reader@127.0.0.1:{}/items/schema?database=two", cluster.port)).await;
    assert!(read.is_err(), "the other database has no such table");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn many_calls_at_once_share_few_connections() {
    let cluster = cluster();
    let client = connect(cluster.config("reader").with(|config| config.connections = 2)).await;
    let calls = (0..50).map(|i| {
        let client = client.clone();
        tokio::spawn(async move { query(&client, &format!("SELECT {i}::int")).await["rows"][0][0].clone() })
    });
    for (i, task) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(task.await.unwrap(), json!(i));
    }
    let open = cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'linchpin-postgres'");
    assert!(open.parse::<u32>().unwrap() <= 2, "{open}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_transaction_left_open_is_ended_by_the_server() {
    let cluster = cluster();
    for (access, role) in [(Access::ReadOnly, "reader"), (Access::Write, "writer")] {
        let config = cluster.config(role).with(|config| {
            config.access = access;
            config.statement_timeout = Duration::from_millis(700);
        });
        let client = connect(config).await;
        // The statement's time, and what a call may take beyond.
        let shown = query(&client, "SHOW idle_in_transaction_session_timeout").await;
        assert_eq!(shown["rows"], json!([["15700ms"]]), "{role}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_statement_with_parameters_is_planned_without_values() {
    let cluster = cluster();
    for config in [cluster.config("reader"), cluster.config("writer").with(|config| config.access = Access::Write)] {
        let client = connect(config).await;
        let sql = "SELECT * FROM items WHERE id = $2 AND name = $1::text";
        for _ in 0..3 {
            let (text, _) = ok(&client, "pg_explain", json!({ "sql": format!("{sql} -- so") })).await;
            assert!(text.contains("name = $1") && text.contains("id = $2"), "{text}");
        }
        // A type that only a value would tell.
        error(&client, "pg_explain", json!({ "sql": "SELECT * FROM items WHERE id = $2" })).await;
        ok(&client, "pg_explain", json!({ "sql": sql, "params": ["x", 7] })).await;
        let text = error(&client, "pg_explain", json!({ "sql": sql, "params": ["x"] })).await;
        assert!(text.contains("takes 2 params"), "{text}");
    }
}
