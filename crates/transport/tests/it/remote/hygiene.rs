//! Credentials appear nowhere but on the wire.

use crate::remote::script::*;
use http::HeaderValue;
use linchpin_core::connector::{Authorizer, Connector};
use linchpin_core::limits::ClientLimits;
use linchpin_core::service::BoxFuture;
use linchpin_transport::remote::remote;
use std::sync::Arc;

/// Puts a token on requests, unmarked.
struct Careless;

impl Authorizer for Careless {
    fn authorize<'a>(&'a self, head: &'a mut http::request::Parts) -> BoxFuture<'a, Result<(), Arc<str>>> {
        for name in ["authorization", "dpop", "cookie"] {
            head.headers.append(name, HeaderValue::from_static("hidden-7"));
            head.headers.append(name, HeaderValue::from_static("hidden-8"));
        }
        Box::pin(async { Ok(()) })
    }

    fn answered<'a>(
        &'a self,
        _: &'a http::request::Parts,
        _: http::StatusCode,
        _: &'a http::HeaderMap,
    ) -> BoxFuture<'a, Result<bool, Arc<str>>> {
        Box::pin(async { Ok(false) })
    }
}

#[tokio::test]
async fn credentials_are_sent_and_shown_nowhere() {
    let server = Server::new(|n, seen| {
        let headers =
            "mcp-session-id: hidden-5\r\nset-cookie: hidden-6\r\nset-cookie: hidden-9\r\nx-plain: shown-2\r\n";
        let status = if n == 2 { 500 } else { 200 };
        vec![Do::Write(answer(status, headers, &if n == 2 { String::new() } else { result(seen.id()) }))]
    })
    .await;
    let place = remote(&format!("{}?key=hidden-0", server.url()))
        .unwrap()
        .web(web())
        .bearer("hidden-1")
        .header("X-Api-Key", "hidden-2")
        .header("x-goog-iam-authorization-token", "hidden-3")
        .header("Cookie", "hidden-4")
        .header("x-plain", "shown-1")
        .auth(Careless);
    let mut shown = format!("{place:?} {} {:?}", place.name(), place.key());
    let open = open(place).await;
    for out in [request(1, None), request(2, Some(legacy())), request(3, Some(legacy()))] {
        let asked = open.ask(out).await;
        shown.push_str(&format!(
            "{:?} {:?}",
            asked.as_ref().map(|_| ()),
            asked.as_ref().err().map(ToString::to_string)
        ));
    }
    shown.push_str(&open.notes.tapped.lock().unwrap().join("\n"));
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(shown.contains("shown-1") && shown.contains("shown-2") && shown.contains("Sensitive"), "{shown}");
    let seen = server.requests();
    let sent = |name: &str| {
        seen[1].headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seen[1].path, "/mcp?key=hidden-0");
    assert_eq!(sent("x-api-key"), "hidden-2");
    assert_eq!(sent("authorization"), "hidden-1 hidden-7 hidden-8".replacen("hidden", "Bearer hidden", 1));
    assert_eq!(sent("mcp-session-id"), "hidden-5");
}

#[tokio::test]
async fn credentials_do_not_go_to_other_machines_without_tls() {
    let rows = [
        ("http://192.0.2.1/mcp", true, false),
        ("http://192.0.2.1/mcp", false, true),
        ("http://localhost.example/mcp", true, false),
        ("https://192.0.2.1/mcp", true, true),
        ("http://127.0.0.1/mcp", true, true),
        ("http://[::1]/mcp", true, true),
        ("http://localhost/mcp", true, true),
        ("http://app.localhost/mcp", true, true),
    ];
    for (url, credentials, opens) in rows {
        let place = |url: &str| remote(url).unwrap().web(web());
        let with = |place: linchpin_transport::remote::Remote| if credentials { place.bearer("hidden") } else { place };
        if opens {
            open(with(place(url))).await;
        } else {
            let error = open_fails(with(place(url)), ClientLimits::default()).await;
            let want = format!(
                "refusing to send credentials to {url} without TLS; use https://, or allow_plain_http() if intended"
            );
            assert_eq!(error.to_string(), want);
            open_fails(place(url).auth(Careless), ClientLimits::default()).await;
            open(with(place(url)).allow_plain_http()).await;
        }
    }
}

#[tokio::test]
async fn mistakes_in_addresses_and_headers_are_told_without_what_they_hold() {
    for (url, want) in [
        ("nonsense", "invalid URL: relative URL without a base"),
        ("ftp://example.com/", "expected an http:// or https:// URL, not ftp:"),
        ("https://me:hidden@example.com/", "the URL contains a user name or password; pass them in a header instead"),
    ] {
        assert_eq!(remote(url).unwrap_err().to_string(), want);
    }
    for (name, value, want) in [
        ("x y", "hidden", "the name of a header is invalid"),
        ("x-token", "hid\nden", "the value of the header x-token is invalid"),
    ] {
        let place = remote("https://example.com/mcp").unwrap().header(name, value);
        assert_eq!(open_fails(place, ClientLimits::default()).await.to_string(), want);
    }
    let place = remote(" https://Example.com:443/mcp?key=hidden#part ").unwrap();
    assert_eq!(
        (place.name(), place.key()),
        ("https://example.com/mcp".to_owned(), Some("https://example.com/mcp".to_owned()))
    );
}
