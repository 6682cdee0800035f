//! Links to servers in the same program and on unix sockets.
#![cfg(feature = "stdio")]
#![allow(missing_docs)]

use crate::client;
use crate::common;

use client::*;
use common::Fake;
#[cfg(unix)]
use linchpin_core::service::Bind;
use linchpin_core::service::{ConfigError, IntoService};
use linchpin_core::{Connector, Service};
use linchpin_transport::memory::in_process;
use std::sync::Arc;
#[cfg(unix)]
use std::time::Duration;

const INIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[tokio::test]
async fn a_server_in_this_program_serves_several_clients_and_the_end_of_one_is_not_that_of_others() {
    let fake = Fake::new();
    let server = in_process(fake.clone() as Arc<dyn Service>);
    let (a, b) = (side(|_| {}), side(|_| {}));
    let one = server.connect(a.options.clone()).await.unwrap();
    let two = server.connect(b.options.clone()).await.unwrap();
    for link in [&one, &two] {
        let answer = outcome(link.exchange(outgoing(Some(1), INIT.into())).await);
        assert!(answer.contains("\"result\""), "{answer}");
    }
    one.close().await;
    assert!(ask(&one, 2).await.starts_with("Closed("));
    assert!(ask(&two, 2).await.starts_with("ok "), "the other one goes on");
    // What is published is still heard there, and nowhere else.
    fake.changes().publish(&linchpin_core::ServerChange::Tools);
    b.inbox.first("heard {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"").await;
    assert!(!fake.happened("closed"));
    assert_eq!(server.key(), server.clone().key());
    assert_ne!(server.key(), in_process(fake.clone() as Arc<dyn Service>).key());
}

#[tokio::test]
async fn a_server_that_is_configured_wrongly_is_unreachable() {
    struct Wrong;
    impl IntoService for Wrong {
        fn into_shared(self) -> Result<Arc<dyn Service>, ConfigError> {
            Err(ConfigError::new("two tools are called `a`"))
        }
    }
    let error = in_process(Wrong).connect(side(|_| {}).options).await.err().unwrap();
    assert!(error.is_closed());
    assert_eq!(error.to_string(), "the server cannot start: two tools are called `a`");
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_dialled() {
    use linchpin_transport::unix::unix;
    let path = std::env::temp_dir().join(format!("linchpin-dial-{}.sock", std::process::id()));
    let nobody = unix(&path).connect(side(|_| {}).options).await.err().unwrap();
    assert!(nobody.to_string().ends_with("the socket does not exist; is the server running?"), "{nobody}");
    // A socket that was left behind.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let nobody = unix(&path).connect(side(|_| {}).options).await.err().unwrap();
    assert!(nobody.to_string().contains("connection refused"), "{nobody}");

    let fake = Fake::new();
    let server = tokio::spawn(unix(&path).serve(fake.clone() as Arc<dyn Service>));
    let side = side(|_| {});
    let place = unix(&path);
    let link = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            match place.connect(side.options.clone()).await {
                Ok(link) => return link,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await
    .unwrap();
    assert!(outcome(link.exchange(outgoing(Some(1), INIT.into())).await).starts_with("ok "));
    // Who owns the socket is the user of this process, and so of the client.
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&path).unwrap());
    assert!(fake.happened(&format!("principal uid:{owner}")));
    server.abort();
    let _ = server.await;
    let closed = side.inbox.first("closed").await;
    assert!(closed.contains("the server closed the connection"), "{closed}");
    link.close().await;
    let _ = std::fs::remove_file(&path);
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_shut_down_gracefully_and_removed_even_when_serving_is_dropped() {
    use linchpin_transport::unix::unix;
    for graceful in [true, false] {
        let path = std::env::temp_dir().join(format!("linchpin-end-{}-{graceful}.sock", std::process::id()));
        let fake = Fake::new();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let place = unix(&path).with_graceful_shutdown(async { drop(stopped.await) });
        let serving = tokio::spawn(place.serve(fake.clone() as Arc<dyn Service>));
        let side = side(|_| {});
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let link = unix(&path).connect(side.options.clone()).await.unwrap();
        assert!(outcome(link.exchange(outgoing(Some(1), INIT.into())).await).starts_with("ok "));
        let call =
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"do":"gate:a"}}}"#;
        let (caller, call) = (link.clone(), outgoing(Some(2), call.into()));
        let call = tokio::spawn(async move { outcome(caller.exchange(call).await) });
        fake.until("started t").await;
        if graceful {
            stop.send(()).unwrap();
            fake.until("closed").await;
            fake.open_gate("a");
            assert!(call.await.unwrap().starts_with("ok "));
            serving.await.unwrap().unwrap();
        } else {
            serving.abort();
            assert!(call.await.unwrap().starts_with("Closed("));
            fake.until("cancelled t").await;
            assert!(serving.await.unwrap_err().is_cancelled());
        }
        assert!(!path.exists());
        link.close().await;
    }
}
