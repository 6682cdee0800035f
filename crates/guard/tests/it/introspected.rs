//! Opaque tokens: what their issuer says of them.

use crate::support::*;
use linchpin_core::gate::{Admit, Gate as _};
use linchpin_guard::{Guard, Introspection, TrustedIssuer};
use linchpin_oauth::Alg;
use serde_json::{Value, json};

fn world(answer: &Value) -> World {
    let world = World::with_keys(&[]);
    world.serve(&format!("{ISSUER}/introspect"), answer.to_string().as_bytes());
    world
}

fn asks(world: &World, change: impl FnOnce(Introspection) -> Introspection) -> Guard {
    let introspection = change(Introspection::secret("resource server", "s&cret"));
    world.guard().issuer(TrustedIssuer::new(ISSUER).introspection(introspection))
}

fn active(changes: Value) -> Value {
    let mut answer = claims(changes);
    if answer.get("active").is_none() {
        answer["active"] = json!(true);
    }
    answer
}

#[tokio::test]
async fn an_answer_decides_and_is_remembered_for_a_minute() {
    let world = world(&active(json!({})));
    let guard = asks(&world, |i| i);
    assert_eq!(bearer(&guard, "opaque").await.unwrap().subject(), "ada");
    assert_eq!(world.asked(), ["Basic cmVzb3VyY2Urc2VydmVyOnMlMjZjcmV0 token=opaque&token_type_hint=access_token"]);
    world.fetches();
    world.serve(&format!("{ISSUER}/introspect"), br#"{"active":false}"#);
    world.pass(59);
    assert!(bearer(&guard, "opaque").await.is_ok());
    assert_eq!(world.fetches(), 0);
    world.pass(1);
    assert_eq!(why(&bearer(&guard, "opaque").await), (401, "the token is not valid"));
    world.serve(&format!("{ISSUER}/introspect"), active(json!({})).to_string().as_bytes());
    world.pass(9);
    assert_eq!(why(&bearer(&guard, "opaque").await).0, 401, "that too is remembered, for 10 s");
    assert_eq!(world.fetches(), 1);
    world.pass(1);
    assert!(bearer(&guard, "opaque").await.is_ok());
}

#[tokio::test]
async fn implied_scopes_are_remembered_too() {
    let world = world(&active(json!({ "scope": "files" })));
    let guard = asks(&world, |i| i).implies("files", ["files:read"]).require(["files:read"]);
    for _ in 0..2 {
        assert!(bearer(&guard, "opaque").await.unwrap().has_scope("files:read"));
    }
    assert_eq!(world.asked().len(), 1);
}

#[tokio::test]
async fn answers_are_judged_like_tokens() {
    let rows = [
        (json!({ "active": "true" }), 401, "the token is not valid"),
        (json!({ "aud": null }), 401, "the token is not for this server"),
        (json!({ "aud": "https://mcp.example.com/other" }), 401, "the token is not for this server"),
        (json!({ "exp": NOW - 100 }), 401, "the token has expired"),
        (json!({ "exp": null }), 200, ""),
        (json!({ "iss": "https://evil.example" }), 401, "the token is not valid"),
        (json!({ "iss": null }), 200, ""),
        (json!({ "sub": null, "client_id": null }), 401, "the token is not valid"),
        (json!({ "sub": null, "client_id": "mallory", "username": "mallory" }), 401, "the token is not valid"),
    ];
    for (changes, status, said) in rows {
        let guard = asks(&world(&active(changes.clone())), |i| i);
        assert_eq!(why(&bearer(&guard, "opaque").await), (status, said), "{changes}");
    }
    // Some issuers say only what people call themselves. Two of them are not the one client that they use.
    let subjects = [
        (json!({ "username": "countess" }), "ada"),
        (json!({ "sub": null, "client_id": "editor", "username": "countess" }), "countess"),
        (json!({ "sub": null, "client_id": "editor" }), "client:editor"),
    ];
    for (changes, subject) in subjects {
        let guard = asks(&world(&active(changes.clone())), |i| i);
        assert_eq!(bearer(&guard, "opaque").await.unwrap().subject(), subject, "{changes}");
    }
    let lenient = asks(&world(&active(json!({ "aud": null }))), Introspection::introspection_is_audience);
    assert!(bearer(&lenient, "opaque").await.is_ok());
    let other = asks(&world(&active(json!({ "aud": "https://x" }))), Introspection::introspection_is_audience);
    assert!(bearer(&other, "opaque").await.is_err());
}

#[tokio::test]
async fn a_token_is_asked_about_once_at_a_time_and_jwts_are_not() {
    let signer = key(Alg::Es256, "k");
    let world = world(&active(json!({})));
    let guard = asks(&world, |i| i);
    let _ = bearer(&guard, "warm").await;
    world.fetches();
    let heads = head("/mcp", &[("authorization", "Bearer same")]);
    let (a, b, c) = tokio::join!(admitted(&guard, &heads), admitted(&guard, &heads), admitted(&guard, &heads));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(world.fetches(), 1);
    let foreign = signer.sign("at+jwt", &claims(json!({ "iss": "https://evil.example" })));
    for token in [foreign.as_str(), "eyJhbGciOiJub25lIn0.e30."] {
        assert_eq!(why(&bearer(&guard, token).await).0, 401);
    }
    assert_eq!(world.fetches(), 0);
}

#[tokio::test]
async fn the_second_issuer_is_asked_about_what_the_first_does_not_know() {
    const SECOND: &str = "https://second.example";
    let world = world(&json!({ "active": false }));
    world.publish(SECOND, &[]);
    let known = active(json!({ "iss": SECOND, "sub": "bob" }));
    world.serve(&format!("{SECOND}/introspect"), known.to_string().as_bytes());
    let second = TrustedIssuer::new(SECOND).introspection(Introspection::secret("resource server", "other"));
    let guard = asks(&world, |i| i).issuer(second);
    for _ in 0..2 {
        assert_eq!(bearer(&guard, "opaque").await.unwrap().subject(), "bob");
    }
    assert_eq!(world.asked().len(), 2, "each once");
}

#[tokio::test]
async fn clients_that_leave_before_the_answer_leave_nothing_and_are_counted() {
    let world = world(&active(json!({})));
    let guard = asks(&world, |i| i);
    assert!(bearer(&guard, "warm").await.is_ok());
    for n in 0..300 {
        let heads = head("/mcp", &[("authorization", &format!("Bearer gone-{n}"))]);
        let Admit::Later(mut decision) = guard.admit(&heads, Some("192.0.2.1:1000".parse().unwrap())) else {
            panic!("it is asked about")
        };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(decision.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(why(&bearer(&guard, "new").await).0, 429);
    world.pass(60);
    assert!(bearer(&guard, "gone-7").await.is_ok(), "whoever left is in nobody's way");
}

#[tokio::test]
async fn many_requests_with_one_token_are_one_question() {
    let world = world(&active(json!({})));
    let guard = asks(&world, |i| i);
    let _ = bearer(&guard, "warm").await;
    let mut all = tokio::task::JoinSet::new();
    for n in 0..41 {
        let guard = guard.clone();
        all.spawn(async move { bearer(&guard, if n < 40 { "same" } else { "other" }).await.is_ok() });
    }
    assert!(all.join_all().await.into_iter().all(|fine| fine));
}

#[tokio::test]
async fn an_open_stream_learns_that_its_token_was_taken_back() {
    let world = world(&active(json!({ "exp": null })));
    let guard = asks(&world, |i| i);
    let ada = bearer(&guard, "opaque").await.unwrap();
    assert!(ada.is_revocable() && !ada.is_revoked());
    world.fetches();
    world.pass(59);
    assert!(!ada.is_revoked() && world.fetches() == 0, "it is remembered");
    world.pass(1);
    world.set_away(true);
    let settle = async || {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    };
    assert!(!ada.is_revoked());
    settle().await;
    assert!(!ada.is_revoked(), "an issuer that is away has taken nothing back");
    settle().await;
    world.set_away(false);
    world.serve(&format!("{ISSUER}/introspect"), br#"{"active":false}"#);
    let _ = ada.is_revoked();
    settle().await;
    assert!(ada.is_revoked());
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_is_503_and_not_a_login() {
    let world = world(&active(json!({})));
    let guard = asks(&world, |i| i);
    assert!(bearer(&guard, "known").await.is_ok());
    world.set_away(true);
    assert!(bearer(&guard, "known").await.is_ok(), "31: it is remembered");
    assert_eq!(shown(&bearer(&guard, "new").await.unwrap_err()), (503, vec![]));
    world.set_away(false);
    assert!(bearer(&guard, "new").await.is_ok(), "a failure is not remembered");
}

#[tokio::test]
async fn a_client_may_show_who_it_is_with_a_key() {
    let world = world(&active(json!({})));
    let signer = key(Alg::EdDsa, "own");
    let introspection = Introspection::key("rs", signer.clone()).endpoint(format!("{ISSUER}/introspect"));
    let guard = world.guard().issuer(TrustedIssuer::new(ISSUER).introspection(introspection));
    assert!(bearer(&guard, "opaque").await.is_ok());
    let form = world.asked().remove(0);
    let assertion = form.split("client_assertion=").nth(1).unwrap();
    let jws = linchpin_oauth::Jws::read(assertion).unwrap();
    assert_eq!(jws.verify(&signer.jwk()).unwrap().text("aud"), Some(ISSUER));
}
