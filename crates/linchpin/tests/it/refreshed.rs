//! A list of resources that is refreshed on request.

use crate::common;

use common::{ALL, Peer, code, until};
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// A server whose first list adds `made:1` and `made:2`, and a counter of refreshes.
fn refreshed() -> (Server, Arc<AtomicUsize>) {
    let server = Server::new("refreshed", "1")
        .tool("one", |_: NoArgs| async { "1" })
        .limits(|l| (l.lists.page_items_max, l.lists.changed_ms_min) = (1, 40));
    let (resources, count) = (server.resources(), Arc::new(AtomicUsize::new(0)));
    let refreshes = count.clone();
    let server = server.refresh_resources(move || {
        let (resources, count) = (resources.clone(), count.clone());
        async move {
            // Pending at first, so that the request becomes a running call.
            tokio::task::yield_now().await;
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                for uri in ["made:1", "made:2"] {
                    resources.insert(uri, |_: NoArgs| async { "made" }).expect("a new name");
                }
            }
            Ok(())
        }
    });
    (server, refreshes)
}

fn uris(answer: &Value) -> Vec<&str> {
    answer["result"]["resources"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .map(|r| r["uri"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_list_is_refreshed_when_it_is_asked_for_and_by_nothing_else() {
    for revision in ALL {
        let (server, refreshes) = refreshed();
        let mut peer = Peer::plain(server, revision).await;
        peer.ask("tools/list", json!({})).await;
        peer.ask("resources/templates/list", json!({})).await;
        peer.alive().await;
        assert_eq!(refreshes.load(Ordering::SeqCst), 0, "{revision}: the start and other lists do not wait for it");
        let first = peer.ask("resources/list", json!({})).await;
        assert_eq!(uris(&first), ["made:1"], "{revision}: what the refresh added is on the page that was asked for");
        let cursor = first["result"]["nextCursor"].clone();
        let second = peer.ask("resources/list", json!({ "cursor": cursor })).await;
        assert_eq!(uris(&second), ["made:2"], "{revision}");
        assert_eq!(refreshes.load(Ordering::SeqCst), 1, "{revision}: a later page is of the same list");
        let again = peer.ask("resources/list", json!({ "cursor": null })).await;
        assert_eq!((uris(&again), refreshes.load(Ordering::SeqCst)), (vec!["made:1"], 2), "{revision}");
        assert_eq!(code(&peer.ask("resources/list", json!({ "cursor": "nonsense" })).await), -32602, "{revision}");
        let read = peer.ask("resources/read", json!({ "uri": "made:2" })).await;
        assert_eq!(read["result"]["contents"][0]["text"], "made", "{revision}");
    }
}

#[tokio::test]
async fn several_refreshes_run_in_turn() {
    let server = Server::new("several", "1");
    let resources = server.resources();
    let add = |uri: &'static str| {
        let resources = resources.clone();
        move || {
            let _ = resources.insert(uri, |_: NoArgs| async { "" });
            async { Ok(()) }
        }
    };
    let (one, two) = (add("a:1"), add("b:2"));
    let mut peer = Peer::plain(server.refresh_resources(one).refresh_resources(two), "2025-11-25").await;
    assert_eq!(uris(&peer.ask("resources/list", json!({})).await), ["a:1", "b:2"]);
}

#[tokio::test]
async fn a_refresh_that_hangs_or_panics_fails_that_request_only() {
    for revision in ALL {
        let (dropped, waiting) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        struct Gone(Arc<AtomicUsize>);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let turn = AtomicUsize::new(0);
        let (gone, started) = (dropped.clone(), waiting.clone());
        let server = Server::new("hangs", "1").limits(|l| l.calls.run_ms_max = 60_000).refresh_resources(move || {
            let (gone, started, turn) = (Gone(gone.clone()), started.clone(), turn.fetch_add(1, Ordering::SeqCst));
            async move {
                let _gone = gone;
                match turn {
                    0 => {
                        started.notify_one();
                        std::future::pending::<()>().await;
                    }
                    1 => panic!("on purpose"),
                    _ => {}
                }
                Ok(())
            }
        });
        let mut peer = Peer::plain(server, revision).await;
        let id = peer.request("resources/list", json!({})).await;
        waiting.notified().await;
        // Other requests are answered in the meantime, and a cancelled request drops its refresh.
        peer.alive().await;
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }))
            .await;
        until("it is dropped", || dropped.load(Ordering::SeqCst) == 1).await;
        assert_eq!(code(&peer.ask("resources/list", json!({})).await), -32603, "{revision}");
        assert_eq!(uris(&peer.ask("resources/list", json!({})).await), Vec::<&str>::new(), "{revision}");
    }
    // The limit of the server ends it if the client does not cancel.
    let server = Server::new("hangs", "1").limits(|l| l.calls.run_ms_max = 30).refresh_resources(std::future::pending);
    let mut peer = Peer::plain(server, "2025-11-25").await;
    assert_eq!(code(&peer.ask("resources/list", json!({})).await), -32603);
    peer.alive().await;
}

/// An empty list would be wrong. Existing resources, of this part or of another, are listed.
#[tokio::test]
async fn a_refresh_that_fails_is_told_where_there_is_nothing_to_list() {
    for revision in ALL {
        let server = Server::new("fails", "1");
        let resources = server.resources();
        let fails = || async { Err(Error::tool("nobody answers there")) };
        let mut peer = Peer::plain(server.refresh_resources(fails).refresh_resources(async || Ok(())), revision).await;
        let answer = peer.ask("resources/list", json!({})).await;
        assert_eq!(
            (code(&answer), &answer["error"]["message"]),
            (-32603, &json!("nobody answers there")),
            "{revision}"
        );
        resources.insert("made:1", |_: NoArgs| async { "made" }).unwrap();
        assert_eq!(uris(&peer.ask("resources/list", json!({})).await), ["made:1"], "{revision}");
    }
}

/// Leftovers of calls are cleaned up before the runtime ends, within a time limit.
#[tokio::test]
async fn what_calls_leave_behind_is_ended_when_serving_ends() {
    for hangs in [false, true] {
        let (held, ended) = (Arc::new(tokio::sync::Semaphore::new(1)), Arc::new(AtomicUsize::new(0)));
        let (holding, free, end) = (held.clone(), held.clone(), ended.clone());
        let server = Server::new("ends", "1")
            .limits(|l| l.calls.drain_ms_max = 20)
            .tool("hold", move |_: NoArgs| {
                let holding = holding.clone();
                async move {
                    let _held = holding.acquire_owned().await;
                    std::future::pending::<&str>().await
                }
            })
            .on_shutdown(move || {
                let (free, end) = (free.clone(), end.clone());
                async move {
                    // The call that held it has been dropped by now, or is about to be.
                    let _ = free.acquire().await;
                    end.fetch_add(1, Ordering::SeqCst);
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                }
            });
        let (there, here) = memory();
        let served = tokio::spawn(server.serve(there));
        let (answers, mut requests) = tokio::io::split(here);
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
        let call =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "hold", "arguments": {} } });
        tokio::io::AsyncWriteExt::write_all(&mut requests, format!("{hello}\n{call}\n").as_bytes()).await.unwrap();
        until("it is held", || held.available_permits() == 0).await;
        assert_eq!(ended.load(Ordering::SeqCst), 0, "not before the end");
        tokio::io::AsyncWriteExt::shutdown(&mut requests).await.unwrap();
        served.await.unwrap().unwrap();
        assert_eq!((ended.load(Ordering::SeqCst), held.available_permits()), (1, 1));
        drop(answers);
    }
}
