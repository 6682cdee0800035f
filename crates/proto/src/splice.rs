//! Edits of JSON text without reading it again: replaced values, removed and added members; all other bytes stay as they
//! came.
//!
//! The positions are those that reading the message has found. Nothing here checks JSON: the text is that of a message
//! that was read.

use linchpin_core::json::Span;
use std::borrow::Cow;

/// A part of a message and the edits to be made in it.
#[derive(Debug)]
pub struct Splice<'a> {
    text: &'a str,
    /// The part of the text that is written.
    part: (usize, usize),
    edits: Vec<Edit<'a>>,
}

#[derive(Debug)]
struct Edit<'a> {
    start: usize,
    end: usize,
    with: Cow<'a, [u8]>,
    /// A member that is removed: with neighbours, and with the comma that they leave behind.
    member: bool,
}

impl<'a> Splice<'a> {
    /// The part of `text` at `part`, as it is.
    pub fn new(text: &'a str, part: Span) -> Splice<'a> {
        let end = part.end().min(text.len());
        Splice { text, part: (part.start().min(end), end), edits: Vec::new() }
    }

    /// Whether nothing is changed.
    pub fn is_same(&self) -> bool {
        self.edits.is_empty()
    }

    /// Replaces the value at `span`.
    pub fn replace(&mut self, span: Span, with: impl Into<Cow<'a, [u8]>>) {
        self.edit(span.start(), span.end(), with.into(), false);
    }

    /// Removes the member of an object whose value is at `value`.
    pub fn remove(&mut self, value: Span) {
        let bytes = self.text.as_bytes();
        let blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let mut at = value.start();
        while at > self.part.0 && (blank(bytes[at - 1]) || bytes[at - 1] == b':') {
            at -= 1;
        }
        // The closing quote of the name, and the one before it: names that are removed have none inside.
        at = at.saturating_sub(1);
        while at > self.part.0 && bytes[at - 1] != b'"' {
            at -= 1;
        }
        self.edit(at.saturating_sub(1).max(self.part.0), value.end(), Cow::Borrowed(b""), true);
    }

    /// Adds members to the object at `object`, in front of its own. `members` are JSON text without a comma at the end;
    /// nothing is added if there are none.
    pub fn add(&mut self, object: Span, members: impl Into<Cow<'a, [u8]>>) {
        let members = members.into();
        if members.is_empty() {
            return;
        }
        let at = object.start() + 1;
        self.edit(at, at, members, false);
    }

    fn edit(&mut self, start: usize, end: usize, with: Cow<'a, [u8]>, member: bool) {
        debug_assert!(self.part.0 <= start && start <= end && end <= self.part.1, "an edit outside of the part");
        self.edits.push(Edit { start, end, with, member });
    }

    /// Appends the edited text.
    pub fn write(mut self, out: &mut Vec<u8>) {
        let bytes = self.text.as_bytes();
        self.edits.sort_by_key(|edit| (edit.start, edit.end));
        self.join_removed();
        let mut at = self.part.0;
        for edit in &self.edits {
            // An edit within one that was made is part of it.
            if edit.start < at {
                continue;
            }
            out.extend_from_slice(&bytes[at..edit.start]);
            out.extend_from_slice(&edit.with);
            // Members were added to an object: is one of its own left behind them?
            let rest = if edit.start == edit.end { self.rest(edit.start) } else { None };
            if rest.is_some_and(|next| next != b'}') {
                out.push(b',');
            }
            at = edit.end;
        }
        out.extend_from_slice(&bytes[at..self.part.1]);
    }

    /// The first byte behind `at` that is neither blank nor removed.
    fn rest(&self, mut at: usize) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while at < self.part.1 {
            if let Some(edit) = self.edits.iter().find(|edit| edit.member && edit.start <= at && at < edit.end) {
                at = edit.end;
            } else if matches!(bytes[at], b' ' | b'\t' | b'\n' | b'\r') {
                at += 1;
            } else {
                return Some(bytes[at]);
            }
        }
        None
    }

