//! What statements do where writing is allowed.

use crate::common;

use common::{Cluster, connect, error, ok};
use linchpin_postgres::Access;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_statement_runs_to_its_end_however_many_of_its_rows_fit() {
    let cluster = Cluster::start();
    cluster.sql("CREATE ROLE writer LOGIN; CREATE SEQUENCE done; GRANT ALL ON SEQUENCE done TO writer");
    let config = cluster.config("writer").with(|config| {
        config.access = Access::Write;
        config.max_rows = 10;
    });
    let client = connect(config).await;
    let work = |times: u32| format!("SELECT nextval('done') FROM generate_series(1, {times})");
    ok(&client, "pg_execute", json!({ "statements": [work(5_000)] })).await;
    assert_eq!(cluster.sql("SELECT last_value FROM done").trim(), "5000");

    let (_, value) = ok(&client, "query", json!({ "sql": work(700) })).await;
    assert_eq!(value["rows"].as_array().map(Vec::len), Some(10), "{value}");
    assert_eq!(value["truncated"], true, "{value}");
    assert_eq!(cluster.sql("SELECT last_value FROM done").trim(), "5700");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn no_select_with_effects_runs_again_for_its_next_rows() {
    let cluster = Cluster::start();
    cluster.sql(
        "CREATE ROLE writer LOGIN; CREATE TABLE log (i int); GRANT ALL ON log TO writer; CREATE FUNCTION noted(i int) RETURNS int LANGUAGE sql AS 'INSERT INTO log VALUES ($1) RETURNING i'",
    );
    let client = connect(cluster.config("writer").with(|config| config.access = Access::Write)).await;
    let sql = "SELECT noted(i) FROM generate_series(1, 9) i";
    let (_, page) = ok(&client, "query", json!({ "sql": sql, "max_rows": 4 })).await;
    assert_eq!((&page["truncated"], page.get("next_cursor")), (&json!(true), None), "{page}");
    // A cursor of a server that only read.
    let reads = connect(cluster.config("writer")).await;
    let some = "SELECT i FROM generate_series(1, 9) i";
    let (_, page) = ok(&reads, "query", json!({ "sql": some, "max_rows": 4 })).await;
    let args = json!({ "sql": some, "max_rows": 4, "cursor": page["next_cursor"] });
    ok(&reads, "query", args.clone()).await;
    let text = error(&client, "query", args).await;
    assert!(text.starts_with("`cursor` is not supported in write mode") && text.contains("LIMIT and OFFSET"), "{text}");
    assert_eq!(cluster.sql("SELECT count(*) FROM log").trim(), "9");
}
