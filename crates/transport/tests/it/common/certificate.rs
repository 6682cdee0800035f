//! Certificates for tests, made without a library for it.
#![allow(dead_code, reason = "each test program uses its own part")]

use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut out = vec![tag];
    match body.len() {
        n @ 0..=127 => out.push(n as u8),
        n @ 128..=255 => out.extend([0x81, n as u8]),
        n => out.extend([0x82, (n >> 8) as u8, n as u8]),
    }
    out.extend(body);
    out
}

/// A certificate for `localhost`, signed by itself under this name, and its key.
pub(crate) fn certificate(who: &str) -> (Vec<u8>, Vec<u8>) {
    const ECDSA_SHA256: &[u8] = &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    const EC_P256: &[u8] =
        &[0x30, 19, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap().as_ref().to_vec();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &key, &random).unwrap();
    let name = der(0x30, &[&der(0x31, &[&der(0x30, &[&[6, 3, 0x55, 4, 3], &der(0x0c, &[who.as_bytes()])])])]);
    let validity = der(0x30, &[&der(0x17, &[b"200101000000Z"]), &der(0x18, &[b"21200101000000Z"])]);
    let public = der(0x30, &[EC_P256, &der(0x03, &[&[0], pair.public_key().as_ref()])]);
    let names = der(0x30, &[&der(0x82, &[b"localhost"])]);
    let extensions = der(0xa3, &[&der(0x30, &[&der(0x30, &[&[6, 3, 0x55, 0x1d, 0x11], &der(0x04, &[&names])])])]);
    let version = der(0xa0, &[&[2, 1, 2]]);
    let signed = der(0x30, &[&version, &[2, 1, 1], ECDSA_SHA256, &name, &validity, &name, &public, &extensions]);
    let signature = pair.sign(&random, &signed).unwrap();
    (der(0x30, &[&signed, ECDSA_SHA256, &der(0x03, &[&[0], signature.as_ref()])]), key)
}

/// As PEM of this kind.
pub(crate) fn pem(kind: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
}

/// A certificate for `localhost` and its key in PEM, and the certificate as DER.
pub(crate) fn pems(who: &str) -> (String, String, Vec<u8>) {
    let (certificate, key) = certificate(who);
    (pem("CERTIFICATE", &certificate), pem("PRIVATE KEY", &key), certificate)
}
