//! What is refused, seen from the server's side: for each statement there is a sign that it would leave, even though its
//! transaction is rolled back, and a control that shows the sign is one.

use crate::common;

use common::{Cluster, connect, error, query};
use linchpin_postgres::Access;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

/// The name of everything that is tried; it is nowhere else.
const MARK: &str = "linchpin_mark";

/// Statements, what a superuser does for the control, and the sign.
struct Case {
    refused: &'static [&'static str],
    control: &'static str,
    sign: fn(&Cluster) -> bool,
}

fn logged(cluster: &Cluster, text: &str) -> bool {
    cluster.log().contains(text)
}

/// Messages in the write-ahead log, which a rollback does not take back.
fn emitted(cluster: &Cluster) -> bool {
    // The question must not write the mark into the server's log. What commits has the write-ahead log written to disk, up to where the slot reads.
    cluster.sql("SELECT pg_logical_emit_message(true, 'flush', '')");
    let sql = "SELECT count(*) FROM pg_logical_slot_peek_changes('watcher', NULL, NULL) WHERE data LIKE '%linchpin' || '_mark%'";
    cluster.sql(sql) != "0"
}

/// Whether a process of the server that belongs to a client of that name has the library in its memory.
fn loaded(cluster: &Cluster, application: &str) -> bool {
    let sql = format!(
        "SELECT coalesce(bool_or(pg_read_file('/proc/' || pid || '/maps') LIKE '%auto_' || 'explain%'), false)
         FROM pg_stat_activity WHERE application_name = '{application}'"
    );
    cluster.sql(&sql) == "t"
}

/// The number of the last checkpoint's place in the write-ahead log, and of those that somebody asked for.
fn checkpoints(cluster: &Cluster) -> String {
    cluster.sql(
        "SELECT (SELECT checkpoint_lsn FROM pg_control_checkpoint()), (SELECT checkpoints_req FROM pg_stat_bgwriter)",
    )
}

const CASES: [Case; 6] = [
    Case {
        refused: &[
            "NOTIFY linchpin_mark",
            "NOTIFY linchpin_mark, 'x'",
            "SELECT pg_notify('linchpin_mark', 'x')",
            "SELECT pg_catalog.pg_notify('linchpin_mark', 'x')",
            "WITH a AS MATERIALIZED (SELECT pg_notify('linchpin_mark', 'x')) SELECT * FROM a",
        ],
        control: "NOTIFY linchpin_mark, 'control'",
        sign: |cluster| logged(cluster, MARK),
    },
    Case {
        refused: &["LISTEN linchpin_mark", "UNLISTEN linchpin_mark", "EXPLAIN LISTEN linchpin_mark"],
        control: "LISTEN linchpin_mark",
        sign: |cluster| logged(cluster, MARK),
    },
    Case {
        refused: &[
            "SELECT pg_logical_emit_message(false, 'linchpin_mark', 'x')",
            "SELECT pg_logical_emit_message(true, 'linchpin_mark', 'x')",
            "SELECT pg_logical_emit_message(false, 'linchpin_mark', 'x'::bytea)",
        ],
        control: "BEGIN READ ONLY; SELECT pg_logical_emit_message(false, 'linchpin_mark', 'x'); ROLLBACK",
        sign: emitted,
    },
    Case {
        refused: &["SELECT pg_create_restore_point('linchpin_mark')"],
        control: "BEGIN READ ONLY; SELECT pg_create_restore_point('linchpin_mark'); ROLLBACK",
        sign: |cluster| logged(cluster, "restore point \"linchpin_mark\" created"),
    },
    Case {
        refused: &["CHECKPOINT", "checkpoint;", "EXPLAIN CHECKPOINT"],
        control: "CHECKPOINT",
        sign: |cluster| logged(cluster, "checkpoint starting"),
    },
    Case {
        refused: &["LOAD 'auto_explain'", "LOAD '$libdir/auto_explain'", "LOAD E'auto_explain'"],
        control: "LOAD 'auto_explain'",
        sign: |cluster| logged(cluster, "auto_explain"),
    },
];

/// A cluster that writes down every statement, where nothing else happens by itself, with a slot that keeps messages.
fn watched() -> Cluster {
    let cluster = Cluster::with(
        "",
        "log_statement=all\nlog_checkpoints=on\nautovacuum=off\ncheckpoint_timeout=1h\nmax_wal_size=10GB",
    );
    cluster.sql(
        "CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE ROLE owner LOGIN; CREATE TABLE items (i int);
         ALTER TABLE items OWNER TO owner",
    );
    cluster.sql("SELECT pg_create_logical_replication_slot('watcher', 'test_decoding')");
    cluster
}

