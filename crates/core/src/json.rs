//! A strict, borrowing JSON scanner: one pass over a frame that checks the whole grammar and the depth, and reports
//! where the members of the outer objects are.
//!
//! With `serde_json` alone, the envelope, `params` and the depth limit would each need a pass over a message; this is one pass
//! for all three, and each value is decoded only once, where it is used. The scanner accepts exactly what `serde_json` accepts
//! as an ignored value (`fuzz/` compares the two).

use std::borrow::Cow;
use std::num::NonZeroU32;

/// A range of bytes in a frame. Frames are shorter than 4 GiB.
///
/// An `Option<Span>` is no larger than a `Span`: requests have a dozen of them, and are moved often.
///
/// ```
/// use linchpin_core::Span;
///
/// let text = r#"{"name":"add"}"#;
/// let name = Span::new(8, 13);
/// assert_eq!(name.of(text), r#""add""#);
/// assert_eq!(name.range(), 8..13);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    /// One more than the end.
    past: NonZeroU32,
}

impl Span {
    /// Creates a span of the bytes from `start` up to `end`, exclusive. Offsets that do not fit 32 bits saturate.
    pub fn new(start: usize, end: usize) -> Span {
        let [start, end] = [start, end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Span { start, past: NonZeroU32::MIN.saturating_add(end) }
    }

    /// Returns the offset of the first byte.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the offset one past the last byte.
    pub fn end(self) -> usize {
        self.past.get() as usize - 1
    }

    /// Returns the text of the span. Empty if the span does not lie in `text`.
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }

    /// Returns the range as `usize`.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start()..self.end()
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.start(), self.end())
    }
}

/// The reason why a text is not accepted as JSON.
///
/// ```
/// use linchpin_core::json::{Scanner, TOO_DEEP};
///
/// let error = Scanner::new("[[[1]]]", 2).value().unwrap_err();
/// assert_eq!((error.at(), error.what()), (3, TOO_DEEP));
/// ```
// As small as a pointer, because every step of a scan returns a `Result` of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScanError(Box<(usize, &'static str)>);

impl ScanError {
    /// Creates an error from a byte offset and a phrase.
    #[cold]
    pub fn new(at: usize, what: &'static str) -> ScanError {
        ScanError(Box::new((at, what)))
    }

    /// Returns the byte offset.
    pub fn at(&self) -> usize {
        self.0.0
    }

    /// Returns the error as a phrase.
    pub fn what(&self) -> &'static str {
        self.0.1
    }
}

/// Scans one JSON text: checks its grammar and depth, and finds the spans of its values.
///
/// ```
/// use linchpin_core::json::Scanner;
///
/// let text = r#"{"jsonrpc":"2.0","method":"ping"}"#;
/// let mut scanner = Scanner::new(text, 100);
/// let mut method = None;
/// scanner.object(&mut |scanner, key| {
///     let value = scanner.value()?;
///     if key.name() == "method" {
///         method = Some(value.of(text));
///     }
///     Ok(())
/// })?;
/// scanner.end()?;
/// assert_eq!(method, Some(r#""ping""#));
/// # Ok::<(), linchpin_core::json::ScanError>(())
/// ```
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    depth_max: usize,
    /// Whether the last string holds escapes.
    escaped: bool,
}

