//! Audit logs: what is recorded, and what happens when it cannot be.

use crate::common::{MODERN, Peer, failed, service, text, until};
use linchpin::middleware::{Audit, RateLimit};
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A file that can be full.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<(Vec<u8>, Option<usize>)>>);

impl Disk {
    fn room(&self, bytes: Option<usize>) {
        self.0.lock().unwrap().1 = bytes;
    }

    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.0.lock().unwrap();
        let n = bytes.len().min(disk.1.unwrap_or(usize::MAX));
        if n == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.1 = disk.1.map(|room| room - n);
        disk.0.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn server(audit: Audit) -> Server {
    Server::new("s", "1.0")
        .limits(|limits| limits.calls.drain_ms_max = 50)
        .tool("echo", |q: Value| q.to_string())
        .tool("fails", || -> Result<String, &str> { Err("no") })
        .tool("waits", || async { std::future::pending::<String>().await })
        .tool("limited", || "once")
        .resource("memo://ä", || "text")
        .resource("memo://refused", || -> Result<String> { Err(Error::protocol(-32050, "no such memo")) })
        .layer("1/h".parse::<RateLimit>().map(|limit| limit.burst(9).layer()).unwrap())
        .layer_requests(audit.layer())
}

/// A line without what differs between runs.
fn steady(line: &Value) -> Value {
    let mut line = line.clone();
    let time = line["time"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    assert!(line["durationMs"].as_f64().unwrap() >= 0.0);
    let members = line.as_object_mut().unwrap();
    members.retain(|name, _| !["time", "durationMs", "session"].contains(&name.as_str()));
    line
}

#[tokio::test]
async fn each_call_is_one_line_with_its_outcome_and_without_its_payloads() {
    // printf '{"word":"hunter2"}' | sha256sum, and of {}
    const SECRET: &str = "sha256:622812b8e05bfbd706da34e31a9cb986b79dc074984bc010ff0382c3ee8221b1";
    const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    for revision in ["2025-11-25", MODERN] {
        let disk = Disk::default();
        let mut peer = Peer::of(service(server(Audit::writer(disk.clone()))), revision, json!({})).await;
        peer.call("echo", json!({ "word": "hunter2" })).await;
        peer.call("fails", json!({})).await;
        peer.ask("resources/read", json!({ "uri": "memo://ä" })).await;
        peer.ask("resources/read", json!({ "uri": "memo://refused" })).await;
        peer.call("missing", json!({})).await;
        peer.ask("tools/list", json!({})).await;
        peer.start("waits", json!({})).await;
        peer.alive().await;
        drop(peer);
        let of = disk.clone();
        until("the call has ended", move || of.lines().len() == 6).await;
        let lines = disk.lines();
        let sessions: Vec<&str> = lines.iter().filter_map(|line| line["session"].as_str()).collect();
        assert_eq!(sessions.len(), if revision == MODERN { 0 } else { 6 }, "{revision}");
        assert!(sessions.iter().all(|id| id.len() == 16 && *id == sessions[0]));
        let call = |name: &str, arguments: &str, outcome: &str| json!({ "method": "tools/call", "name": name, "arguments": arguments, "outcome": outcome });
        let read = |uri: &str| json!({ "method": "resources/read", "name": uri, "arguments": EMPTY, "outcome": "ok" });
        let mut refused = read("memo://refused");
        refused["outcome"] = "error".into();
        refused["code"] = json!(-32050);
        let mut missing = call("missing", EMPTY, "error");
        missing["code"] = json!(-32602);
        let expected = [
            call("echo", SECRET, "ok"),
            call("fails", EMPTY, "tool_error"),
            read("memo://ä"),
            refused,
            missing,
            call("waits", EMPTY, "cancelled"),
        ];
        assert_eq!(lines.iter().map(steady).collect::<Vec<_>>(), expected, "{revision}");
        let raw = disk.0.lock().unwrap().0.clone();
        assert!(raw.is_ascii() && !raw.windows(7).any(|part| part == b"hunter2"));
    }
}

#[tokio::test]
async fn without_room_for_the_record_calls_are_refused_and_no_line_is_lost() {
    let disk = Disk::default();
    let mut peer = Peer::of(service(server(Audit::writer(disk.clone()))), MODERN, json!({})).await;
    disk.room(Some(50));
    assert_eq!(text(&peer.call("limited", json!({})).await), "once");
    for _ in 0..2 {
        let refused = peer.call("limited", json!({})).await;
        let why = "the audit log cannot be written, so no calls are accepted; try again later";
        assert_eq!(failed(&refused), why);
    }
    let refused = peer.ask("resources/read", json!({ "uri": "memo://ä" })).await;
    assert_eq!(refused["error"]["code"], -31008);
    disk.room(None);
    assert_eq!(text(&peer.call("limited", json!({})).await), "once");
    peer.call(&"ä".repeat(10_000), json!({})).await;
    assert_eq!(disk.lines()[2]["name"].as_str().unwrap().len(), 1_024);
    let names: Vec<Value> = disk.lines().iter().map(|line| line["name"].clone()).collect();
    assert_eq!(names[..2], ["limited", "limited"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_is_appended_to_and_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    for lines in 1..3 {
        let mut peer = Peer::of(service(server(Audit::file(&path).unwrap())), MODERN, json!({})).await;
        peer.call("limited", json!({})).await;
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), lines);
    }
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(Audit::file(folder.path().join("no/such/folder")).is_err());
}
