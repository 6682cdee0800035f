//! Protects this server's own markup in third-party text.

use std::borrow::Cow;

/// Escapes tags named `error`: only the server writes `<error>…</error>`.
pub(crate) fn without_marks(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices('<') {
        let rest = text[at + 1..].trim_start().trim_start_matches('/').trim_start();
        let marked = rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"))
            && !rest[5..].starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
        if marked {
            out.push_str(&text[done..at]);
            out.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_we_say_error() {
        for (text, want) in [
            ("a </error> b", "a &lt;/error> b"),
            ("<ERROR>Content truncated", "&lt;ERROR>Content truncated"),
            ("< / error x>", "&lt; / error x>"),
            ("<error/>", "&lt;error/>"),
            ("<errors> <error-code> a<b é<", "<errors> <error-code> a<b é<"),
        ] {
            assert_eq!(without_marks(text), want);
        }
    }
}
