//! Rows 25 to 29 and 31: issuers that are away, that change their keys, or that are asked too much.

use crate::support::*;
use linchpin_guard::Guard;
use linchpin_oauth::Alg;
use serde_json::json;

fn guard(world: &World) -> Guard {
    world.guard().issuer(ISSUER)
}

/// Lets what was begun in the background end.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_remembered_token_and_one_of_known_keys_ask_nobody() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = guard(&world);
    let token = |n: u64| key.sign("at+jwt", &claims(json!({ "jti": n })));
    let first = token(0);
    assert!(bearer(&guard, &first).await.is_ok());
    assert_eq!(world.fetches(), 2, "metadata and keys");
    for n in 0..20 {
        assert!(bearer(&guard, &token(n)).await.is_ok() && bearer(&guard, &first).await.is_ok());
    }
    assert_eq!(world.fetches(), 0);
}

#[tokio::test]
async fn a_burst_of_first_tokens_fetches_the_keys_once() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = guard(&world);
    let all: Vec<_> = (0..20)
        .map(|n| {
            let (guard, token) = (guard.clone(), key.sign("at+jwt", &claims(json!({ "jti": n }))));
            assert!(guard.urls().count() == 1);
            async move { bearer(&guard, &token).await.is_ok() }
        })
        .collect();
    let shared = guard;
    assert!(bearer(&shared, &key.sign("at+jwt", &claims(json!({})))).await.is_ok());
    world.fetches();
    for one in all {
        assert!(one.await);
    }
}

#[tokio::test]
async fn a_flood_of_unknown_keys_fetches_once_in_30_s_and_a_new_key_is_found() {
    let (old, new) = (key(Alg::Es256, "old"), key(Alg::Es256, "new"));
    let world = World::with_keys(&[&old]);
    let guard = guard(&world);
    assert!(bearer(&guard, &old.sign("at+jwt", &claims(json!({})))).await.is_ok());
    world.pass(31);
    world.fetches();
    for n in 0..100 {
        let stranger = key(Alg::EdDsa, &n.to_string()).sign("at+jwt", &claims(json!({})));
        assert_eq!(why(&bearer(&guard, &stranger).await), (401, "the token is not valid"), "25");
    }
    assert_eq!(world.fetches(), 2, "25: the metadata and the keys, once");
    world.publish(ISSUER, &[&old, &new]);
    let token = new.sign("at+jwt", &claims(json!({})));
    assert!(bearer(&guard, &token).await.is_err(), "it was looked a moment ago");
    world.pass(30);
    assert!(bearer(&guard, &token).await.is_ok());
}

#[tokio::test]
async fn an_address_that_sends_only_bad_tokens_is_put_off() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = guard(&world);
    let (known, new) = (key.sign("at+jwt", &claims(json!({}))), key.sign("at+jwt", &claims(json!({ "jti": 2 }))));
    assert!(bearer(&guard, &known).await.is_ok());
    for n in 0..300 {
        assert_eq!(why(&bearer(&guard, &format!("bad{n}")).await).0, 401);
    }
    let refusal = bearer(&guard, "another").await.unwrap_err();
    assert_eq!(refusal.status(), 429, "26");
    assert!(refusal.headers().contains_key("retry-after"));
    assert_eq!(why(&bearer(&guard, &new).await).0, 429, "it is not verified");
    assert!(bearer(&guard, &known).await.is_ok(), "those who are known go on");
    world.pass(60);
    assert!(bearer(&guard, &new).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_is_away_at_start_is_503_until_it_comes() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = guard(&world);
    world.set_away(true);
    let token = key.sign("at+jwt", &claims(json!({})));
    for _ in 0..3 {
        let refusal = bearer(&guard, &token).await.unwrap_err();
        assert_eq!((refusal.status().as_u16(), refusal.headers().contains_key("retry-after")), (503, true), "27");
        assert!(shown(&refusal).1.is_empty(), "a login would not help");
    }
    assert!(world.fetches() <= 3, "it is not asked by each request");
    world.set_away(false);
    world.pass(5);
    assert!(bearer(&guard, &token).await.is_ok());
}

#[tokio::test]
async fn known_keys_serve_while_the_issuer_is_away_for_a_day() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = guard(&world);
    let token = |exp: u64| key.sign("at+jwt", &claims(json!({ "exp": exp, "iat": null })));
    assert!(bearer(&guard, &token(NOW + 100)).await.is_ok());
    world.set_away(true);
    for hour in 1..=24 {
        world.pass(3600);
        assert!(bearer(&guard, &token(world.now() + 100)).await.is_ok(), "28: hour {hour}");
        settle().await;
    }
    assert!(world.fetches() >= 24, "it is tried again in the background");
    world.pass(3601);
    assert_eq!(why(&bearer(&guard, &token(world.now() + 100)).await).0, 503);
    world.set_away(false);
    world.pass(60);
    assert!(bearer(&guard, &token(world.now() + 100)).await.is_ok());
}

#[tokio::test]
async fn keys_are_renewed_in_the_background_before_they_are_old() {
    let (old, new) = (key(Alg::Es256, "old"), key(Alg::Es256, "new"));
    let world = World::with_keys(&[&old]);
    let guard = guard(&world);
    assert!(bearer(&guard, &old.sign("at+jwt", &claims(json!({})))).await.is_ok());
    world.publish(ISSUER, &[&new]);
    world.pass(2880);
    let again = old.sign("at+jwt", &claims(json!({ "exp": NOW + 9000 })));
    assert!(bearer(&guard, &again).await.is_ok(), "nobody waits");
    settle().await;
    let late = old.sign("at+jwt", &claims(json!({ "exp": NOW + 9000, "jti": 2 })));
    assert_eq!(why(&bearer(&guard, &late).await).0, 401, "the old key is gone");
    assert!(bearer(&guard, &new.sign("at+jwt", &claims(json!({ "exp": NOW + 9000 })))).await.is_ok());
}

#[tokio::test]
async fn key_sets_that_are_too_large_or_have_bad_keys_are_bounded() {
    let key = key(Alg::Es256, "k");
    let good = key.jwk().to_value();
    let mut private = good.clone();
    private["d"] = json!("AAAA");
    let weak = json!({ "kty": "RSA", "n": "x".repeat(171), "e": "AQAB", "kid": "1024 bit" });
    let mixed = json!({ "keys": [weak, private, { "kty": "RSA", "n": "AQAB", "e": "AQAB" }, good] }).to_string();
    let many = json!({ "keys": vec![&good; 10_000] }).to_string();
    let huge = format!("{{\"keys\":[],\"x\":\"{}\"}}", "y".repeat(10 << 20));
    for (row, text, status) in [("bad keys", mixed, 200), ("10,000 keys", many, 503), ("10 MiB", huge, 503)] {
        let world = World::new();
        world.publish_text(ISSUER, &text);
        assert_eq!(why(&bearer(&guard(&world), &key.sign("at+jwt", &claims(json!({})))).await).0, status, "29: {row}");
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_believed() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let lie = json!({ "issuer": "https://evil.example", "jwks_uri": format!("{ISSUER}/keys") });
    world.serve(
        "https://login.example.com/.well-known/oauth-authorization-server/realms/main",
        lie.to_string().as_bytes(),
    );
    assert_eq!(why(&bearer(&guard(&world), &key.sign("at+jwt", &claims(json!({})))).await).0, 503);
}
