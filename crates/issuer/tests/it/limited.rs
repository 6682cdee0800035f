//! What clients and strangers may do how often, and how much is kept of them.

use crate::flow::{once, tokens_for};
use crate::support::{Got, ISSUER, Login, ask, encode, enter, refresh, text};
use http::{HeaderMap, Method, StatusCode};
use linchpin_issuer::{Client, Issuer};
use linchpin_store::{ManualClock, Store};
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
