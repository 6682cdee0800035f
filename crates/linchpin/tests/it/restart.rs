//! A server that crashes, and its effect on a host.
#![cfg(unix)]

use linchpin::client::{Change, ChangeFilter, Changes, ErrorKind, ReconnectPolicy};
use linchpin::prelude::*;
use linchpin::transport::Child;
use linchpin::types::version::Revision;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server in a few lines of Python, independent of our own. `die` ends it at once.
const SERVER: &str = r#"
import json, sys, os
for line in sys.stdin:
    m = json.loads(line)
    if 'id' not in m: continue
    method = m['method']
    if method == 'server/discover':
        out = {'error': {'code': -32601, 'message': 'unknown'}}
    elif method == 'initialize':
        out = {'result': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {'listChanged': True}, 'resources': {'subscribe': True}}, 'serverInfo': {'name': 'py', 'version': str(os.getpid())}}}
    elif method == 'tools/list':
        out = {'result': {'tools': [{'name': 'echo', 'inputSchema': {'type': 'object'}}]}}
    elif method == 'resources/subscribe':
        open(os.environ['SUBSCRIBED'], 'a').write(m['params']['uri'] + '\n')
        out = {'result': {}}
    elif m['params']['name'] == 'die':
        sys.stderr.write('out of memory\n'); sys.stderr.flush(); os._exit(3)
    elif m['params']['name'] == 'hang':
        continue
    else:
        out = {'result': {'content': [{'type': 'text', 'text': str(os.getpid())}]}}
    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **out}), flush=True)
"#;

fn python(file: &std::path::Path) -> Child {
    Child::new("python3").args(["-c", SERVER]).env("SUBSCRIBED", file)
}

fn restart() -> ReconnectPolicy {
    ReconnectPolicy::default().with(|p| (p.first_ms, p.longest_ms, p.attempts_max) = (10, 100, 5))
}

#[tokio::test]
async fn a_crash_fails_what_was_running_and_everything_else_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("subscribed");
    let changes = Arc::new(Mutex::new(Vec::new()));
    let hear = changes.clone();
    let client = Client::new("h", "1").reconnect(restart()).on_change(move |c| hear.lock().unwrap().push(c));
    let c = client.connect(python(&file)).await.unwrap();
    let mut updates = c.subscribe("a:b").await.unwrap();
    let first = c.call("echo", ()).await.unwrap().text();

    let (hanging, died) = tokio::join!(c.call("hang", ()), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        c.call("die", json!({})).await
    });
    for failed in [hanging, died] {
        let error = failed.unwrap_err();
        assert!(error.kind() == ErrorKind::Transport && error.is_closed(), "{error:?}");
        let why = error.to_string();
        assert!(why.contains("exited with status 3") && why.contains("out of memory"), "{why}");
    }
    let second = c.call("echo", ()).await.unwrap().text();
    assert_ne!(first, second, "another process answers");
    assert_eq!(updates.next().await, Some(Change::Updated("a:b".into())), "something may have been missed");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a:b\na:b\n", "subscribed again");
    let told = changes.lock().unwrap().clone();
    assert!(told.contains(&Change::Tools) && told.contains(&Change::Updated("a:b".into())), "{told:?}");
    c.close().await;
    assert_eq!(updates.next().await, None);
}

