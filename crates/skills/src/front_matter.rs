//! The front matter of `SKILL.md`: YAML between two lines `---`, as JSON.
//!
//! Every host that compares it with an entry must read the same values, regardless of its parser. So only an
//! unambiguous subset of YAML 1.2 is accepted (the core schema, without anchors, aliases, tags and repeated keys), and
//! there are warnings for values that YAML 1.1 reads differently.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Maximum bytes of the front matter.
pub const FRONT_MATTER_BYTES_MAX: usize = 64 << 10;
/// Maximum nesting depth of the front matter.
pub const FRONT_MATTER_DEPTH_MAX: usize = 16;

/// The front matter of a `SKILL.md`.
///
/// ```
/// use linchpin_skills::FrontMatter;
///
/// let text = "---\nname: refunds\ndescription: Refunds a customer.\n---\n# Refunds\n";
/// let front = FrontMatter::read(text.as_bytes()).unwrap();
/// assert_eq!(front.members["name"], "refunds");
/// assert_eq!(&text[front.body_at..], "# Refunds\n");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FrontMatter {
    /// The members as JSON.
    pub members: Map<String, Value>,
    /// The byte offset of the text after the front matter.
    pub body_at: usize,
    /// Values that hosts with other parsers may read differently, one sentence each.
    pub warnings: Vec<String>,
}

/// The error for an invalid front matter, with the line of the file.
///
/// # Example
///
/// ```
/// use linchpin_skills::FrontMatter;
///
/// let error = FrontMatter::read(b"# Refunds\n").unwrap_err();
/// assert_eq!(error.line, 1);
/// assert_eq!(error.to_string(), "line 1: the file must begin with front matter: a line `---`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontMatterError {
    /// The line number, starting from 1.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl FrontMatterError {
    fn new(line: usize, why: impl Into<String>) -> FrontMatterError {
        FrontMatterError { line, why: why.into() }
    }
}

impl fmt::Display for FrontMatterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for FrontMatterError {}

impl FrontMatter {
    /// Reads the front matter of a file. A byte order mark and Windows line endings are accepted.
    ///
    /// ```
    /// use linchpin_skills::FrontMatter;
    ///
    /// let file = "---\nname: refunds\ndescription: Refunds a customer.\nmetadata:\n  version: 1.10\n---\n# Refunds\n";
    /// let read = FrontMatter::read(file.as_bytes()).unwrap();
    /// assert_eq!(read.members["name"], "refunds");
    /// assert_eq!(&file[read.body_at..], "# Refunds\n");
    /// ```
    ///
    /// # Errors
    /// If the front matter is missing, longer than 64 KiB, nested deeper than 16 levels, not YAML, or contains
    /// something without an unambiguous equivalent in JSON: anchors, aliases, tags, several documents, repeated keys,
    /// or numbers that JSON does not support.
    pub fn read(file: &[u8]) -> Result<FrontMatter, FrontMatterError> {
        let (yaml, body_at) = block(file)?;
        let mut reader = Reader { parser: Parser::new_from_str(yaml), warnings: Vec::new(), line: 1 };
        let members = reader.document()?;
        Ok(FrontMatter { members, body_at, warnings: reader.warnings })
    }
}

/// The text between the two lines, and where the body begins.
fn block(file: &[u8]) -> Result<(&str, usize), FrontMatterError> {
    let mark = if file.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut lines = Lines { file, at: mark };
    if !lines.next().is_some_and(is_fence) {
        return Err(FrontMatterError::new(1, "the file must begin with front matter: a line `---`"));
    }
    let start = lines.at;
    let mut number = 1;
    loop {
        let end = lines.at;
        number += 1;
        let Some(line) = lines.next() else {
            return Err(FrontMatterError::new(number, "the front matter has no end; add a line `---`"));
        };
        if end - start > FRONT_MATTER_BYTES_MAX {
            let why = format!("the front matter is longer than {} KiB", FRONT_MATTER_BYTES_MAX >> 10);
            return Err(FrontMatterError::new(number, why));
        }
        if is_fence(line) {
            let bytes = &file[start..end];
            let text = std::str::from_utf8(bytes).map_err(|e| {
                let line = 2 + bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
                FrontMatterError::new(line, "it is not UTF-8")
            })?;
            if let Some(at) = text.find(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
                let line = 2 + text[..at].matches('\n').count();
                return Err(FrontMatterError::new(line, "control characters are not allowed"));
            }
            return Ok((text, lines.at));
        }
    }
}

