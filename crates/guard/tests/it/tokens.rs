//! Rows 1 to 24: access tokens that are JWTs.

use crate::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linchpin_guard::{Keys, Scopes, Signer, TrustedIssuer};
use linchpin_oauth::Alg;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

const INVALID: (u16, &str) = (401, "the token is not valid");
const OTHER: (u16, &str) = (401, "the token is not for this server");
const EXPIRED: (u16, &str) = (401, "the token has expired");
const OK: (u16, &str) = (200, "");

fn b64(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// A token with a header of one's own, signed with HMAC by the text of the issuer's public key.
fn with_hmac(header: &Value, key: &Signer) -> String {
    let message = format!("{}.{}", b64(&header.to_string()), b64(&claims(json!({})).to_string()));
    let secret = hmac::Key::new(hmac::HMAC_SHA256, key.jwk().to_value().to_string().as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&secret, message.as_bytes())))
}

/// A key, and what signs anything with it.
struct Signs {
    key: Signer,
    pair: EcdsaKeyPair,
}

impl Signs {
    fn new() -> Signs {
        let (key, secret) = Signer::generate(Alg::Es256);
        let pkcs8 = URL_SAFE_NO_PAD.decode(secret.expose()).unwrap();
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, &random).unwrap();
        Signs { key: key.kid("k"), pair }
    }

    /// A token with a header of one's own.
    fn with_header(&self, header: &Value) -> String {
        let message = format!("{}.{}", b64(&header.to_string()), b64(&claims(json!({})).to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

#[tokio::test]
async fn tokens_are_refused_with_one_text_whatever_is_wrong_with_their_signature() {
    let (ours, evil) = (Signs::new(), Signs::new());
    let (key, other) = (&ours.key, &evil.key);
    let world = World::with_keys(&[key]);
    let guard = world.guard().issuer(ISSUER);
    assert_eq!(why(&bearer(&guard, &key.sign("at+jwt", &claims(json!({})))).await), OK);
    let honest = ours.with_header(&json!({ "alg": "ES256", "kid": "k", "typ": "at+jwt" }));
    assert_eq!(why(&bearer(&guard, &honest).await), OK);
    world.fetches();
    let jwk = other.jwk().to_value();
    let none = format!("{}.{}.", b64(r#"{"alg":"none","kid":"k"}"#), b64(&claims(json!({})).to_string()));
    let five = format!("{}.a.b", key.sign("at+jwt", &claims(json!({}))));
    let rows = [
        ("1: alg none", none),
        ("2: HS256 over the public key", with_hmac(&json!({ "alg": "HS256", "kid": "k" }), key)),
        ("3: RS256 under an EC key", ours.with_header(&json!({ "alg": "RS256", "kid": "k" }))),
        ("4: alg in other case", ours.with_header(&json!({ "alg": "es256", "kid": "k" }))),
        ("5: jwk of the attacker", evil.with_header(&json!({ "alg": "ES256", "jwk": jwk }))),
        ("5: jwk of the attacker beside our kid", evil.with_header(&json!({ "alg": "ES256", "kid": "k", "jwk": jwk }))),
        ("5: jku", evil.with_header(&json!({ "alg": "ES256", "kid": "k", "jku": "https://evil/k" }))),
        ("5: x5u", evil.with_header(&json!({ "alg": "ES256", "kid": "k", "x5u": "https://evil/k" }))),
        ("6: crit", ours.with_header(&json!({ "alg": "ES256", "kid": "k", "crit": ["exp"], "exp": 1 }))),
        ("7: b64 false", ours.with_header(&json!({ "alg": "ES256", "kid": "k", "b64": false }))),
        ("8: JWE", five),
        ("19: ID-JAG", key.sign("oauth-id-jag+jwt", &claims(json!({})))),
        ("20: DPoP proof", key.sign("dpop+jwt", &claims(json!({})))),
        ("21: ID token", key.sign("JWT", &claims(json!({ "nonce": "n", "aud": [SERVER, "client"] })))),
        ("signed by another", other.sign("at+jwt", &claims(json!({})))),
        ("rubbish", "abc".to_owned()),
        ("too long", key.sign("at+jwt", &claims(json!({ "x": "y".repeat(9000) })))),
    ];
    for (row, token) in rows {
        assert_eq!(why(&bearer(&guard, &token).await), INVALID, "{row}");
    }
    assert_eq!(world.fetches(), 0, "nothing is fetched for them");
}

#[tokio::test]
async fn claims_must_say_that_the_token_is_for_this_server_and_valid_now() {
    let key = key(Alg::EdDsa, "k");
    let world = World::with_keys(&[&key]);
    let guard = world.guard().issuer(ISSUER);
    let many: Vec<&str> = vec![SERVER; 5000];
    let rows = [
        ("an honest one", json!({}), OK),
        ("10: aud a number", json!({ "aud": 1 }), INVALID),
        ("11: 5,000 audiences", json!({ "aud": many }), INVALID),
        ("11: many audiences", json!({ "aud": &many[..65] }), INVALID),
        ("no audience", json!({ "aud": null }), INVALID),
        ("one of several audiences", json!({ "aud": ["https://other.example", SERVER] }), OK),
        ("12: sister server", json!({ "aud": "https://mcp.example.com/other" }), OTHER),
        ("13: a prefix of ours", json!({ "aud": "https://mcp.example.com" }), OTHER),
        ("14: ours and more", json!({ "aud": "https://mcp.example.com/mcp/x" }), OTHER),
        ("15: ours in other host case", json!({ "aud": "HTTPS://MCP.example.com/mcp" }), OK),
        ("16: issuer with a slash", json!({ "iss": format!("{ISSUER}/") }), INVALID),
        ("17: another tenant", json!({ "iss": "https://login.example.com/realms/other" }), INVALID),
        ("no issuer", json!({ "iss": null }), INVALID),
        ("22: expired 61 s ago", json!({ "exp": NOW - 61 }), EXPIRED),
        ("expired 59 s ago", json!({ "exp": NOW - 59 }), OK),
        ("23: nbf in 61 s", json!({ "nbf": NOW + 61 }), INVALID),
        ("23: iat in 61 s", json!({ "iat": NOW + 61 }), INVALID),
        ("24: no exp", json!({ "exp": null }), INVALID),
        ("exp a text", json!({ "exp": "2099" }), INVALID),
        ("nobody", json!({ "sub": null, "client_id": null }), INVALID),
        ("a user with the name of a program", json!({ "sub": "client:desktop" }), INVALID),
        ("47: bound to a certificate", json!({ "cnf": { "x5t#S256": "AAAA" } }), INVALID),
        ("47: bound twice", json!({ "cnf": { "x5t#S256": "AAAA", "jkt": "AAAA" } }), INVALID),
    ];
    for (n, (row, changes, expected)) in rows.into_iter().enumerate() {
        let mut changes = changes;
        changes["jti"] = json!(n);
        for _ in 0..2 {
            assert_eq!(why(&bearer(&guard, &key.sign("at+jwt", &claims(changes.clone()))).await), expected, "{row}");
        }
    }
}

#[tokio::test]
async fn a_member_that_is_there_twice_is_refused_although_the_issuer_signed_it() {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let world = World::new();
    let keys = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x }] });
    world.publish_text(ISSUER, &keys.to_string());
    let guard = world.guard().issuer(ISSUER);
    let good = claims(json!({})).to_string();
    let twice = good.replacen("\"aud\"", "\"aud\":\"https://other\",\"aud\"", 1);
    for (text, expected) in [(good, OK), (twice, INVALID)] {
        let message = format!("{}.{}", b64(r#"{"alg":"EdDSA","kid":"k","typ":"at+jwt"}"#), b64(&text));
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes())));
        assert_eq!(why(&bearer(&guard, &token).await), expected, "9: {text}");
    }
}

