//! What `--schemas` hides, and what it does not.

use crate::common;

use common::{Cluster, call, connect, error, query};
use serde_json::json;
use std::process::{Command, Stdio};

/// What stands for everything that is not to be seen; names do not hold it.
const SECRET: &str = "4711";

const DATA: &str = "
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; GRANT pg_monitor TO reader;
CREATE SCHEMA app; CREATE SCHEMA hidden; CREATE TABLE app.open (i int);
CREATE TABLE hidden.closed (i int); INSERT INTO hidden.closed SELECT 4711 FROM generate_series(1, 9);
CREATE SEQUENCE hidden.counter; SELECT setval('hidden.counter', 4711);
COMMENT ON TABLE hidden.closed IS 'A comment'; CREATE VIEW hidden.shown AS SELECT i FROM hidden.closed;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA hidden TO reader;
CREATE EXTENSION pg_stat_statements SCHEMA app;
BEGIN; PREPARE TRANSACTION 'number 4711'; SELECT 1 AS \"number 4711\"; GRANT SELECT ON pg_statistic TO reader; ANALYZE;
";

/// Statements that show it where all schemas are read.
const SHOW: [&str; 15] = [
    "SELECT * FROM hidden.closed",
    "SELECT query FROM pg_stat_activity",
    "SELECT query FROM pg_stat_get_activity(NULL)",
    "SELECT pg_stat_get_backend_activity(b) FROM pg_stat_get_backend_idset() b",
    "SELECT a.query FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)",
    "SELECT most_common_vals::text FROM pg_stats WHERE schemaname = 'hidden'",
    "SELECT stavalues1::text FROM pg_statistic WHERE starelid = 'hidden.closed'::regclass",
    "SELECT last_value FROM pg_sequences WHERE schemaname = 'hidden'",
    "SELECT pg_sequence_last_value('hidden.counter')",
    "SELECT objid FROM pg_locks WHERE locktype = 'advisory'",
    "SELECT objid FROM pg_lock_status() WHERE locktype = 'advisory'",
    "SELECT gid FROM pg_prepared_xacts",
    "SELECT gid FROM pg_prepared_xact()",
    "SELECT query FROM app.pg_stat_statements WHERE query LIKE '%number 47%'",
    "SELECT query FROM app.pg_stat_statements(true) WHERE query LIKE '%number 47%'",
];

/// What the catalogue says is not hidden, as the README says.
const TOLD: [&str; 10] = [
    "SELECT 1 FROM pg_class WHERE relname = 'closed' AND reltuples > 0",
    "SELECT 1 FROM information_schema.columns WHERE table_schema = 'hidden' AND table_name = 'closed'",
    "SELECT 1 FROM pg_views WHERE schemaname = 'hidden' AND definition LIKE '%closed%'",
    "SELECT 1 WHERE pg_get_viewdef('hidden.shown'::regclass) LIKE '%closed%'",
    "SELECT 1 WHERE obj_description('hidden.closed'::regclass, 'pg_class') = 'A comment'",
    "SELECT 1 WHERE pg_relation_size('hidden.closed') > 0",
    "SELECT 1 FROM pg_stat_user_tables WHERE relname = 'closed' AND seq_scan IS NOT NULL",
    "SELECT 1 WHERE has_table_privilege('hidden.closed', 'SELECT')",
    "SELECT 1 FROM pg_roles WHERE rolname = 'reader'",
    "SELECT 1 FROM pg_database WHERE datname = 'postgres'",
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn rows_values_and_statements_of_others_are_hidden_and_the_catalogue_is_not() {
    let cluster = Cluster::with("", "max_prepared_transactions=2");
    cluster.sql(DATA);
    // A session that holds a lock and runs a statement for as long as the cluster runs.
    let mut psql = Command::new(common::bin().join("psql"));
    psql.args(["-X", "-q", "-U", "postgres", "-d", "postgres", "-p", &cluster.port.to_string(), "-h"])
        .arg(cluster.dir());
    psql.args(["-c", "SELECT pg_advisory_lock(4711)", "-c", "SELECT 4711, pg_sleep(600)"]);
    let mut psql = psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("psql runs");
    for _ in 0..200 {
        if cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT 4711%'") == "1" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let all = connect(cluster.config("reader")).await;
    let some = connect(cluster.config("reader").with(|config| config.schemas = vec!["app".into()])).await;
    for sql in SHOW {
        let (failed, text, _) = call(&all, "query", json!({ "sql": sql })).await;
        assert!(!failed && text.contains(SECRET), "{sql} shows nothing that could be hidden: {text}");
        let text = error(&some, "query", json!({ "sql": sql })).await;
        assert!(!text.contains(SECRET) && text.contains("Hint: "), "{sql}: {text}");
    }
    for sql in TOLD {
        assert_eq!(query(&some, sql).await["rows"], json!([[1]]), "{sql}");
    }
    // What the operator allows is allowed, and only that.
    let allow_functions = vec!["pg_catalog.pg_lock_status".into()];
    let allowing = cluster.config("reader").with(|config| {
        config.schemas = vec!["app".into()];
        config.allow_functions = allow_functions;
    });
    let (failed, text, _) = call(
        &connect(allowing).await,
        "query",
        json!({ "sql": "SELECT objid FROM pg_lock_status() WHERE locktype = 'advisory'" }),
    )
    .await;
    assert!(!failed && text.contains(SECRET), "{text}");
    drop(cluster);
    let _ = psql.wait();
}

/// Names of functions about other sessions, or values of other schemas.
const OF_OTHERS: &str = "^pg_(stat_get_(activity|backend_|progress|subscription$|wal_)|cursor|prepared|lock|listening|get_aios|.*sequence_(data|last)|mcv_list_items)|blocking_pids$";

/// Whatever else this version of PostgreSQL has of that kind.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn every_function_about_other_sessions_is_refused() {
    let cluster = Cluster::start();
    cluster.sql("CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE SCHEMA app");
    let some = connect(cluster.config("reader").with(|config| config.schemas = vec!["app".into()])).await;
    let names = cluster.sql(&format!(
        "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '{OF_OTHERS}'"
    ));
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() >= 25, "{names:?}");
    for name in names {
        // They are refused by name: what they take does not matter.
        let text = error(&some, "query", json!({ "sql": format!("SELECT {name}()") })).await;
        assert!(text.contains(&format!("pg_catalog.{name} is not allowed")), "{name}: {text}");
    }
    // A view of PostgreSQL's is known by its name: all that call one of these functions must be.
    let views = cluster.sql(&format!(
        "SELECT DISTINCT c.relname FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
         CROSS JOIN LATERAL regexp_matches(r.ev_action::text, ':funcid ([0-9]+)', 'g') AS m(x) JOIN pg_proc p ON p.oid = m.x[1]::oid
         WHERE c.relnamespace = 'pg_catalog'::regnamespace AND p.proname ~ '{OF_OTHERS}'",
    ));
    let views: Vec<&str> = views.lines().collect();
    assert!(views.len() >= 15, "{views:?}");
    for view in views {
        let text = error(&some, "query", json!({ "sql": format!("SELECT FROM {view}") })).await;
        assert!(text.contains(&format!("{view} cannot be queried")), "{view}: {text}");
    }
}
