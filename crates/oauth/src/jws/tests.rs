//! Tokens of hostile senders, and those of the RFCs.

use super::*;
use crate::jwk::JwkError;
use crate::jwk_set::JwkSet;
use crate::signer::Signer;
use proptest::prelude::*;
use serde_json::json;

fn b64(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

fn token(header: &str, claims: &str) -> String {
    format!("{}.{}.AAAA", b64(header), b64(claims))
}

#[test]
fn a_token_has_three_parts_an_asymmetric_algorithm_and_no_surprises() {
    let good = r#"{"alg":"ES256"}"#;
    assert!(Jws::read(&token(good, "{}")).is_ok());
    let headers = [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None"}"#,
        r#"{"alg":""}"#,
        r#"{}"#,
        r#"{"alg":"HS256"}"#,
        r#"{"alg":"es256"}"#,
        r#"{"alg":["ES256"]}"#,
        r#"{"alg":"ES256","alg":"ES256"}"#,
        r#"{"alg":"ES256","crit":["exp"]}"#,
        r#"{"alg":"ES256","crit":[]}"#,
        r#"{"alg":"ES256","b64":false}"#,
        r#"{"alg":"ES256","enc":"A128GCM"}"#,
        r#"{"alg":"ES256","kid":1}"#,
        r#"{"alg":"ES256","typ":{}}"#,
        r#"["ES256"]"#,
        "ES256",
        "",
    ];
    for header in headers {
        assert!(Jws::read(&token(header, "{}")).is_err(), "{header}");
    }
    for claims in [r#"{"aud":"a","aud":"b"}"#, "[]", "", "{", r#"{"a":{"b":1,"b":1}}"#] {
        assert!(Jws::read(&token(good, claims)).is_err(), "{claims}");
    }
    let whole = token(good, "{}");
    let rows = ["".to_owned(), ".".into(), "..".into(), "a.b.c".into(), format!("{whole}.AAAA"), format!("{whole}=")];
    for text in rows {
        assert!(Jws::read(&text).is_err(), "{text}");
    }
    let long = token(good, &format!(r#"{{"a":"{}"}}"#, "x".repeat(Jws::BYTES_MAX)));
    assert!(Jws::read(&long).is_err());
}

#[test]
fn a_key_verifies_its_own_algorithm_only() {
    for alg in [Alg::Es256, Alg::Es384, Alg::EdDsa] {
        let (signer, _) = Signer::generate(alg);
        let text = signer.sign("at+jwt", &json!({ "iss": "i" }));
        let jws = Jws::read(&text).unwrap();
        assert_eq!(jws.verify(&signer.jwk()).unwrap().text("iss"), Some("i"), "{alg}");
        for other in [Alg::Es256, Alg::Es384, Alg::EdDsa] {
            assert!(jws.verify(&Signer::generate(other).0.jwk()).is_err(), "{alg} {other}");
        }
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(
                Jws::read(&changed).is_ok_and(|jws| jws.verify(&signer.jwk()).is_ok()) == (changed == text),
                "{at}"
            );
        }
    }
}

#[test]
fn times_hold_within_the_leeway() {
    let rows = [
        (json!({ "exp": 1000 }), Ok(())),
        (json!({ "exp": 941 }), Ok(())),
        (json!({ "exp": 940 }), Err(Untimely::Expired)),
        (json!({ "exp": 1e300 }), Ok(())),
        (json!({ "exp": -5 }), Err(Untimely::Expired)),
        (json!({ "exp": "2000" }), Err(Untimely::Malformed)),
        (json!({}), Err(Untimely::Malformed)),
        (json!({ "exp": 2000, "nbf": 1060, "iat": 1060.5 }), Ok(())),
        (json!({ "exp": 2000, "nbf": 1061 }), Err(Untimely::Early)),
        (json!({ "exp": 2000, "iat": 1061 }), Err(Untimely::Early)),
        (json!({ "exp": 2000, "nbf": null }), Err(Untimely::Malformed)),
    ];
    for (claims, expected) in rows {
        assert_eq!(Claims(claims.as_object().unwrap().clone()).check_times(1000, 60), expected, "{claims}");
    }
}

#[test]
fn lists_are_texts_and_bounded() {
    let rows = [
        (json!("a"), Some(vec!["a"])),
        (json!(["a", "b"]), Some(vec!["a", "b"])),
        (json!([]), Some(vec![])),
        (json!(1), None),
        (json!(["a", 1]), None),
        (json!(vec!["a"; 5000]), None),
    ];
    for (aud, expected) in rows {
        let claims = Claims(json!({ "aud": aud }).as_object().unwrap().clone());
        assert_eq!(claims.texts("aud"), expected);
    }
}

#[test]
fn a_key_set_skips_what_it_must_not_use() {
    let good = |kid: &str| {
        let mut key = Signer::generate(Alg::Es256).0.jwk().to_value();
        key["kid"] = json!(kid);
        key
    };
    let with = |name: &str, value: Value| {
        let mut key = good("x");
        key[name] = value;
        key
    };
    let rsa = |bytes: usize| json!({ "kty": "RSA", "e": "AQAB", "n": URL_SAFE_NO_PAD.encode(vec![0xff; bytes]) });
    let rows = [
        (good("a"), None),
        (rsa(256), None),
        (with("use", json!("enc")), Some(JwkError::NotForSignatures)),
        (with("key_ops", json!(["encrypt"])), Some(JwkError::NotForSignatures)),
        (with("d", json!("AAAA")), Some(JwkError::Private)),
        (json!({ "kty": "oct", "k": "AAAA" }), Some(JwkError::Private)),
        (with("crv", json!("secp256k1")), Some(JwkError::Unsupported)),
        (with("alg", json!("RS256")), Some(JwkError::Unsupported)),
        (with("alg", json!("HS256")), Some(JwkError::Unsupported)),
        (with("x", json!("AAAA")), Some(JwkError::Malformed)),
        (rsa(128), Some(JwkError::Weak)),
        (rsa(2048), Some(JwkError::Malformed)),
        (json!("key"), Some(JwkError::Malformed)),
    ];
    let keys: Vec<&Value> = rows.iter().map(|(key, _)| key).collect();
    let set = JwkSet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
    let expected: Vec<JwkError> = rows.iter().filter_map(|(_, why)| *why).collect();
    assert_eq!(set.skipped(), expected);
    assert_eq!(set.iter().count(), 2);
    assert!(set.has("a") && !set.has("x"));

    let many = json!({ "keys": vec![good("a"); 10_000] }).to_string();
    assert!(JwkSet::parse(many.as_bytes()).is_none(), "too long");
    let some = json!({ "keys": vec![good("a"); 150] }).to_string();
    assert_eq!(JwkSet::parse(some.as_bytes()).unwrap().iter().count(), JwkSet::KEYS_MAX);
    for wrong in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#] {
        assert!(JwkSet::parse(wrong.as_bytes()).is_none(), "{wrong}");
    }
}

#[test]
fn keys_are_found_by_name_or_by_algorithm() {
    let key = |alg, kid: &str| Signer::generate(alg).0.kid(kid).jwk();
    let set: JwkSet = (0..6).map(|n| key(Alg::Es256, &n.to_string())).chain([key(Alg::EdDsa, "0")]).collect();
    let found = |text: &str| set.fitting(&Jws::read(text).unwrap()).count();
    assert_eq!(found(&token(r#"{"alg":"ES256","kid":"0"}"#, "{}")), 1);
    assert_eq!(found(&token(r#"{"alg":"ES256","kid":"7"}"#, "{}")), 0);
    assert_eq!(found(&token(r#"{"alg":"RS256","kid":"0"}"#, "{}")), 0);
    assert_eq!(found(&token(r#"{"alg":"ES256"}"#, "{}")), 4);
    assert_eq!(found(&token(r#"{"alg":"EdDSA"}"#, "{}")), 1);
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(header in "\\PC{0,60}", claims in "\\PC{0,60}", text in "[A-Za-z0-9_.=-]{0,90}") {
        let _ = Jws::read(&token(&header, &claims));
        let _ = Jws::read(&text);
    }
}
