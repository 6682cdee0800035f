//! What one answer holds: as much text as the operator allows, as much structured content as JSON, and where it goes on.
//!
//! A list ends before the item that does not fit, but never before its first: items are not cut in two.

use crate::run::lossy;
use linchpin_kit::{PAGE_ITEMS_MAX, Paging, ToolError, clip};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

/// What is left of an answer, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) text: usize,
    pub(crate) json: usize,
    untouched: bool,
}

impl Budget {
    /// A whole answer, without what stands around lists.
    pub(crate) fn of(max: usize) -> Self {
        Self { text: max, json: max.saturating_sub(ENVELOPE), untouched: true }
    }

    /// What is left beside this.
    pub(crate) fn beside(self, text: usize, json: usize) -> Self {
        Self { text: self.text.saturating_sub(text), json: self.json.saturating_sub(json), ..self }
    }

    /// A part of it.
    pub(crate) fn part(self, of: usize) -> Self {
        Self { text: self.text / of, json: self.json / of, ..self }
    }

    /// Whether this fits, or is the first; then it is taken in.
    pub(crate) fn takes(&mut self, text: usize, json: usize) -> bool {
        let fits = self.untouched || text <= self.text && json <= self.json;
        if fits {
            *self = Self { untouched: false, ..self.beside(text, json) };
        }
        fits
    }

    /// How many of these fit, each with a separator.
    pub(crate) fn count<T: Serialize>(mut self, items: &[T]) -> usize {
        items.iter().take_while(|item| self.takes(0, json_len(*item) + 1)).count()
    }
}

/// How long the value is as JSON.
pub(crate) fn json_len<T: Serialize + ?Sized>(value: &T) -> usize {
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
    // Values that cannot be written make the answer fail later, which says why.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// A part of a list.
pub(crate) struct Page<'a, T> {
    pub(crate) items: &'a [T],
    /// Its lines.
    pub(crate) text: String,
    pub(crate) paging: Paging,
}

