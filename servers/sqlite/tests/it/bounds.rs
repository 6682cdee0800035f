//! Time, memory, size, locks: every call is answered, and what was cancelled stops.

use crate::common;

use common::{World, host, legacy, sql};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ENDLESS: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

/// Nothing here is about speed; this only tells an answer from a hang.
const LONG: Duration = Duration::from_secs(25);

async fn short() -> World {
    World::made("CREATE TABLE t(a)", |c| c.timeout = Duration::from_secs(1)).await
}

#[tokio::test]
async fn an_endless_query_is_stopped_and_the_next_one_runs() {
    let w = short().await;
    for _ in 0..3 {
        let start = Instant::now();
        let error = w.error("read_query", sql(ENDLESS)).await;
        assert!(error.starts_with("Database error: the statement was stopped after 1 s\nHint: "), "{error}");
        assert!(start.elapsed() < LONG);
    }
    assert_eq!(w.read("SELECT 1 AS a").await, r#"[{"a":1}]"#);
}

#[tokio::test]
async fn an_endless_change_is_undone() {
    let w = short().await;
    let endless = "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    w.error("write_query", sql(endless)).await;
    assert_eq!(w.number("SELECT count(*) FROM t"), 0);
    w.write("INSERT INTO t VALUES (1)").await;
}

#[tokio::test]
async fn values_and_patterns_have_a_size_and_memory_has_an_end() {
    let w = World::with(|c| c.timeout = Duration::from_secs(50)).await;
    for (query, says) in [
        ("SELECT randomblob(1000000000)", "string or blob too big"),
        ("SELECT zeroblob(1000000000)", "string or blob too big"),
        ("SELECT hex(zeroblob(60000000))", "string or blob too big"),
        (
            "SELECT group_concat(hex(zeroblob(1000000))) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100) SELECT x FROM c)",
            "string or blob too big",
        ),
        ("SELECT 'x' LIKE replace(hex(zeroblob(10000)), '0', '%a')", "LIKE or GLOB pattern too complex"),
        ("SELECT 'x' GLOB replace(hex(zeroblob(10000)), '0', '*a')", "LIKE or GLOB pattern too complex"),
        // Rows that must be kept for sorting would fill memory; the limit says stop first.
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000), t(t) AS MATERIALIZED (SELECT hex(zeroblob(500000))) SELECT length(t) FROM c, t ORDER BY t || x",
            "out of memory",
        ),
    ] {
        let error = w.error("read_query", sql(query)).await;
        assert!(error.starts_with("Database error: ") && error.contains(says), "{query}: {error}");
    }
    let long = format!("SELECT '{}'", "x".repeat(1_100_000));
    w.error("read_query", sql(&long)).await;
    let deep = format!("SELECT {}1", "NOT ".repeat(5_000));
    w.error("read_query", sql(&deep)).await;
    let wide = format!("SELECT {}1", "1,".repeat(5_000));
    w.error("read_query", sql(&wide)).await;
    let semicolons = format!("SELECT 1 AS a{}", ";".repeat(100_000));
    assert_eq!(w.read(&semicolons).await, r#"[{"a":1}]"#);
    assert_eq!(w.files(), ["x.db"], "sorting spilled into no file");
}

/// Statements of one step that SQLite does not look up from. With texts of 30 MB each of them takes minutes or hours.
fn long_steps(bytes: usize) -> Vec<String> {
    let texts = format!("SELECT hex(zeroblob({})) AS x, hex(zeroblob({})) || '1' AS y", bytes / 2, bytes / 4);
    let of = |expression: &str| format!("WITH v AS MATERIALIZED ({texts}) SELECT {expression} FROM v");
    let many = |expression: &str, times: usize| of(&vec![expression; times].join(" + "));
    let object = |prefix: &str| {
        let members = bytes / 25;
        format!(
            "(WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT {members}) SELECT '{{' || \
             group_concat('\"{prefix}' || i || '\":1') || '}}' FROM c)"
        )
    };
    vec![
        of("instr(x, y)"),
        of("length(replace(x, y, ''))"),
        of("x LIKE '%' || replace(hex(zeroblob(200)), '0', '_0') || '%1'"),
        of("x GLOB '*' || replace(hex(zeroblob(100)), '0', '[0-9]') || '1*'"),
        of("length(trim(x, 'é' || replace(substr(y, 1, 2000000), '0', 'ü') || '0'))"),
        of("length(unhex(replace(x, '0', '-'), replace(y, '0', '+') || '-'))"),
        format!("SELECT length(json_patch({}, {}))", object("a"), object("b")),
        of("length(printf(replace(x, '00', '%f')))"),
        many("length(upper(x || random()))", 900),
        many("instr(x, random())", 900),
        many("json_valid('[' || x || random())", 300),
        // A loop whose body takes long: SQLite looks at the clock after some thousand steps only.
        format!(
            "WITH RECURSIVE v AS MATERIALIZED ({texts}), c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT \
             sum(length(x || i)) FROM c, v"
        ),
    ]
}