#[tokio::test]
async fn issuers_that_share_a_kid_have_each_their_own_keys() {
    let (one, two) = (key(Alg::Es256, "k"), key(Alg::Es256, "k"));
    let world = World::with_keys(&[&one]);
    world.publish("https://second.example", &[&two]);
    let guard = world.guard().issuer(ISSUER).issuer("https://second.example");
    let second = json!({ "iss": "https://second.example" });
    assert_eq!(why(&bearer(&guard, &one.sign("at+jwt", &claims(json!({})))).await), OK);
    assert_eq!(why(&bearer(&guard, &two.sign("at+jwt", &claims(second.clone()))).await), OK);
    assert_eq!(why(&bearer(&guard, &two.sign("at+jwt", &claims(json!({})))).await), INVALID, "18");
    assert_eq!(why(&bearer(&guard, &one.sign("at+jwt", &claims(second))).await), INVALID, "18");
}

#[tokio::test]
async fn types_are_those_of_access_tokens_and_strictly_so_on_demand() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let (lax, strict) = (world.guard().issuer(ISSUER), world.guard().issuer(TrustedIssuer::new(ISSUER).strict_typ()));
    for (typ, lax_says, strict_says) in
        [("at+jwt", OK, OK), ("application/AT+JWT", OK, OK), ("JWT", OK, INVALID), ("logout+jwt", INVALID, INVALID)]
    {
        let token = key.sign(typ, &claims(json!({})));
        assert_eq!(
            (why(&bearer(&lax, &token).await), why(&bearer(&strict, &token).await)),
            (lax_says, strict_says),
            "{typ}"
        );
    }
}

