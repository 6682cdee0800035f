//! A database that cannot be reached.

mod common;

use common::{Cluster, connect, error};
use linchpin_postgres::{Config, Secret};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_up_is_not_called_again_for_every_call() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let url = format!("postgres://someone@127.0.0.1:{port}/d?sslmode=disable");
    let client = connect(Config { url: Some(Secret::new(url)), ..Config::default() }).await;
    for _ in 0..50 {
        let text = error(&client, "query", json!({ "sql": "SELECT 1" })).await;
        assert!(text.contains("Cannot log in") || text.contains("Cannot connect"), "{text}");
    }
    let calls = calls.load(Ordering::SeqCst);
    // Waits double from 250 ms to 10 s: 20 attempts are more than two minutes.
    assert!((1..=20).contains(&calls), "{calls} connections for 50 calls");
}

/// One that does not answer, and one that nothing listens for, keep the tables of the third from nobody.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn tables_are_listed_although_other_databases_are_away() {
    let cluster = Cluster::start();
    cluster.sql("CREATE ROLE reader LOGIN; CREATE TABLE items (i int); GRANT SELECT ON items TO reader");
    // The system takes connections for it, and nobody says anything.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let list = tempfile::NamedTempFile::new().unwrap();
    for default in ["silent", "none", "there"] {
        let databases = format!(
            "default = \"{default}\"\n[databases.none]\nurl = \"postgres://reader@127.0.0.1:1/d\"\n\
             [databases.silent]\nurl = \"postgres://reader@127.0.0.1:{port}/d\"\n[databases.there]\nurl = \"{}\"\n",
            cluster.url("reader")
        );
        std::fs::write(list.path(), databases).unwrap();
        let client = connect(Config { file: Some(list.path().to_owned()), ..Config::default() }).await;
        let listed = client.resources().await.unwrap().items;
        let names: Vec<&str> = listed.iter().map(|resource| resource.name.as_str()).collect();
        assert_eq!(names, ["\"items\" database schema"], "{default}");
    }
}
