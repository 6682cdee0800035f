//! Digests of files.

use ring::digest::{SHA256, digest};
use std::fmt::Write as _;

/// The digest of bytes as entries write it: `sha256:` and 64 lower-case hexadecimal digits.
pub(crate) fn of(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(71);
    out.push_str("sha256:");
    for byte in digest(&SHA256, bytes).as_ref() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Whether it is written as the specification says.
#[cfg(feature = "host")]
pub(crate) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_digest_is_written_in_lower_case() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::of(b""), empty);
        #[cfg(feature = "host")]
        for (text, fits) in
            [(empty, true), (&empty.to_uppercase(), false), (&empty[..70], false), ("sha256:", false), ("", false)]
        {
            assert_eq!(super::is_digest(text), fits, "{text}");
        }
    }
}
