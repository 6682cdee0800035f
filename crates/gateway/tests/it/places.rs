//! Every transport on either side, with questions, progress and isolation.

use crate::{able, bridge, curious, revisions, stream};
use linchpin::LowLevelServer;
use linchpin::client::{Client, Tap, Traffic};
use linchpin::prelude::{NoArgs, Server};
use linchpin::transport::{Bind, Connector, IntoService, Service, http, in_process, remote, unix};
use linchpin::types::elicit::ElicitResult;
use linchpin::types::error::ErrorObject;
use linchpin::types::version::Revision;
use linchpin_core::service::BoxFuture;
use linchpin_core::{ClientTransport, ConnectOptions, Features, TransportError};
use linchpin_gateway::{Bridge, Isolation};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Serves over HTTP, with HTTP+SSE beside it, and gives back the address.
async fn listening(service: Arc<dyn Service>) -> String {
    let (ready, address) = oneshot::channel();
    let place = http("127.0.0.1:0").with_sse().on_ready(move |address| {
        let _ = ready.send(address);
    });
    tokio::spawn(place.serve(service));
    format!("http://{}", address.await.expect("it listens"))
}

async fn on_socket(service: Arc<dyn Service>, path: &Path) {
    let (ready, listens) = oneshot::channel();
    let place = unix(path).with_graceful_shutdown(std::future::pending()).on_ready(move || {
        let _ = ready.send(());
    });
    tokio::spawn(place.serve(service));
    listens.await.expect("it listens");
}

/// The ways to reach what is served, the same on both sides.
async fn ways(
    service: Arc<dyn Service>,
    folder: &Path,
    name: &str,
) -> Vec<(&'static str, Box<dyn Fn() -> Arc<dyn Connector>>)> {
    let url = listening(service.clone()).await;
    let socket = folder.join(name);
    on_socket(service.clone(), &socket).await;
    let (streamable, sse) = (format!("{url}/mcp"), format!("{url}/sse"));
    vec![
        ("memory", Box::new(move || Arc::new(in_process(service.clone())))),
        ("http", Box::new(move || Arc::new(remote(&streamable).unwrap()))),
        ("sse", Box::new(move || Arc::new(remote(&sse).unwrap().sse()))),
        ("unix", Box::new(move || Arc::new(unix(&socket)))),
    ]
}

fn host(revision: Revision, name: &'static str) -> Client {
    Client::new(name, "1")
        .revisions(&[revision])
        .on_elicitation(move |_| async move { ElicitResult::accept([("username", name)]) })
}

/// Asks its client for a name, and says what it was told.
async fn asked_through(connector: Arc<dyn Connector>, revision: Revision, name: &'static str) -> String {
    let connection = host(revision, name).connect_to(connector).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    let result = connection.call("form", json!({})).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    let text = result.text();
    connection.close().await;
    text
}

