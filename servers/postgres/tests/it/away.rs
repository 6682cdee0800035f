//! A database that cannot be reached.

use crate::common;

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
    let client = connect(Config::default().with(|config| config.url = Some(Secret::new(url)))).await;
    let mut said = 0;
    for _ in 0..50 {
        let text = error(&client, "query", json!({ "sql": "SELECT 1" })).await;
        assert!(text.contains("Cannot log in") || text.contains("Cannot connect"), "{text}");
        // What is said again is not new, and says when that will be.
        let again = text.contains("The next attempt is in ");
        assert!(again || said < calls.load(Ordering::SeqCst), "{text}");
        assert!(!text.contains("the next call tries again"), "{text}");
        said = calls.load(Ordering::SeqCst);
    }
    let calls = calls.load(Ordering::SeqCst);
    // Waits double from 250 ms to 2 s: 20 attempts are more than half a minute.
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
        let client = connect(Config::default().with(|config| config.file = Some(list.path().to_owned()))).await;
        let listed = client.resources().await.unwrap().items;
        let names: Vec<&str> = listed.iter().map(|resource| resource.name.as_str()).collect();
        assert_eq!(names, ["\"items\" database schema"], "{default}");
    }
}

/// "No tables" would be wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tables_that_nobody_could_give_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 8];
            let _ = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut request).await;
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"Ecould not fork\n\0").await;
        }
    });
    for (url, why) in [
        ("postgres://someone@127.0.0.1:1/d".to_owned(), "Cannot connect to 127.0.0.1:1"),
        // It answers the request for TLS with an error, whatever sslmode asks for.
        (format!("postgres://someone@127.0.0.1:{port}/d"), "responded to the TLS request with an error"),
    ] {
        let client = connect(Config::default().with(|config| config.url = Some(Secret::new(url)))).await;
        // Again and again: what has failed is not what is known.
        for _ in 0..3 {
            let failed = client.resources().await.unwrap_err().to_string();
            assert!(failed.contains(why) && failed.contains("-32603"), "{failed}");
        }
        let text = error(&client, "query", json!({ "sql": "SELECT 1" })).await;
        assert!(text.contains(why) && !text.contains("sslmode requires it"), "{text}");
        assert_eq!(client.resource_templates().await.unwrap().items.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_role_that_is_refused_has_no_empty_list_and_an_empty_database_has() {
    let mut cluster = Cluster::start();
    cluster.sql("CREATE ROLE reader LOGIN");
    let failed = connect(cluster.config("postgres")).await.resources().await.unwrap_err().to_string();
    assert!(failed.contains("has more than read privileges"), "{failed}");
    let client = connect(cluster.config("reader")).await;
    assert!(client.resources().await.unwrap().items.is_empty());
    // What was said is kept for a while, although nobody can say it now.
    cluster.stop();
    assert!(client.resources().await.unwrap().items.is_empty());
}
