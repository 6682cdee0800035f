//! Signatures are checked with public keys and against the examples of the RFCs.

use super::*;

/// The RSA key of RFC 7515, appendix A.2.1.
const RSA_PKCS1: &str = "\
    MIIEowIBAAKCAQEAofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz\
    P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5re\
    xMdbBYUsLA9e+KXBdQOS+UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxXFvUK+DWN\
    moudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQIDAQABAoIBABKucaRpzQorw35SbEUAVx8dYXUdZOlJ\
    cHtiWQ+dC6V8ljxAHj/PLyzTveyI5QO/xkObCyjIL303l2cfUhPu2MFaJdjVzqACXuOrLot/eSFvxjvqVidTtAZExqFRJ9mylUVA\
    oLvhowVWmC1On95fZCXxTUtxNEG1Xcc7m0rtzJKs45J+N/V9DP1edYH6USyPSWGp6wuA+KgHRnKKVf9GRx80JQY7nVNkL17eHoTW\
    Ewga+lwi0FEoW9Y7lDtWXYmKBWhUE+U8PGxlJf8f40493HDw1WRQ/aSLoS4QTp3rn7gYgeHEvfJdkkf0UMhlknlo53M09EFPdadQ\
    4TlUbjqKc50CgYEA4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH/5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB\
    0Hw/Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn+nXqhJTBgIPgtldC+KDV5z+y2XDwGUcCgYEAuQPEfgmV\
    tjL0Uyyx88GZFF1fOunH3+7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD/YwD66t62wDmpe/\
    HlB+TnBA+njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdcCgYAHAp9XcCSrn8wVkMVkKdb7DOX4IKjzdahm\
    +ctDAJN4O/y7OW5FKebvUjdAIt2GuoTZ71iTG+7F0F+lP88jtjP4U4qe7VHoewl4MKOfXZKTe+YCS1XbNvfgwJ3Ltyl1OH9hWvu2\
    yza7q+d5PCsDzqtm27kxuvULVeya+TEdAB1ijQKBgQCH/3r6YrVH/uCWGy6bzV1nGNOdjKc9tmkfOJmN54dxdixdpozCQ6U4OxZr\
    sj3FcOhHBsqAHvX2uuYjagqvo3cOj1TRqNocX40omfCCMx3bD1yPPf/6TI2XECva/ggqEY2mYzmIiA5LVVmc5nrybr+lssFKneey\
    xN2Wq93S0iJMdQKBgCGHewxzoa1r8ZMD0LETNrToK423K377UCYqXfg5XMclbrjPbEC3YI1ZNqMtuhdBJqUnBi6tjKMF+34Xf0CU\
    N8ncuXGO2CAYvO8PdyCixHX52ybaDjy1FtCE6yUXjoKNXKvUm7MWGsAYH6f4IegOetN5NvmUMFStCSkh7ixZLkN1";

/// The same.
const RSA_PKCS8: &str = "\
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCh+BYK4uPJtGXOjS1lYmM2K5J9vinh8CR3/BYlzJChNuOL2TSX\
    xbbqY913EeZ8dCn5VrD7io8ImtxLaYk8wTM/U+3QGbh3hCUv7JFP5IV3aVlL6kKA0ywPVb9ilE8TA5a8bpvfbr3SvaNnjuygxmj3\
    AbONv/s4yDQs4v5tJ/reSlpIdJed1LnPmt7Ex1sFhSwsD174pcF1A5L5ROjtZMEQxrZHYJqkeDrrnGya11UxMFBji4NmXG9veoKj\
    lnAqH2QbgtPr8jkiGUkftoaHLFcW9Qr4NY2ai50Xw0Byj3+H2JoY2PyrZ62EWQwuz3WTOTY8BwNNb2BvniHgVFbK5emhAgMBAAEC\
    ggEAEq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7/GQ5sLKMgvfTeXZx9SE+7YwVol2NXOoAJe\
    46sui395IW/GO+pWJ1O0BkTGoVEn2bKVRUCgu+GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M/V51gfpRLI9JYanr\
    C4D4qAdGcopV/0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl/x/jTj3ccPDVZFD9pIuhLhBOneuf\
    uBiB4cS98l2SR/RQyGWSeWjnczT0QU91p1DhOVRuOopznQKBgQDgHMQQ60imZV1URk0KpLttoLhyt3SmqdEf/kgHePDdtzEafpAu\
    +cS191R2JiuoF2yzWXnwFDcqGigp5BNr0AHQfD8/Lk8l1Mk09jxxCfui5nYooNyac8YFjm3vItzVCVDnEd3BbVWG8qf6deqElMGA\
    g+C2V0L4oNXnP7LZcPAZRwKBgQC5A8R+CZW2MvRTLLHzwZkUXV866cff7tx6kqa0finGG0KgeqlaZPxgCZnFp7AeAcCMtiynVlJ7\
    vMVgePsLq6XtON4tB5kP9jAPrq3rbAOal78eUH5OcED6eNuCV8ixEu1eWcPNCS/l1OW1EnXUEoEHKl54Xrrz2uNwkgMTP1FZ1wKB\
    gAcCn1dwJKufzBWQxWQp1vsM5fggqPN1qGb5y0MAk3g7/Ls5bkUp5u9SN0Ai3Ya6hNnvWJMb7sXQX6U/zyO2M/hTip7tUeh7CXgw\
    o59dkpN75gJLVds29+DAncu3KXU4f2Fa+7bLNrur53k8KwPOq2bbuTG69QtV7Jr5MR0AHWKNAoGBAIf/evpitUf+4JYbLpvNXWcY\
    052Mpz22aR84mY3nh3F2LF2mjMJDpTg7FmuyPcVw6EcGyoAe9fa65iNqCq+jdw6PVNGo2hxfjSiZ8IIzHdsPXI89//pMjZcQK9r+\
    CCoRjaZjOYiIDktVWZzmevJuv6WywUqd57LE3Zar3dLSIkx1AoGAIYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd+DlcxyVuuM9s\
    QLdgjVk2oy26F0EmpScGLq2MowX7fhd/QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp/gh6A56\
    03k2+ZQwVK0JKSHuLFkuQ3U=";

