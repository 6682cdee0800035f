//! Callbacks and hooks that panic, and subscriptions of connections that are lost.

use crate::common::until;
use linchpin::client::ChangeFilter;
use linchpin::prelude::*;
use linchpin::types::elicit::ElicitResult;
use linchpin::types::version::Revision;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

async fn talk(_: &(), cx: &Cx, _: NoArgs) -> String {
    for text in ["first", "second", "third"] {
        cx.log(LoggingLevel::Warning, text);
    }
    "said".into()
}

async fn ask(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    Ok(cx.elicit::<Sure>("sure", "Sure?").await?.sure.to_string())
}

async fn ask_if_possible(_: &(), cx: &Cx, _: NoArgs) -> String {
    let sure = cx.elicit::<Sure>("sure", "Sure?").await;
    sure.map_or_else(|_| "not asked".into(), |answer| answer.sure.to_string())
}

fn server() -> Server<()> {
    Server::new("s", "1.0")
        .state(())
        .tool(Tool::new("talk", "Logs."), talk)
        .tool(Tool::new("ask", "Asks."), ask)
        .tool(Tool::new("ask_if_possible", "Asks, and goes on without an answer."), ask_if_possible)
}

fn host(revision: Revision) -> Client {
    Client::new("h", "1.0").revisions(&[revision])
}

#[tokio::test]
async fn a_callback_that_panics_gets_the_next_message_all_the_same() {
    for revision in Revision::ALL {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = heard.clone();
        let client = host(revision).on_log(LoggingLevel::Info, move |message| {
            assert_ne!(message.data.get(), "\"first\"", "a callback that panics");
            hear.lock().unwrap().push(message.data.get().to_owned());
        });
        let c = client.connect(in_process(server())).await.unwrap();
        c.call("talk", ()).await.unwrap();
        while heard.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(*heard.lock().unwrap(), ["\"second\"", "\"third\""], "{revision:?}");
    }
}

#[tokio::test]
async fn a_panic_while_the_user_is_asked_fails_the_call_and_no_other() {
    for revision in Revision::ALL.into_iter().filter(|revision| *revision >= Revision::V2025_06_18) {
        let client = host(revision).on_elicitation(async |form| match form.message.as_str() {
            "Sure?" => panic!("a callback that panics"),
            _ => ElicitResult::decline(),
        });
        let c = client.connect(in_process(server())).await.unwrap();
        let failed = tokio::time::timeout(Duration::from_secs(20), c.call("ask", ())).await.expect("it is answered");
        assert!(failed.is_err() || failed.unwrap().is_error(), "{revision:?}");
        assert_eq!(c.call("talk", ()).await.unwrap().text(), "said", "{revision:?}");
    }
}

#[tokio::test]
async fn a_handler_that_would_go_on_without_an_answer_gets_one_where_the_client_can_give_it() {
    for revision in Revision::ALL.into_iter().filter(|revision| *revision >= Revision::V2025_06_18) {
        let able = host(revision).on_elicitation(async |form| form.accept(serde_json::json!({ "sure": true })));
        let c = able.connect(in_process(server())).await.unwrap();
        assert_eq!(c.call("ask_if_possible", ()).await.unwrap().text(), "true", "{revision:?}");
        let c = host(revision).connect(in_process(server())).await.unwrap();
        assert_eq!(c.call("ask_if_possible", ()).await.unwrap().text(), "not asked", "{revision:?}");
    }
}

