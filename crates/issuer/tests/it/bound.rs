//! The gate of an issuer: what it refuses like any guard, and tokens that are bound to a key (rows 26, 32 to 34, 39 to 46, 81).

use crate::flow::{once, tokens_for};
use crate::support::flaky::Flaky;
use crate::support::{Got, ISSUER, Login, REDIRECT, RESOURCE, ask, encode, enter, post, refresh, text};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, StatusCode};
use linchpin_core::gate::{Admit, Gate as _, Refusal};
use linchpin_issuer::{Client, Issuer};
use linchpin_oauth::dpop::DpopKey;
use linchpin_store::{Secrets, Store};
use serde_json::json;
use std::net::SocketAddr;

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

async fn admit(issuer: &Issuer, path: &str, headers: &[(&str, &str)]) -> Result<(), Refusal> {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match issuer.admit(&request.body(()).unwrap().into_parts().0, Some(SocketAddr::from(([192, 0, 2, 9], 1)))) {
        Admit::Yes(_) => Ok(()),
        Admit::No(refusal) => Err(refusal),
        Admit::Later(decision) => decision.await.map(drop),
        Admit::Open => panic!("the gate is open"),
    }
}

#[tokio::test]
async fn rows_26_and_32_to_34_tokens_come_in_one_header_and_bad_ones_are_counted() {
    let (issuer, terminal) = once();
    let tokens = tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
    let good = format!("Bearer {}", text(&tokens, "access_token"));
    let form = ("content-type", "application/x-www-form-urlencoded");
    let rows: [(&str, &[(&str, &str)]); 3] = [
        ("/mcp?access_token=canary", &[]),
        ("/mcp", &[form]),
        ("/mcp", &[("authorization", &good), ("authorization", &good)]),
    ];
    for (path, headers) in rows {
        let refusal = admit(&issuer, path, headers).await.unwrap_err();
        assert_eq!(refusal.status(), 400, "{path} {headers:?}");
        assert!(!refusal.message().contains("canary"));
    }
    assert!(admit(&issuer, "/mcp", &[("authorization", &good)]).await.is_ok());
    for n in 0..300 {
        let bad = format!("Bearer bad{n}");
        assert_eq!(admit(&issuer, "/mcp", &[("authorization", &bad)]).await.unwrap_err().status(), 401);
    }
    assert_eq!(admit(&issuer, "/mcp", &[("authorization", "Bearer bad")]).await.unwrap_err().status(), 429);
    assert!(admit(&issuer, "/mcp", &[("authorization", &good)]).await.is_ok(), "who is known goes on");
}

/// Row 31: whether a proof was used before is asked of the store, which is away.
#[tokio::test]
async fn proofs_that_nodes_remember_together_wait_for_a_store_that_is_away() {
    let (flaky, store) = Flaky::around(&Store::memory(), &Secrets::random());
    let (issuer, terminal) = once();
    let issuer = issuer.store(store).shared_replay();
    let key = DpopKey::generate();
    let login = Login::new("desktop");
    let code = crate::flow::code_for(&issuer, &terminal, &login).await;
    let form = redemption(&login, &code);
    let access = text(&with_proof(&issuer, &proof(&key), &form).await.json(), "access_token");
    let scheme = format!("DPoP {access}");
    let proof = key.proof("POST", RESOURCE, None, Some(&access), now());
    let headers = [(AUTHORIZATION.as_str(), scheme.as_str()), ("dpop", &proof)];
    flaky.set_away(true);
    assert_eq!(admit(&issuer, "/mcp", &headers).await.unwrap_err().status(), 503);
    flaky.set_away(false);
    assert!(admit(&issuer, "/mcp", &headers).await.is_ok(), "it was not used");
    assert_eq!(admit(&issuer, "/mcp", &headers).await.unwrap_err().status(), 401);
}

/// The form that redeems a code.
fn redemption<'a>(login: &'a Login, code: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("grant_type", "authorization_code"),
        ("client_id", "desktop"),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", login.pkce.verifier.expose()),
    ]
}

/// Sends a token request with a proof.
async fn with_proof(issuer: &Issuer, proof: &str, form: &[(&str, &str)]) -> Got {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
    headers.insert("dpop", proof.parse().unwrap());
    let from = SocketAddr::from(([192, 0, 2, 2], 4000));
    ask(issuer, Method::POST, &format!("{ISSUER}/token"), headers, encode(form), from).await
}

fn proof(key: &DpopKey) -> String {
    key.proof("POST", &format!("{ISSUER}/token"), None, None, now())
}

