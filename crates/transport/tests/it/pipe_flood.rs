//! Pipes whose peers never stop sending, or seldom do.
#![cfg(feature = "stdio")]

use crate::common::Fake;
use linchpin_core::service::Bind;
use linchpin_core::{ServerChange, Service};
use linchpin_transport::stdio::pipes;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf};
use tokio::task::coop::poll_proceed;

const BEGINNING: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"slow","arguments":{"do":"gate:open"}}}"#,
];

/// A call, then pings: a line is always there, until `heard`.
#[derive(Clone, Default)]
struct Flood {
    sent: Arc<AtomicUsize>,
    said: Arc<Mutex<Vec<u8>>>,
    heard: Arc<AtomicBool>,
}

impl AsyncRead for Flood {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // As tokio's own streams do, it lets others run now and then.
        ready!(poll_proceed(cx)).made_progress();
        if !self.heard.load(Ordering::Acquire) {
            let n = self.sent.fetch_add(1, Ordering::AcqRel);
            let ping = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, n + 10);
            buf.put_slice(BEGINNING.get(n).copied().unwrap_or(&ping).as_bytes());
            buf.put_slice(b"\n");
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Flood {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut said = self.said.lock().unwrap();
        said.clear();
        said.extend_from_slice(bytes);
        if String::from_utf8_lossy(&said).contains(r#""id":"slow""#) {
            self.heard.store(true, Ordering::Release);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn lines_without_end_do_not_hold_up_the_answer_of_a_running_call() {
    let (fake, flood) = (Fake::new(), Flood::default());
    let served = tokio::spawn(pipes(flood.clone(), flood.clone()).serve(fake.clone() as Arc<dyn Service>));
    while flood.sent.load(Ordering::Acquire) < 1_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fake.open_gate("open");
    let answered = async {
        while !flood.heard.load(Ordering::Acquire) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(10), answered).await;
    flood.heard.store(true, Ordering::Release);
    in_time.expect("the answer is written although lines keep coming");
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn each_change_is_told_between_requests_and_calls_go_on_when_no_more_can_come() {
    let fake = Fake::new();
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    let served = tokio::spawn(pipes(read, write).serve(fake.clone() as Arc<dyn Service>));
    let (read, mut write) = tokio::io::split(near);
    let mut lines = BufReader::new(read).lines();
    let mut next = async || {
        let line = tokio::time::timeout(Duration::from_secs(10), lines.next_line()).await;
        line.expect("a message").unwrap().unwrap()
    };
    write.write_all(format!("{}\n", BEGINNING[0]).as_bytes()).await.unwrap();
    assert!(next().await.contains("\"id\":1"));
    write.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await.unwrap();
    for n in 0..3 {
        fake.changes().publish(&ServerChange::Tools);
        assert!(next().await.contains("tools/list_changed"));
        fake.changes().publish(&ServerChange::Prompts);
        assert!(next().await.contains("prompts/list_changed"));
        write
            .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"p{n}\",\"method\":\"ping\"}}\n").as_bytes())
            .await
            .unwrap();
        assert!(next().await.contains(&format!("\"p{n}\"")));
    }
    fake.changes().close();
    for _ in 0..3 {
        write.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"after\",\"method\":\"ping\"}\n").await.unwrap();
        assert!(next().await.contains("\"after\""));
    }
    drop((write, lines));
    served.await.unwrap().unwrap();
}
