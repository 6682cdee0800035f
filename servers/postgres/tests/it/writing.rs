//! What statements do where writing is allowed.

use crate::common;

use common::{Cluster, connect, ok};
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
