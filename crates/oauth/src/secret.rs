//! Strings that must not be displayed.

use std::fmt;
use zeroize::Zeroize;

/// A token, a key or a password.
///
/// It does not implement `Display`, its `Debug` output hides the string, and its memory is overwritten on drop. It
/// serializes as the plain string for use in stores, which must protect what they write.
///
/// ```
/// let token = linchpin_oauth::Secret::new("s3cr3t");
/// assert!(!format!("{token:?}").contains("s3cr3t"));
/// assert_eq!(token.expose(), "s3cr3t");
/// ```
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a string.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the string itself. Call this only where the secret is sent or stored.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the string is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•••")
    }
}

impl PartialEq for Secret {
    /// Compares in constant time, regardless of where the strings differ.
    fn eq(&self, other: &Secret) -> bool {
        let (left, right) = (self.0.as_bytes(), other.0.as_bytes());
        let differing = left.iter().zip(right).fold(0, |differing, (a, b)| differing | (a ^ b));
        left.len() == right.len() && std::hint::black_box(differing) == 0
    }
}

impl Eq for Secret {}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_shows_neither_the_text_nor_its_length() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), format!("{:?}", Secret::new("a")));
        assert!(!format!("{:#?}", Some(Secret::new("hunter2"))).contains("hunter"));
    }

    #[test]
    fn equality_is_that_of_strings() {
        for (left, right) in [("", ""), ("a", "a"), ("ab", "ab"), ("ab", "ac"), ("ab", "bb"), ("a", "ab"), ("", "a")] {
            assert_eq!(Secret::new(left) == Secret::new(right), left == right, "{left} {right}");
        }
    }

    #[test]
    fn the_stored_form_is_the_plain_string() {
        let text = serde_json::to_string(&Secret::new("a\"b")).unwrap();
        assert_eq!(text, r#""a\"b""#);
        assert_eq!(serde_json::from_str::<Secret>(&text).unwrap().expose(), "a\"b");
    }
}
