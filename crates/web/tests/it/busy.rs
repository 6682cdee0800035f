//! Asking again when a server is busy: only with GET, only so often, and never past the end of the request.

use crate::server::*;
use bytes::Bytes;
use http::{HeaderMap, Method};
use linchpin_web::{RETRIES_MAX, Web, WebErrorKind, WebOptions};
use std::time::{Duration, Instant};

fn web(retries_max: u32) -> Web {
    Web::new(WebOptions::default().with(|options| {
        options.retries_max = retries_max;
        options.proxies = false;
    }))
}

#[tokio::test]
async fn only_a_get_is_repeated_and_only_for_these_states() {
    for (status, times) in [(200, 1), (404, 1), (429, 3), (500, 1), (501, 1), (502, 3), (503, 3), (504, 3)] {
        let server = Server::new(move |_, _| vec![Do::Write(answer(status, "retry-after: 0\r\n", ""))]).await;
        let answer = web(2).get(&server.url(), HeaderMap::new()).await.unwrap();
        assert_eq!((answer.parts.status.as_u16(), server.requests().len()), (status, times));
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            let before = server.requests().len();
            let request = http::Request::builder().method(method).uri(server.url()).body(Bytes::new()).unwrap();
            assert_eq!(web(2).send(request).await.unwrap().parts.status.as_u16(), status);
            assert_eq!(server.requests().len() - before, 1, "what is sent is sent once");
        }
    }
}

#[tokio::test]
async fn no_option_asks_more_often_than_the_most() {
    let server = Server::new(|_, _| vec![Do::Write(answer(503, "retry-after: 0\r\n", ""))]).await;
    let answer = web(1_000).get(&server.url(), HeaderMap::new()).await.unwrap();
    assert_eq!(answer.parts.status.as_u16(), 503);
    assert_eq!(server.requests().len(), 1 + RETRIES_MAX as usize);
}

#[tokio::test]
async fn all_attempts_share_one_end() {
    // Busy at first, then silent: what is left of the time counts for the second, not a time of its own.
    let server = Server::new(|before, _| match before {
        0 => vec![Do::Write(answer(503, "retry-after: 0\r\n", ""))],
        _ => vec![Do::Hold],
    })
    .await;
    let by = Instant::now() + Duration::from_millis(500);
    let error = web(3).get_by(&server.url(), HeaderMap::new(), by).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), WebErrorKind::Timeout, "{error}");
    assert_eq!(server.requests().len(), 2);
    assert!(Instant::now() >= by, "not before its end");
    // A wait that is longer than half of what is left is not begun.
    let server = Server::new(|_, _| vec![Do::Write(answer(429, "retry-after: 3600\r\n", ""))]).await;
    let by = Instant::now() + Duration::from_secs(3_600);
    assert_eq!(web(3).get_by(&server.url(), HeaderMap::new(), by).await.unwrap().parts.status.as_u16(), 429);
    assert_eq!(web(3).get(&server.url(), HeaderMap::new()).await.unwrap().parts.status.as_u16(), 429);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn any_request_can_have_a_deadline_and_the_earlier_one_counts() {
    let server = Server::new(|_, _| vec![Do::Hold]).await;
    let patient = Web::new(WebOptions::default().with(|options| {
        options.request_ms_max = Some(3_600_000);
        options.proxies = false;
    }));
    let hasty = Web::new(patient.options().clone().with(|options| options.request_ms_max = Some(100)));
    for (web, left) in [(&patient, Duration::from_millis(100)), (&hasty, Duration::from_secs(3_600))] {
        let (by, body) = (Instant::now() + left, Bytes::from_static(b"body"));
        let sent = web.request_by(Method::PATCH, &server.url(), HeaderMap::new(), body, by).await;
        assert_eq!(sent.map(|_| ()).unwrap_err().kind(), WebErrorKind::Timeout);
    }
    let seen = server.requests();
    assert!(seen.len() == 2 && seen.iter().all(|seen| seen.method == "PATCH" && seen.body == "body"), "{seen:?}");
}