/// A member's name as it appears between its quotes.
///
/// ```
/// use linchpin_core::json::{Key, Scanner};
///
/// let mut names = Vec::new();
/// let mut member = |scanner: &mut Scanner<'_>, key: Key<'_>| {
///     names.push(key.name().into_owned());
///     scanner.value().map(drop)
/// };
/// Scanner::new(r#"{"a":1,"\u0062":2}"#, 100).object(&mut member)?;
/// assert_eq!(names, ["a", "b"]);
/// # Ok::<(), linchpin_core::json::ScanError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Key<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Key<'a> {
    /// Returns the name, unescaped if it contains escapes.
    pub fn name(&self) -> Cow<'a, str> {
        let raw = std::str::from_utf8(self.raw).unwrap_or_default();
        if !self.escaped {
            return Cow::Borrowed(raw);
        }
        serde_json::from_str::<String>(&format!("\"{raw}\"")).map_or(Cow::Borrowed(raw), Cow::Owned)
    }

    /// Returns the bytes of [`Key::name`], without checking again that they are UTF-8.
    ///
    /// ```
    /// # use linchpin_core::json::Scanner;
    /// let mut id = None;
    /// let mut scanner = Scanner::new(r#"{"id":7,"x":[]}"#, 100);
    /// scanner.object(&mut |scanner, key| {
    ///     let value = scanner.value()?;
    ///     match &*key.bytes() {
    ///         b"id" => id = Some(value),
    ///         _ => {}
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(id.map(|span| span.range()), Some(6..7));
    /// # Ok::<(), linchpin_core::json::ScanError>(())
    /// ```
    #[inline]
    pub fn bytes(&self) -> Cow<'a, [u8]> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        match self.name() {
            Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
            Cow::Owned(name) => Cow::Owned(name.into_bytes()),
        }
    }
}

type Result<T> = std::result::Result<T, ScanError>;

impl<'a> Scanner<'a> {
    /// Creates a scanner at the start of `text` that rejects nesting deeper than `depth_max` (at most 127). A text of
    /// 4 GiB and more is scanned as if it were empty, because no [`Span`] could tell its parts.
    pub fn new(text: &'a str, depth_max: usize) -> Self {
        let text = if text.len() < u32::MAX as usize { text } else { "" };
        Scanner { text, at: 0, depth: 0, depth_max: depth_max.min(127), escaped: false }
    }

