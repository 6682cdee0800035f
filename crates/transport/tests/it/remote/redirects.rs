//! Redirects: followed to the same origin, and nothing follows them elsewhere.

use crate::remote::script::*;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use linchpin_transport::web::{Web, WebErrorKind};

fn to(status: u16, location: &str) -> Vec<u8> {
    answer(status, &format!("location: {location}\r\n"), "")
}

#[tokio::test]
async fn a_message_is_sent_again_only_where_that_is_allowed() {
    let other = Server::new(|_, _| vec![Do::Write(json(&result(7)))]).await;
    let there = other.url();
    let secret = format!("{there}?key=hidden");
    let no = |place: &str, status: u16| {
        format!(
            "unreachable: http://127.0.0.1:PORT/mcp redirects to {place} (status {status}), which is not followed; if that is the right address, use it"
        )
    };
    let rows = [
        (307, "/other", r#"{"n":7}"#.to_owned(), "/mcp /other"),
        (308, "other", r#"{"n":7}"#.to_owned(), "/mcp /other"),
        (301, "/other", no("http://127.0.0.1:PORT/other", 301), "/mcp"),
        (302, "/other", no("http://127.0.0.1:PORT/other", 302), "/mcp"),
        (303, "/other", no("http://127.0.0.1:PORT/other", 303), "/mcp"),
        (307, &secret, no(&there, 307), "/mcp"),
        (308, "https://127.0.0.1/mcp", no("https://127.0.0.1/mcp", 308), "/mcp"),
        (
            307,
            "file:///etc/passwd",
            "unreachable: 127.0.0.1:PORT redirects to something that is not an http:// or https:// URL".to_owned(),
            "/mcp",
        ),
        (
            307,
            "/mcp",
            "unreachable: http://127.0.0.1:PORT/mcp redirects more than 5 times".to_owned(),
            "/mcp /mcp /mcp /mcp /mcp /mcp",
        ),
    ];
    for (status, location, want, paths) in rows {
        let answer = to(status, location);
        let server = Server::new(move |_, seen| match seen.path.as_str() {
            "/mcp" => vec![Do::Write(answer.clone())],
            _ => vec![Do::Write(json(&result(seen.id())))],
        })
        .await;
        let open = open(server.remote().bearer("hidden")).await;
        let got = open
            .tell_of(request(7, Some(modern())))
            .await
            .replace(&format!("127.0.0.1:{}", server.port), "127.0.0.1:PORT");
        assert_eq!(got, want);
        let seen = server.requests();
        assert_eq!(seen.iter().map(|seen| seen.path.as_str()).collect::<Vec<_>>().join(" "), paths);
        assert!(seen.iter().all(|seen| seen.id() == 7 && seen.header("authorization") == Some("Bearer hidden")));
        if want == r#"{"n":7}"# {
            // Only a permanent redirect is remembered.
            open.ask(request(8, Some(modern()))).await.unwrap();
            assert_eq!(server.requests().len(), if status == 308 { 3 } else { 4 });
        }
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn following_a_get_drops_credentials_where_the_origin_changes() {
    let end = Server::new(|_, _| vec![Do::Write(answer(200, "", "here"))]).await;
    let there = end.url();
    let start =
        Server::new(move |n, _| vec![Do::Write(if n == 0 { to(302, "/again") } else { to(301, &there) })]).await;
    let mut headers = HeaderMap::new();
    for name in ["authorization", "cookie", "dpop", "proxy-authorization", "mcp-session-id", "x-marked", "x-plain"] {
        headers.insert(name, HeaderValue::from_static("hidden"));
    }
    headers.get_mut("x-marked").unwrap().set_sensitive(true);
    let mut got = web().follow(&start.url().parse().unwrap(), headers, 5).await.unwrap();
    assert_eq!(got.body.read_all(10).await.unwrap(), "here");
    let had = |seen: &Seen| {
        seen.headers.iter().filter(|(_, v)| v == "hidden").map(|(n, _)| n.clone()).collect::<Vec<_>>().len()
    };
    assert_eq!(start.requests().iter().map(had).collect::<Vec<_>>(), [7, 7]);
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
