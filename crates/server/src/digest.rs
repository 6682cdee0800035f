//! Digests of what must not be read in the keys of a store.

use ring::digest;

/// 128 bits of the SHA-256 of a text, in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