struct Lines<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.file[self.at..];
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |at| at + 1);
        self.at += end;
        Some(&rest[..end])
    }
}

fn is_fence(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| rest.iter().all(u8::is_ascii_whitespace))
}

struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    warnings: Vec<String>,
    /// The line of the last event, in the file.
    line: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, why: impl Into<String>) -> Result<T, FrontMatterError> {
        Err(FrontMatterError::new(self.line, why))
    }

    fn event(&mut self) -> Result<Event<'_>, FrontMatterError> {
        match self.parser.next() {
            Some(Ok((event, Span { start, .. }))) => {
                // The front matter begins in the second line of the file.
                self.line = start.line() + 1;
                Ok(event)
            }
            Some(Err(error)) => {
                Err(FrontMatterError::new(error.marker().line() + 1, format!("invalid YAML: {}", error.info())))
            }
            None => self.fail("invalid YAML: it ends too early"),
        }
    }

    fn document(&mut self) -> Result<Map<String, Value>, FrontMatterError> {
        self.event()?;
        if matches!(self.event()?, Event::StreamEnd) {
            return self.fail("the front matter is empty; it needs `name` and `description`");
        }
        let members = match self.event()?.into_owned_node() {
            Node::Map { plain: true } => self.members(1)?,
            Node::Map { .. } => return self.fail(NO_ANCHORS),
            _ => return self.fail("the front matter must be a mapping, for example `name: refunds`"),
        };
        self.event()?;
        match self.event()? {
            Event::StreamEnd => Ok(members),
            _ => self.fail("several documents are not allowed"),
        }
    }

    fn members(&mut self, depth: usize) -> Result<Map<String, Value>, FrontMatterError> {
        let mut members = Map::new();
        loop {
            let key = match self.event()?.into_owned_node() {
                Node::End => return Ok(members),
                Node::Scalar { text, plain: true, .. } => text,
                Node::Scalar { .. } | Node::Alias => return self.fail(NO_ANCHORS),
                _ => return self.fail("keys must be texts"),
            };
            if key == "<<" {
                return self.fail("merge keys (`<<`) are not allowed");
            }
            if members.contains_key(&key) {
                return self.fail(format!("the key `{key}` is there twice"));
            }
            let value = self.value(depth, &key)?;
            members.insert(key, value);
        }
    }

    fn value(&mut self, depth: usize, under: &str) -> Result<Value, FrontMatterError> {
        let node = self.event()?.into_owned_node();
        self.read(node, depth, under)
    }

    fn read(&mut self, node: Node, depth: usize, under: &str) -> Result<Value, FrontMatterError> {
        if depth >= FRONT_MATTER_DEPTH_MAX && matches!(node, Node::Map { .. } | Node::List { .. }) {
            return self.fail(format!("values are nested deeper than {FRONT_MATTER_DEPTH_MAX}"));
        }
        match node {
            Node::Scalar { plain: false, .. }
            | Node::Map { plain: false }
            | Node::List { plain: false }
            | Node::Alias => self.fail(NO_ANCHORS),
            Node::Map { .. } => Ok(Value::Object(self.members(depth + 1)?)),
            Node::List { .. } => {
                let mut items = Vec::new();
                loop {
                    match self.event()?.into_owned_node() {
                        Node::End => return Ok(Value::Array(items)),
                        node => items.push(self.read(node, depth + 1, under)?),
                    }
                }
            }
            Node::Scalar { text, quoted: true, .. } => Ok(Value::String(text)),
            Node::Scalar { text, .. } => {
                if let Some(reading) = read_differently(&text) {
                    let line = self.line;
                    self.warnings
                        .push(format!("line {line}: `{under}: {text}` is {reading} to some parsers; quote it"));
                }
                match resolve(text) {
                    Ok(value) => Ok(value),
                    Err(why) => self.fail(why),
                }
            }
            Node::End | Node::Other => self.fail("invalid YAML: a value is missing"),
        }
    }
}

