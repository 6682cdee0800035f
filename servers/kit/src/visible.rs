//! Text of third parties, made safe to show.

use crate::clip;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The text in at most `bytes_max` bytes, with every control, invisible and bidirectional character but tabs and line
/// breaks written as `\u{…}`; the end says how much was omitted.
///
/// ```
/// assert_eq!(linchpin_kit::visible("a\u{202e}b\x1b[2J\r\n", 100), "a\\u{202e}b\\u{1b}[2J");
/// ```
#[must_use]
pub fn visible(text: &str, bytes_max: usize) -> String {
    /// Enough for what [`omitted`] writes.
    const NOTICE_BYTES: usize = 40;
    let text = text.trim_end();
    let mut out = String::with_capacity(text.len().min(bytes_max));
    // Where `out` could end with a notice: its length, and the bytes of `text` in it.
    let mut fits = (0, 0);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if out.len() + NOTICE_BYTES <= bytes_max {
            fits = (out.len(), at);
        }
        match c {
            '\r' if chars.peek().is_some_and(|(_, next)| *next == '\n') => {}
            c if is_hidden(c) => _ = write!(out, "{}", c.escape_unicode()),
            c => out.push(c),
        }
        if out.len() > bytes_max {
            out.truncate(fits.0);
            let _ = write!(out, " [{} bytes omitted]", text.len() - fits.1);
            return clip(&out, bytes_max).text.to_owned();
        }
    }
    out
}

/// The text without its control, invisible and bidirectional characters, but with tabs and line breaks: for content, where
/// [`visible`] would be in the way.
///
/// ```
/// assert_eq!(linchpin_kit::without_hidden("pay\u{202e}pal\u{e0041}\r\n"), "paypal\n");
/// ```
#[must_use]
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    // Most texts, and at once.
    if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t')) || !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_hidden(*c)).collect())
}

/// Whether the character is not seen, or changes how its neighbours are: controls, format characters (category Cf), line
/// and paragraph separators, and what else renderers ignore (`Default_Ignorable_Code_Point`).
fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !matches!(c, '\n' | '\t');
    }
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_out_and_nothing_else_changes() {
        for (text, shown) in [
            ("plain, tab\there\nand a line", "plain, tab\there\nand a line"),
            ("été, 日本語, “quotes”, \\ and \"", "été, 日本語, “quotes”, \\ and \""),
            ("one\r\ntwo\rthree\r\n", "one\ntwo\\u{d}three"),
            ("\x1b[31mred\x07\0", "\\u{1b}[31mred\\u{7}\\u{0}"),
            ("a\u{202e}b\u{2066}c\u{200b}d\u{feff}", "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}"),
            ("tag \u{e0041}, selector \u{fe0f}\u{e0100}", "tag \\u{e0041}, selector \\u{fe0f}\\u{e0100}"),
            ("c1 \u{9b}1m, next line \u{85}, soft\u{ad}hyphen.", "c1 \\u{9b}1m, next line \\u{85}, soft\\u{ad}hyphen."),
            ("", ""),
        ] {
            assert_eq!(visible(text, 1_000), shown, "{text:?}");
        }
    }

    #[test]
    fn long_texts_end_with_what_was_omitted_and_never_exceed_their_limit() {
        let omitted = visible(&"ä".repeat(2_000), 2_048);
        assert!(omitted.ends_with(" bytes omitted]") && omitted.starts_with("ää"), "{omitted}");
        for text in ["ä".repeat(2_000), "\u{202e}".repeat(2_000), "x".repeat(9_000), "line\r\n".repeat(2_000)] {
            for max in [0, 1, 39, 40, 41, 100, 2_048] {
                assert!(visible(&text, max).len() <= max, "{max}");
            }
        }
        assert_eq!(visible(&"x".repeat(2_048), 2_048), "x".repeat(2_048));
    }
}