#[tokio::test]
async fn a_function_gets_no_values_with_which_it_takes_hours() {
    let w = World::made("CREATE TABLE t(a)", |c| c.timeout = Duration::from_secs(20)).await;
    for statement in long_steps(60_000_000) {
        let begins: String = statement.chars().take(200).collect();
        let error = w.error("read_query", sql(&statement)).await;
        assert!(error.starts_with("Database error: string or blob too big\nHint: "), "{begins}: {error}");
    }
}

#[tokio::test]
async fn every_call_is_answered_and_the_next_one_is_served_whatever_one_step_takes() {
    for statement in long_steps(1_000_000) {
        let begins: String = statement.chars().take(200).collect();
        let w = World::made("CREATE TABLE t(a)", |c| c.timeout = Duration::from_secs(1)).await;
        let start = Instant::now();
        w.call("read_query", sql(&statement)).await;
        assert!(start.elapsed() < LONG, "{begins}");
        let tables = w.call("list_tables", json!({})).await;
        assert_eq!((tables.is_error(), tables.text().as_str()), (false, r#"[{"name":"t"}]"#), "after {begins}");
    }
}

/// SQLite asks the authorizer nothing about these functions.
#[tokio::test]
async fn functions_of_the_schema_get_no_larger_values_than_those_of_a_statement() {
    let long = "instr(zeroblob(3000000), x'01')";
    let w = World::made(
        &format!(
            "CREATE TABLE given(a, b DEFAULT ({long})); CREATE TABLE checked(a CHECK ({long} >= 0)); \
             INSERT INTO checked VALUES (1); CREATE TABLE made(a, b AS ({long})); INSERT INTO made(a) VALUES (1); \
             CREATE TABLE plain(a); \
             INSERT INTO plain VALUES (1); CREATE TABLE told(a); \
             CREATE TRIGGER tells AFTER INSERT ON told BEGIN INSERT INTO plain VALUES ({long}); END"
        ),
        |_| {},
    )
    .await;
    for change in [
        "INSERT INTO given(a) VALUES (1)".to_owned(),
        "INSERT INTO checked VALUES (1)".to_owned(),
        "INSERT INTO told VALUES (1)".to_owned(),
        format!("CREATE INDEX i ON plain({long} + a)"),
        format!("ALTER TABLE plain ADD COLUMN b CHECK ({long} < 0)"),
    ] {
        let error = w.error("write_query", sql(&change)).await;
        assert!(error.contains("string or blob too big"), "{change}: {error}");
    }
    for query in ["SELECT * FROM made", "PRAGMA integrity_check", "SELECT * FROM pragma_integrity_check"] {
        let error = w.error("read_query", sql(query)).await;
        assert!(error.contains("string or blob too big"), "{query}: {error}");
    }
}

#[tokio::test]
async fn large_values_can_be_stored_copied_and_read_in_parts() {
    let w = World::with(|_| {}).await;
    w.raw()
        .execute_batch(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, name, photo); INSERT INTO t VALUES (1, 'a', zeroblob(10000000))",
        )
        .unwrap();
    for change in
        ["UPDATE t SET name = 'b'", "INSERT INTO t SELECT 2, name, photo FROM t", "ALTER TABLE t DROP COLUMN name"]
    {
        w.write(change).await;
    }
    w.write("VACUUM").await;
    assert_eq!(
        w.read("SELECT id, length(photo) AS n, substr(photo, 1, 1) AS part FROM t").await,
        r#"[{"id":1,"n":10000000,"part":{"base64":"AA=="}},{"id":2,"n":10000000,"part":{"base64":"AA=="}}]"#
    );
    let error = w.error("read_query", sql("SELECT hex(photo) FROM t")).await;
    assert!(error.starts_with("Database error: string or blob too big\nHint: "), "{error}");
}

#[tokio::test]
async fn rows_and_bytes_of_an_answer_have_a_limit_while_they_are_read() {
    let w = World::with(|c| {
        c.max_rows = 3;
        c.max_bytes = 1_000;
    })
    .await;
    // Endless, and answered at once: no more is read than is shown.
    let rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let result = w.call("read_query", sql(rows)).await;
    assert_eq!(
        result.text(),
        "[{\"x\":1},{\"x\":2},{\"x\":3}]\n[Truncated after 3 rows: there are more rows. Use WHERE, or LIMIT with OFFSET, to get them.]"
    );
    let value: Value = result.json().unwrap();
    assert_eq!(value, json!({"columns": ["x"], "rows": [[1], [2], [3]], "truncated": true}));
    let value = w.value("read_query", sql(&format!("{rows} LIMIT 3"))).await;
    assert!(value.get("truncated").is_none(), "just as many as fit");

    let result = w.call("read_query", sql("VALUES (1), (hex(zeroblob(300))), (hex(zeroblob(300))), (4)")).await;
    let value: Value = result.json().unwrap();
    assert_eq!(value["rows"].as_array().unwrap().len(), 2);
    assert!(result.text().contains("[Truncated after 1000 bytes"), "{}", result.text());
    let error = w.error("read_query", sql("SELECT zeroblob(2000)")).await;
    assert!(error.starts_with("Error: the first row alone is longer than 1000 bytes\nHint: "), "{error}");
    let error = w.error("read_query", sql("SELECT hex(zeroblob(300)), hex(zeroblob(300))")).await;
    assert!(error.starts_with("Error: the first row alone"), "{error}");
}

#[tokio::test]
async fn cancelling_a_call_stops_its_statement() {
    for client in [host(), legacy()] {
        let dir = tempfile::tempdir().unwrap();
        let config = linchpin_sqlite::Config::default().with(|config| {
            config.db_path = dir.path().join("x.db");
            config.timeout = Duration::from_secs(3_000);
        });
        let client = common::connect(config, client).await;
        let table = client.call("create_table", sql("CREATE TABLE t(a)")).await.unwrap();
        assert!(!table.is_error());
        let endless = "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
        // There is one thread for changes and it would be busy for an hour, and both for reading.
        for (tool, query) in [("write_query", endless), ("read_query", ENDLESS), ("read_query", ENDLESS)] {
            let call = client.call(tool, sql(query)).timeout(Duration::from_millis(200));
            assert!(call.await.is_err(), "the client gave up and said so");
        }
        for (tool, query) in [("write_query", "INSERT INTO t VALUES (1)"), ("read_query", "SELECT a FROM t")] {
            let result = tokio::time::timeout(LONG, client.call(tool, sql(query)).into_future()).await;
            assert!(!result.expect("an answer").unwrap().is_error());
        }
        let left: i64 =
            common::raw(&dir.path().join("x.db")).query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
        assert_eq!(left, 1, "the cancelled change was undone");
    }
}

#[tokio::test]
async fn a_slow_read_holds_up_no_other_call() {
    let w = World::with(|c| c.timeout = Duration::from_secs(5)).await;
    w.write("CREATE TABLE t(a)").await;
    let slow = w.client.call("read_query", sql(ENDLESS)).into_future();
    let others = async {
        w.write("INSERT INTO t VALUES (1)").await;
        w.read("SELECT a FROM t").await
    };
    tokio::select! {
        biased;
        rows = others => assert_eq!(rows, r#"[{"a":1}]"#),
        _ = slow => panic!("the endless one ended first"),
    }
}

#[tokio::test]
async fn more_calls_than_fit_are_told_so() {
    let w = World::with(|c| c.timeout = Duration::from_millis(1_500)).await;
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let client = w.client.clone();
            tokio::spawn(async move {
                client
                    .call(
                        "write_query",
                        sql(&format!("WITH n(x) AS ({ENDLESS}) DELETE FROM sqlite_stat1 WHERE 1 IN n")),
                    )
                    .await
            })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap().is_ok_and(|result| result.is_error()));
    }
    w.client.call("create_table", sql("CREATE TABLE t(a)")).await.unwrap();
    let slow = "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let client = w.client.clone();
            tokio::spawn(async move { client.call("write_query", sql(slow)).await })
        })
        .collect();
    let mut said = Vec::new();
    for call in calls {
        said.push(call.await.unwrap().unwrap().text());
    }
    assert!(said.iter().any(|text| text.starts_with("Error: too many calls are waiting")), "{said:?}");
    assert!(said.iter().any(|text| text.contains("was stopped")), "{said:?}");
    assert!(said.iter().any(|text| text.contains("Nothing was done; try again later.")), "{said:?}");
    w.write("INSERT INTO t VALUES (1)").await;
    assert_eq!(w.number("SELECT count(*) FROM t"), 1);
}