    /// Makes one edit of removed members that are neighbours, and removes one comma with them.
    fn join_removed(&mut self) {
        let bytes = self.text.as_bytes();
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let mut joined: Vec<Edit<'a>> = Vec::with_capacity(self.edits.len());
        for edit in std::mem::take(&mut self.edits) {
            if let Some(last) = joined.last_mut().filter(|last| last.member && edit.member && edit.start >= last.end)
                && bytes[last.end..edit.start].iter().all(|byte| blank(byte) || *byte == b',')
            {
                last.end = edit.end;
                continue;
            }
            joined.push(edit);
        }
        for edit in joined.iter_mut().filter(|edit| edit.member) {
            let behind = bytes[edit.end..self.part.1].iter().position(|byte| !blank(byte));
            if let Some(comma) = behind.map(|n| edit.end + n).filter(|at| bytes[*at] == b',') {
                edit.end = comma + 1;
                continue;
            }
            let before = bytes[self.part.0..edit.start].iter().rposition(|byte| !blank(byte));
            if let Some(comma) = before.map(|n| self.part.0 + n).filter(|at| bytes[*at] == b',') {
                edit.start = comma;
            }
        }
        self.edits = joined;
    }
}

/// Makes line ends between the tokens of JSON text blanks, so that it is one line. Inside strings JSON has none.
pub fn one_line(json: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &json[at..]) {
        at += found;
        json[at] = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_core::json::Scanner;

    /// Where the members of the object in `text` are, by name.
    fn members(text: &str) -> Vec<(String, Span)> {
        let mut found = Vec::new();
        Scanner::new(text, 100)
            .object(&mut |s, key| {
                found.push((key.name().into_owned(), s.value()?));
                Ok(())
            })
            .unwrap();
        found
    }

    fn edited(text: &str, remove: &[&str], add: &str) -> String {
        let all = Span::new(0, text.len());
        let mut splice = Splice::new(text, all);
        for (name, value) in members(text).into_iter().filter(|(name, _)| remove.contains(&name.as_str())) {
            let _ = name;
            splice.remove(value);
        }
        splice.add(all, add.as_bytes());
        let mut out = Vec::new();
        splice.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn members_are_removed_with_one_comma_and_added_with_one() {
        for (text, remove, add, want) in [
            (r#"{"a":1,"b":2}"#, &["a"][..], "", r#"{"b":2}"#),
            (r#"{"a":1,"b":2}"#, &["b"], "", r#"{"a":1}"#),
            (r#"{"a":1,"b":2}"#, &["a", "b"], "", "{}"),
            (r#"{"x":0,"a":1,"b":2}"#, &["a", "b"], "", r#"{"x":0}"#),
            (r#"{"a":1,"x":0,"b":2}"#, &["a", "b"], "", r#"{"x":0}"#),
            (r#"{"a":1,"b":2,"x":0}"#, &["a", "b"], "", r#"{"x":0}"#),
            ("{ \"a\" : 1 ,\n \"b\" : 2 }", &["b"], "", "{ \"a\" : 1  }"),
            (r#"{"a":1}"#, &[], r#""n":0"#, r#"{"n":0,"a":1}"#),
            (r#"{"a":1}"#, &["a"], r#""n":0"#, r#"{"n":0}"#),
            (r#"{"a":1,"b":2}"#, &["a"], r#""n":0"#, r#"{"n":0,"b":2}"#),
            ("{ }", &[], r#""n":0"#, r#"{"n":0 }"#),
            (r#"{"\u0061":1,"b":[",","}"]}"#, &["a"], "", r#"{"b":[",","}"]}"#),
            (r#"{"b":"\",\"a\":","a":{"c":1}}"#, &["a"], "", r#"{"b":"\",\"a\":"}"#),
        ] {
            assert_eq!(edited(text, remove, add), want, "{text} without {remove:?}, with {add}");
        }
    }

    #[test]
    fn values_are_replaced_and_all_else_stays() {
        let text = r#"{"n":9007199254740993,"s":"\u00e9 ","t":1.0,"t2":{}}"#;
        let mut splice = Splice::new(text, Span::new(0, text.len()));
        splice.replace(members(text)[2].1, &b"\"seven\""[..]);
        let mut out = Vec::new();
        splice.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), text.replace("1.0", "\"seven\""));
    }

    #[test]
    fn line_ends_between_tokens_become_blanks() {
        let mut text = b"{\r\n\"a\":\n1}".to_vec();
        one_line(&mut text);
        assert_eq!(text, b"{  \"a\": 1}");
    }
}