#[tokio::test]
async fn a_shutdown_hook_that_panics_stops_neither_the_next_one_nor_serving() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let server = server().on_shutdown(|| async { panic!("a hook that panics") }).on_shutdown(move || {
        let count = count.clone();
        async move {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let (transport, peer) = memory();
    drop(peer);
    tokio::spawn(server.serve(transport)).await.expect("serving does not panic").unwrap();
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

/// Takes its time to be dropped, and says when it is.
struct Dropped(Arc<Mutex<Vec<&'static str>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(50));
        self.0.lock().unwrap().push("call dropped");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_hooks_run_after_the_last_call_was_dropped() {
    for revision in Revision::ALL {
        let seen = Arc::<Mutex<Vec<&'static str>>>::default();
        let (started, of_hook) = (seen.clone(), seen.clone());
        let hang = move || {
            let guard = Dropped(started.clone());
            async move {
                guard.0.lock().unwrap().push("call started");
                std::future::pending::<String>().await
            }
        };
        let server = Server::new("s", "1")
            .limits(|limits| limits.calls.drain_ms_max = 20)
            .tool("hang", hang)
            .on_shutdown(move || {
                of_hook.lock().unwrap().push("hook");
                async {}
            });
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let serving = tokio::spawn(server.serve(pipes(read, write)));
        let (read, write) = tokio::io::split(ours);
        let client = host(revision).connect(pipes(read, write)).await.unwrap();
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call("hang", ()).await.is_err() }
        });
        until("the call runs", || !seen.lock().unwrap().is_empty()).await;
        client.close().await;
        serving.await.unwrap().unwrap();
        assert_eq!(*seen.lock().unwrap(), ["call started", "call dropped", "hook"], "{revision:?}");
        assert!(call.await.unwrap());
    }
}

#[tokio::test]
async fn changes_end_when_the_server_is_gone() {
    for revision in Revision::ALL {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let serving = tokio::spawn(server().serve(pipes(read, write)));
        let (read, write) = tokio::io::split(ours);
        let c = host(revision).connect(pipes(read, write)).await.unwrap();
        let mut changes = c.listen(ChangeFilter::new().tools()).await.unwrap();
        serving.abort();
        let end = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
        assert_eq!(end, Ok(None), "{revision:?}");
        assert!(c.lost().is_some(), "{revision:?}");
    }
}

/// Asks, and then works for this long.
async fn ask_and_work(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let sure: Sure = cx.elicit("sure", "Sure?").await?;
    tokio::time::sleep(Duration::from_secs(50)).await;
    Ok(sure.sure.to_string())
}

async fn hang(_: NoArgs) -> String {
    std::future::pending().await
}

/// A host whose user thinks for this long.
fn thinks(revision: Revision, time: Duration) -> Client {
    host(revision).on_elicitation(move |form| async move {
        tokio::time::sleep(time).await;
        form.accept(serde_json::json!({ "sure": true }))
    })
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_user_is_no_time_of_the_call() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = server().tool("work", ask_and_work).tool("hang", hang).limits(|l| l.calls.run_ms_max = 7_200_000);
        let c = thinks(revision, Duration::from_secs(70)).connect(in_process(server)).await.unwrap();
        // A timeout of 60 seconds: for what comes before the question, and for what comes after the answer.
        let begun = tokio::time::Instant::now();
        assert_eq!(c.call("work", ()).await.unwrap().text(), "true", "{revision:?}");
        assert_eq!(begun.elapsed().as_secs(), 120, "{revision:?}");
        let begun = tokio::time::Instant::now();
        let error = c.call("work", ()).timeout(Duration::from_secs(40)).await.unwrap_err();
        assert!(error.is_timeout(), "{revision:?}: {error}");
        assert_eq!(begun.elapsed().as_secs(), 110, "{revision:?}");
        // A call without questions has no more time than it had.
        let begun = tokio::time::Instant::now();
        assert!(c.call("hang", ()).await.unwrap_err().is_timeout(), "{revision:?}");
        assert_eq!(begun.elapsed().as_secs(), 60, "{revision:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_user_has_a_bound_in_a_session() {
    let c = thinks(Revision::V2025_11_25, Duration::from_secs(7_200));
    let c = c.limits(|l| l.calls.run_with_progress_ms_max = 200_000).connect(in_process(server())).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert!(c.call("ask", ()).await.unwrap_err().is_timeout());
    assert_eq!(begun.elapsed().as_secs(), 200);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn over_http_only_the_call_that_asks_has_more_time() {
    let (ready, addr) = tokio::sync::oneshot::channel();
    let server = server().tool("hang", hang);
    tokio::spawn(server.serve(http("127.0.0.1:0").on_ready(move |addr| ready.send(addr).unwrap())));
    let place = remote(&format!("http://{}/mcp", addr.await.unwrap())).unwrap();
    let c = thinks(Revision::V2025_11_25, Duration::from_millis(3_000)).connect(place).await.unwrap();
    let limit = Duration::from_millis(1_000);
    let begun = tokio::time::Instant::now();
    let hanging = async {
        assert!(c.call("hang", ()).timeout(limit).await.unwrap_err().is_timeout());
        assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
    };
    let (asked, ()) = tokio::join!(c.call("ask", ()).timeout(limit), hanging);
    assert_eq!(asked.unwrap().text(), "true");
}
