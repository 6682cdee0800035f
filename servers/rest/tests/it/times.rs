//! Turns, retries and deadlines, by a clock that the tests control.

use crate::github::suite;
use bytes::Bytes;
use http::{Request, Response};
use linchpin::testing::Clock;
use linchpin_kit::Secret;
use linchpin_rest::Config;
use linchpin_rest::testing::{Told, call};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Times = Arc<Mutex<Vec<Duration>>>;

/// An API that gives these answers, the last one again and again, and writes down when it was asked.
fn api(
    answers: Vec<(u16, &'static str, &'static str)>,
) -> (Times, impl Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync) {
    let (times, begin) = (Times::default(), Instant::now());
    let log = times.clone();
    let answers = move |_: Request<Bytes>| {
        let mut log = log.lock().unwrap();
        let (status, header, value) = answers[log.len().min(answers.len() - 1)];
        log.push(begin.elapsed());
        let mut response = Response::builder().status(status);
        if !header.is_empty() {
            response = response.header(header, value);
        }
        response.body(Bytes::from_static(b"{}")).unwrap()
    };
    (times, answers)
}

fn config(change: impl FnOnce(&mut Config)) -> Config {
    Config::default().with(|config| {
        // A key of its own: servers with one key have one pace.
        static KEYS: AtomicUsize = AtomicUsize::new(0);
        config.key = Some(Secret::new(format!("key-{}", KEYS.fetch_add(1, Ordering::Relaxed))));
        config.tools.toolsets = vec!["all".into()];
        change(config);
    })
}

async fn me(
    answers: Vec<(u16, &'static str, &'static str)>,
    change: impl FnOnce(&mut Config),
) -> (Told, Vec<Duration>) {
    let (times, api) = api(answers);
    let connection = suite().connect_over(config(change), api).await;
    let told = call(&connection, "get_me", json!({})).await;
    let times = times.lock().unwrap().clone();
    (told, times)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// How long after the first the others came, in whole seconds.
fn gaps(times: &[Duration]) -> Vec<u64> {
    times.iter().map(|time| (*time - times[0]).as_secs()).collect()
}

#[tokio::test]
async fn requests_with_one_key_wait_for_their_turn() {
    Clock::pause();
    let (times, api) = api(vec![(200, "", "")]);
    let connection = suite().connect_over(config(|config| config.pace_ms = Some(2_000)), api).await;
    let calls = (0..4).map(|_| {
        let connection = connection.clone();
        tokio::spawn(async move { call(&connection, "get_me", json!({})).await })
    });
    for one in calls.collect::<Vec<_>>() {
        assert!(!one.await.unwrap().failed);
    }
    assert_eq!(gaps(&times.lock().unwrap()), [0, 2, 4, 6]);
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says_so_and_not_too_often() {
    Clock::pause();
    let (told, times) = me(vec![(503, "retry-after", "3"), (429, "retry-after", "2"), (200, "", "")], |_| {}).await;
    assert!(!told.failed, "{}", told.result);
    assert_eq!(gaps(&times), [0, 3, 5]);
    let (told, times) = me(vec![(502, "", "")], |_| {}).await;
    assert_eq!((told.kind.as_str(), times.len()), ("upstream", 4));
    let (told, times) = me(vec![(429, "retry-after", "1")], |config| config.retries_max = 99).await;
    assert_eq!((told.kind.as_str(), gaps(&times)), ("limited", vec![0, 1, 2, 3]));
    let (_, times) = me(vec![(503, "", "")], |config| config.retries_max = 0).await;
    assert_eq!(times.len(), 1);
}

#[tokio::test]
async fn what_a_server_wants_to_wait_for_too_long_is_told_instead() {
    Clock::pause();
    let (told, times) = me(vec![(429, "retry-after", "16")], |config| config.timeout_ms = 30_000).await;
    assert_eq!((told.kind.as_str(), times.len()), ("limited", 1));
    assert!(told.text.ends_with("Hint: Try again in 16 s."), "{}", told.text);
    // The time of the answer counts too, and a limit that the next call meets.
    let (times, api) = api(vec![(200, "x-ratelimit-remaining", "0"), (200, "", "")]);
    let connection = suite().connect_over(config(|_| {}), api).await;
    assert!(!call(&connection, "get_me", json!({})).await.failed);
    assert!(!call(&connection, "get_me", json!({})).await.failed, "nobody said until when");
    assert_eq!(times.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn only_what_may_be_repeated_is() {
    Clock::pause();
    let number = json!({ "owner": "o", "repo": "r", "issue_number": 1, "pull_number": 1, "title": "T" });
    for (tool, names, sent) in [
        ("get_issue", &["owner", "repo", "issue_number"][..], 4),
        ("create_issue", &["owner", "repo", "title"], 1),
        ("update_issue", &["owner", "repo", "issue_number"], 1),
        ("merge_pull_request", &["owner", "repo", "pull_number"], 1),
    ] {
        let (times, api) = api(vec![(503, "retry-after", "1")]);
        let connection = suite().connect_over(config(|_| {}), api).await;
        let arguments = names.iter().map(|name| ((*name).to_owned(), number[name].clone())).collect();
        let told = call(&connection, tool, serde_json::Value::Object(arguments)).await;
        assert!(told.failed, "{}", told.result);
        assert_eq!(times.lock().unwrap().len(), sent, "{tool}");
        assert_eq!(told.text.contains("may have taken effect"), sent == 1, "{tool}: {}", told.text);
    }
}

#[tokio::test]
async fn a_turn_that_comes_too_late_is_not_waited_for() {
    Clock::pause();
    let (times, api) = api(vec![(200, "", "")]);
    let connection = suite().connect_over(config(|config| config.pace_ms = Some(20_000)), api).await;
    assert!(!call(&connection, "get_me", json!({})).await.failed);
    let begin = Instant::now();
    let told = call(&connection, "get_me", json!({})).await;
    assert_eq!((told.kind.as_str(), told.text.as_str()), ("limited", "Rate Limit Exceeded\nHint: Try again in 20 s."));
    assert!(begin.elapsed() < s(1) && times.lock().unwrap().len() == 1);
}
