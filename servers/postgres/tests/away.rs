//! A database that cannot be reached.

mod common;

use common::{connect, error};
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
