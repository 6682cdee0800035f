//! The browser server through the program, with a real browser: nothing of it is left, whatever ends the server.
#![cfg(all(feature = "browser", feature = "client", target_os = "linux"))]

use crate::common;

use common::{Raw, Served, command, over_http, program};
use linchpin::types::version::Revision;
use serde_json::json;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// All processes below this one, by what the kernel says.
fn below(ancestor: u32) -> HashSet<u32> {
    let all: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            Some((id, parent))
        })
        .collect();
    let mut found = HashSet::from([ancestor]);
    while let Some((id, _)) = all.iter().find(|(id, parent)| found.contains(parent) && !found.contains(id)) {
        found.insert(*id);
    }
    found
}

/// Whether it runs; a zombie does not.
fn runs(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Nobody could find its pages again, and everybody could find those of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_session_and_principal_gets_no_browser() {
    let home = tempfile::tempdir().unwrap();
    let mut serve = command(program(), home.path());
    serve.args(["serve", "browser", "--executable", "/bin/sh", "--toolsets", "puppeteer", "--http", "127.0.0.1:0"]);
    let served = Served::start(&mut serve);
    let connection = over_http(&served.url, Revision::V2026_07_28).await;
    let refused = connection.call("puppeteer_hover", json!({ "selector": "a" })).await.unwrap();
    assert!(refused.is_error() && refused.text().contains("has no session and no principal"), "{}", refused.text());
}

#[test]
#[ignore = "needs a browser: cargo xtask test --only browser"]
fn no_process_of_a_browser_outlives_the_server() {
    let home = tempfile::tempdir().unwrap();
    for end in ["EOF", "TERM", "KILL", "ABRT"] {
        let profiles = home.path().join(end);
        std::fs::create_dir(&profiles).unwrap();
        let mut serve = command(program(), home.path());
        serve.args(["serve", "browser", "--no-sandbox", "--toolsets", "puppeteer"]).env("TMPDIR", &profiles);
        let mut server = Raw::start(&mut serve);
        let there = server.call("puppeteer_navigate", json!({ "url": "about:blank" }));
        assert_eq!(there["result"]["content"][0]["text"], "Navigated to about:blank", "{there}");
        let server_id = server.id();
        let all: Vec<u32> = below(server_id).into_iter().filter(|id| *id != server_id).collect();
        assert!(all.len() > 3, "a watchdog and the processes of a browser: {all:?}");
        match end {
            "EOF" => drop(server.ended()),
            signal => {
                server.signal(signal);
                server.code();
            }
        }
        let until = Instant::now() + Duration::from_secs(5);
        while all.iter().any(|id| runs(*id)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let left: Vec<u32> = all.into_iter().filter(|id| runs(*id)).collect();
        assert!(left.is_empty(), "{end}: {left:?}");
        let is_clean = std::fs::read_dir(&profiles).unwrap().next().is_none();
        assert!(is_clean || ["KILL", "ABRT"].contains(&end), "{end}: its profile is left");
    }
}