    /// Returns the next byte that is not a blank, without consuming it.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.peek_after_blanks(),
        }
    }

    /// Consumes an object, calling `member` at each value; `member` must consume it.
    pub fn object(&mut self, member: &mut dyn FnMut(&mut Self, Key<'a>) -> Result<()>) -> Result<Span> {
        let start = self.open(b'{', "expected an object")?;
        if self.peek() == Some(b'}') {
            return Ok(self.close(start));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("expected a member name in quotes");
            }
            let name = self.string()?;
            let raw = self.text.as_bytes().get(name.start() + 1..name.end() - 1).unwrap_or_default();
            let escaped = self.escaped;
            if self.peek() != Some(b':') {
                return self.fail("expected a colon");
            }
            self.at += 1;
            member(self, Key { raw, escaped })?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return Ok(self.close(start)),
                _ => return self.fail("expected a comma or the end of the object"),
            }
        }
    }

    /// Consumes an array, calling `element` at each value; `element` must consume it.
    pub fn array(&mut self, element: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<Span> {
        let start = self.open(b'[', "expected an array")?;
        if self.peek() == Some(b']') {
            return Ok(self.close(start));
        }
        loop {
            element(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return Ok(self.close(start)),
                _ => return self.fail("expected a comma or the end of the array"),
            }
        }
    }

    /// Consumes any value, checks its grammar and depth, and returns its span.
    #[inline]
    pub fn value(&mut self) -> Result<Span> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => self.container(),
            _ => self.unquoted(),
        }
    }

    /// Consumes a number or a literal.
    fn unquoted(&mut self) -> Result<Span> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => self.fail("expected a value"),
        }
    }

    /// Consumes an object or an array without recursion: bit n of `objects` tells what is open at depth n.
    fn container(&mut self) -> Result<Span> {
        let (start, base) = (self.at, self.depth);
        let mut objects = 0_u128;
        loop {
            // At a value.
            match self.peek() {
                Some(b'"') => drop(self.string()?),
                Some(bracket @ (b'{' | b'[')) => {
                    let object = bracket == b'{';
                    self.at += 1;
                    self.deeper()?;
                    let bit = 1_u128 << (self.depth - base);
                    objects = if object { objects | bit } else { objects & !bit };
                    let closer = if object { b'}' } else { b']' };
                    if self.peek() != Some(closer) {
                        if object {
                            self.name()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    self.depth -= 1;
                }
                _ => drop(self.unquoted()?),
            }
            // After a value: close what ends here, then stand at the next value.
            loop {
                if self.depth == base {
                    return Ok(self.span(start));
                }
                let object = objects & (1_u128 << (self.depth - base)) != 0;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    Some(b'}') if object => {}
                    Some(b']') if !object => {}
                    _ => return self.fail("expected a comma or the end of the list"),
                }
                self.at += 1;
                self.depth -= 1;
            }
        }
    }

    /// Checks that only whitespace is left.
    pub fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("trailing characters after the message"),
        }
    }

    fn name(&mut self) -> Result<()> {
        if self.peek() != Some(b'"') {
            return self.fail("expected a member name in quotes");
        }
        self.string()?;
        if self.peek() != Some(b':') {
            return self.fail("expected a colon");
        }
        self.at += 1;
        Ok(())
    }

    fn open(&mut self, bracket: u8, what: &'static str) -> Result<usize> {
        if self.peek() != Some(bracket) {
            return self.fail(what);
        }
        let start = self.at;
        self.at += 1;
        self.deeper()?;
        Ok(start)
    }

    fn close(&mut self, start: usize) -> Span {
        self.at += 1;
        self.depth -= 1;
        self.span(start)
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.depth_max { self.fail(TOO_DEEP) } else { Ok(()) }
    }

    fn peek_after_blanks(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Consumes a string, quotes included.
    #[inline]
    fn string(&mut self) -> Result<Span> {
        let start = self.at;
        match short_string(self.text.as_bytes(), start + 1) {
            Some(past) => {
                (self.at, self.escaped) = (past, false);
                Ok(self.span(start))
            }
            None => self.long_string(),
        }
    }

    fn long_string(&mut self) -> Result<Span> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        self.escaped = false;
        loop {
            self.at += plain_prefix(&bytes[self.at..]);
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.span(start));
                }
                Some(b'\\') => {
                    self.escaped = true;
                    self.escape()?;
                }
                Some(_) => return self.fail("a control character in a string must be escaped"),
                None => return self.fail("unterminated string"),
            }
        }
    }

    fn escape(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') if bytes.get(self.at + 2..self.at + 6).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) => {
                self.at += 6
            }
            _ => return self.fail("an unknown escape in a string"),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Span> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let digits = |at: usize| bytes[at.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        if bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match (bytes.get(self.at), digits(self.at)) {
            (_, 0) => return self.fail("expected a digit"),
            (Some(b'0'), n) if n > 1 => return self.fail("a number must not start with 0"),
            (_, n) => self.at += n,
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            match digits(self.at) {
                0 => return self.fail("expected a digit after the point"),
                n => self.at += n,
            }
        }
        if let Some(b'e' | b'E') = bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = bytes.get(self.at) {
                self.at += 1;
            }
            match digits(self.at) {
                0 => return self.fail("expected a digit in the exponent"),
                n => self.at += n,
            }
        }
        Ok(self.span(start))
    }

    fn literal(&mut self, word: &str) -> Result<Span> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("expected a value");
        }
        let start = self.at;
        self.at += word.len();
        Ok(self.span(start))
    }

    /// From `start` to here. The text is shorter than 4 GiB.
    #[inline]
    fn span(&self, start: usize) -> Span {
        Span { start: start as u32, past: NonZeroU32::MIN.saturating_add(self.at as u32) }
    }

    #[cold]
    fn fail<T>(&self, what: &'static str) -> Result<T> {
        Err(ScanError::new(self.at, what))
    }
}

/// The phrase of the error for nesting beyond the limit.
pub const TOO_DEEP: &str = "nested too deeply";

/// Longer strings are looked at by blocks.
const SHORT: usize = 32;

/// Where a string ends whose content begins at `at`, past its quote, if it is short and holds nothing special: most are,
/// and their end is found by words.
#[inline]
fn short_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut from = at;
    while from - at < SHORT {
        let rest = bytes.get(from..)?;
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            // The last bytes of the text, then zeros.
            None if rest.is_empty() => return None,
            None => u64::from_le_bytes(*bytes.last_chunk()?) >> (64 - 8 * rest.len()),
        };
        let found = special_bytes(word);
        if found != 0 {
            let end = from + found.trailing_zeros() as usize / 8;
            return (bytes.get(end) == Some(&b'"')).then_some(end + 1);
        }
        from += 8;
    }
    None
}

