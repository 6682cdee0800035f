//! What strangers are told, and what is served to everybody.

use crate::support::*;
use bytes::Bytes;
use http::{Method, Request};
use linchpin_core::gate::Gate;
use linchpin_guard::{Dpop, Guard, Keys, Scopes, TrustedIssuer};
use linchpin_oauth::Alg;
use serde_json::{Value, json};

const METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

/// What it is, path, headers, status, challenge.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16, String);

#[tokio::test]
async fn each_situation_has_its_status_and_challenge() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = world.guard().issuer(ISSUER).require(["mcp", "base"]);
    let plain = format!("Bearer resource_metadata=\"{METADATA}\", scope=\"mcp base\"");
    let invalid = |why: &str| {
        format!(
            "Bearer error=\"invalid_token\", error_description=\"{why}\", resource_metadata=\"{METADATA}\", scope=\"mcp base\""
        )
    };
    let malformed = |why: &str| format!("Bearer error=\"invalid_request\", error_description=\"{why}\"");
    let with = |changes: Value| format!("Bearer {}", key.sign("at+jwt", &claims(changes)));
    let (expired, narrow) = (with(json!({ "exp": NOW - 100 })), with(json!({ "scope": "mcp" })));
    let twice = malformed("there is more than one Authorization header");
    let rows: [Row<'_>; 9] = [
        ("no credentials", "/mcp", &[], 401, plain.clone()),
        ("other scheme", "/mcp", &[("authorization", "Basic YTpi")], 401, plain.clone()),
        ("DPoP where it is off", "/mcp", &[("authorization", "DPoP abc")], 401, plain),
        ("34: two lines", "/mcp", &[("authorization", "Bearer a"), ("authorization", "Bearer b")], 400, twice),
        (
            "32: in the query",
            "/mcp?access_token=abc",
            &[],
            400,
            malformed("the access token must be sent in the Authorization header, not in the URL"),
        ),
        (
            "33: in a form",
            "/mcp",
            &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
            400,
            malformed("the access token must be sent in the Authorization header, not in a form"),
        ),
        ("expired", "/mcp", &[("authorization", &expired)], 401, invalid("the token has expired")),
        ("bad", "/mcp", &[("authorization", "Bearer abc")], 401, invalid("the token is not valid")),
        (
            "51: base scope missing",
            "/mcp",
            &[("authorization", &narrow)],
            403,
            format!("Bearer error=\"insufficient_scope\", resource_metadata=\"{METADATA}\", scope=\"mcp base\""),
        ),
    ];
    for (row, path, headers, status, challenge) in rows {
        let refusal = admitted(&guard, &head(path, headers)).await.unwrap_err();
        assert_eq!(shown(&refusal), (status, vec![challenge]), "{row}");
        assert!(!refusal.message().contains("abc"), "{row}");
    }
    let ada = bearer(&guard, &key.sign("at+jwt", &claims(json!({ "scope": "mcp base" })))).await.unwrap();
    let refusal = guard.missing("/mcp", Some(&ada), &["files:write".into(), "mcp".into()]);
    let challenge = format!(
        "Bearer error=\"insufficient_scope\", resource_metadata=\"{METADATA}\", scope=\"mcp base files:write\""
    );
    assert_eq!(shown(&refusal), (403, vec![challenge]), "52: all that is needed");
    let challenge = format!("Bearer resource_metadata=\"{METADATA}\", scope=\"mcp base files:write\"");
    assert_eq!(shown(&guard.missing("/mcp", None, &["files:write".into()])), (401, vec![challenge]));
}

#[tokio::test]
async fn strangers_are_told_what_to_ask_for_beside_what_is_required() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = world.guard().issuer(ISSUER).require(["mcp"]).ask_for(["files:write"]);
    let (_, told) = shown(&admitted(&guard, &head("/mcp", &[])).await.unwrap_err());
    assert!(told[0].contains("scope=\"mcp files:write\""), "{told:?}");
    let ada = bearer(&guard, &key.sign("at+jwt", &claims(json!({ "scope": "mcp" })))).await.unwrap();
    let (_, told) = shown(&guard.missing("", Some(&ada), &["x".into()]));
    assert!(told[0].contains("scope=\"mcp x\""), "{told:?}");
}

#[tokio::test]
async fn scopes_are_asked_for_at_the_resource_that_was_used() {
    let world = World::new();
    let guard = world.guard().issuer(ISSUER).also_at("https://mcp.example.com/sse");
    for (path, metadata) in [("/mcp", "mcp"), ("/sse", "sse"), ("", "mcp")] {
        let (_, told) = shown(&guard.missing(path, None, &["x".into()]));
        let metadata = format!("/.well-known/oauth-protected-resource/{metadata}\"");
        assert!(told[0].contains(&metadata), "{path}: {told:?}");
    }
}

/// Clients of 2025-03-26 know of no other place.
#[tokio::test]
async fn the_metadata_of_the_issuer_is_mirrored_where_that_is_wanted() {
    const PLACE: &str = "/.well-known/oauth-authorization-server";
    let world = World::with_keys(&[]);
    let guard = world.guard().issuer(ISSUER);
    assert!(guard.page(PLACE).is_none());
    let page = guard.mirror_metadata().page(PLACE).unwrap();
    let get = || http::Request::get(PLACE).body(bytes::Bytes::new()).unwrap();
    world.set_away(true);
    assert_eq!(page.respond(get()).await.status(), 503);
    world.set_away(false);
    world.pass(5);
    let response = page.respond(get()).await;
    let document: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!((response.status().as_u16(), document["issuer"].as_str()), (200, Some(ISSUER)));
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
}

