//! Redirects: followed one by one by `follow`, and by nothing else.

use crate::server::*;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use linchpin_web::{Web, WebErrorKind};

fn to(status: u16, location: &str) -> Vec<u8> {
    answer(status, &format!("location: {location}\r\n"), "")
}

#[tokio::test]
async fn following_a_get_drops_credentials_where_the_origin_changes() {
    let end = Server::new(|_, _| vec![Do::Write(answer(200, "", "here"))]).await;
    let there = end.url();
    let start =
        Server::new(move |n, _| vec![Do::Write(if n == 0 { to(302, "/again") } else { to(301, &there) })]).await;
    let mut headers = HeaderMap::new();
    for name in ["authorization", "cookie", "dpop", "proxy-authorization", "x-marked", "x-plain"] {
        headers.insert(name, HeaderValue::from_static("hidden"));
    }
    headers.get_mut("x-marked").unwrap().set_sensitive(true);
    let mut got = web().follow(&start.url().parse().unwrap(), headers, 5).await.unwrap();
    assert_eq!(got.body.read_all(10).await.unwrap(), "here");
    let had = |seen: &Seen| {
        seen.headers.iter().filter(|(_, v)| v == "hidden").map(|(n, _)| n.clone()).collect::<Vec<_>>().len()
    };
    assert_eq!(start.requests().iter().map(had).collect::<Vec<_>>(), [6, 6]);
    assert_eq!(end.requests().iter().map(had).collect::<Vec<_>>(), [1]);
    assert_eq!(end.requests()[0].header("x-plain"), Some("hidden"));
}

#[tokio::test]
async fn following_has_an_end() {
    let rows = [
        (to(302, "/mcp"), "redirects more than 3 times", 4),
        (to(302, "ftp://example.com/"), "redirects to something that is not an http:// or https:// URL", 1),
        (to(302, "http://"), "redirects to something that is not an http:// or https:// URL", 1),
    ];
    for (answer, want, sent) in rows {
        let server = Server::new(move |_, _| vec![Do::Write(answer.clone())]).await;
        let error = web().follow(&server.url().parse().unwrap(), HeaderMap::new(), 3).await.unwrap_err();
        assert!(error.to_string().ends_with(want) || error.to_string().contains(want), "{error}");
        assert_eq!(server.requests().len(), sent);
    }
}

#[tokio::test]
async fn sending_follows_nothing() {
    let server = Server::new(|_, _| vec![Do::Write(to(302, "/other"))]).await;
    let request = http::Request::get(server.url()).body(Bytes::new()).unwrap();
    assert_eq!(web().send(request).await.unwrap().parts.status, 302);
    assert_eq!(server.requests().len(), 1);
    let broken = http::Request::get("/relative").body(Bytes::new()).unwrap();
    assert_eq!(Web::new(Default::default()).send(broken).await.unwrap_err().kind(), WebErrorKind::Invalid);
}
