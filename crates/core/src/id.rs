//! Request ids, stored as received JSON text so that `1` and `"1"` stay different.

use crate::json::read_str;
use std::fmt;
use std::hash::{Hash, Hasher};

const INLINE: usize = 22;

/// The id of a request: a JSON string or integer, as its own JSON text.
///
/// Ids of up to 22 bytes are stored inline, so the usual ones cost no allocation.
///
/// ```
/// use linchpin_core::Id;
///
/// let id = Id::from_json(r#""a7""#).unwrap();
/// assert_eq!(id.as_json(), r#""a7""#);
/// assert_ne!(Id::from_json("1"), Id::from_json(r#""1""#));
/// assert_eq!(Id::number(1).as_number(), Some(1));
/// assert!(Id::from_json("1.5").is_none());
/// ```
#[derive(Clone)]
pub struct Id(Repr);

#[derive(Clone)]
enum Repr {
    Inline(u8, [u8; INLINE]),
    Heap(Box<str>),
}

impl Id {
    /// Reads an id from its JSON text. `None` unless it is a string, or an integer that fits in 64 bits. A string with
    /// half of a surrogate pair is rejected, because the client could not read a response that repeats it.
    pub fn from_json(text: &str) -> Option<Id> {
        let ok = match text.as_bytes() {
            [b'"', ..] => read_str(text).is_some(),
            [b'-' | b'0'..=b'9', ..] => text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok(),
            _ => false,
        };
        ok.then(|| Id::raw(text))
    }

    /// Creates the id of a request that this side sends: an integer.
    pub fn number(n: u64) -> Id {
        Id::raw(&n.to_string())
    }

    /// Returns the id of an error without an id: `null`, which no request has.
    pub fn unknown() -> Id {
        Id::raw("null")
    }

    /// Returns the number, whether the server repeats it as `7` or as `"7"`. `None` for anything else.
    pub fn as_number(&self) -> Option<u64> {
        self.as_json().trim_matches('"').parse().ok()
    }

    fn raw(text: &str) -> Id {
        if text.len() <= INLINE {
            let mut bytes = [0; INLINE];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            Id(Repr::Inline(text.len() as u8, bytes))
        } else {
            Id(Repr::Heap(text.into()))
        }
    }

    /// Returns the JSON text, quotes included for a string.
    pub fn as_json(&self) -> &str {
        match &self.0 {
            Repr::Inline(..) => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Repr::Heap(text) => text,
        }
    }

    /// Returns the JSON text as bytes, without the UTF-8 check of `str`.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(len, bytes) => &bytes[..*len as usize],
            Repr::Heap(text) => text.as_bytes(),
        }
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
impl Eq for Id {}
impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}
impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

#[cfg(test)]
mod tests {
    use super::Id;

    #[test]
    fn only_strings_and_64_bit_integers_are_ids() {
        for ok in
            ["1", "-5", "0", "\"a\"", "\"\"", "18446744073709551615", "\"a long id that does not fit inline at all\""]
        {
            assert_eq!(Id::from_json(ok).map(|i| i.as_json().to_owned()).as_deref(), Some(ok));
        }
        for bad in ["null", "1.0", "1e3", "true", "{}", "[]", "18446744073709551616", "", "\"", "\"\\udddd\""] {
            assert!(Id::from_json(bad).is_none(), "{bad}");
        }
        assert_ne!(Id::from_json("1"), Id::from_json("\"1\""));
    }
}
