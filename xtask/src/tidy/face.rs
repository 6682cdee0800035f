//! The share of items that are restricted to a crate: how small the public face is.

use super::source::Source;
use super::{Finding, Tree};

/// At least so many of a hundred items that are not private are restricted.
const RESTRICTED_MIN: usize = 55;

/// What can be public; fields are not counted.
const ITEMS: &[&str] = &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "use", "macro"];

/// Whether enough of the crates', servers' and program's items are restricted.
pub(super) fn check(tree: &Tree<'_>) -> Vec<Finding> {
    let own = |source: &&Source| ["crates/", "servers/", "apps/"].iter().any(|room| source.path.starts_with(room));
    let (public, restricted) = tree
        .sources
        .iter()
        .filter(own)
        .map(|source| count(&source.code))
        .fold((0, 0), |(public, restricted), (more_public, more_restricted)| {
            (public + more_public, restricted + more_restricted)
        });
    let share = 100 * restricted / (public + restricted).max(1);
    let what = format!(
        "{share} % of {} items that are not private are restricted, and {RESTRICTED_MIN} % should be: use `pub(crate)`",
        public + restricted
    );
    (share < RESTRICTED_MIN).then(|| Finding::new("crates, servers, apps", what)).into_iter().collect()
}

/// How many items are `pub`, and how many `pub(…)`.
fn count(code: &str) -> (usize, usize) {
    let (mut public, mut restricted) = (0, 0);
    for line in code.lines().map(str::trim_start) {
        let Some(rest) = line.strip_prefix("pub") else { continue };
        let (narrow, rest) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((_, rest)) => (true, rest),
            None => (false, rest),
        };
        let words = ["async", "unsafe", "const", "extern"];
        let mut rest = rest.split_whitespace().skip_while(|word| words.contains(word));
        // `const NAME` is an item, `const fn` another.
        let item = rest.next().is_some_and(|word| ITEMS.contains(&word)) || line.contains(" const ");
        match (item, narrow) {
            (true, true) => restricted += 1,
            (true, false) => public += 1,
            (false, _) => {}
        }
    }
    (public, restricted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_and_fields_are_not() {
        let code = "pub const A: u8 = 1;\npub const fn b() {}\npub(crate) async fn c() {}\npub struct D {\n    pub e: u8,\n    \
                    pub(super) f: u8,\n}\nfn g() {}\npub(in crate::a) use h;\n";
        assert_eq!(count(code), (3, 2));
    }
}
