//! Credentials in URLs.

/// The text with user names and passwords of all URLs in it replaced by `***`.
///
/// A URL's authority is what RFC 3986 says, from `//` to the next `/`, `?` or `#`, and its user information ends at the
/// last `@` in it. Slashes that some clients skip before it are skipped. What surrounds a URL (quotes, commas) is kept,
/// which reading and writing it with a library would not do.
///
/// ```
/// assert_eq!(linchpin_kit::redact_urls("at 'https://u:p@host/x' failed"), "at 'https://***@host/x' failed");
/// ```
#[must_use]
pub fn redact_urls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let after = &rest[at + 3..];
        let slashes = after.len() - after.trim_start_matches(['/', '\\']).len();
        let (before, after) = rest.split_at(at + 3 + slashes);
        shown.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#');
        let authority = &after[..after.find(ends).unwrap_or(after.len())];
        rest = match authority.rfind('@').or_else(|| end_of_odd_password(authority, after)) {
            Some(end) => {
                shown.push_str("***");
                &after[end..]
            }
            None => after,
        };
    }
    shown.push_str(rest);
    shown
}

/// The end of user information with a `/`, `?` or `#` that should have been escaped: what looks like a host and a port that is no
/// number, with an `@` before the next blank or quote.
fn end_of_odd_password(authority: &str, after: &str) -> Option<usize> {
    let (_, port) = authority.split_once(':').filter(|_| !authority.starts_with('['))?;
    let end = after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(after.len());
    let at = after[..end].find('@')?;
    (!port.bytes().all(|b| b.is_ascii_digit())).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_urls_are_not_shown_and_everything_else_is_kept() {
        for (text, shown) in [
            ("at https://u:p@h/x failed", "at https://***@h/x failed"),
            ("https://token@h and ssh://git@x/y", "https://***@h and ssh://***@x/y"),
            ("https://u:p@ss@h/x", "https://***@h/x"),
            ("'https://u:p'q@h/x': 'https://h/y'", "'https://***@h/x': 'https://h/y'"),
            ("postgres://u:p@h:5432/db?user=a@b", "postgres://***@h:5432/db?user=a@b"),
            ("https:///u:p@h/x https://\\u:p@h", "https:///***@h/x https://\\***@h"),
            ("https://u:p@h?x https://u:p@h#x@y", "https://***@h?x https://***@h#x@y"),
            ("https://https://u:p@h", "https://https://***@h"),
            ("https://u\\p@h/x", "https://***@h/x"),
            ("https://h/a@b, mail a@b.example, git@h:x", "https://h/a@b, mail a@b.example, git@h:x"),
            ("https://u:p#q@h/x, https://u:p/q?r@h", "https://***@h/x, https://***@h"),
            ("https://h:80/a@b https://[::1]/a@b", "https://h:80/a@b https://[::1]/a@b"),
            ("HTTPS://ü:é@h", "HTTPS://***@h"),
            ("://", "://"),
            ("", ""),
        ] {
            assert_eq!(redact_urls(text), shown, "{text}");
        }
    }
}
