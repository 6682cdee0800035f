//! Proofs are checked against the examples of RFC 9449 and RFC 7638.

use super::*;
use serde_json::Value;

/// Header and claims of a proof that the key in its header has signed.
fn opened(proof: &str) -> Option<(Value, Value)> {
    let jws = Jws::read(proof).ok()?;
    let key = Jwk::read(jws.jwk()?).ok()?;
    let claims = Value::Object(jws.verify(&key).ok()?.as_map().clone());
    let header = URL_SAFE_NO_PAD.decode(proof.split_once('.')?.0).ok()?;
    Some((serde_json::from_slice(&header).ok()?, claims))
}

#[test]
fn the_verifier_of_these_tests_accepts_the_proof_of_rfc_9449_and_no_other() {
    // Section 4.1, figure 2.
    let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
    let (_, claims) = opened(proof).unwrap();
    assert_eq!(claims["htu"], "https://server.example.com/token");
    assert!(opened(&proof.replace("NjE2fQ.", "NjE3fQ.")).is_none());
}

#[test]
fn thumbprints_are_those_of_the_rfcs() {
    let rows = [
        (
            "RFC 9449, section 6.1",
            json!({
                "crv": "P-256",
                "kty": "EC",
                "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
                "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
            }),
            "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I",
        ),
        (
            "RFC 7638, section 3.1",
            json!({
                "e": "AQAB",
                "kty": "RSA",
                "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
            }),
            "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
        ),
    ];
    for (name, members, expected) in rows {
        assert_eq!(Jwk::read(&members).unwrap().thumbprint().to_string(), expected, "{name}");
    }
}

#[test]
fn the_hash_of_a_token_is_that_of_rfc_9449() {
    // Section 7.1, figure 12.
    let proof = DpopKey::generate().proof(
        "GET",
        "https://resource.example.org/protectedresource",
        None,
        Some("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"),
        1_562_262_618,
    );
    let (_, claims) = opened(&proof).unwrap();
    assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
}

