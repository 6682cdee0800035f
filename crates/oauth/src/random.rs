//! Random strings, and hashing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Returns 256 random bits in base64url: 43 characters.
///
/// # Panics
/// If the operating system provides no random bytes.
pub fn random_text() -> String {
    encoded::<32>()
}

/// Returns 128 random bits in base64url, for example for a `jti`: 22 characters.
///
/// # Panics
/// If the operating system provides no random bytes.
pub fn random_id() -> String {
    encoded::<16>()
}

/// Returns the SHA-256 hash of these bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn encoded<const N: usize>() -> String {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}
