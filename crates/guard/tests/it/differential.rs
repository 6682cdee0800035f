//! 10,000 tokens, good ones and broken ones, judged alike by other libraries.

use crate::support::{NOW, key};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk as TheirJwk;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use linchpin_oauth::{Alg, Jws, Signer};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rsa::pkcs8::EncodePrivateKey as _;
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

/// The same tokens in every run, each with the number of the key that it is said to be of, handed to `judge`.
fn tokens(signers: &[Signer; 5], mut judge: impl FnMut(usize, &str)) {
    let others = self::signers();
    let damage = prop_oneof![
        4 => Just(Damage::None), 2 => any::<usize>().prop_map(Damage::Byte), 1 => Just(Damage::Swap),
        1 => any::<usize>().prop_map(Damage::Cut),
    ];
    let time = || prop::option::of((NOW - 70)..(NOW + 70));
    // Mostly the cheap ones: P-384 takes thirty times as long.
    let which = prop_oneof![
        30 => Just(0_usize), 1 => Just(1_usize), 49 => Just(2_usize), 10 => Just(3_usize), 10 => Just(4_usize),
    ];
    let inputs = (which, damage, (time(), time(), time()), any::<bool>(), "[ab]{1,2}", "\\PC{0,9}");
    let config = Config { cases: TOKENS, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let judge = std::cell::RefCell::new(&mut judge);
    let outcome = runner.run(&inputs, |(which, damage, (exp, nbf, iat), list, aud, sub)| {
        let mut claims = json!({ "sub": sub, "aud": if list { json!([aud, "x"]) } else { json!(aud) } });
        for (name, value) in [("exp", exp), ("nbf", nbf), ("iat", iat)] {
            if let Some(value) = value {
                claims[name] = json!(value);
            }
        }
        let token = damaged(&signers[which].sign("JWT", &claims), || others[which].sign("JWT", &claims), &damage);
        (judge.borrow_mut())(which, &token);
        Ok(())
    });
    outcome.unwrap();
}

/// RSA is what most hosted issuers sign with.
fn signers() -> [Signer; 5] {
    let rsa = |alg, kid| {
        let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).unwrap();
        Signer::from_pkcs8(key.to_pkcs8_der().unwrap().as_bytes(), alg).unwrap().kid(kid)
    };
    let [d, e] = [rsa(Alg::Rs256, "d"), rsa(Alg::Ps256, "e")];
    [key(Alg::Es256, "a"), key(Alg::Es384, "b"), key(Alg::EdDsa, "c"), d, e]
}

#[test]
fn ten_thousand_tokens_are_judged_as_another_library_judges_them() {
    let (signers, mut accepted) = (signers(), 0);
    let keys = signers.each_ref().map(their_key);
    let algs = [Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA, Algorithm::RS256, Algorithm::PS256];
    tokens(&signers, |which, token| {
        let judged = ours(token, &signers[which]);
        assert_eq!(judged, theirs(token, &keys[which], algs[which]), "{}", shown(token));
        accepted += u32::from(judged);
    });
    assert!(accepted > 500 && accepted < TOKENS - 500, "{accepted}");
}

/// Reads keys, the time and tokens, and prints a verdict for each token. `joserfc` has no clock of its own here.
const JUDGE: &str = r#"
import json, sys, warnings
warnings.simplefilter("ignore")
from joserfc import jwk, jwt
keys, now, tokens = json.load(sys.stdin)
keys = [(jwk.import_key(key), [alg]) for key, alg in keys]
rules = jwt.JWTClaimsRegistry(
    now=now, leeway=60, exp={"essential": True}, aud={"essential": True, "value": "a"}
)
def fits(which, token):
    try:
        key, algs = keys[which]
        claims = jwt.decode(token, key, algorithms=algs).claims
        rules.validate(claims)
        # It accepts the very second at which the leeway ends.
        return claims["exp"] + 60 > now
    except Exception:
        return False
print("".join("1" if fits(which, token) else "0" for which, token in tokens))
"#;

#[test]
#[ignore = "needs PyPI's joserfc: `cargo xtask login` installs it"]
fn ten_thousand_tokens_are_judged_as_joserfc_judges_them() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let python = std::env::var_os("LINCHPIN_JOSERFC").expect("LINCHPIN_JOSERFC names a Python that has it");
    let (signers, mut all) = (signers(), Vec::new());
    tokens(&signers, |which, token| all.push((which, token.to_owned())));
    let keys: Vec<Value> = std::iter::zip(&signers, ["ES256", "ES384", "EdDSA", "RS256", "PS256"])
        .map(|(signer, alg)| json!([signer.jwk().to_value(), alg]))
        .collect();
    let mut judge =
        Command::new(python).args(["-c", JUDGE]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    judge.stdin.take().unwrap().write_all(json!([keys, NOW, all]).to_string().as_bytes()).unwrap();
    let said = String::from_utf8(judge.wait_with_output().unwrap().stdout).unwrap();
    let said: Vec<bool> = said.trim().chars().map(|verdict| verdict == '1').collect();
    assert_eq!(said.len(), all.len(), "it judges all");
    let mut accepted = 0;
    for ((which, token), theirs) in std::iter::zip(&all, said) {
        let ours = ours(token, &signers[*which]);
        // It also takes base64 whose last character has bits that mean nothing, which RFC 4648 lets a reader refuse.
        assert!(ours == theirs || (theirs && !is_canonical(token)), "ours {ours}: {}", shown(token));
        accepted += u32::from(ours);
    }
    assert!(accepted > 500, "{accepted}");
}

/// Whether each part of a token is written as an encoder writes it.
fn is_canonical(token: &str) -> bool {
    token.split('.').all(|part| URL_SAFE_NO_PAD.decode(part).is_ok())
}

fn shown(token: &str) -> String {
    let parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap_or_default());
    parts.map(|part| String::from_utf8_lossy(&part).into_owned()).collect::<Vec<_>>().join(" ")
}