const NO_ANCHORS: &str = "anchors, aliases and tags are not allowed";

/// An event without what is not needed of it.
enum Node {
    /// `plain`: without anchor and tag.
    Scalar {
        text: String,
        quoted: bool,
        plain: bool,
    },
    Map {
        plain: bool,
    },
    List {
        plain: bool,
    },
    Alias,
    End,
    Other,
}

trait IntoNode {
    fn into_owned_node(self) -> Node;
}

impl IntoNode for Event<'_> {
    fn into_owned_node(self) -> Node {
        match self {
            Event::Scalar(text, style, anchor, tag) => Node::Scalar {
                text: text.into_owned(),
                quoted: style != ScalarStyle::Plain,
                plain: anchor == 0 && tag.is_none(),
            },
            Event::MappingStart(anchor, tag) => Node::Map { plain: anchor == 0 && tag.is_none() },
            Event::SequenceStart(anchor, tag) => Node::List { plain: anchor == 0 && tag.is_none() },
            Event::Alias(_) => Node::Alias,
            Event::MappingEnd | Event::SequenceEnd => Node::End,
            _ => Node::Other,
        }
    }
}

/// The value of a scalar without quotes, by the core schema of YAML 1.2.
fn resolve(text: String) -> Result<Value, String> {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let radix = |prefix: &str, radix| {
        let digits = text.strip_prefix(prefix)?;
        (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix))).then(|| u64::from_str_radix(digits, radix))
    };
    if let Some(number) = radix("0o", 8).or_else(|| radix("0x", 16)) {
        return number.map(Value::from).map_err(|_| format!("the number {text} is too large; quote it"));
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        let whole = text.strip_prefix('+').unwrap_or(&text);
        let number = whole.parse::<i64>().map(Number::from).or_else(|_| whole.parse::<u64>().map(Number::from));
        return number.map(Value::Number).map_err(|_| format!("the number {text} is too large; quote it"));
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text.as_str(), ".nan" | ".NaN" | ".NAN") {
        return Err(format!("JSON has no number {text}; quote it"));
    }
    if is_float(unsigned) {
        let number = text.parse().ok().and_then(Number::from_f64);
        return number.map(Value::Number).ok_or_else(|| format!("the number {text} is too large; quote it"));
    }
    Ok(Value::String(text))
}

/// `[0-9]*.[0-9]*` with a digit somewhere, and an exponent.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

/// What YAML 1.1, which many parsers read, makes of a scalar without quotes that is something else in YAML 1.2.
fn read_differently(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "y" | "yes" | "n" | "no" | "on" | "off") {
        return Some("true or false");
    }
    if text.starts_with("0o") && text.len() > 2 {
        return Some("a text");
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let only = |more: &str| unsigned.chars().all(|c| c.is_ascii_digit() || more.contains(c));
    if unsigned.len() > 1 && unsigned.starts_with('0') && only("") {
        return Some("an octal number");
    }
    if unsigned.contains('_') && only("_.") {
        return Some("a number");
    }
    if unsigned.starts_with("0b") && unsigned.len() > 2 && unsigned[2..].bytes().all(|b| b"01_".contains(&b)) {
        return Some("a number");
    }
    if unsigned.contains(':') && only(":.") {
        return Some("a number in base 60");
    }
    let date = unsigned.as_bytes();
    let is_date = date.len() >= 8 && date[..4].iter().all(u8::is_ascii_digit) && date[4] == b'-';
    is_date.then_some("a date")
}

/// Whether two values are the same member by member. `1` and `1.0` are one number, as in JSON.
#[cfg(any(feature = "host", test))]
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || ((a.is_f64() || b.is_f64()) && near(a.as_f64(), b.as_f64())),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => difference(a, b).is_none(),
        _ => one == other,
    }
}