/// How many bytes from the start need no attention inside a string: none of `"`, `\` and the control characters.
#[inline]
fn plain_prefix(bytes: &[u8]) -> usize {
    let short = plain_words(&bytes[..bytes.len().min(SHORT)]);
    if short < SHORT { short } else { SHORT + plain_blocks(&bytes[SHORT..]) }
}

/// The same for a long string: up to the next `"` or `\`, four words at once of what is before that.
fn plain_blocks(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let before = &bytes[..memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len())];
    let is_plain = |block: &&[u8; BLOCK]| {
        let words = block.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        words.fold(0, |found, word| found | below_space(word)) & HIGH == 0
    };
    let plain = before.as_chunks::<BLOCK>().0.iter().take_while(is_plain).count() * BLOCK;
    plain + plain_words(&bytes[plain..])
}

/// The same, eight bytes at once.
#[inline]
fn plain_words(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let found = special_bytes(u64::from_le_bytes(*word));
        if found != 0 {
            return i * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let mut last = [b'"'; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.len() * 8 + special_bytes(u64::from_le_bytes(last)).trailing_zeros() as usize / 8
}

const ONES: u64 = u64::MAX / 0xff;
/// The highest bit of each byte.
const HIGH: u64 = ONES << 7;

/// The highest bit of each byte that is special; only the lowest of these bits is certain, because a borrow may set
/// others above it.
#[inline]
fn special_bytes(word: u64) -> u64 {
    let equal = |byte: u8| {
        let other = word ^ (ONES * u64::from(byte));
        other.wrapping_sub(ONES) & !other
    };
    (below_space(word) | equal(b'"') | equal(b'\\')) & HIGH
}

/// The highest bit of each control character; other bits mean nothing.
#[inline]
fn below_space(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word
}

/// Reads a value that must be an object. By itself, serde would also read a struct from an array.
///
/// ```
/// use linchpin_core::json::read_object;
///
/// #[derive(serde::Deserialize)]
/// struct Point {
///     x: f64,
/// }
///
/// assert_eq!(read_object::<Point>(r#"{"x":1.5}"#).unwrap().x, 1.5);
/// assert!(read_object::<Point>("[1.5]").is_err());
/// ```
///
/// # Errors
/// If the value is not an object, or does not fit `T`.
pub fn read_object<'a, T: serde::Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
    match json.trim_ascii_start().starts_with('{') {
        true => serde_json::from_str(json),
        false => Err(serde::de::Error::custom("expected an object")),
    }
}

/// Returns the text of a JSON string, borrowed unless it contains escapes. `None` for any other value, or if an escape
/// is not a character.
pub fn read_str(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if short_string(json.as_bytes(), 1) == Some(json.len()) {
        return Some(Cow::Borrowed(inner));
    }
    let is_escaped = match inner.len() {
        0..SHORT => inner.bytes().any(|byte| byte == b'\\'),
        _ => memchr::memchr(b'\\', inner.as_bytes()).is_some(),
    };
    if is_escaped { serde_json::from_str(json).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// Appends `text` as a JSON string, quotes included. Runs that need no escape are copied whole.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    write_escaped(out, text.as_bytes());
    out.push(b'"');
}

/// Appends the bytes of valid UTF-8 text, escaped for the inside of a JSON string.
pub fn write_escaped(out: &mut Vec<u8>, mut bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    loop {
        let n = plain_prefix(bytes);
        out.extend_from_slice(&bytes[..n]);
        let Some(&b) = bytes.get(n) else { return };
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[(b >> 4) as usize], HEX[(b & 15) as usize]]),
        }
        bytes = &bytes[n + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &str, depth_max: usize) -> Result<Span> {
        let mut s = Scanner::new(text, depth_max);
        let span = s.value()?;
        s.end()?;
        Ok(span)
    }

    #[test]
    fn accepts_and_refuses_what_serde_json_does() {
        let cases = [
            "{}",
            "[]",
            "[1,2]",
            "[1,]",
            "[,1]",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{a:1}",
            "[[[]]]",
            "[{}]",
            "{\"a\":[{\"b\":{}}]}",
            "1",
            "-1",
            "-",
            "01",
            "1.",
            "1.5",
            "1e5",
            "1e",
            "1e+",
            "1E-2",
            ".5",
            "+1",
            "0",
            "-0",
            "0.0e0",
            "true",
            "false",
            "null",
            "nul",
            "\"\"",
            "\"a",
            "\"\\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u1234\"",
            "\"\u{1}\"",
            "[1 2]",
            "[1]]",
            "",
            " ",
            " 1 ",
            "{\"a\":}",
            "[}",
            "{]",
            "[\"a\":1]",
            "{\"a\":1 \"b\":2}",
            "tru",
            "truex",
            "[true false]",
            "\"é\"",
            "\"\\ud800\"",
        ];
        for text in cases {
            let serde = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            assert_eq!(scan(text, 100).is_ok(), serde, "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded_in_objects_and_arrays_alike() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let per = close.len();
            for (n, fits) in [(10, true), (11, false)] {
                let text = format!("{}1{}", open.repeat(n), close.repeat(n));
                assert_eq!(scan(&text, 10 * per).is_ok(), fits, "{open} x {n}");
            }
        }
        assert_eq!(scan(&"[".repeat(1 << 20), 100).unwrap_err().what(), TOO_DEEP);
    }

    #[test]
    fn object_reports_each_member_and_unescapes_names() {
        let text = r#" { "a" : 1, "\u0062": [ {"x":2} ], "c":"d" } "#;
        let mut seen = Vec::new();
        let mut s = Scanner::new(text, 10);
        s.object(&mut |s, key| {
            let name = key.name().into_owned();
            let value = s.value()?;
            seen.push((name, value.of(text).to_owned()));
            Ok(())
        })
        .unwrap();
        s.end().unwrap();
        assert_eq!(
            seen,
            [("a".into(), "1".into()), ("b".into(), r#"[ {"x":2} ]"#.into()), ("c".into(), "\"d\"".to_owned())]
        );
    }

    fn arb_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            ".*".prop_map(serde_json::Value::String),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
                prop::collection::btree_map(".*", inner, 0..8)
                    .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn the_plain_part_of_a_string_ends_at_the_first_byte_that_is_not() {
        let naive = |bytes: &[u8]| bytes.iter().take_while(|b| !matches!(**b, b'"' | b'\\' | 0..0x20)).count();
        for length in (0..100).chain([287, 600]) {
            for at in 0..=length {
                for byte in [b'"', b'\\', 0, b'\n', 0x1f, b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![b'\xc3'; length];
                    bytes[..at].fill(b'x');
                    bytes.extend([b'"'; 3]);
                    bytes[at] = byte;
                    for end in [length, bytes.len()] {
                        assert_eq!(plain_prefix(&bytes[..end]), naive(&bytes[..end]), "{byte} at {at} of {end}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_short_string_ends_at_its_quote_wherever_the_text_ends() {
        for length in 0..SHORT {
            for after in ["", "}", "}}}", "}, \"b\": 1}", "\0"] {
                let text = format!("\"{}\"{after}", "x".repeat(length));
                let expected = (text.len() >= 8).then_some(length + 2);
                assert_eq!(short_string(text.as_bytes(), 1), expected, "{text}");
                let open = &text[..=length];
                assert_eq!(short_string(open.as_bytes(), 1), None, "{open}");
                for special in ["\\", "\u{1}", "\0"] {
                    let text = text.replacen('x', special, 1);
                    assert!(length == 0 || short_string(text.as_bytes(), 1).is_none(), "{text}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn scans_every_value_whole(value in arb_json()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            let span = scan(&text, 100).unwrap();
            prop_assert_eq!(span.of(&text), text.as_str());
        }

        #[test]
        fn agrees_with_serde_json_on_damaged_text(value in arb_json(), at in any::<prop::sample::Index>(), byte in prop::sample::select(&b"{}[]\",:\\ 0-.eEtfn\n\x01x"[..])) {
            let mut bytes = serde_json::to_vec(&value).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let serde = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                prop_assert_eq!(scan(text, 127).is_ok(), serde, "{}", text);
            }
        }

        #[test]
        fn write_str_is_read_back(text in ".*") {
            let mut out = Vec::new();
            write_str(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