#[tokio::test]
async fn questions_pass_over_every_pair_of_transports_and_eras() {
    let folder = tempfile::tempdir().unwrap();
    let server = curious().into_shared().unwrap();
    let upstreams = ways(server, folder.path(), "upstream").await;
    let sessions = Features::all().find(|features| features.has_sessions).unwrap().revision;
    let alone = Features::all().find(|features| features.stateless).unwrap().revision;
    for (from, upstream) in &upstreams {
        for stateless in [false, true] {
            if *from == "sse" && stateless {
                // That transport has sessions only.
                continue;
            }
            let bridge = Bridge::to(upstream()).options(|options| options.upstream = revisions(stateless));
            let name = format!("{from}-{stateless}");
            for (to, place) in ways(bridge.into_shared().unwrap(), folder.path(), &name).await {
                for revision in [sessions, alone] {
                    if to == "sse" && revision == alone {
                        continue;
                    }
                    let text = asked_through(place(), revision, "ada").await;
                    assert!(text.contains("ada"), "{from} (stateless {stateless}) behind {to} for {revision}: {text}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_once_everybody_answers_their_own_questions() {
    const NAMES: [&str; 6] = ["canary-a", "canary-b", "canary-c", "canary-d", "canary-e", "canary-f"];
    for isolation in [Isolation::Auto, Isolation::Session] {
        for stateless in [false, true] {
            let service = bridge(curious(), stateless, |options| options.isolation = isolation).into_shared().unwrap();
            let url = format!("{}/mcp", listening(service).await);
            let mut all = tokio::task::JoinSet::new();
            for (n, name) in NAMES.into_iter().enumerate() {
                let revision = Features::all().nth(n % 3).unwrap().revision;
                let url = url.clone();
                all.spawn(async move {
                    for _ in 0..5 {
                        let text = asked_through(Arc::new(remote(&url).unwrap()), revision, name).await;
                        assert!(text.contains(name), "{name} got {text}");
                        let others = NAMES.iter().filter(|other| **other != name);
                        assert!(others.into_iter().all(|other| !text.contains(other)), "{name} got {text}");
                    }
                });
            }
            while let Some(done) = all.join_next().await {
                done.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn connections_are_capped_and_idle_ones_give_way() {
    let modern = Features::all().next().unwrap().revision;
    let legacy = Features::all().find(|features| features.has_sessions).unwrap().revision;
    let count = Arc::<AtomicUsize>::default();
    let server = curious().into_shared().unwrap();
    let bridge = Bridge::new(Counted(in_process(server), count.clone())).options(|options| {
        options.upstream = revisions(false);
        options.instances_max = 1;
        options.queue_ms_max = 20_000;
    });
    let service = bridge.into_shared().unwrap();
    let mut first = able(crate::serve(service.clone()), legacy);
    first.open().await;
    assert!(first.call("roots", json!({})).await.is_ok());
    let mut second = able(crate::serve(service), modern);
    second.open().await;
    assert!(second.call("roots", json!({})).await.is_ok());
    // The first one's connection was closed; it is opened again, with what the session had.
    assert!(first.call("roots", json!({})).await.is_ok());
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_a_connection_is_told_that_all_are_in_use() {
    let legacy = Features::all().find(|features| features.has_sessions).unwrap().revision;
    let bridge = bridge(Server::new("slow", "1").tool("slow", slow), false, |options| {
        options.instances_max = 1;
        options.queue_ms_max = 50;
    });
    let service = bridge.into_shared().unwrap();
    let [mut first, mut second] = [(), ()].map(|()| able(crate::serve(service.clone()), legacy));
    first.open().await;
    let id = first.start("tools/call", json!({ "name": "slow", "arguments": {} })).await;
    let opening = json!({ "protocolVersion": legacy.as_str(), "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let refused = second.request("initialize", opening).await.unwrap_err();
    assert_eq!(refused.code, -31001, "{refused}");
    assert!(refused.message.contains("all 1 connections"), "{refused}");
    assert!(first.finish(id).await.is_ok());
}

#[tokio::test]
async fn a_session_without_a_connection_gets_the_one_whose_call_ends() {
    let legacy = Features::all().find(|features| features.has_sessions).unwrap().revision;
    let service = bridge(Server::new("slow", "1").tool("slow", slow), false, |options| {
        options.instances_max = 1;
        options.queue_ms_max = 20_000;
    });
    let service = service.into_shared().unwrap();
    let [mut first, mut second] = [(), ()].map(|()| able(crate::serve(service.clone()), legacy));
    first.open().await;
    let busy = tokio::spawn(async move { (first.call("slow", json!({})).await, first) });
    tokio::time::sleep(Duration::from_millis(50)).await;
    second.open().await;
    assert!(second.call("slow", json!({})).await.is_ok());
    let (called, _first) = busy.await.unwrap();
    assert!(called.is_ok(), "{called:?}");
}

async fn slow(_: &(), _: NoArgs) -> String {
    tokio::time::sleep(Duration::from_millis(500)).await;
    "done".to_owned()
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_is_told_of_with_its_cause() {
    let bridge = Bridge::new(linchpin::transport::child("linchpin-no-such-program").unwrap());
    let probe = bridge.clone();
    assert_eq!(probe.ready(), Ok(()));
    for features in Features::all() {
        let mut client = able(stream(bridge.clone()), features.revision);
        let error = client.request(if features.stateless { "tools/list" } else { "initialize" }, json!({
            "protocolVersion": features.revision.as_str(), "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        })).await.unwrap_err();
        assert_eq!(error.code, -31001, "{error}");
        assert!(error.message.contains("linchpin-no-such-program"), "{error}");
    }
    assert!(probe.ready().is_err());
}

/// Counts how often it is connected to.
struct Counted<C>(C, Arc<AtomicUsize>);

impl<C: Connector> Connector for Counted<C> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn key(&self) -> Option<String> {
        self.0.key()
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.connect(options)
    }
}

#[tokio::test]
async fn idle_connections_are_closed_and_opened_again_when_they_are_needed() {
    for features in Features::all() {
        for stateless in [false, true] {
            let count = Arc::<AtomicUsize>::default();
            let server = linchpin_conformance::server().into_shared().unwrap();
            let bridge = Bridge::new(Counted(in_process(server), count.clone())).options(|options| {
                options.upstream = revisions(stateless);
                options.idle_stop_ms = 50;
            });
            let mut client = able(stream(bridge), features.revision);
            client.open().await;
            if features.has_sessions {
                client.request("logging/setLevel", json!({ "level": "debug" })).await.unwrap();
            }
            assert_eq!(count.load(Ordering::SeqCst), 1);
            tokio::time::sleep(Duration::from_millis(200)).await;
            let name = if features.has_sessions { "test_tool_with_logging" } else { "test_simple_text" };
            client.call(name, json!({})).await.unwrap();
            if features.has_sessions {
                // With the level that the session had set.
                client.expect("notifications/message").await;
            }
            assert_eq!(count.load(Ordering::SeqCst), 2, "{} to {stateless}", features.revision);
        }
    }
}

#[tokio::test]
async fn all_sessions_of_a_shared_upstream_are_told_of_changes() {
    for features in Features::all().filter(|features| features.has_sessions) {
        for stateless in [false, true] {
            let server = linchpin_conformance::server();
            let bridge = bridge(server, stateless, |options| options.isolation = Isolation::Shared);
            let service = bridge.into_shared().unwrap();
            let mut clients = [
                able(crate::serve(service.clone()), features.revision),
                able(crate::serve(service), features.revision),
            ];
            for client in &mut clients {
                client.open().await;
                let watched = json!({ "uri": "test://watched-resource" });
                client.request("resources/subscribe", watched).await.unwrap();
            }
            clients[0].call("test_trigger_prompt_change", json!({})).await.unwrap();
            for client in &mut clients {
                client.expect("notifications/prompts/list_changed").await;
            }
        }
    }
}

/// Counts the subscriptions that an upstream is asked for.
#[derive(Default)]
struct Subscribed(AtomicUsize);

impl Tap for Subscribed {
    fn saw(&self, event: Traffic<'_>) {
        if matches!(event, Traffic::Sent(text) if text.contains("resources/subscribe") && text.contains("test://watched-resource"))
        {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn a_session_that_the_upstream_forgot_is_opened_again_and_the_call_repeated() {
    let revision = Features::all().find(|features| features.has_sessions).unwrap().revision;
    let serve = async |address: String| {
        let (ready, listens) = oneshot::channel();
        let place = http(address).on_ready(move |address| {
            let _ = ready.send(address);
        });
        let task = tokio::spawn(place.serve(linchpin_conformance::server().into_shared().unwrap()));
        (task, listens.await.unwrap().to_string())
    };
    let (task, address) = serve("127.0.0.1:0".to_owned()).await;
    let count = Arc::<AtomicUsize>::default();
    let upstream = remote(&format!("http://{address}/mcp")).unwrap();
    let subscribed = Arc::<Subscribed>::default();
    let bridge =
        Bridge::new(Counted(upstream, count.clone())).options(|options| options.tap = Some(subscribed.clone()));
    let mut client = able(stream(bridge), revision);
    client.open().await;
    client.request("logging/setLevel", json!({ "level": "debug" })).await.unwrap();
    client.request("resources/subscribe", json!({ "uri": "test://watched-resource" })).await.unwrap();
    assert_eq!(subscribed.0.load(Ordering::SeqCst), 1);
    // Another process at the same address knows nothing of the session.
    task.abort();
    let _ = task.await;
    let (_task, _) = serve(address).await;
    client.call("test_tool_with_logging", json!({})).await.unwrap();
    // With the level that the session had set, and its subscription.
    client.expect("notifications/message").await;
    assert_eq!((count.load(Ordering::SeqCst), subscribed.0.load(Ordering::SeqCst)), (2, 2));
    // What it listed may be others now.
    for list in ["tools", "prompts", "resources"] {
        client.expect(&format!("notifications/{list}/list_changed")).await;
    }
}

#[tokio::test]
async fn a_list_of_tools_without_end_is_given_up_and_the_call_ends() {
    // Pages that are read before, when a cursor comes again, and when each is another.
    for (repeats, pages) in [(true, 2), (false, 1_000)] {
        let lists = Arc::<AtomicUsize>::default();
        let count = lists.clone();
        let server = LowLevelServer::new("endless", "1").capabilities(json!({ "tools": {} }));
        let server = server.method("tools/list", move |_, _| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let cursor = if repeats { "again".to_owned() } else { n.to_string() };
            async move { Ok(json!({ "tools": [], "nextCursor": cursor })) }
        });
        // As if an argument were not repeated in a header.
        let server = server
            .method("tools/call", async |_, _| Err::<Value, _>(ErrorObject::new(-32020, "a header is missing").into()));
        let upstream = remote(&format!("{}/mcp", listening(server.into_shared().unwrap()).await)).unwrap();
        let bridge = Bridge::new(upstream).options(|options| options.upstream = revisions(true));
        let legacy = Features::all().find(|features| features.has_sessions).unwrap().revision;
        let mut client = able(stream(bridge), legacy);
        client.open().await;
        assert!(client.call("t", json!({})).await.is_err());
        assert_eq!(lists.load(Ordering::SeqCst), pages);
    }
}