/// Whoever is behind the same address may send what they like.
#[tokio::test]
async fn a_good_key_comes_in_however_many_bad_ones_there_were() {
    let (keys, token) = Keys::once("laptop", Scopes::new());
    let guard = Guard::for_keys().keys(keys);
    for n in 0..301 {
        let refusal = bearer(&guard, &format!("lp_laptop_{n}")).await.unwrap_err();
        assert_eq!(refusal.status().as_u16(), if n < 300 { 401 } else { 429 }, "{n}");
    }
    assert!(bearer(&guard, token.expose()).await.is_ok());
}

#[tokio::test]
async fn strangers_come_in_where_they_may_but_bad_tokens_do_not() {
    let world = World::new();
    let guard = world.guard().issuer(ISSUER).optional();
    assert!(admitted(&guard, &head("/mcp", &[])).await.unwrap().is_none());
    assert!(bearer(&guard, "abc").await.is_err());
}

#[tokio::test]
async fn keys_alone_have_a_bare_challenge_and_no_metadata() {
    let (keys, secret) = Keys::once("bot", Scopes::new());
    let guard = Guard::for_keys().keys(keys);
    assert_eq!(bearer(&guard, secret.expose()).await.unwrap().subject(), "key:bot");
    assert_eq!(shown(&admitted(&guard, &head("/mcp", &[])).await.unwrap_err()), (401, vec!["Bearer".to_owned()]));
    assert!(guard.page("/.well-known/oauth-protected-resource").is_none());
}

async fn page(guard: &Guard, method: Method, path: &str) -> Option<(u16, Value)> {
    let page = guard.page(path)?;
    let request = Request::builder().method(method).uri(path).header("host", "evil.example").body(Bytes::new());
    let response = page.respond(request.unwrap()).await;
    Some((response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default()))
}

#[tokio::test]
async fn the_metadata_is_where_clients_look_for_it_and_says_what_the_guard_was_told() {
    let world = World::new();
    let guard = world
        .guard()
        .issuer(ISSUER)
        .issuer(TrustedIssuer::new("https://second.example"))
        .require(["mcp"])
        .also_at("https://mcp.example.com/sse")
        .resource_name("Files")
        .resource_documentation("https://docs.example")
        .dpop(Dpop::Required);
    let mut expected = json!({
        "resource": SERVER,
        "authorization_servers": [ISSUER, "https://second.example"],
        "scopes_supported": ["mcp"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Files",
        "resource_documentation": "https://docs.example",
        "dpop_signing_alg_values_supported": ["ES256", "EdDSA"],
        "dpop_bound_access_tokens_required": true,
    });
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        assert_eq!(page(&guard, Method::GET, path).await, Some((200, expected.clone())), "{path}");
    }
    expected["resource"] = json!("https://mcp.example.com/sse");
    assert_eq!(page(&guard, Method::GET, "/.well-known/oauth-protected-resource/sse").await, Some((200, expected)));
    assert_eq!(page(&guard, Method::POST, "/.well-known/oauth-protected-resource").await.unwrap().0, 405);
    for path in ["/.well-known/oauth-protected-resource/other", "/.well-known/oauth-authorization-server", "/mcp"] {
        assert!(guard.page(path).is_none(), "{path}");
    }
    let refusal = admitted(&guard, &head("/sse", &[])).await.unwrap_err();
    assert!(shown(&refusal).1[0].contains("oauth-protected-resource/sse"), "{refusal:?}");
    let root = Guard::new("https://mcp.example.com/").issuer(ISSUER);
    assert!(root.page("/.well-known/oauth-protected-resource").is_some());
    assert!(root.page("/.well-known/oauth-protected-resource/").is_none());
}

#[test]
fn a_guard_that_cannot_work_says_what_to_do() {
    let (keys, _) = Keys::once("bot", Scopes::new());
    let new = Guard::new;
    let rows = [
        (new(SERVER), "lets nobody in"),
        (Guard::for_keys().keys(keys.clone()).issuer(ISSUER), "Guard::new(URL)"),
        (new("mcp.example.com").issuer(ISSUER), "is not a URL"),
        (new("https://a/b#c").issuer(ISSUER), "fragment"),
        (new("http://mcp.example.com/mcp").issuer(ISSUER), "this machine only"),
        (new(SERVER).issuer("http://login.example.com"), "this machine only"),
        (new(SERVER).issuer("ftp://login.example.com"), "neither https nor http"),
        (new(SERVER).issuer(ISSUER).issuer(ISSUER), "twice"),
        (new(SERVER).issuer(ISSUER).require(["two words"]), "is not a scope"),
        (new(SERVER).issuer(ISSUER).implies("a", ["b"]).implies("b", ["c"]).implies("c", ["a"]), "implies itself"),
    ];
    for (guard, expected) in rows {
        let said = guard.check().unwrap_err();
        assert!(said.contains(expected) && !said.contains('\n'), "{said}");
        assert!(guard.layer().is_err());
    }
    let loopback = new("http://127.0.0.1:8931/mcp").issuer("http://localhost:9/realm").keys(keys);
    assert_eq!(loopback.check(), Ok(()));
}
