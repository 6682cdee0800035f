//! What clients and strangers may do how often, and how much is kept of them.

use crate::flow::{once, tokens_for};
use crate::support::{Got, ISSUER, Login, ask, encode, enter, refresh, text};
use http::{HeaderMap, Method, Request, StatusCode};
use linchpin_core::gate::{Admit, Gate as _};
use linchpin_issuer::{Client, Issuer};
use linchpin_store::{ManualClock, Store};
use linchpin_testing::Logged;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A token request from an address.
async fn from(issuer: &Issuer, last: u8, form: &[(&str, &str)]) -> Got {
    let headers =
        HeaderMap::from_iter([(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded".parse().unwrap())]);
    let address = SocketAddr::from(([203, 0, 113, last], 1));
    ask(issuer, Method::POST, &format!("{ISSUER}/token"), headers, encode(form), address).await
}

#[tokio::test]
async fn token_requests_are_counted_by_client_and_address_and_failures_sooner() {
    let clock = Arc::new(ManualClock::default());
    let (issuer, _) = once();
    let issuer = issuer.store(Store::builder().clock(clock.clone()).memory()).clock(clock.clone());
    let issuer = issuer.client(Client::new("nightly").secret("s3cret").client_credentials(["files:read"]));
    let good = [("grant_type", "client_credentials"), ("client_id", "nightly"), ("client_secret", "s3cret")];
    let bad = [("grant_type", "client_credentials"), ("client_id", "nightly"), ("client_secret", "guess")];
    for n in 0..60 {
        assert_eq!(from(&issuer, n % 4, &good).await.status, StatusCode::OK, "{n}");
    }
    let over = from(&issuer, 5, &good).await;
    assert_eq!((over.status, over.error().as_str()), (StatusCode::TOO_MANY_REQUESTS, "slow_down"), "a client's 61st");
    assert!(over.headers.contains_key("retry-after"));
    for n in 0..30 {
        assert_eq!(from(&issuer, 9, &bad).await.error(), "invalid_client", "{n}");
    }
    for form in [&bad, &good] {
        assert_eq!(from(&issuer, 9, form).await.status, StatusCode::TOO_MANY_REQUESTS, "past it the right one is none");
    }
    clock.advance(Duration::from_secs(61));
    assert_eq!(from(&issuer, 9, &good).await.status, StatusCode::OK, "it is no lockout");
    for _ in 0..2 {
        assert_eq!(from(&issuer, 9, &bad).await.error(), "invalid_client", "a success forgets failures");
    }
}

/// The id of a public client is known to everybody, and shared by all who use it.
#[tokio::test]
async fn nobody_uses_up_the_requests_of_a_public_client_for_others() {
    let (issuer, terminal) = once();
    let login = Login::new("desktop");
    let tokens = tokens_for(&issuer, &terminal, &login).await;
    let bad = [("grant_type", "refresh_token"), ("client_id", "desktop"), ("refresh_token", "x.y")];
    for _ in 0..61 {
        assert_ne!(from(&issuer, 3, &bad).await.status, StatusCode::OK);
    }
    assert_eq!(from(&issuer, 3, &bad).await.status, StatusCode::TOO_MANY_REQUESTS);
    let mut token = text(&tokens, "refresh_token");
    for n in 0..70 {
        let good = [("grant_type", "refresh_token"), ("client_id", "desktop"), ("refresh_token", token.as_str())];
        let got = from(&issuer, 4 + n % 4, &good).await;
        assert_eq!(got.status, StatusCode::OK, "{n}: {got:?}");
        token = text(&got.json(), "refresh_token");
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_its_clients_are_counted_and_recorded_and_nobody_else_names_an_address() {
    let (issuer, _) = once();
    let issuer = issuer.trusted_proxies(["203.0.113.9".parse().unwrap()]);
    let asked = async |last: u8, of: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
        headers.insert("x-forwarded-for", of.parse().unwrap());
        let body = encode(&[("grant_type", "refresh_token"), ("client_id", "nobody")]);
        let address = SocketAddr::from(([203, 0, 113, last], 1));
        ask(&issuer, Method::POST, &format!("{ISSUER}/token"), headers, body, address).await.status
    };
    let logged = Logged::default();
    let guard = tracing::subscriber::set_default(logged.clone());
    for n in 0..30 {
        assert_eq!(asked(9, "192.0.2.1").await, StatusCode::UNAUTHORIZED, "{n}");
    }
    drop(guard);
    assert!(logged.text().contains("192.0.2.1") && !logged.text().contains("203.0.113.9"), "{}", logged.text());
    assert_eq!(asked(9, "192.0.2.1").await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        asked(9, "6.6.6.6, 192.0.2.1").await,
        StatusCode::TOO_MANY_REQUESTS,
        "it says what it likes before that"
    );
    assert_eq!(asked(9, "192.0.2.2").await, StatusCode::UNAUTHORIZED, "another client of the proxy");
    for n in 0..30 {
        assert_eq!(asked(7, &format!("192.0.2.{}", n + 10)).await, StatusCode::UNAUTHORIZED, "{n}");
    }
    assert_eq!(asked(7, "192.0.2.99").await, StatusCode::TOO_MANY_REQUESTS, "no proxy: its own address counts");
    let head = async |of: &str| {
        let request = Request::post("/mcp").header("authorization", "Bearer bad").header("x-forwarded-for", of);
        let head = request.body(()).unwrap().into_parts().0;
        match issuer.admit(&head, Some("203.0.113.9:1".parse().unwrap())) {
            Admit::No(refusal) => refusal.status(),
            Admit::Later(decision) => decision.await.unwrap_err().status(),
            _ => panic!("a bad token comes in"),
        }
    };
    for _ in 0..300 {
        assert_eq!(head("192.0.2.1").await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(head("192.0.2.1").await, StatusCode::TOO_MANY_REQUESTS, "bad tokens at the server too");
    assert_eq!(head("192.0.2.2").await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_person_has_twenty_logins_with_a_client_and_the_oldest_ends() {
    let clock = Arc::new(ManualClock::default());
    let (issuer, terminal) = once();
    let issuer = issuer.store(Store::builder().clock(clock.clone()).memory()).clock(clock.clone());
    let mut all = Vec::new();
    for _ in 0..21 {
        clock.advance(Duration::from_secs(5));
        all.push(tokens_for(&issuer, &terminal, &Login::new("desktop")).await);
    }
    let first = &all[0];
    assert!(enter(&issuer, "/mcp", Some(&text(first, "access_token"))).await.is_err());
    assert_eq!(refresh(&issuer, "desktop", &text(first, "refresh_token"), &[]).await.error(), "invalid_grant");
    for kept in &all[1..] {
        assert!(enter(&issuer, "/mcp", Some(&text(kept, "access_token"))).await.is_ok());
    }
}
