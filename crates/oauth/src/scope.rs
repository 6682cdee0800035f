//! Sets of scopes.

use std::fmt;

/// A set of scopes in insertion order. It serializes as an array of strings.
///
/// ```
/// use linchpin_oauth::Scopes;
///
/// let granted = Scopes::parse("files:read files:write");
/// assert!(granted.has("files:read"));
/// assert!(granted.covers(&Scopes::from_iter(["files:write"])));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Creates an empty set.
    pub fn new() -> Scopes {
        Scopes::default()
    }

    /// Parses space-separated scopes (RFC 6749, section 3.3).
    ///
    /// Invalid scopes are ignored, as are those longer than 256 bytes and those beyond the first 128, because scopes
    /// are chosen by servers and become part of a URL.
    pub fn parse(text: &str) -> Scopes {
        text.split(' ').collect()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the set contains this scope.
    pub fn has(&self, scope: &str) -> bool {
        self.0.iter().any(|s| s == scope)
    }

    /// Returns the number of scopes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set contains all of `others`.
    pub fn covers(&self, others: &Scopes) -> bool {
        others.0.iter().all(|scope| self.has(scope))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn union(&self, others: &Scopes) -> Scopes {
        self.iter().chain(others.iter()).collect()
    }

    /// Iterates over the scopes in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<S: AsRef<str>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Scopes {
        let mut set = Vec::<String>::new();
        for scope in scopes {
            let scope = scope.as_ref();
            let fits = is_scope(scope) && set.len() < SCOPES_MAX;
            if fits && !set.iter().any(|known| known == scope) {
                set.push(scope.to_owned());
            }
        }
        Scopes(set)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// The scope with which a client requests a refresh token.
pub const OFFLINE_ACCESS: &str = "offline_access";

const SCOPES_MAX: usize = 128;
const SCOPE_BYTES_MAX: usize = 256;

fn is_scope(text: &str) -> bool {
    let allowed = |byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.len() <= SCOPE_BYTES_MAX && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_union_has_both_and_nothing_twice(a in "[a-c:]{0,3}( [a-c:]{0,3}){0,4}", b in "[a-c:]{0,3}( [a-c:]{0,3}){0,4}") {
            let (a, b) = (Scopes::parse(&a), Scopes::parse(&b));
            let union = a.union(&b);
            prop_assert!(union.covers(&a) && union.covers(&b));
            prop_assert!(union.iter().all(|scope| a.has(scope) || b.has(scope)));
            prop_assert_eq!(&union.union(&a), &union);
            let mut once: Vec<&str> = union.iter().collect();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), union.iter().count());
            prop_assert_eq!(&Scopes::parse(&union.to_string()), &union);
        }

        #[test]
        fn nothing_a_server_names_breaks_out_of_the_parameter(text in any::<String>()) {
            prop_assert!(Scopes::parse(&text).to_string().bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\'));
        }
    }
}