#[tokio::test]
async fn a_connection_that_is_closed_while_it_reconnects_leaves_no_server_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started");
    // Each server notes its id. The second takes its time.
    let noted = "import os, time\nopen(os.environ['SUBSCRIBED'], 'a').write(str(os.getpid()) + '\\n')\n\
                 if len(open(os.environ['SUBSCRIBED']).readlines()) > 1: time.sleep(0.5)\n";
    let server = Child::new("python3").args(["-c", &format!("{noted}{SERVER}")]).env("SUBSCRIBED", &file);
    let c = Client::new("h", "1").reconnect(restart()).connect(server).await.unwrap();
    c.call("die", ()).await.unwrap_err();
    let ids = || std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let (late, ()) = tokio::join!(c.call("echo", ()), async {
        while ids().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        c.close().await;
    });
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);
    let runs = |id: &str| std::process::Command::new("kill").args(["-0", id]).output().unwrap().status.success();
    let gone = async {
        while ids().iter().any(|id| runs(id)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // The connection is still there, and closes nothing a second time.
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("no server is left");
    assert!(c.call("echo", ()).await.is_err());
}

#[tokio::test]
async fn without_restarts_the_loss_is_told_to_every_later_call() {
    let folder = tempfile::tempdir().unwrap();
    let c = Client::new("h", "1").connect(python(&folder.path().join("s"))).await.unwrap();
    assert!(c.call("die", ()).await.is_err());
    for _ in 0..2 {
        let why = c.call("echo", ()).await.unwrap_err().to_string();
        assert!(why.contains("exited with status 3"), "{why}");
    }
    assert!(c.lost().is_some_and(|error| error.kind() == ErrorKind::Transport && error.is_closed()));
}

#[tokio::test]
async fn a_program_that_never_lives_is_not_started_for_ever() {
    let client = Client::new("h", "1").reconnect(restart());
    let why = client.connect(child("sh -c 'echo no config >&2; exit 7'").unwrap()).await.unwrap_err().to_string();
    assert!(why.contains("exited with status 7") && why.contains("no config"), "{why}");
    let why = client.connect(child("no-such-program-anywhere").unwrap()).await.unwrap_err().to_string();
    assert!(why.contains("no-such-program-anywhere") && why.contains("PATH"), "{why}");
}

#[tokio::test]
async fn a_child_that_writes_while_it_starts_is_given_more_time() {
    let host = |open_ms: u64, child_ms: u64| {
        Client::new("h", "1").limits(move |limits| {
            (limits.connections.open_ms_max, limits.child.open_ms_max) = (open_ms, child_ms);
            limits.connections.close_ms_max = 100;
        })
    };
    // It installs something for longer than `open_ms_max`, and tells of it.
    let install = "for i in 1 2 3 4 5 6 7 8; do echo installing >&2; sleep 0.4; done; exec python3 -c \"$0\"";
    let slow = Child::new("sh").args(["-c", install, SERVER]);
    let connection = host(2_500, 60_000).connect(slow).await.unwrap();
    assert_eq!(connection.tools().await.unwrap().len(), 1);
    // One that says nothing is given up, and so is one that only talks.
    for (script, which) in [
        ("sleep 60", "within 0.5 s (connections.open_ms_max)"),
        ("while :; do echo installing >&2; sleep 0.1; done", "within 1 s (child.open_ms_max)"),
    ] {
        let error = host(500, 1_000).connect(Child::new("sh").args(["-c", script])).await.unwrap_err();
        assert!(error.is_timeout() && error.to_string().contains(which), "{error}");
    }
}

/// A stateless server that records each listen request, grants less than requested, and can be told to exit.
const LISTENING: &str = r#"
import json, sys, os
for line in sys.stdin:
    m = json.loads(line)
    if 'id' not in m: continue
    if m['method'] == 'server/discover':
        out = {'result': {'resultType': 'complete', 'supportedVersions': ['2026-07-28'], 'capabilities': {'tools': {}}}}
    elif m['method'] == 'subscriptions/listen':
        open(os.environ['SUBSCRIBED'], 'a').write(json.dumps(m['params']['notifications']) + '\n')
        meta = {'io.modelcontextprotocol/subscriptionId': m['id']}
        said = {'notifications': {'toolsListChanged': True}, '_meta': meta}
        print(json.dumps({'jsonrpc': '2.0', 'method': 'notifications/subscriptions/acknowledged', 'params': said}), flush=True)
        continue
    elif m['method'] == 'tools/call':
        os._exit(3)
    else:
        # `initialize`, where starting takes long.
        out = {'error': {'code': -32601, 'message': 'unknown method'}}
    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **out}), flush=True)
"#;

#[tokio::test]
async fn what_is_listened_to_is_listened_to_again_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("subscribed");
    let server = Child::new("python3").args(["-c", LISTENING]).env("SUBSCRIBED", &file);
    let c = Client::new("h", "1").reconnect(restart()).connect(server).await.unwrap();
    let mut changes = c.listen(ChangeFilter::new().tools().prompts()).await.unwrap();
    let granted = changes.granted().unwrap();
    assert_eq!((granted.tools_list_changed, granted.prompts_list_changed), (Some(true), None));
    c.call("die", ()).await.unwrap_err();
    let told = tokio::time::timeout(Duration::from_secs(20), changes.next()).await.unwrap();
    assert_eq!(told, Some(Change::Tools), "something may have been missed");
    let wanted = "{\"toolsListChanged\": true, \"promptsListChanged\": true}\n";
    let wait = async {
        while std::fs::read_to_string(&file).unwrap() != wanted.repeat(2) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("listened to again");
    c.close().await;
}