#[tokio::test]
async fn a_principal_has_what_its_token_says() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let issuer = TrustedIssuer::new(ISSUER).audience("api://files").scopes_from(|claims| {
        claims.texts("roles").unwrap_or_default().iter().map(|role| format!("role:{role}")).collect()
    });
    let guard = world.guard().issuer(issuer).implies("files", ["files:read", "files:write"]).implies("all", ["files"]);
    let changes = json!({ "aud": "api://files", "scope": null, "scp": "all x", "roles": ["admin"] });
    let ada = bearer(&guard, &key.sign("JWT", &claims(changes))).await.unwrap();
    assert_eq!((ada.subject(), ada.issuer(), ada.client()), ("ada", Some(ISSUER), Some("desktop")));
    let mut scopes: Vec<&str> = ada.scopes().collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["all", "files", "files:read", "files:write", "role:admin", "x"]);
    assert_eq!(ada.claims::<Value>().unwrap()["roles"], json!(["admin"]));
    let program = bearer(&guard, &key.sign("JWT", &claims(json!({ "sub": "desktop" })))).await.unwrap();
    assert_eq!(program.subject(), "client:desktop");
    let cognito = TrustedIssuer::new(ISSUER).audience("app-1").audience_claim("client_id");
    let guard = world.guard().issuer(cognito);
    let of = |client: &str| key.sign("JWT", &claims(json!({ "aud": null, "client_id": client })));
    assert_eq!(why(&bearer(&guard, &of("app-1")).await), OK);
    assert_eq!(why(&bearer(&guard, &of("app-2")).await), OTHER);
}

#[tokio::test]
async fn a_subject_with_its_issuer_is_the_same_principal_as_there_and_no_program_of_this_issuer() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = world.guard().issuer(TrustedIssuer::new(ISSUER).principal_in_subject().strict_expiry());
    let sub = |sub: String| key.sign("at+jwt", &claims(json!({ "sub": sub })));
    let ada = bearer(&guard, &sub("https://idp.example#17".to_owned())).await.unwrap();
    assert_eq!((ada.issuer(), ada.subject()), (Some("https://idp.example"), "17"));
    let own = bearer(&guard, &sub(format!("{ISSUER}#client:desktop"))).await.unwrap();
    assert_eq!((own.issuer(), own.subject()), (Some(ISSUER), "client:desktop"));
    let others = ["17".to_owned(), "https://idp.example#client:desktop".to_owned(), format!("{ISSUER}#client:other")];
    for other in others {
        assert_eq!(why(&bearer(&guard, &sub(other.clone())).await), INVALID, "{other}");
    }
    let brief = key.sign("at+jwt", &claims(json!({ "sub": "https://idp.example#17", "exp": NOW + 5 })));
    world.pass(4);
    assert_eq!(why(&bearer(&guard, &brief).await), OK);
    world.pass(1);
    assert_eq!(why(&bearer(&guard, &brief).await), EXPIRED, "to the second, remembered or not");
    assert_eq!(why(&bearer(&guard, &key.sign("at+jwt", &claims(json!({ "exp": NOW + 5 })))).await), EXPIRED);
}

#[tokio::test]
async fn a_revoked_token_is_refused_although_it_is_remembered() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let revoked = Arc::new(AtomicBool::new(false));
    let asked = revoked.clone();
    let issuer =
        TrustedIssuer::new(ISSUER).revoked("family", move |family| family == "f" && asked.load(Ordering::Relaxed));
    let guard = world.guard().issuer(issuer);
    let [token, other] = ["f", "g"].map(|family| key.sign("at+jwt", &claims(json!({ "family": family }))));
    assert_eq!(why(&bearer(&guard, &token).await), OK);
    revoked.store(true, Ordering::Relaxed);
    assert_eq!(why(&bearer(&guard, &token).await), INVALID, "30");
    assert_eq!(why(&bearer(&guard, &other).await), OK);
}

#[tokio::test]
async fn a_token_outside_of_a_request_is_judged_alike() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let (keys, secret) = Keys::once("bot", Scopes::parse("mcp"));
    let guard = world.guard().issuer(ISSUER).keys(keys).require(["mcp"]);
    assert_eq!(guard.verify(&key.sign("at+jwt", &claims(json!({})))).await.unwrap().subject(), "ada");
    assert_eq!(guard.verify(secret.expose()).await.unwrap().subject(), "key:bot");
    assert_eq!(why(&guard.verify("lp_bot_x").await), INVALID);
    assert_eq!(guard.verify(&key.sign("at+jwt", &claims(json!({ "scope": "x" })))).await.unwrap_err().status(), 403);
}