#[tokio::test]
async fn row_81_tokens_and_refresh_tokens_belong_to_the_key_that_they_were_given_to() {
    let (issuer, terminal) = once();
    let (own, other) = (DpopKey::generate(), DpopKey::generate());
    let login = Login::new("desktop");
    let code = crate::flow::code_for(&issuer, &terminal, &login).await;
    let form = redemption(&login, &code);
    let elsewhere = own.proof("POST", &format!("{ISSUER}/revoke"), None, None, now());
    for bad in ["x", &elsewhere] {
        assert_eq!(with_proof(&issuer, bad, &form).await.error(), "invalid_dpop_proof");
    }
    let first = proof(&own);
    let tokens = with_proof(&issuer, &first, &form).await.json();
    assert_eq!(text(&tokens, "token_type"), "DPoP");
    let token = text(&tokens, "refresh_token");
    let again = [("grant_type", "refresh_token"), ("client_id", "desktop"), ("refresh_token", token.as_str())];
    assert_eq!(with_proof(&issuer, &first, &again).await.error(), "invalid_dpop_proof", "a proof is good once");
    // 46: no bearer token; 39, 40, 43: its proof is for one request, by its key.
    let access = text(&tokens, "access_token");
    assert_eq!(enter(&issuer, "/mcp", Some(&access)).await.unwrap_err().status(), 401);
    let scheme = format!("DPoP {access}");
    let at = |key: &DpopKey, method| key.proof(method, RESOURCE, None, Some(&access), now());
    let sent = at(&own, "POST");
    for (proof, fits) in [(&sent, true), (&sent, false), (&at(&own, "GET"), false), (&at(&other, "POST"), false)] {
        let admitted = admit(&issuer, "/mcp", &[(AUTHORIZATION.as_str(), &scheme), ("dpop", proof)]).await;
        assert_eq!(admitted.is_ok(), fits);
    }
    // 81: another key, and none; the family goes on with its own.
    assert_eq!(with_proof(&issuer, &proof(&other), &again).await.error(), "invalid_grant");
    assert_eq!(refresh(&issuer, "desktop", &token, &[]).await.error(), "invalid_grant");
    let next = with_proof(&issuer, &proof(&own), &again).await;
    assert_eq!((next.status, text(&next.json(), "token_type").as_str()), (StatusCode::OK, "DPoP"));
    // The same answer again is for the same key.
    assert_eq!(with_proof(&issuer, &proof(&other), &again).await.error(), "invalid_grant");
    assert_eq!(with_proof(&issuer, &proof(&own), &again).await.json(), next.json());
}

#[tokio::test]
async fn a_code_for_a_key_is_redeemed_with_it() {
    let (issuer, terminal) = once();
    let (own, other) = (DpopKey::generate(), DpopKey::generate());
    let thumbprint = own.thumbprint().to_string();
    let login = || Login::new("desktop").set("dpop_jkt", Some(&thumbprint));
    for (key, fits) in [(Some(&own), true), (Some(&other), false), (None, false)] {
        let login = login();
        let code = crate::flow::code_for(&issuer, &terminal, &login).await;
        let got = match key {
            None => login.redeem(&issuer, &code).await,
            Some(key) => {
                let verifier = login.pkce.verifier.expose();
                let form = [("grant_type", "authorization_code"), ("client_id", "desktop"), ("code", &*code)];
                with_proof(&issuer, &proof(key), &[&form[..], &[("code_verifier", verifier)]].concat()).await
            }
        };
        assert_eq!(got.status == StatusCode::OK, fits, "{got:?}");
    }
    let wrong = Login::new("desktop").set("dpop_jkt", Some("short"));
    let got = crate::support::Browser::new(&issuer).get(&wrong.url(&issuer)).await;
    assert_eq!(crate::support::answer_of(&got)["error"], "invalid_request");
}

#[tokio::test]
async fn a_client_for_itself_may_have_bound_tokens_too_and_introspection_says_so() {
    let (issuer, _) = once();
    let issuer = issuer.client(Client::new("nightly").secret("s3cret").client_credentials(["files:read"]));
    let key = DpopKey::generate();
    let form = [("grant_type", "client_credentials"), ("client_id", "nightly"), ("client_secret", "s3cret")];
    let tokens = with_proof(&issuer, &proof(&key), &form).await.json();
    let access = text(&tokens, "access_token");
    let said = post(&issuer, "introspect", Some(("nightly", "s3cret")), &[("token", &access)]).await.json();
    assert_eq!((&said["token_type"], &said["cnf"]["jkt"]), (&json!("DPoP"), &json!(key.thumbprint().to_string())));
}