/// What the process that holds a lock is told: a path, `|` and a statement.
const HOLD: &str = "LINCHPIN_SQLITE_TEST_HOLD";

/// Another process that holds a lock on a database until it is dropped: this program, running one test.
struct Holder(Child);

impl Holder {
    fn of(path: &std::path::Path, sql: &str) -> Holder {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "bounds::child_process_that_holds_a_lock", "--nocapture", "--test-threads=1"])
            .env(HOLD, format!("{}|{sql}", path.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let held = lines.by_ref().map_while(Result::ok).any(|line| line == "held");
        assert!(held, "the other process holds the lock");
        Holder(child)
    }
}

#[test]
fn child_process_that_holds_a_lock() {
    let Ok(orders) = std::env::var(HOLD) else { return };
    let (path, sql) = orders.split_once('|').unwrap();
    let conn = common::raw(std::path::Path::new(path));
    conn.execute_batch(sql).unwrap();
    std::io::stderr().write_all(b"held\n").unwrap();
    // Until the line or the end of the other process.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.stdin.take().map(|mut input| input.write_all(b"\n"));
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_lock_that_another_process_holds_is_an_error_in_time_and_no_hang() {
    let w = World::with(|c| c.busy_timeout = Duration::from_millis(200)).await;
    w.write("CREATE TABLE t(a)").await;
    let holder = Holder::of(&w.path("x.db"), "BEGIN EXCLUSIVE");
    for (tool, query) in [("write_query", "INSERT INTO t VALUES (1)"), ("read_query", "SELECT * FROM t")] {
        let start = Instant::now();
        let error = w.error(tool, sql(query)).await;
        assert!(error.starts_with("Database error: database is locked\nHint: "), "{error}");
        assert!(start.elapsed() < LONG);
    }
    drop(holder);
    w.write("INSERT INTO t VALUES (1)").await;

    let holder = Holder::of(&w.path("x.db"), "BEGIN IMMEDIATE");
    assert_eq!(w.read("SELECT a FROM t").await, r#"[{"a":1}]"#, "reading goes on beside a writer");
    w.error("write_query", sql("DELETE FROM t")).await;
    drop(holder);
    assert_eq!(w.number("SELECT count(*) FROM t"), 1);
}

#[tokio::test]
async fn waiting_for_a_lock_ends_when_it_is_free_and_when_the_call_is_cancelled() {
    let w = World::with(|c| {
        c.busy_timeout = Duration::from_secs(3_000);
        c.timeout = Duration::from_secs(3_000);
    })
    .await;
    w.write("CREATE TABLE t(a)").await;
    let holder = Holder::of(&w.path("x.db"), "BEGIN IMMEDIATE");
    let given_up =
        w.client.call("write_query", sql("INSERT INTO t VALUES ('cancelled')")).timeout(Duration::from_millis(200));
    assert!(given_up.await.is_err());
    let waiting = w.client.call("write_query", sql("INSERT INTO t VALUES ('waited')")).into_future();
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(holder);
    };
    let (result, ()) = tokio::join!(tokio::time::timeout(LONG, waiting), release);
    assert!(!result.expect("an answer").unwrap().is_error());
    assert_eq!(w.read("SELECT a FROM t").await, r#"[{"a":"waited"}]"#);
}

#[tokio::test]
async fn a_start_beside_a_lock_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    common::raw(&path).execute_batch("CREATE TABLE t(a)").unwrap();
    let holder = Holder::of(&path, "BEGIN EXCLUSIVE");
    let config = linchpin_sqlite::Config::default().with(|config| config.db_path = path);
    let (_db, warnings) = linchpin_sqlite::Sqlite::open(config).expect("it starts");
    assert!(warnings[0].contains("database is locked"), "{warnings:?}");
    drop(holder);
}
