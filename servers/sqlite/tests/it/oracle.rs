//! Rows as other programs on SQLite read them: the `sqlite3` shell and Python's module. Both must be installed. Only where the
//! shell cannot be, `LINCHPIN_WITHOUT_SQLITE3` leaves its test out.

use crate::common;

use common::World;
use serde_json::Value;
use std::process::{Command, Stdio};

const MADE: &str = "
    CREATE TABLE t(i INTEGER, r REAL, x TEXT, b BLOB, n NUMERIC, PRIMARY KEY (i)) WITHOUT ROWID;
    INSERT INTO t VALUES (1, 1.5, 'it''s', x'0102', 7), (2, -0.25, '', x'', '12'), (3, 1e300, 'tab\tline\nquote\"back\\', NULL, 1.25),
        (9223372036854775807, 3, 'é日本😀', x'ff', NULL), (-9223372036854775808, 1e-7, char(1, 31, 127, 8232), NULL, 'text');
    CREATE TABLE s(name TEXT, amount, day TEXT);
    WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200)
        INSERT INTO s SELECT 'name ' || (x % 7), (x * 7919) % 1000 / 8.0, date('2026-01-01', '+' || x || ' days') FROM c;";

const QUERIES: &[&str] = &[
    "SELECT i, r, x, n FROM t ORDER BY i",
    "SELECT typeof(i), typeof(r), typeof(x), typeof(b), typeof(n), length(b), hex(b) FROM t ORDER BY i",
    "SELECT name, count(*) AS n, sum(amount) AS total, avg(amount) FROM s GROUP BY name HAVING n > 3 ORDER BY total DESC",
    "SELECT name, amount, row_number() OVER (PARTITION BY name ORDER BY amount, day) AS rank FROM s ORDER BY name, rank LIMIT 50",
    "WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f LIMIT 80) SELECT a FROM f",
    "SELECT json_group_array(name), json_object('a', 1.0, 'b', NULL) FROM (SELECT DISTINCT name FROM s ORDER BY 1)",
    "SELECT strftime('%Y-%m', day) AS month, printf('%.3f', sum(amount)) AS sum FROM s GROUP BY month ORDER BY month",
    "SELECT a.name, b.name AS other FROM s a LEFT JOIN s b ON a.day = date(b.day, '+199 days') ORDER BY 1, 2 LIMIT 20",
    "SELECT x LIKE 'IT%', x GLOB 'it*', x || NULL, coalesce(b, 'none') IS 'none', 7 / 2, 7 % -3, 7.0 / 2, 1 / 0 FROM t ORDER BY i",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT 'nothing' AS none WHERE 0",
    "SELECT cast('12abc' AS INTEGER), cast(3.99 AS INTEGER), round(2.5), abs(-3), instr('hello', 'l'), substr('hello', -3, 2)",
];

#[tokio::test]
async fn rows_are_those_of_the_sqlite3_shell() {
    if std::env::var_os("LINCHPIN_WITHOUT_SQLITE3").is_some() {
        eprintln!("left out: LINCHPIN_WITHOUT_SQLITE3 is set");
        return;
    }
    let found = Command::new("sqlite3").arg("-version").stdout(Stdio::null()).status();
    assert!(
        found.is_ok_and(|status| status.success()),
        "the sqlite3 shell is not installed: install the package sqlite3, or set LINCHPIN_WITHOUT_SQLITE3 to leave this out"
    );
    let w = World::made(MADE, |_| {}).await;
    for query in QUERIES {
        let shell = Command::new("sqlite3").arg("-json").arg(w.path("x.db")).arg(query).output().unwrap();
        assert!(shell.status.success(), "{query}: {}", String::from_utf8_lossy(&shell.stderr));
        let theirs = String::from_utf8(shell.stdout).unwrap();
        let theirs: Value = serde_json::from_str(if theirs.is_empty() { "[]" } else { &theirs }).unwrap();
        let ours: Value = serde_json::from_str(&w.read(query).await).unwrap();
        assert_eq!(ours, theirs, "{query}");
    }
}

#[tokio::test]
async fn rows_are_those_of_python_in_its_own_notation() {
    let w = World::made(MADE, |c| c.compat_repr = true).await;
    let script = "import sqlite3, sys\n\
                  c = sqlite3.connect(sys.argv[1])\n\
                  c.row_factory = sqlite3.Row\n\
                  sys.stdout.reconfigure(encoding='utf-8')\n\
                  for q in sys.argv[2:]:\n    print(str([dict(row) for row in c.execute(q).fetchall()]))\n";
    let all = [
        "SELECT * FROM t ORDER BY i",
        "SELECT 1 AS a, 2 AS a, 3 AS A",
        "SELECT 9e999, -9e999, 1e16, 1e15, 1e22, 1.5e-5, 0.0001",
    ];
    let queries: Vec<&str> = QUERIES.iter().chain(&all).copied().collect();
    let mut python = Command::new("python3");
    let python = python.args(["-c", script]).arg(w.path("x.db")).args(&queries).output();
    let python = python.expect("python3 is installed: this test holds our rows against those of its module");
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let lines = String::from_utf8(python.stdout).unwrap();
    assert_eq!(lines.lines().count(), queries.len());
    for (query, theirs) in queries.iter().zip(lines.lines()) {
        assert_eq!(w.read(query).await, theirs, "{query}");
    }
}