/// The P-256 key of RFC 7515, appendix A.3.1.
const P256_SEC1: &str = "\
    MHcCAQEEII6bEJ5xkJi/mASH3x9dd+nLKWBuvtImO19XwhPfhPSyoAoGCCqGSM49AwEHoUQDQgAEf83OJ3D2xF1Bg8vub9tLe1gH\
    MzV76e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==";

/// The same.
const P256_PKCS8: &str = "\
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIffH1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/\
    zc4ncPbEXUGDy+5v20t7WAczNXvp7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt";

/// The Ed25519 key of RFC 8037, appendix A.1; version 1, without the public key.
const ED25519_PKCS8: &str = "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g";

/// A key of the wrong curve.
const P384_SEC1: &str = "\
    MIGkAgEBBDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAq1SpjOsfCtKgBwYFK4EEACKhZANiAATYoX5V\
    uOL0e8Np/ZYWaVzic9zk4weDCmX1pKmqiWfJh67qetNlZ3oTv9ZcP+WmaTm9xTVCxSE6UTRduoIgq7I8cWWaTYULO7r/jQNb0IpZ\
    6zIJnJapBJ5NfUNc9nVxO8g=";
/// What RFC 7515 signs in its appendices A.2 and A.3, without the header.
const RFC_7515_PAYLOAD: &str =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

/// A PEM text. The markers are not in this file: scanners take them for leaked keys.
fn pem(kind: &str, base64: &str) -> String {
    let lines: Vec<&str> = base64.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

/// Every key that can be read, with how its signatures are verified.
fn signers() -> Vec<(&'static str, Signer)> {
    let rows = [
        ("PKCS#8 P-256", "PRIVATE KEY", P256_PKCS8, Alg::Es256),
        ("SEC1 P-256", "EC PRIVATE KEY", P256_SEC1, Alg::Es256),
        ("PKCS#8 RSA", "PRIVATE KEY", RSA_PKCS8, Alg::Rs256),
        ("PKCS#1 RSA", "RSA PRIVATE KEY", RSA_PKCS1, Alg::Rs256),
        ("PKCS#8 RSA, PSS", "PRIVATE KEY", RSA_PKCS8, Alg::Ps256),
        ("PKCS#1 RSA, PSS", "RSA PRIVATE KEY", RSA_PKCS1, Alg::Ps256),
        ("PKCS#8 Ed25519", "PRIVATE KEY", ED25519_PKCS8, Alg::EdDsa),
    ];
    let read = |(name, kind, base64, alg)| (name, Signer::from_pem(&pem(kind, base64), alg).expect(name));
    rows.into_iter().map(read).collect()
}

fn decoded(base64url: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(base64url).unwrap()
}

/// Verifies a signature with the public half of the keys above, as the RFCs print it where they do.
fn verify(alg: Alg, message: &[u8], signature: &[u8]) -> bool {
    let key = match alg {
        Alg::Es256 => json!({
            "kty": "EC",
            "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        }),
        Alg::EdDsa => json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }),
        _ => {
            let rsa = base64::engine::general_purpose::STANDARD.decode(RSA_PKCS1).unwrap();
            let pair = RsaKeyPair::from_der(&rsa).unwrap();
            let numbers = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
            let b64 = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            json!({ "kty": "RSA", "n": b64(&numbers.n), "e": b64(&numbers.e) })
        }
    };
    Jwk::read(&key).unwrap().verify(alg, message, signature)
}

/// Header and claims of a token whose signature holds.
fn opened(alg: Alg, token: &str) -> (Value, Value) {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("not three parts: {token}") };
    let message = &token[..header.len() + 1 + claims.len()];
    assert!(verify(alg, message.as_bytes(), &decoded(signature)), "{alg}: {token}");
    let json = |part| serde_json::from_slice(&decoded(part)).unwrap();
    (json(header), json(claims))
}