/// A session that listens.
struct Listener(Child);

impl Listener {
    fn begin(cluster: &Cluster) -> Listener {
        let mut command = std::process::Command::new(common::bin().join("psql"));
        command.args(["-X", "-q", "-At", "-U", "postgres", "-d", "postgres", "-p"]).arg(cluster.port.to_string());
        command.arg("-h").arg(cluster.dir()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("psql runs");
        let input = child.stdin.as_mut().expect("its input");
        // Its name is written so that the log does not hold the mark.
        input
            .write_all(b"\\set n linchpin '_mark'\nSET log_statement = 'none'; LISTEN :n; SELECT 'listens';\n")
            .expect("it reads");
        let mut heard = [0; 8];
        child.stdout.as_mut().expect("its output").read_exact(&mut heard).expect("it answers");
        assert_eq!(&heard, b"listens\n");
        Listener(child)
    }

    /// All that it heard.
    fn end(mut self) -> String {
        let mut input = self.0.stdin.take().expect("its input");
        input.write_all(b"SELECT 'ends';\n").expect("it reads");
        drop(input);
        let mut heard = String::new();
        self.0.stdout.take().expect("its output").read_to_string(&mut heard).expect("text");
        let _ = self.0.wait();
        assert!(heard.starts_with("ends\n"), "{heard}");
        heard
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_is_refused_leaves_no_sign_that_a_rollback_would_not_take_back() {
    let cluster = watched();
    let listener = Listener::begin(&cluster);
    let before = checkpoints(&cluster);
    for role in ["postgres", "owner", "reader"] {
        let config = cluster.config(role).with(|config| {
            config.allow_privileged_role = true;
            config.connections = 1;
        });
        let client = connect(config).await;
        query(&client, "SELECT 1").await;
        for sql in CASES.iter().flat_map(|case| case.refused) {
            for tool in ["query", "pg_explain"] {
                let text = error(&client, tool, json!({ "sql": sql })).await;
                assert!(text.contains("Hint: "), "{role}: {sql}: {text}");
            }
            for case in &CASES {
                assert!(!(case.sign)(&cluster), "{role}: {sql}: {}", case.control);
            }
        }
        assert!(!loaded(&cluster, "linchpin-postgres"), "{role}");
        assert_eq!(query(&client, "SELECT pg_listening_channels()").await["rows"], json!([]), "{role}");
    }
    assert_eq!(checkpoints(&cluster), before);
    assert!(!listener.end().contains("notification"), "nobody was told");
}

/// The signs are signs: a superuser does what was refused above, and each shows.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn each_sign_shows_what_is_done() {
    for case in &CASES {
        let cluster = watched();
        let (listener, before) = (Listener::begin(&cluster), checkpoints(&cluster));
        assert!(!(case.sign)(&cluster), "{}", case.control);
        let told = case.control.starts_with("NOTIFY");
        // In the session itself: what it listens to, and what it has loaded.
        let own = format!(
            "{}; SELECT count(*), (SELECT pg_read_file('/proc/self/maps') LIKE '%auto_' || 'explain%') FROM pg_listening_channels()",
            case.control
        );
        let own = cluster.sql(&own);
        let own = own.lines().last().unwrap_or_default();
        let expected = match case.control {
            "LISTEN linchpin_mark" => "1|f",
            "LOAD 'auto_explain'" => "0|t",
            _ => "0|f",
        };
        assert_eq!(own, expected, "{}", case.control);
        assert!((case.sign)(&cluster), "{}", case.control);
        assert_eq!(checkpoints(&cluster) != before, case.control == "CHECKPOINT", "{}", case.control);
        assert_eq!(listener.end().contains("notification"), told, "{}", case.control);
    }
    // What our server lets through shows as well: in write mode these are only statements.
    let cluster = watched();
    let listener = Listener::begin(&cluster);
    let writing = cluster.config("postgres").with(|config| {
        config.access = Access::Write;
        config.allow_privileged_role = true;
        config.connections = 1;
    });
    let client = connect(writing).await;
    query(&client, "SELECT pg_notify('linchpin_mark', 'ours')").await;
    assert!(logged(&cluster, MARK) && listener.end().contains("ours"));
    query(&client, "DO $$ BEGIN LOAD 'auto_explain'; END $$").await;
    assert!(loaded(&cluster, "linchpin-postgres"));
}
