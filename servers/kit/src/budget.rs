//! How much a result may hold, and the pages of what does not fit.
//!
//! Text and structured content have the same limit, each for itself. A list ends before the item that does not fit, but
//! never before its first: items are not cut in two.

use crate::{Paging, ToolError, unknown_cursor};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What is left of a result, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Of its text.
    pub text: usize,
    /// Of its structured content.
    pub json: usize,
    untouched: bool,
}

impl Budget {
    /// A whole result, without the members around a list.
    #[must_use]
    pub fn of(bytes_max: usize) -> Self {
        Self { text: bytes_max, json: bytes_max.saturating_sub(ENVELOPE_BYTES), untouched: true }
    }

    /// What is left beside this.
    #[must_use]
    pub fn beside(self, text: usize, json: usize) -> Self {
        Self { text: self.text.saturating_sub(text), json: self.json.saturating_sub(json), ..self }
    }

    /// A part of it.
    #[must_use]
    pub fn part(self, of: usize) -> Self {
        Self { text: self.text / of, json: self.json / of, ..self }
    }

    /// Whether this fits, or is the first; then it is taken off.
    pub fn takes(&mut self, text: usize, json: usize) -> bool {
        let fits = self.untouched || text <= self.text && json <= self.json;
        if fits {
            *self = Self { untouched: false, ..self.beside(text, json) };
        }
        fits
    }

    /// How many of these fit into the structured content, each with a separator.
    pub fn count<T: Serialize>(mut self, items: &[T]) -> usize {
        items.iter().take_while(|item| self.takes(0, json_len(*item) + 1)).count()
    }

    /// As much of a text as fits, and how many of its bytes that is. Each line feed costs `indent` more bytes. What is not
    /// UTF-8 becomes U+FFFD; a character that was `cut` off at the end is left for the next time.
    #[must_use]
    pub fn text(self, bytes: &[u8], indent: usize, cut: bool) -> (String, usize) {
        let (mut text, mut taken, mut left) = (String::new(), 0, Self { untouched: true, ..self.beside(0, 2) });
        'all: for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                let json = match c {
                    '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
                    '\0'..='\u{1f}' => 6,
                    _ => c.len_utf8(),
                };
                if !left.takes(c.len_utf8() + if c == '\n' { indent } else { 0 }, json) {
                    break 'all;
                }
                text.push(c);
                taken += c.len_utf8();
            }
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            // It may be the beginning of a character, whose rest comes next time; but something comes now.
            let unfinished = cut && taken + invalid.len() == bytes.len() && invalid.len() < 4 && taken > 0;
            if unfinished || !left.takes(3, 3) {
                break;
            }
            text.push('\u{fffd}');
            taken += invalid.len();
        }
        (text, taken)
    }

    /// The same, to the end of a line if one ends there.
    #[must_use]
    pub fn lines(self, bytes: &[u8], indent: usize, cut: bool) -> (String, usize) {
        let (text, taken) = self.text(bytes, indent, cut);
        if taken == bytes.len() && !cut {
            return (text, taken);
        }
        match bytes[..taken].iter().rposition(|byte| *byte == b'\n') {
            Some(end) => (String::from_utf8_lossy(&bytes[..=end]).into_owned(), end + 1),
            None => (text, taken),
        }
    }
}

/// The length of a value as JSON.
pub fn json_len<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // Values that cannot be written make the result fail later, which says why.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// A part of a list.
#[derive(Debug)]
pub struct Page<'a, T> {
    /// Its items.
    pub items: &'a [T],
    /// Their lines.
    pub text: String,
    /// Where it goes on.
    pub paging: Paging,
}

/// The page of a list at `cursor`, of at most `most` items; `shape` returns an item's line, and its length as JSON.
///
/// # Errors
/// When the cursor is invalid.
pub fn page<'a, T>(
    all: &'a [T],
    cursor: Option<&str>,
    most: usize,
    mut budget: Budget,
    shape: impl Fn(&T) -> (Cow<'_, str>, usize),
) -> Result<Page<'a, T>, ToolError> {
    let start = Paging::start(cursor, all.len())?;
    let (items, mut paging) = Paging::of(all, cursor, most)?;
    let (mut text, mut kept) = (String::new(), 0);
    for item in items {
        let (line, json) = shape(item);
        if !budget.takes(line.len() + 1, json + 1) {
            paging = Paging::more((start + kept).to_string());
            break;
        }
        if kept > 0 {
            text.push('\n');
        }
        text.push_str(&line);
        kept += 1;
    }
    Ok(Page { items: &items[..kept], text, paging })
}