#[tokio::test]
async fn a_subscription_that_is_refused_after_a_crash_ends() {
    // Both servers take the first subscription only.
    let once = "os.path.exists(os.environ['SUBSCRIBED'])";
    let modern = LISTENING.replace(
        "open(os.environ['SUBSCRIBED'], 'a')",
        &format!("again = {once}; open(os.environ['SUBSCRIBED'], 'a')"),
    );
    let modern = modern.replace("{'toolsListChanged': True}", "{} if again else {'toolsListChanged': True}");
    let legacy = SERVER.replace(
        "    elif method == 'resources/subscribe':",
        &format!(
            "    elif method == 'resources/subscribe' and {once}:\n        out = {{'error': {{'code': -32602, 'message': 'no more'}}}}\n    elif method == 'resources/subscribe':"
        ),
    );
    for (script, filter) in [(modern, ChangeFilter::new().tools()), (legacy, ChangeFilter::new().resource("a:b"))] {
        let folder = tempfile::tempdir().unwrap();
        let server = Child::new("python3").args(["-c", &script]).env("SUBSCRIBED", folder.path().join("subscribed"));
        let c = Client::new("h", "1").reconnect(restart()).connect(server).await.unwrap();
        let mut changes = c.listen(filter).await.unwrap();
        c.call("die", ()).await.unwrap_err();
        assert!(soon(&mut changes).await.is_some(), "something may have been missed");
        // And then the stream ends.
        while soon(&mut changes).await.is_some() {}
        c.close().await;
    }
}

/// A server over HTTP in a runtime of its own, which ends with everything in it.
fn on_port(addr: SocketAddr, server: Server) -> (tokio::runtime::Runtime, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (ready, bound) = std::sync::mpsc::channel();
    runtime.spawn(server.serve(http(addr).on_ready(move |addr| ready.send(addr).unwrap())));
    (runtime, bound.recv_timeout(Duration::from_secs(20)).unwrap())
}

fn noted() -> Server {
    Server::new("noted", "1").resource("memo://a", |_: NoArgs| async { "a" }).tool("x", |_: NoArgs| async { "x" })
}

async fn soon(changes: &mut Changes) -> Option<Change> {
    tokio::time::timeout(Duration::from_secs(20), changes.next()).await.expect("a change comes")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_a_restarted_server_forgot_is_reopened_without_a_call_for_who_listens() {
    for listens in [true, false] {
        let (first, addr) = on_port(([127, 0, 0, 1], 0).into(), noted());
        let changed = Arc::new(Mutex::new(Vec::new()));
        let hear = changed.clone();
        let mut client = Client::new("h", "1").revisions(&[Revision::V2025_06_18]);
        if !listens {
            client = client.on_change(move |change| hear.lock().unwrap().push(change));
        }
        let c = client.connect(remote(&format!("http://{addr}/mcp")).unwrap()).await.unwrap();
        let mut changes = if listens { Some(c.subscribe("memo://a").await.unwrap()) } else { None };
        c.call("x", ()).await.unwrap();
        first.shutdown_background();
        let server = noted();
        let handle = server.handle();
        // For a while there is no server.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (second, _) = on_port(addr, server);
        let updated = Some(Change::Updated("memo://a".into()));
        match &mut changes {
            Some(changes) => {
                assert_eq!(soon(changes).await, updated, "something may have been missed");
                // It is subscribed to again, which the next change tells.
                let ticker = tokio::spawn(async move {
                    loop {
                        handle.resource_updated("memo://a");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                });
                assert_eq!(soon(changes).await, updated, "heard from the new session");
                ticker.abort();
            }
            None => {
                let wait = async {
                    while !changed.lock().unwrap().contains(&Change::Tools) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the host is told");
            }
        }
        c.close().await;
        second.shutdown_background();
    }
}
