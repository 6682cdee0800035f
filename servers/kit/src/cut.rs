//! Truncation of long output, with a notice how to continue.

use crate::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum bytes of text in a result before it is truncated: about 25,000 tokens.
pub const TEXT_BYTES_MAX: usize = 100_000;

/// Default maximum number of list items in a result before it is truncated.
pub const PAGE_ITEMS_MAX: usize = 1_000;

/// Maximum bytes of an unknown cursor in an error.
const CURSOR_BYTES_SHOWN: usize = 80;

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

/// Pagination of a list result. Flattened into the structured content of tools that return lists; empty if the list is
/// complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paging {
    /// Whether items were omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The `cursor` of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The error for a cursor that no result returned.
#[must_use]
pub fn unknown_cursor(cursor: &str) -> ToolError {
    ToolError::new(format!("Unknown cursor: {}", clip(cursor, CURSOR_BYTES_SHOWN).text))
        .hint("Pass next_cursor of the previous result with otherwise the same arguments, or omit cursor.")
}

impl Paging {
    /// A complete list.
    #[must_use]
    pub fn whole() -> Self {
        Self::default()
    }

    /// A truncated list that continues at this cursor.
    #[must_use]
    pub fn more(next_cursor: impl Into<String>) -> Self {
        Self { truncated: true, next_cursor: Some(next_cursor.into()) }
    }

    /// The offset of `cursor` in a list of this length; 0 without a cursor. Cursors are decimal offsets.
    ///
    /// # Errors
    /// When the cursor is invalid.
    pub fn start(cursor: Option<&str>, length: usize) -> Result<usize, ToolError> {
        let offset = |text: &str| text.parse().ok().filter(|start| *start <= length);
        cursor.map_or(Ok(0), |text| offset(text).ok_or_else(|| unknown_cursor(text)))
    }

    /// The page of `items` at `cursor`, see [`Paging::start`].
    ///
    /// # Errors
    /// When the cursor is invalid.
    pub fn of<'a, T>(items: &'a [T], cursor: Option<&str>, most: usize) -> Result<(&'a [T], Self), ToolError> {
        let start = Self::start(cursor, items.len())?;
        let end = items.len().min(start.saturating_add(most.max(1)));
        let paging = if end < items.len() { Self::more(end.to_string()) } else { Self::whole() };
        Ok((&items[start..end], paging))
    }

    /// The truncation notice for clients that only read text.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let cursor = self.next_cursor.as_ref()?;
        Some(format!("[Truncated. Continue with the same arguments and cursor={cursor:?}, or narrow the request.]"))
    }
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

    #[test]
    fn pages_join_to_the_whole_list_and_foreign_cursors_are_refused() {
        let items: Vec<u32> = (0..10).collect();
        let (mut seen, mut cursor): (Vec<u32>, Option<String>) = (Vec::new(), None);
        loop {
            let (page, paging) = Paging::of(&items, cursor.as_deref(), 3).unwrap();
            seen.extend(page);
            assert_eq!(paging.truncated, paging.next_cursor.is_some());
            assert_eq!(paging.notice().is_some(), paging.truncated);
            cursor = paging.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, items);
        for foreign in ["x", "11", "-1", "", &"9".repeat(10_000)] {
            let refused = Paging::of(&items, Some(foreign), 3).unwrap_err().to_string();
            assert!(refused.starts_with("Unknown cursor: ") && refused.len() < 300, "{refused}");
        }
        for (cursor, start) in [(None, 0), (Some("0"), 0), (Some("7"), 7), (Some("10"), 10)] {
            assert_eq!(Paging::start(cursor, items.len()), Ok(start));
        }
    }
}