/// Whether two fractions are one, as far as a reader of JSON can tell: `serde_json` may be off by the last bit.
#[cfg(any(feature = "host", test))]
fn near(one: Option<f64>, other: Option<f64>) -> bool {
    one.zip(other).is_some_and(|(one, other)| (one - other).abs() <= f64::EPSILON * one.abs().max(other.abs()))
}

/// The first member in which two front matters differ.
#[cfg(any(feature = "host", test))]
pub(crate) fn difference<'a>(one: &'a Map<String, Value>, other: &'a Map<String, Value>) -> Option<&'a str> {
    let missing = other.keys().find(|key| !one.contains_key(*key));
    let differs = |(key, value): (&'a String, &Value)| {
        (!other.get(key).is_some_and(|there| same(value, there))).then_some(key.as_str())
    };
    one.iter().find_map(differs).or(missing.map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(yaml: &str) -> Result<FrontMatter, FrontMatterError> {
        FrontMatter::read(format!("---\n{yaml}\n---\nbody").as_bytes())
    }

    #[test]
    fn numbers_are_the_same_but_for_the_last_bit_of_fractions() {
        let members = read("name: a\ndescription: b\nn: 1.5555555055555255").unwrap().members;
        let again = serde_json::from_str(&serde_json::to_string(&members).unwrap()).unwrap();
        assert_eq!(difference(&members, &again), None);
        assert!(same(&json!(1), &json!(1.0)) && !same(&json!(1.5), &json!(1.500_001)));
        assert!(!same(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
    }

    #[test]
    fn scalars_are_read_as_the_core_schema_of_yaml_1_2_says() {
        for (yaml, expected) in [
            ("text", json!("text")),
            ("", json!(null)),
            ("~", json!(null)),
            ("'~'", json!("~")),
            ("TRUE", json!(true)),
            ("tRUE", json!("tRUE")),
            ("yes", json!("yes")),
            ("12", json!(12)),
            ("-12", json!(-12)),
            ("+12", json!(12)),
            ("012", json!(12)),
            ("0o17", json!(15)),
            ("0xfF", json!(255)),
            ("0o8", json!("0o8")),
            ("1_000", json!("1_000")),
            ("18446744073709551615", json!(u64::MAX)),
            ("1.50", json!(1.5)),
            (".5", json!(0.5)),
            ("5.", json!(5.0)),
            ("-1e3", json!(-1000.0)),
            ("1e", json!("1e")),
            (".", json!(".")),
            ("2026-07-28", json!("2026-07-28")),
            ("\"1\"", json!("1")),
            ("|\n  two\n  lines", json!("two\nlines\n")),
            (">\n  one\n  line", json!("one line\n")),
            ("[a, 1, {b: c}]", json!(["a", 1, { "b": "c" }])),
            ("\n  - a\n  - b: 1\n    c: 2", json!(["a", { "b": 1, "c": 2 }])),
            ("\n  k.e/y: 1", json!({ "k.e/y": 1 })),
        ] {
            let read = read(&format!("v: {yaml}")).unwrap_or_else(|e| panic!("{yaml}: {e}"));
            assert_eq!(read.members["v"], expected, "{yaml}");
        }
    }

    #[test]
    fn what_has_no_one_meaning_is_refused_with_its_line() {
        let deep = format!("a: {}1{}", "[".repeat(16), "]".repeat(16));
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]";
        for (yaml, line, why) in [
            (bomb, 2, "anchors"),
            ("a: 1\nb: *a", 3, "anchor"),
            ("a: !!str 1", 2, "tags"),
            ("a: !local {}", 2, "tags"),
            ("!!map\na: 1", 2, "tags"),
            ("a: 1\nb: 2\na: 3", 4, "the key `a` is there twice"),
            ("a: {b: 1, b: 2}", 2, "the key `b` is there twice"),
            ("a: 1\n<<: {b: 1}", 3, "merge keys"),
            ("a: .inf", 2, "JSON has no number"),
            ("a: 99999999999999999999", 2, "too large"),
            ("a: 1e999", 2, "too large"),
            ("? [a]\n: b", 2, "keys must be texts"),
            ("- a", 2, "must be a mapping"),
            ("", 3, "empty"),
            ("a: [1", 3, "invalid YAML"),
            ("a: b: c", 2, "invalid YAML"),
            ("a: \"b\u{7}\"", 2, "control characters"),
            ("a: 1\nb: \0", 3, "control characters"),
            ("a: 1\n...\nb: 2", 4, "several documents"),
            (&deep, 2, "nested deeper than 16"),
        ] {
            let error = read(yaml).expect_err(yaml);
            assert!(error.why.contains(why), "{yaml}: {error}");
            assert_eq!(error.line, line, "{yaml}: {error}");
        }
    }

    #[test]
    fn marks_and_line_ends_of_windows_are_read_and_a_missing_end_is_not() {
        for file in [
            "---\na: 1\n---\nbody",
            "\u{feff}---\na: 1\n---\nbody",
            "---\r\na: 1\r\n---\r\nbody",
            "--- \na: 1\n---\t\nbody",
        ] {
            let read = FrontMatter::read(file.as_bytes()).unwrap_or_else(|e| panic!("{file:?}: {e}"));
            assert_eq!((&read.members["a"], &file[read.body_at..]), (&json!(1), "body"), "{file:?}");
        }
        assert_eq!(FrontMatter::read(b"---\na: 1\n---").unwrap().body_at, 12);
        for (file, line) in [
            (&b"---\na: 1\n"[..], 3),
            (b"---\n", 2),
            (b"", 1),
            (b"# title", 1),
            (b"----\na: 1\n---\n", 1),
            (b" ---\na: 1\n---\n", 1),
            (b"---\na: \xff\n---\n", 2),
            (b"---\na: 1\nb: \xff\n---\n", 3),
        ] {
            assert_eq!(FrontMatter::read(file).unwrap_err().line, line, "{}", file.escape_ascii());
        }
        let long = format!("---\na: {}\n---\n", "x".repeat(FRONT_MATTER_BYTES_MAX));
        assert!(FrontMatter::read(long.as_bytes()).unwrap_err().why.contains("64 KiB"));
    }

    #[test]
    fn what_other_parsers_read_differently_is_warned_about() {
        for (yaml, warned) in [
            ("yes", true),
            ("Off", true),
            ("n", true),
            ("'yes'", false),
            ("0o17", true),
            ("017", true),
            ("0", false),
            ("1_000", true),
            ("12:30", true),
            ("2026-07-28", true),
            ("'2026-07-28'", false),
            ("1.2.3", false),
            ("1.10", false),
            ("none", false),
        ] {
            let read = read(&format!("v: {yaml}")).unwrap();
            assert_eq!(!read.warnings.is_empty(), warned, "{yaml}: {:?}", read.warnings);
        }
    }

    #[test]
    fn values_are_compared_member_by_member() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let one = map(json!({ "name": "a", "metadata": { "version": 1, "tags": ["x"] } }));
        for (other, expected) in [
            (json!({ "metadata": { "tags": ["x"], "version": 1.0 }, "name": "a" }), None),
            (json!({ "name": "a" }), Some("metadata")),
            (
                json!({ "name": "a", "metadata": { "version": 1, "tags": ["x"] }, "allowed-tools": "*" }),
                Some("allowed-tools"),
            ),
            (json!({ "name": "a", "metadata": { "version": "1", "tags": ["x"] } }), Some("metadata")),
            (json!({ "name": "a", "metadata": { "version": 1, "tags": ["x", "y"] } }), Some("metadata")),
        ] {
            assert_eq!(difference(&one, &map(other.clone())), expected, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, yaml in "[-a-c:\\[\\]{}&*!|>'\"# \n\r\t0-9.~]{0,80}") {
            let _ = FrontMatter::read(&bytes);
            if let Ok(read) = read(&yaml) {
                let json = serde_json::to_string(&read.members).unwrap();
                assert_eq!(serde_json::from_str::<Map<String, Value>>(&json).unwrap(), read.members);
            }
        }
    }
}