/// A place in something that may change between two pages: offsets, and a digest of what they are offsets in. Written
/// `17-9f86d081884c7d65`; opaque to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor<const N: usize = 1> {
    /// The offsets.
    pub at: [u64; N],
    /// The digest, see [`Cursor::digest`].
    pub of: u64,
}

impl<const N: usize> Cursor<N> {
    /// The cursor that was passed; `None` without one, or with an empty one.
    ///
    /// # Errors
    /// When no result can have returned it.
    pub fn parse(cursor: Option<&str>) -> Result<Option<Self>, ToolError> {
        let Some(text) = cursor.filter(|text| !text.is_empty()) else { return Ok(None) };
        let read = || {
            let mut parts = text.split('-');
            let mut at = [0; N];
            for offset in &mut at {
                *offset = parts.next()?.parse().ok()?;
            }
            let of = u64::from_str_radix(parts.next()?, 16).ok()?;
            parts.next().is_none().then_some(Self { at, of })
        };
        read().map(Some).ok_or_else(|| unknown_cursor(text))
    }

    /// A digest of what the pages are about: what changes, or the arguments.
    pub fn digest(of: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        hasher.finish()
    }

    /// Checks that it is still about the same.
    ///
    /// # Errors
    /// When it is about something else: the offsets would be wrong.
    pub fn still(self, of: u64) -> Result<Self, ToolError> {
        if self.of == of { Ok(self) } else { Err(Self::outdated()) }
    }

    /// The error for a cursor whose list or text has changed.
    #[must_use]
    pub fn outdated() -> ToolError {
        ToolError::new("The content has changed since the result that returned this cursor")
            .kind(crate::ErrorKind::Conflict)
            .hint("Omit cursor to start again.")
    }
}

impl<const N: usize> fmt::Display for Cursor<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.iter().try_for_each(|at| write!(f, "{at}-"))?;
        write!(f, "{:x}", self.of)
    }
}

/// Bytes for the members around a list in structured content.
const ENVELOPE_BYTES: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_bytes_are_read_to_their_end_however_little_fits() {
        let mut odd = b"text \xff\xfe".repeat(30);
        odd.extend_from_slice("€".as_bytes());
        for whole in ["1 äöü €\n2\n".repeat(20).into_bytes(), "€𝄞ä\0\"".repeat(30).into_bytes(), odd, Vec::new()]
        {
            for max in [1, 2, 3, 4, 7, 50] {
                for window in [1, 2, 3, 4, 5, 60] {
                    let (mut all, mut at) = (String::new(), 0);
                    while at < whole.len() {
                        let end = whole.len().min(at + window.max(4));
                        let budget = Budget { text: max, json: max + 2, untouched: true };
                        let (text, taken) = budget.text(&whole[at..end], 0, end < whole.len());
                        assert!(taken > 0, "{max} {window}: it goes on");
                        assert!(text.len() <= max.max(4) && json_len(&text) <= max.max(6) + 2, "{max}: {text:?}");
                        all.push_str(&text);
                        at += taken;
                    }
                    assert_eq!(all, String::from_utf8_lossy(&whole), "{max} {window}");
                }
            }
        }
    }

    #[test]
    fn lists_are_read_to_their_end_and_hold_their_limit() {
        let all: Vec<String> = (0..150).map(|n| format!("{n}{}", "x".repeat(n % 40))).collect();
        for max in [1, 100, 333, 100_000] {
            let (mut seen, mut cursor): (Vec<String>, Option<String>) = (Vec::new(), None);
            loop {
                let budget = Budget { text: max, json: max, untouched: true };
                let page = page(&all, cursor.as_deref(), 40, budget, |item| (item.into(), json_len(item))).unwrap();
                assert!(page.items.len() == 1 || page.text.len() <= max && page.items.len() <= 40, "{max}");
                assert_eq!(page.text, page.items.join("\n"));
                seen.extend_from_slice(page.items);
                cursor = page.paging.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, all, "{max}");
        }
    }

    #[test]
    fn cursors_are_read_as_written_and_refused_where_their_list_is_another() {
        let cursor = Cursor { at: [17, 3], of: Cursor::<2>::digest("what") };
        let read = Cursor::<2>::parse(Some(&cursor.to_string())).unwrap().unwrap();
        assert_eq!(read, cursor);
        assert_eq!(read.still(cursor.of), Ok(cursor));
        assert!(read.still(Cursor::<2>::digest("other")).is_err());
        for none in [None, Some("")] {
            assert_eq!(Cursor::<2>::parse(none), Ok(None));
        }
        for foreign in ["x", "5", "5-1", "-5-1", "5-1-xyz", "1-2-3-4", "99999999999999999999-1-1"] {
            assert!(Cursor::<2>::parse(Some(foreign)).is_err(), "{foreign}");
        }
    }
}
