//! Sets of scopes, and the choice of which to request.
//!
//! Specification: "Scope Selection Strategy", "Refresh Tokens" and "Step-Up Authorization Flow".

use std::fmt;

/// A set of scopes in insertion order.
///
/// ```
/// use linchpin_auth::Scopes;
///
/// let granted = Scopes::parse("files:read files:write");
/// assert!(granted.has("files:read"));
/// assert!(granted.covers(&Scopes::from_iter(["files:write"])));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Creates an empty set.
    pub fn new() -> Scopes {
        Scopes::default()
    }

    /// Parses space-separated scopes (RFC 6749, section 3.3).
    ///
    /// Invalid scopes are left out, as are those of more than 256 bytes and those beyond the first 128: servers name them, and
    /// they become part of a URL.
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

/// Returns the scopes for an authorization request; `None` means that the parameter is omitted.
///
/// The scopes of the challenge are authoritative; without them, all that the resource supports; previously requested
/// scopes are added, so that no granted scope is lost. `wanted` are the configured scopes: they replace
/// those that the resource supports, never those of the challenge.
pub(crate) fn select(
    wanted: Option<&Scopes>,
    challenged: Option<&Scopes>,
    supported: Option<&Scopes>,
    before: &Scopes,
) -> Option<Scopes> {
    let base = match (wanted, challenged) {
        (Some(wanted), Some(challenged)) => wanted.union(challenged),
        (Some(only), None) | (None, Some(only)) => only.clone(),
        // Supported scopes are for the first request only: later they would exceed what was sufficient.
        (None, None) if before.is_empty() => supported.cloned().unwrap_or_default(),
        (None, None) => Scopes::new(),
    };
    let all = before.union(&base);
    (!all.is_empty()).then_some(all)
}

/// Adds `offline_access` if the authorization server supports it. An omitted parameter stays omitted:
/// a request without scopes gets the server's default, one with only `offline_access` would not.
pub(crate) fn with_offline_access(scopes: Option<Scopes>, server: Option<&Scopes>) -> Option<Scopes> {
    let offered = server.is_some_and(|scopes| scopes.has(OFFLINE_ACCESS));
    scopes.map(|scopes| if offered { scopes.union(&Scopes::parse(OFFLINE_ACCESS)) } else { scopes })
}

pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

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

    #[test]
    fn the_challenge_comes_before_what_is_supported_and_nothing_granted_is_lost() {
        // wanted, challenged, supported, requested before -> requested now
        let rows = [
            ("-", "a", "b c", "", "a"),
            ("-", "-", "b c", "", "b c"),
            ("-", "-", "-", "", "-"),
            ("-", "-", "", "", "-"),
            ("-", "w", "b c", "a", "a w"),
            ("-", "a", "-", "a", "a"),
            ("x", "-", "b c", "", "x"),
            ("x", "a", "b c", "", "x a"),
            ("-", "-", "-", "a", "a"),
            ("-", "-", "a b c", "a", "a"),
        ];
        let set = |text: &str| (text != "-").then(|| Scopes::parse(text));
        for (wanted, challenged, supported, before, now) in rows {
            let got =
                select(set(wanted).as_ref(), set(challenged).as_ref(), set(supported).as_ref(), &Scopes::parse(before));
            assert_eq!(got, set(now), "{wanted} {challenged} {supported} {before}");
        }
    }

    #[test]
    fn offline_access_is_asked_for_only_where_it_is_offered_and_never_alone() {
        let rows = [
            ("a", "a offline_access", "a offline_access"),
            ("a", "a", "a"),
            ("a", "-", "a"),
            ("-", "offline_access", "-"),
        ];
        let set = |text: &str| (text != "-").then(|| Scopes::parse(text));
        for (asked, offered, want) in rows {
            assert_eq!(with_offline_access(set(asked), set(offered).as_ref()), set(want), "{asked} {offered}");
        }
    }

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
