//! The examples of the README answer what it says.

use crate::common;

use common::{Cluster, connect, ok};
use serde_json::Value;

/// A plan without its figures, which differ between versions.
fn without_costs(plan: &str) -> String {
    plan.lines().map(|line| line.split("  (cost=").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn its_examples_are_answered_as_it_says() {
    let cluster = Cluster::start();
    cluster.sql(
        "CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
         CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, total numeric(10,2));
         COMMENT ON TABLE orders IS 'One line per order'; INSERT INTO orders VALUES (1, 42, 12.5), (2, 7, 99), (3, 42, 240);
         ANALYZE orders",
    );
    let client = connect(cluster.config("reader")).await;
    let readme = include_str!("../../README.md");
    let mut examples = 0;
    for block in readme.split("```text\n").skip(1) {
        let mut lines = block.lines().take_while(|line| !line.starts_with("```"));
        let (tool, args) = lines.next().and_then(|line| line.split_once(' ')).expect("a call");
        let said: Vec<&str> = lines.map(|line| line.strip_prefix("→ ").expect("an answer")).collect();
        let (text, _) = ok(&client, tool, serde_json::from_str(args).expect("JSON")).await;
        match serde_json::from_str::<Value>(&text) {
            Ok(json) => assert_eq!(json, serde_json::from_str::<Value>(&said.join("")).expect("JSON"), "{tool}"),
            Err(_) => assert_eq!(without_costs(&text), without_costs(&said.join("\n")), "{tool}: {text}"),
        }
        examples += 1;
    }
    assert_eq!(examples, 3);
}
