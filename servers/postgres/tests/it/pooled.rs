//! Behind a pooler, which has another process of the server answer each transaction: nothing may be expected to be there that
//! an earlier transaction left, and nothing may go wrong for want of it.

use crate::common;

use common::{Cluster, connect, error, query};
use linchpin_postgres::{Access, Config, Secret};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// A message: what it is, and all of its bytes. One without a kind is what a client begins with.
async fn message(from: &mut (impl AsyncRead + Unpin), has_kind: bool) -> Option<(u8, Vec<u8>)> {
    let mut bytes = vec![0; if has_kind { 5 } else { 4 }];
    from.read_exact(&mut bytes).await.ok()?;
    let kind = if has_kind { bytes[0] } else { 0 };
    let length = u32::from_be_bytes(bytes[bytes.len() - 4..].try_into().ok()?) as usize;
    let begins = bytes.len();
    bytes.resize(begins + length - 4, 0);
    from.read_exact(&mut bytes[begins..]).await.ok()?;
    Some((kind, bytes))
}

/// A connection to the server, logged in, and what the server said about itself.
async fn logged_in(port: u16, user: &str) -> (TcpStream, Vec<u8>) {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let said = format!("user\0{user}\0database\0postgres\0client_encoding\0UTF8\0application_name\0pooled\0\0");
    let length = u32::try_from(said.len() + 8).unwrap().to_be_bytes();
    server.write_all(&[&length[..], &196_608_u32.to_be_bytes(), said.as_bytes()].concat()).await.unwrap();
    let mut about = Vec::new();
    loop {
        match message(&mut server, true).await.expect("a login") {
            (b'Z', _) => return (server, about),
            (b'S', bytes) => about.extend(bytes),
            _ => {}
        }
    }
}

/// Gives a client one of two connections for each transaction, in turn. How many clients came.
async fn pooler(cluster: &Cluster, user: &str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (one, about) = logged_in(cluster.port, user).await;
    let (other, _) = logged_in(cluster.port, user).await;
    let servers = Arc::new([Mutex::new(one), Mutex::new(other)]);
    let (clients, turn) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = clients.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(pooled(client, servers.clone(), turn.clone(), about.clone()));
        }
    });
    (port, clients)
}

