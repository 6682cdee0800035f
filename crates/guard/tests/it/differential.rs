//! 10,000 tokens, good ones and broken ones, judged alike by another library.

use crate::support::{NOW, key};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk as TheirJwk;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use linchpin_oauth::{Alg, Jws, Signer};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

const TOKENS: u32 = 10_000;
const LEEWAY_S: u64 = 60;

/// What is done to a token after it was signed.
#[derive(Clone, Debug)]
enum Damage {
    None,
    Byte(usize),
    Swap,
    Cut(usize),
}

fn ours(token: &str, signer: &Signer) -> bool {
    let Ok(jws) = Jws::read(token) else { return false };
    let jwk = signer.jwk();
    jws.verify(&jwk).is_ok_and(|claims| {
        claims.check_times(NOW, LEEWAY_S).is_ok() && claims.texts("aud").is_some_and(|all| all.contains(&"a"))
    })
}

fn their_key(signer: &Signer) -> DecodingKey {
    let jwk: TheirJwk = serde_json::from_value(signer.jwk().to_value()).unwrap();
    DecodingKey::from_jwk(&jwk).unwrap()
}

fn theirs(token: &str, key: &DecodingKey, alg: Algorithm) -> bool {
    let mut rules = Validation::new(alg);
    // It goes by the system's clock: the times are compared here.
    rules.validate_exp = false;
    rules.validate_nbf = false;
    rules.set_audience(&["a"]);
    rules.set_required_spec_claims(&["exp", "aud"]);
    let Ok(read) = jsonwebtoken::decode::<Value>(token, key, &rules) else {
        return false;
    };
    let time = |name: &str| read.claims.get(name).map(|value| value.as_u64().unwrap());
    time("exp").is_some_and(|exp| exp + LEEWAY_S > NOW)
        && ["nbf", "iat"].iter().all(|name| time(name).is_none_or(|from| from <= NOW + LEEWAY_S))
}

fn damaged(token: &str, other: impl FnOnce() -> String, damage: &Damage) -> String {
    match damage {
        Damage::None => token.to_owned(),
        Damage::Byte(at) => {
            let mut bytes = token.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            String::from_utf8(bytes).unwrap()
        }
        Damage::Swap => {
            let (message, _) = token.rsplit_once('.').unwrap();
            format!("{message}.{}", other().rsplit_once('.').unwrap().1)
        }
        Damage::Cut(at) => token[..at % token.len()].to_owned(),
    }
}

#[test]
fn ten_thousand_tokens_are_judged_as_another_library_judges_them() {
    let signers = [
        (key(Alg::Es256, "a"), Algorithm::ES256),
        (key(Alg::Es384, "b"), Algorithm::ES384),
        (key(Alg::EdDsa, "c"), Algorithm::EdDSA),
    ]
    .map(|(signer, alg)| {
        let key = their_key(&signer);
        (signer, key, alg)
    });
    let others = [key(Alg::Es256, "a"), key(Alg::Es384, "b"), key(Alg::EdDsa, "c")];
    let damage = prop_oneof![
        4 => Just(Damage::None), 2 => any::<usize>().prop_map(Damage::Byte), 1 => Just(Damage::Swap),
        1 => any::<usize>().prop_map(Damage::Cut),
    ];
    let time = || prop::option::of((NOW - 70)..(NOW + 70));
    // Mostly the cheap ones: P-384 takes thirty times as long.
    let which = prop_oneof![30 => Just(0_usize), 1 => Just(1_usize), 69 => Just(2_usize)];
    let inputs = (which, damage, (time(), time(), time()), any::<bool>(), "[ab]{1,2}", "\\PC{0,9}");
    let config = Config { cases: TOKENS, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let accepted = std::cell::Cell::new(0);
    let outcome = runner.run(&inputs, |(which, damage, (exp, nbf, iat), list, aud, sub)| {
        let (signer, their_key, alg) = &signers[which];
        let mut claims = json!({ "sub": sub, "aud": if list { json!([aud, "x"]) } else { json!(aud) } });
        for (name, value) in [("exp", exp), ("nbf", nbf), ("iat", iat)] {
            if let Some(value) = value {
                claims[name] = json!(value);
            }
        }
        let token = damaged(&signer.sign("JWT", &claims), || others[which].sign("JWT", &claims), &damage);
        let judged = ours(&token, signer);
        prop_assert_eq!(judged, theirs(&token, their_key, *alg), "{}", shown(&token));
        accepted.set(accepted.get() + u32::from(judged));
        Ok(())
    });
    outcome.unwrap();
    assert!(accepted.get() > 500 && accepted.get() < TOKENS - 500, "{}", accepted.get());
}

fn shown(token: &str) -> String {
    let parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap_or_default());
    parts.map(|part| String::from_utf8_lossy(&part).into_owned()).collect::<Vec<_>>().join(" ")
}