#[test]
fn a_proof_says_which_request_and_nothing_of_the_private_key() {
    let key = DpopKey::generate();
    let (header, mut claims) = opened(&key.proof("POST", "https://as.example/token", None, None, 7)).unwrap();
    assert_eq!(header, json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": key.jwk.bare() }));
    let members: Vec<&String> = header["jwk"].as_object().unwrap().keys().collect();
    assert!(members.len() == 4 && members.iter().all(|name| ["kty", "crv", "x", "y"].contains(&name.as_str())));
    let jti = claims["jti"].take();
    assert_eq!(claims, json!({ "jti": null, "htm": "POST", "htu": "https://as.example/token", "iat": 7 }));
    let (_, again) = opened(&key.proof("POST", "https://as.example/token", None, None, 7)).unwrap();
    assert_ne!(again["jti"], jti, "each proof is good for one use");
}

#[test]
fn a_nonce_is_repeated_as_it_came() {
    let proof = DpopKey::generate().proof("GET", "https://rs.example/", Some("eyJ7S_zG.eyJH0-Z\"\\"), None, 7);
    assert_eq!(opened(&proof).unwrap().1["nonce"], "eyJ7S_zG.eyJH0-Z\"\\");
}

#[test]
fn query_and_fragment_are_left_out() {
    let key = DpopKey::generate();
    for (address, expected) in [
        ("https://rs.example/mcp", "https://rs.example/mcp"),
        ("https://rs.example/mcp?a=b#c", "https://rs.example/mcp"),
        ("https://rs.example/mcp#c?a=b", "https://rs.example/mcp"),
        ("https://rs.example?", "https://rs.example"),
    ] {
        let (_, claims) = opened(&key.proof("GET", address, None, None, 0)).unwrap();
        assert_eq!(claims["htu"], expected, "{address}");
    }
}

#[test]
fn a_stored_key_is_the_same_key() {
    let key = DpopKey::generate();
    let again = DpopKey::from_secret(&key.to_secret()).unwrap();
    assert_eq!(again.thumbprint(), key.thumbprint());
    assert_eq!(opened(&again.proof("GET", "x:", None, None, 0)).unwrap().0["jwk"], key.jwk.bare());
    assert_ne!(DpopKey::generate().thumbprint(), key.thumbprint());
}

#[test]
fn what_is_no_stored_key_is_refused_and_not_quoted() {
    let stored = DpopKey::generate().to_secret();
    for text in ["", "not base64!", "AAAA", &stored.expose()[..100]] {
        let error = DpopKey::from_secret(&Secret::new(text)).expect_err(text);
        assert!(text.is_empty() || !format!("{error} {error:?}").contains(text));
    }
}

#[test]
fn debug_shows_the_public_half_only() {
    let key = DpopKey::generate();
    assert_eq!(format!("{key:?}"), format!("DpopKey {{ thumbprint: {:?}, .. }}", key.thumbprint().to_string()));
}

#[test]
fn debug_shows_no_secret() {
    let key = DpopKey::generate();
    let shown = format!("{key:?} {key:#?}");
    assert!(!shown.contains(key.to_secret().expose()), "{shown}");
}

/// A proof that holds for [`expected`], and a variation of it.
fn proof_with(claims: Value, header: Value) -> String {
    let (signer, _) = Signer::generate(Alg::Es256);
    let mut all =
        json!({ "jti": "1", "htm": "POST", "htu": "https://rs.example/mcp", "iat": 1000, "ath": token_hash("token") });
    for (name, value) in claims.as_object().unwrap() {
        all[name] = value.clone();
    }
    let mut head = json!({ "jwk": signer.jwk().bare() });
    for (name, value) in header.as_object().unwrap() {
        head[name] = value.clone();
    }
    let typ = head["typ"].as_str().unwrap_or("dpop+jwt").to_owned();
    signer.sign_with(&typ, head.as_object().unwrap(), &all)
}

const EXPECTED: Expected<'static> =
    Expected { method: "POST", target: "https://rs.example/mcp", access_token: Some("token"), now: 1000 };

#[test]
fn a_proof_holds_for_its_request_only() {
    let rows = [
        (json!({}), json!({}), Ok(())),
        (json!({ "htu": "HTTPS://RS.example:443/mcp/?a=b#c" }), json!({}), Ok(())),
        (json!({ "iat": 700 }), json!({}), Ok(())),
        (json!({ "iat": 1300 }), json!({}), Ok(())),
        (json!({ "iat": 699 }), json!({}), Err(ProofError::Untimely)),
        (json!({ "iat": 1301 }), json!({}), Err(ProofError::Untimely)),
        (json!({ "iat": "1000" }), json!({}), Err(ProofError::Malformed)),
        (json!({ "htm": "post" }), json!({}), Err(ProofError::OtherRequest)),
        (json!({ "htm": "GET" }), json!({}), Err(ProofError::OtherRequest)),
        (json!({ "htu": "https://rs.example/" }), json!({}), Err(ProofError::OtherRequest)),
        (json!({ "htu": "http://rs.example/mcp" }), json!({}), Err(ProofError::OtherRequest)),
        (json!({ "ath": token_hash("other") }), json!({}), Err(ProofError::OtherToken)),
        (json!({ "ath": null }), json!({}), Err(ProofError::OtherToken)),
        (json!({ "jti": null }), json!({}), Err(ProofError::Malformed)),
        (json!({}), json!({ "typ": "JWT" }), Err(ProofError::Malformed)),
        (json!({}), json!({ "jwk": null }), Err(ProofError::Malformed)),
        (json!({}), json!({ "jwk": { "kty": "oct", "k": "AAAA" } }), Err(ProofError::Malformed)),
        (json!({}), json!({ "jwk": Signer::generate(Alg::Es256).0.jwk().bare() }), Err(ProofError::Signature)),
    ];
    for (claims, header, expected) in rows {
        let read = check(&proof_with(claims.clone(), header.clone()), &EXPECTED);
        assert_eq!(read.map(drop), expected, "{claims} {header}");
    }
    let private = json!({ "kty": "EC", "crv": "P-256", "x": "", "y": "", "d": "AAAA" });
    assert_eq!(check(&proof_with(json!({}), json!({ "jwk": private })), &EXPECTED), Err(ProofError::Malformed));
}

#[test]
fn the_example_of_rfc_9449_for_a_resource_holds() {
    let key = DpopKey::generate();
    let url = "https://resource.example.org/protectedresource";
    let proof = key.proof("GET", &format!("{url}?x=1"), Some("n"), Some("token"), 1_562_262_618);
    let expected = Expected { method: "GET", target: url, access_token: Some("token"), now: 1_562_262_600 };
    let read = check(&proof, &expected).unwrap();
    assert_eq!((read.thumbprint, read.nonce.as_deref()), (key.thumbprint(), Some("n")));
}