async fn pooled(
    mut client: TcpStream,
    servers: Arc<[Mutex<TcpStream>; 2]>,
    turn: Arc<AtomicUsize>,
    about: Vec<u8>,
) -> Option<()> {
    // Encryption is asked for first.
    while message(&mut client, false).await?.1.len() == 8 {
        client.write_all(b"N").await.ok()?;
    }
    let key = [&[b'K', 0, 0, 0, 12][..], &7_u32.to_be_bytes(), &7_u32.to_be_bytes()].concat();
    let hello = [&[b'R', 0, 0, 0, 8, 0, 0, 0, 0][..], &about, &key, b"Z\0\0\0\x05I"].concat();
    client.write_all(&hello).await.ok()?;
    loop {
        let mut first = Some(message(&mut client, true).await?);
        let mut server = servers[turn.fetch_add(1, Ordering::SeqCst) % 2].lock().await;
        let mut awaited = 0;
        loop {
            let (kind, bytes) = match first.take() {
                Some(first) => first,
                None => message(&mut client, true).await?,
            };
            if kind == b'X' {
                return None;
            }
            server.write_all(&bytes).await.ok()?;
            if kind != b'S' {
                continue;
            }
            awaited += 1;
            let mut inside = true;
            while awaited > 0 {
                let (kind, bytes) = message(&mut *server, true).await?;
                client.write_all(&bytes).await.ok()?;
                if kind == b'Z' {
                    (awaited, inside) = (awaited - 1, bytes[5] != b'I');
                }
            }
            if !inside {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn each_transaction_may_be_answered_by_another_process() {
    let cluster = Cluster::start();
    cluster.sql(
        "CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE ROLE writer LOGIN;
         CREATE TABLE items (i int); INSERT INTO items SELECT generate_series(1, 3000); GRANT ALL ON items TO writer;
         CREATE FUNCTION doubled(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 2 * $1'",
    );
    let (port, clients) = pooler(&cluster, "reader").await;
    let url = |user: &str, port: u16| Some(Secret::new(format!("postgres://{user}@127.0.0.1:{port}/postgres")));
    let client = connect(Config::default().with(|config| {
        config.url = url("reader", port);
        config.connections = 1;
    }))
    .await;
    for round in 0..6 {
        // What is harmless, what has to be looked at, many rows, an error, and a question of our own.
        assert_eq!(query(&client, "SELECT count(*) FROM items").await["rows"], json!([["3000"]]), "{round}");
        assert_eq!(query(&client, "SELECT doubled(21)").await["rows"], json!([[42]]), "{round}");
        assert_eq!(query(&client, "SELECT random() < 2").await["rows"], json!([[true]]), "{round}");
        assert_eq!(query(&client, "SELECT i FROM items").await["row_count"], json!(1000), "{round}");
        let text = error(&client, "query", json!({ "sql": "SELECT nothing" })).await;
        assert!(text.contains("42703"), "{round}: {text}");
        let text = error(&client, "query", json!({ "sql": "SELECT pg_sleep(1)" })).await;
        assert!(text.contains("pg_sleep is not allowed"), "{round}: {text}");
        common::ok(&client, "pg_describe", json!({ "table": "items" })).await;
    }
    assert_eq!(clients.load(Ordering::SeqCst), 1, "no connection was lost");
    let (port, clients) = pooler(&cluster, "writer").await;
    let config = Config::default().with(|config| {
        config.url = url("writer", port);
        config.connections = 1;
        config.access = Access::Write;
    });
    let client = connect(config).await;
    for _ in 0..4 {
        common::ok(&client, "pg_execute", json!({ "statements": ["INSERT INTO items VALUES (7)"] })).await;
    }
    assert_eq!((cluster.sql("SELECT count(*) FROM items"), clients.load(Ordering::SeqCst)), ("3004".to_owned(), 1));
    // After the first one that is not where it was kept, nothing is kept.
    assert_eq!(cluster.log().matches("ERROR:  prepared statement").count(), 1, "{}", cluster.log());
}

/// A connection that was not used for a moment may be gone without anybody knowing: nothing of the caller's is sent before the
/// server has answered on it, because what is sent may run, and would run again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_is_sent_after_a_rest_runs_once() {
    let cluster = Cluster::with("", "log_statement = 'all'");
    cluster.sql("CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, there) = (listener.local_addr().unwrap().port(), cluster.port);
    // What comes after a rest still reaches the server, whose answer does not come back.
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", there)).await.unwrap();
                let (mut asks, mut answers) = (vec![0; 65_536], vec![0; 65_536]);
                let mut since = tokio::time::Instant::now();
                loop {
                    tokio::select! {
                        Ok(count @ 1..) = client.read(&mut asks) => {
                            server.write_all(&asks[..count]).await.unwrap();
                            if since.elapsed() > Duration::from_secs(1) {
                                let _ = server.read(&mut answers).await;
                                return;
                            }
                            since = tokio::time::Instant::now();
                        }
                        Ok(count @ 1..) = server.read(&mut answers) => {
                            client.write_all(&answers[..count]).await.unwrap();
                        }
                        else => return,
                    }
                }
            });
        }
    });
    let url = Secret::new(format!("postgres://reader@127.0.0.1:{port}/postgres"));
    let client = connect(Config::default().with(|config| {
        config.url = Some(url);
        config.connections = 1;
    }))
    .await;
    for _ in 0..3 {
        assert_eq!(query(&client, "SELECT 4711 AS seen").await["rows"], json!([[4711]]));
    }
    let ran = || cluster.log().matches(": SELECT 4711 AS seen").count();
    assert_eq!(ran(), 3);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(query(&client, "SELECT 4711 AS seen").await["rows"], json!([[4711]]));
    assert_eq!(ran(), 4, "{}", cluster.log());
}
