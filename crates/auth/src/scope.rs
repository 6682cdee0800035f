//! Which scopes to request.
//!
//! Specification: "Scope Selection Strategy", "Refresh Tokens" and "Step-Up Authorization Flow".

use linchpin_oauth::{OFFLINE_ACCESS, Scopes};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
