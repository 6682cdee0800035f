//! Requests wait for their turn: by a clock that the tests control.

use crate::rows::suite;
use bytes::Bytes;
use http::{Request, Response};
use linchpin::testing::Clock;
use linchpin_kit::Secret;
use linchpin_rest::Config;
use linchpin_rest::testing::call;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Times = Arc<Mutex<Vec<Duration>>>;

fn config(key: &str) -> Config {
    Config::default().with(|config| {
        config.key = Some(Secret::new(key));
        config.tools.toolsets = vec!["all".into()];
    })
}

fn api(
    answer: impl Fn(usize) -> (u16, &'static str, Value) + Send + Sync,
) -> (Times, impl Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync) {
    let (times, begin) = (Times::default(), Instant::now());
    let log = times.clone();
    let api = move |_: Request<Bytes>| {
        let mut log = log.lock().unwrap();
        let (status, reset, body) = answer(log.len());
        log.push(begin.elapsed());
        let mut response = Response::builder().status(status).header("x-ratelimit-remaining", "1, 1500");
        if !reset.is_empty() {
            response = Response::builder()
                .status(status)
                .header("x-ratelimit-remaining", "0, 1500")
                .header("x-ratelimit-reset", reset);
        }
        response.body(Bytes::from(body.to_string())).unwrap()
    };
    (times, api)
}

#[tokio::test]
async fn local_search_makes_its_requests_a_second_apart() {
    Clock::pause();
    let (times, api) = api(|_| (200, "", json!({ "locations": { "results": [{ "id": "1" }] }, "results": [] })));
    let connection = suite().connect_over(config("one"), api).await;
    assert!(!call(&connection, "brave_local_search", json!({ "query": "cafe" })).await.failed);
    assert_eq!(times.lock().unwrap().iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test]
async fn a_limit_that_brave_tells_is_waited_for_and_one_of_the_month_is_told() {
    Clock::pause();
    let (times, api) = api(|n| if n == 0 { (429, "3, 1419704", json!({})) } else { (200, "", json!({})) });
    let connection = suite().connect_over(config("two"), api).await;
    assert!(!call(&connection, "brave_web_search", json!({ "query": "x" })).await.failed);
    assert_eq!(times.lock().unwrap().iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 3]);
}

#[tokio::test]
async fn two_servers_with_one_key_share_its_turns() {
    Clock::pause();
    let (times, one) = api(|_| (200, "", json!({})));
    let one = Arc::new(one);
    let also = one.clone();
    let first = suite().connect_over(config("three"), move |request: Request<Bytes>| one(request)).await;
    let second = suite().connect_over(config("three"), move |request: Request<Bytes>| also(request)).await;
    for connection in [&first, &second, &first] {
        assert!(!call(connection, "brave_web_search", json!({ "query": "x" })).await.failed);
    }
    assert_eq!(times.lock().unwrap().iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 1, 2]);
}