#[test]
fn every_kind_of_key_signs_what_its_public_half_verifies() {
    for (name, signer) in signers() {
        let (header, claims) = opened(signer.alg, &signer.sign("JWT", &json!({ "a": [1, "ü"] })));
        assert_eq!(header, json!({ "typ": "JWT", "alg": signer.alg.name() }), "{name}");
        assert_eq!(claims, json!({ "a": [1, "ü"] }), "{name}");
    }
}

#[test]
fn deterministic_signatures_are_those_of_the_rfcs() {
    let rs256 = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdb\
        F9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d\
        O--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_I\
        oypGlUPQGe77Rw";
    let eddsa = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let rows = [
        // RFC 7515, appendix A.2
        (Alg::Rs256, format!("eyJhbGciOiJSUzI1NiJ9.{RFC_7515_PAYLOAD}"), rs256),
        // RFC 8037, appendix A.4
        (Alg::EdDsa, "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".to_owned(), eddsa),
    ];
    for (alg, message, expected) in rows {
        for (name, signer) in signers().into_iter().filter(|(_, signer)| signer.alg == alg) {
            assert_eq!(URL_SAFE_NO_PAD.encode(signer.key.sign(message.as_bytes())), expected, "{name}");
        }
    }
}

#[test]
fn the_verifier_of_these_tests_accepts_the_rfcs_es256_signature_and_no_other() {
    // RFC 7515, appendix A.3
    let message = format!("eyJhbGciOiJFUzI1NiJ9.{RFC_7515_PAYLOAD}");
    let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    assert!(verify(Alg::Es256, message.as_bytes(), &decoded(signature)));
    assert!(!verify(Alg::Es256, &message.as_bytes()[1..], &decoded(signature)));
}

#[test]
fn a_key_that_does_not_fit_is_refused_and_not_quoted() {
    let rsa = pem("RSA PRIVATE KEY", RSA_PKCS1);
    let rows = [
        ("nothing", String::new(), Alg::Es256),
        ("no PEM", P256_PKCS8.to_owned(), Alg::Es256),
        ("a public key", pem("PUBLIC KEY", P256_PKCS8), Alg::Es256),
        ("an encrypted key", pem("ENCRYPTED PRIVATE KEY", P256_PKCS8), Alg::Es256),
        ("RSA for ES256", rsa.clone(), Alg::Es256),
        ("RSA in PKCS#8 for EdDSA", pem("PRIVATE KEY", RSA_PKCS8), Alg::EdDsa),
        ("P-256 for RS256", pem("PRIVATE KEY", P256_PKCS8), Alg::Rs256),
        ("P-384 for ES256", pem("EC PRIVATE KEY", P384_SEC1), Alg::Es256),
        ("half a key", pem("EC PRIVATE KEY", &P256_SEC1[..80]), Alg::Es256),
        ("a flood", rsa + &"\n".repeat(PEM_BYTES_MAX), Alg::Rs256),
    ];
    for (name, text, alg) in rows {
        let error = Signer::from_pem(&text, alg).expect_err(name);
        let said = format!("{error} {error:?}");
        assert!(!said.contains("MIG") && !said.contains("MHcC") && !said.contains("BEGIN P-"), "{name}: {said}");
    }
}

#[test]
fn a_header_may_be_extended_but_says_the_true_algorithm() {
    let (_, signer) = signers().remove(0);
    let extra = json!({ "typ": "other", "alg": "none", "x": 1 });
    let token = signer.kid("key-1").sign_with("other", extra.as_object().unwrap(), &json!({}));
    let (header, _) = opened(Alg::Es256, &token);
    assert_eq!(header, json!({ "typ": "other", "alg": "ES256", "kid": "key-1", "x": 1 }));
}

#[test]
fn a_client_assertion_says_who_to_whom_and_until_when() {
    for (name, signer) in signers() {
        let token = signer.client_assertion("me", "https://as.example", 1_000_000);
        let (_, mut claims) = opened(signer.alg, &token);
        let jti = claims["jti"].take();
        let expected = json!({
            "iss": "me", "sub": "me", "aud": "https://as.example", "iat": 1_000_000, "exp": 1_000_300, "jti": null,
        });
        assert_eq!(claims, expected, "{name}");
        assert_eq!(decoded(jti.as_str().unwrap()).len(), 16, "{name}");
        let (_, again) = opened(signer.alg, &signer.client_assertion("me", "https://as.example", 1_000_000));
        assert_ne!(again["jti"], jti, "{name}");
    }
}

#[test]
fn debug_shows_no_key() {
    for (name, signer) in signers() {
        let expected = format!("Signer {{ alg: {:?}, kid: None, .. }}", signer.alg);
        assert_eq!(format!("{signer:?}"), expected, "{name}");
    }
}

#[test]
fn a_der_length_has_its_shortest_form() {
    let rows: [(usize, &[u8]); 5] = [
        (0, &[0x30, 0]),
        (0x7f, &[0x30, 0x7f]),
        (0x80, &[0x30, 0x81, 0x80]),
        (0x100, &[0x30, 0x82, 1, 0]),
        (0x1_2345, &[0x30, 0x83, 1, 0x23, 0x45]),
    ];
    for (len, expected) in rows {
        assert_eq!(der_header(0x30, len), expected, "{len}");
    }
}
