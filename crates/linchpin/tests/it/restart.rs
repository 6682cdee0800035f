//! A program that crashes, and what a host notices of it.
#![cfg(unix)]

use linchpin::client::{Change, Error, Restart};
use linchpin::prelude::*;
use linchpin::transport::child::Child;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server in a few lines of Python, so that nothing of ours is on the other side. `die` ends it at once.
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

fn restart() -> Restart {
    Restart { first_ms: 10, longest_ms: 100, attempts_max: 5 }
}

#[tokio::test]
async fn a_crash_fails_what_was_running_and_everything_else_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("subscribed");
    let changes = Arc::new(Mutex::new(Vec::new()));
    let hear = changes.clone();
    let client = Client::new("h", "1").restart(restart()).on_change(move |c| hear.lock().unwrap().push(c));
    let c = client.connect(python(&file)).await.unwrap();
    let mut updates = c.subscribe("a:b").await.unwrap();
    let first = c.call("echo", ()).await.unwrap().text();

    let (hanging, died) = tokio::join!(c.call("hang", ()), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        c.call("die", json!({})).await
    });
    for failed in [hanging, died] {
        let Err(Error::Link(why)) = failed else { panic!("{failed:?}") };
        let why = why.to_string();
        assert!(why.contains("exited with status 3") && why.contains("out of memory"), "{why}");
    }
    let second = c.call("echo", ()).await.unwrap().text();
    assert_ne!(first, second, "another process answers");
    assert_eq!(updates.next().await, Some(Change::Updated("a:b".into())), "something may have been missed");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a:b\na:b\n", "subscribed again");
    assert!(changes.lock().unwrap().contains(&Change::Tools));
    c.close().await;
    assert_eq!(updates.next().await, None);
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
    assert!(matches!(c.lost(), Some(Error::Link(_))));
}

#[tokio::test]
async fn a_program_that_never_lives_is_not_started_for_ever() {
    let client = Client::new("h", "1").restart(restart());
    let why = client.connect(child("sh -c 'echo no config >&2; exit 7'").unwrap()).await.unwrap_err().to_string();
    assert!(why.contains("exited with status 7") && why.contains("no config"), "{why}");
    let why = client.connect(child("no-such-program-anywhere").unwrap()).await.unwrap_err().to_string();
    assert!(why.contains("no-such-program-anywhere") && why.contains("PATH"), "{why}");
}
