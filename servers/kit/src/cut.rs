//! Truncation of long texts.

/// Maximum bytes of text in a result before it is truncated: about 25,000 tokens.
pub const TEXT_BYTES_MAX: usize = 100_000;

/// A text truncated to a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The part that fits; ends at a line break in its second half if there is one, otherwise between characters.
    pub text: &'a str,
    /// Bytes omitted.
    pub left_out: usize,
}

/// Truncates `text` to at most `bytes_max` bytes, at the last line break if it is in the second half of what fits.
#[must_use]
pub fn clip(text: &str, bytes_max: usize) -> Cut<'_> {
    if text.len() <= bytes_max {
        return Cut { text, left_out: 0 };
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let fits = &text[..end];
    let fits = match fits.rfind('\n') {
        Some(line) if line + 1 > end / 2 => &fits[..=line],
        _ => fits,
    };
    Cut { text: fits, left_out: text.len() - fits.len() }
}

/// At most `count` characters (Unicode code points) of the text from `start` on, and the number of characters of the
/// whole. `None` if `start` is at or past the end.
#[must_use]
pub fn chars_from(text: &str, start: usize, count: usize) -> (Option<&str>, usize) {
    let total = text.chars().count();
    if start >= total {
        return (None, total);
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let from = at(start);
    let rest = &text[from..];
    let to = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
    (Some(&rest[..to]), total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_lines_or_between_characters() {
        for (text, max, kept) in [
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("äö", 3, "ä"),
            ("äö", 1, ""),
            ("one\ntwo\nthree", 9, "one\ntwo\n"),
            ("o\nlonglonglong", 9, "o\nlonglon"),
            ("", 0, ""),
        ] {
            let cut = clip(text, max);
            assert_eq!((cut.text, cut.left_out), (kept, text.len() - kept.len()), "{text:?} {max}");
        }
    }

    #[test]
    fn windows_count_characters_not_bytes() {
        assert_eq!(chars_from("äöü", 1, 1), (Some("ö"), 3));
        assert_eq!(chars_from("äöü", 0, 9), (Some("äöü"), 3));
        assert_eq!(chars_from("äöü", 2, 0), (Some(""), 3));
        assert_eq!(chars_from("äöü", 3, 1), (None, 3));
        assert_eq!(chars_from("", 0, 1), (None, 0));
    }
}