/// The page of a list that begins where the cursor says; `shape` gives an item's line, and its length as JSON.
pub(crate) fn page<'a, T>(
    all: &'a [T],
    cursor: Option<&str>,
    most: usize,
    mut room: Budget,
    shape: impl Fn(&T) -> (Cow<'_, str>, usize),
) -> Result<Page<'a, T>, ToolError> {
    let (items, mut paging) = Paging::of(all, cursor, most)?;
    let start: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let (mut text, mut kept) = (String::new(), 0);
    for item in items {
        let (line, json) = shape(item);
        if !room.takes(line.len() + 1, json + 1) {
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

/// Where an answer of a text and a list was cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Bytes of the text that were shown; `None` for all.
    pub(crate) shown: Option<u64>,
    /// Items that were listed.
    pub(crate) listed: usize,
    /// What the whole was about: what changes in the meantime moves all that comes after.
    pub(crate) about: u64,
}

impl Mark {
    /// The mark of a cursor; the beginning without one.
    pub(crate) fn parse(cursor: Option<&str>) -> Result<Self, ToolError> {
        let Some(text) = cursor.filter(|text| !text.is_empty()) else {
            return Ok(Self { shown: Some(0), ..Self::default() });
        };
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or_else(unknown_cursor);
        let shown = match next()? {
            "all" => None,
            number => Some(number.parse().map_err(|_| unknown_cursor())?),
        };
        let listed = next()?.parse().map_err(|_| unknown_cursor())?;
        let about = u64::from_str_radix(next()?, 16).map_err(|_| unknown_cursor())?;
        if parts.next().is_some() { Err(unknown_cursor()) } else { Ok(Self { shown, listed, about }) }
    }

    pub(crate) fn is_start(self) -> bool {
        self.shown == Some(0) && self.listed == 0
    }

    /// The mark, if the whole is about the same as then and there is something to come.
    pub(crate) fn still<T>(self, about: u64, out: &[u8], all: &[T]) -> Result<Self, ToolError> {
        let behind = self.listed > all.len() || self.shown.is_some_and(|shown| shown > 0) && out.is_empty();
        if !self.is_start() && (self.about != about || behind) {
            return Err(ToolError::new("The content has changed since the result that returned this cursor")
                .hint("Omit cursor to start again."));
        }
        Ok(Self { about, ..self })
    }

    pub(crate) fn about(whole: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(whole);
        hasher.finish()
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown {
            Some(shown) => write!(f, "{shown}-{}-{:x}", self.listed, self.about),
            None => write!(f, "all-{}-{:x}", self.listed, self.about),
        }
    }
}

pub(crate) fn unknown_cursor() -> ToolError {
    ToolError::new("Unknown cursor").hint("Pass next_cursor of the previous result, or omit cursor.")
}

/// Part of a text and part of a list.
pub(crate) struct Both<T> {
    pub(crate) text: String,
    pub(crate) items: Vec<T>,
    /// Where it goes on.
    pub(crate) next: Option<Mark>,
}

/// What fits of a text and a list from `mark` on; `out` is the text from there, which goes on when it was `cut`.
pub(crate) fn both<T: Serialize>(mark: Mark, out: &[u8], cut: bool, all: Vec<T>, room: Budget) -> Both<T> {
    let mut items: Vec<T> = all.into_iter().skip(mark.listed).collect();
    let rest = items.len();
    let (mut text, mut taken) = whole_lines(out, room, 0, cut);
    // The list has what the text leaves, and a third at least.
    let left = if cut || taken < out.len() { 0 } else { room.json.saturating_sub(json_len(&text)) };
    items.truncate(Budget { json: left.max(room.json / 3), ..room }.count(&items).min(PAGE_ITEMS_MAX));
    let room = room.beside(0, items.iter().map(|item| json_len(item) + 1).sum());
    if room.json < json_len(&text) {
        (text, taken) = whole_lines(out, room, 0, cut);
    }
    let all_shown = mark.shown.is_none() || !cut && taken == out.len();
    if all_shown && text.ends_with('\n') {
        text.pop();
    }
    let shown = mark.shown.filter(|_| !all_shown).map(|shown| shown + taken as u64);
    let listed = mark.listed + items.len();
    let next = (!all_shown || items.len() < rest).then_some(Mark { shown, listed, about: mark.about });
    Both { text, items, next }
}

/// As much as fits, to the end of a line if one ends there.
pub(crate) fn whole_lines(bytes: &[u8], room: Budget, indent: usize, cut: bool) -> (String, usize) {
    let (text, taken) = fitting(bytes, room, indent, cut);
    if taken == bytes.len() && !cut {
        return (text, taken);
    }
    match bytes[..taken].iter().rposition(|byte| *byte == b'\n') {
        Some(end) => (lossy(&bytes[..=end]), end + 1),
        None => (text, taken),
    }
}

/// As much text as fits, and how many of the bytes it is. Each line feed costs `indent` bytes of text more. What is not
/// UTF-8 becomes U+FFFD; a character that was `cut` at the end is left for the next time.
pub(crate) fn fitting(bytes: &[u8], room: Budget, indent: usize, cut: bool) -> (String, usize) {
    let (mut text, mut taken, mut left) = (String::new(), 0, Budget { untouched: true, ..room.beside(0, 2) });
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

/// The beginning of what should be short: a first line, a name of a user.
pub(crate) fn brief(text: &str) -> String {
    clip(text, SHORT_BYTES).text.to_owned()
}

/// Names that fit, and how they are told in a sentence.
pub(crate) fn few(mut names: Vec<String>, room: Budget) -> (Vec<String>, String) {
    let fit = room.count(&names).min(PAGE_ITEMS_MAX);
    let more = names.len() - fit;
    names.truncate(fit);
    let mut told = names.join(", ");
    if more > 0 {
        told.push_str(&format!(" and {more} more"));
    }
    (names, told)
}

/// Bytes for what stands around lists in structured content.
const ENVELOPE: usize = 300;
/// Bytes of what should be short.
pub(crate) const SHORT_BYTES: usize = 500;
/// Bytes that are read of a list that is then shown in pages.
pub(crate) const LIST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes that are read of one part of an item of a list.
pub(crate) const PART_BYTES_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn room(bytes: usize) -> Budget {
        Budget { text: bytes, json: bytes + 2, untouched: true }
    }

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
                        let (text, taken) = fitting(&whole[at..end], room(max), 0, end < whole.len());
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
    fn a_text_and_a_list_are_shown_to_their_ends_together() {
        let text: String = (0..200).map(|n| format!("line {n}\n")).collect();
        let items: Vec<String> = (0..150).map(|n| format!("{n}{}", "x".repeat(n % 40))).collect();
        for (text, items) in
            [(text.as_str(), items.as_slice()), ("", &items), (&text, &[]), ("short", &items), ("", &[])]
        {
            for max in [100, 333, 1_000, 100_000] {
                let (mut mark, mut all, mut listed) = (Mark::parse(None).unwrap(), String::new(), Vec::new());
                loop {
                    let at = mark.shown.map_or(text.len(), |shown| usize::try_from(shown).unwrap());
                    let end = text.len().min(at + max);
                    let part = both(mark, &text.as_bytes()[at..end], end < text.len(), items.to_vec(), room(max));
                    assert!(part.text.len() <= max && json_len(&part.text) + json_len(&part.items) <= max + 8, "{max}");
                    all.push_str(&part.text);
                    listed.extend_from_slice(&part.items);
                    let Some(next) = part.next else { break };
                    assert_eq!(Mark::parse(Some(&next.to_string())).unwrap(), next);
                    assert_ne!(next, mark, "it goes on");
                    mark = next;
                }
                assert_eq!((all.trim_end(), listed.as_slice()), (text.trim_end(), items), "{max}");
            }
        }
        for foreign in ["x", "5", "5-1", "-5-1", "5-1-xyz", "1-2-3-4", "99999999999999999999-1-1"] {
            assert!(Mark::parse(Some(foreign)).is_err(), "{foreign}");
        }
    }
}
