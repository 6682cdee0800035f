//! Answers whose types cannot be looked up.

use crate::common;

use common::{Cluster, connect, ok};
use linchpin_postgres::{Config, Secret};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A way to the server that hangs up whenever a client sends this text.
async fn hanging_up(cluster: &Cluster, at: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (here, there) = (listener.local_addr().unwrap().port(), cluster.port);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(("127.0.0.1", there)).await.unwrap();
            tokio::spawn(async move {
                let (mut said, mut answers) = (vec![0; 65_536], vec![0; 65_536]);
                loop {
                    let (to, bytes) = tokio::select! {
                        Ok(count @ 1..) = client.read(&mut said) => (&mut server, &said[..count]),
                        Ok(count @ 1..) = server.read(&mut answers) => (&mut client, &answers[..count]),
                        else => return,
                    };
                    if bytes.windows(at.len()).any(|part| part == at.as_bytes()) || to.write_all(bytes).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    here
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn rows_are_shown_although_the_names_of_their_types_are_not_to_be_had() {
    let cluster = Cluster::start();
    cluster.sql("CREATE ROLE reader LOGIN");
    let port = hanging_up(&cluster, "format_type").await;
    let config = Config::default()
        .with(|config| config.url = Some(Secret::new(format!("postgres://reader@127.0.0.1:{port}/postgres"))));
    let client = connect(config).await;
    let (_, value) = ok(&client, "query", json!({ "sql": "SELECT 7 AS n, 'a'::text AS t" })).await;
    assert_eq!(value["rows"], json!([[7, "a"]]), "{value}");
    let types = json!([{ "name": "n", "type": "oid 23" }, { "name": "t", "type": "oid 25" }]);
    assert_eq!(value["columns"], types, "{value}");
}
