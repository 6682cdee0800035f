//! What is said of a change when the server's answer does not come: what is known, and nothing else.

use crate::common;

use common::{Cluster, connect, error};
use linchpin_postgres::{Access, Config, Secret};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A way to the server that swallows everything it says once a client has sent this text.
async fn swallowing(cluster: &Cluster, after: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (here, there) = (listener.local_addr().unwrap().port(), cluster.port);
    let silent = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", there)).await.unwrap();
            let (mut said, mut asks) = client.into_split();
            let (mut answers, mut asked) = server.into_split();
            let (sets, reads) = (silent.clone(), silent.clone());
            tokio::spawn(async move {
                let mut bytes = vec![0; 65_536];
                while let Ok(count @ 1..) = said.read(&mut bytes).await {
                    if bytes[..count].windows(after.len()).any(|part| part == after.as_bytes()) {
                        sets.store(true, Ordering::SeqCst);
                    }
                    asked.write_all(&bytes[..count]).await.unwrap();
                }
            });
            tokio::spawn(async move {
                let mut bytes = vec![0; 65_536];
                while let Ok(count @ 1..) = answers.read(&mut bytes).await {
                    if !reads.load(Ordering::SeqCst) {
                        let _ = asks.write_all(&bytes[..count]).await;
                    }
                }
                if reads.load(Ordering::SeqCst) {
                    // That the server has hung up is not heard either.
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    here
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_commit_without_an_answer_is_not_said_to_be_cancelled() {
    let cluster = Cluster::start();
    cluster.sql("CREATE ROLE writer LOGIN; CREATE TABLE made (i int); GRANT ALL ON made TO writer");
    let outcome = async |after: &'static str, tool: &'static str, value: u32| {
        let port = swallowing(&cluster, after).await;
        let config = Config::default().with(|config| {
            config.url = Some(Secret::new(format!("postgres://writer@127.0.0.1:{port}/postgres?connect_timeout=2")));
            config.access = Access::Write;
            config.statement_timeout = Duration::from_secs(1);
        });
        let sql = format!("INSERT INTO made VALUES ({value})");
        let args = if tool == "query" { json!({ "sql": sql }) } else { json!({ "statements": [sql] }) };
        let text = error(&connect(config).await, tool, args).await;
        (text, cluster.sql(&format!("SELECT count(*) FROM made WHERE i = {value}")))
    };
    // Each waits for as long as the statement, the connection and some grace may take.
    let (query, execute, before) = tokio::join!(
        outcome("COMMIT", "query", 1),
        outcome("COMMIT", "pg_execute", 2),
        outcome("INSERT", "pg_execute", 3)
    );
    for (text, rows) in [query, execute] {
        assert_eq!(rows, "1", "it was made");
        assert!(text.contains("It is unknown whether the change was made"), "{text}");
        assert!(text.contains("Hint: Check with a SELECT") && !text.contains("cancelled"), "{text}");
    }
    let (text, rows) = before;
    assert!(rows == "0" && text.contains("was cancelled after 18 s") && !text.contains("unknown whether"), "{text}");
}
