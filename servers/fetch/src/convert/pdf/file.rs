//! The objects of a PDF file: found by scanning, decompressed within limits.

use flate2::read::ZlibDecoder;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::rc::Rc;

const DEPTH_MAX: usize = 40;
const OBJECTS_MAX: usize = 300_000;
const VALUES_MAX: usize = 4_000_000;
/// Maximum nested values in memory: each takes far more memory than its text.
const HELD_VALUES_MAX: usize = 250_000;
/// The weight of an inline page in a page list, instead of a reference.
const LIGHT_MAX: usize = 4_096;
pub(super) const UNPACKED_BYTES_MAX: usize = 64 << 20;
/// Maximum mappings and widths of all fonts of a document.
const CODES_MAX: usize = 300_000;
pub(super) const STREAM_BYTES_MAX: usize = 16 << 20;
const PAGES_MAX: usize = 5_000;

pub(super) type Dict = BTreeMap<String, Value>;

#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    List(Rc<Vec<Value>>),
    Dict(Rc<Dict>),
    Reference(u32),
    /// An operator of a content stream, or another bare word.
    Word(String),
}

impl Value {
    pub(super) fn number(&self) -> Option<f64> {
        if let Value::Number(n) = self { Some(*n) } else { None }
    }

    pub(super) fn name(&self) -> Option<&str> {
        if let Value::Name(name) = self { Some(name) } else { None }
    }

    /// Whether it may be kept while pages are searched: a reference, or a small dictionary.
    fn is_light(&self) -> bool {
        matches!(self, Value::Reference(_)) || matches!(self, Value::Dict(_)) && self.weight() <= LIGHT_MAX
    }

    /// Its approximate memory use.
    fn weight(&self) -> usize {
        1 + match self {
            Value::Null | Value::Number(_) | Value::Reference(_) => 0,
            Value::Name(text) | Value::Word(text) => text.len(),
            Value::Text(bytes) => bytes.len(),
            Value::List(list) => list.iter().map(Value::weight).sum(),
            Value::Dict(dict) => dict.iter().map(|(key, value)| key.len() + value.weight()).sum(),
        }
    }
}

/// Parses values.
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    values: usize,
    held: usize,
}

fn is_blank(b: u8) -> bool {
    matches!(b, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_end(b: u8) -> bool {
    is_blank(b) || b"()<>[]{}/%".contains(&b)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, values: 0, held: 0 }
    }

    /// Releases the values parsed so far.
    pub(super) fn let_go(&mut self) {
        self.held = 0;
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b) = self.peek() {
            if b == b'%' {
                while self.peek().is_some_and(|b| b != b'\n' && b != b'\r') {
                    self.at += 1;
                }
            } else if is_blank(b) {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// The next value; `None` at the end, or if it is invalid.
    pub(super) fn value(&mut self, depth: usize) -> Option<Value> {
        self.values += 1;
        self.held += usize::from(depth > 0);
        if depth > DEPTH_MAX || self.values > VALUES_MAX || self.held > HELD_VALUES_MAX {
            self.at = self.bytes.len();
            return None;
        }
        self.skip_blanks();
        match self.peek()? {
            b'/' => Some(Value::Name(self.name())),
            b'(' => Some(Value::Text(self.text())),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Some(Value::Dict(Rc::new(self.dict(depth))))
            }
            b'<' => Some(Value::Text(self.hex())),
            b'[' => {
                self.at += 1;
                let mut list = Vec::new();
                loop {
                    self.skip_blanks();
                    match self.peek() {
                        None => break,
                        Some(b']') => {
                            self.at += 1;
                            break;
                        }
                        Some(_) => list.push(self.value(depth + 1)?),
                    }
                }
                Some(Value::List(Rc::new(list)))
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => Some(self.number_or_reference()),
            b']' | b'>' | b')' | b'{' | b'}' => {
                self.at += 1;
                Some(Value::Null)
            }
            _ => {
                let start = self.at;
                while self.peek().is_some_and(|b| !is_end(b)) {
                    self.at += 1;
                }
                let word = String::from_utf8_lossy(&self.bytes[start..self.at]);
                Some(if word == "null" { Value::Null } else { Value::Word(word.into_owned()) })
            }
        }
    }

    fn name(&mut self) -> String {
        self.at += 1;
        let mut out = Vec::new();
        while let Some(b) = self.peek().filter(|b| !is_end(*b)) {
            self.at += 1;
            let hex = self.bytes.get(self.at..self.at + 2).filter(|_| b == b'#');
            match hex.and_then(|two| std::str::from_utf8(two).ok()).and_then(|two| u8::from_str_radix(two, 16).ok()) {
                Some(value) => {
                    out.push(value);
                    self.at += 2;
                }
                None => out.push(b),
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    fn text(&mut self) -> Vec<u8> {
        self.at += 1;
        let (mut out, mut open) = (Vec::new(), 1);
        while let Some(b) = self.peek() {
            self.at += 1;
            match b {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    let Some(escaped) = self.peek() else { break };
                    self.at += 1;
                    match escaped {
                        b'n' => out.push(b'\n'),
                        b'r' => out.push(b'\r'),
                        b't' => out.push(b'\t'),
                        b'b' | b'f' | b'\n' => {}
                        b'\r' => self.at += usize::from(self.peek() == Some(b'\n')),
                        b'0'..=b'7' => {
                            let mut value = u32::from(escaped - b'0');
                            for _ in 0..2 {
                                let Some(digit) = self.peek().filter(|b| (b'0'..=b'7').contains(b)) else { break };
                                value = value * 8 + u32::from(digit - b'0');
                                self.at += 1;
                            }
                            out.push(u8::try_from(value & 0xff).unwrap_or(0));
                        }
                        other => out.push(other),
                    }
                    continue;
                }
                _ => {}
            }
            out.push(b);
        }
        out
    }

    fn hex(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut digits = Vec::new();
        while let Some(b) = self.peek() {
            self.at += 1;
            match char::from(b).to_digit(16) {
                Some(digit) => digits.push(u8::try_from(digit).unwrap_or(0)),
                None if b == b'>' => break,
                None => {}
            }
        }
        digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
    }

    fn dict(&mut self, depth: usize) -> Dict {
        let mut dict = Dict::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None => break,
                Some(b'>') => {
                    self.at = (self.at + 2).min(self.bytes.len());
                    break;
                }
                Some(b'/') => {
                    let key = self.name();
                    let Some(value) = self.value(depth + 1) else { break };
                    dict.insert(key, value);
                }
                Some(_) => {
                    // Not a key: skipped, to tolerate damaged files.
                    if self.value(depth + 1).is_none() {
                        break;
                    }
                }
            }
        }
        dict
    }

    fn digits(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit() || b"+-.".contains(&b)) {
            self.at += 1;
        }
        std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default()
    }

    fn number_or_reference(&mut self) -> Value {
        let first = self.digits();
        let after = self.at;
        if let Ok(number) = first.parse::<u32>() {
            self.skip_blanks();
            if self.peek().is_some_and(|b| b.is_ascii_digit()) && self.digits().parse::<u16>().is_ok() {
                self.skip_blanks();
                let ends = self.bytes.get(self.at + 1).is_none_or(|b| is_end(*b));
                if self.peek() == Some(b'R') && ends {
                    self.at += 1;
                    return Value::Reference(number);
                }
            }
            self.at = after;
        }
        if first.is_empty() {
            self.at += 1;
        }
        Value::Number(first.parse().unwrap_or(0.0))
    }
}

/// The location of an object.
#[derive(Debug, Clone, Copy)]
enum Place {
    At(usize),
    /// At this offset in the content of an object stream.
    Within(u32, usize),
}

pub(super) struct File<'a> {
    bytes: &'a [u8],
    places: HashMap<u32, Place>,
    /// Objects in file order, and whether they are pages or catalogs.
    pages: Vec<u32>,
    root: Option<u32>,
    info: Option<u32>,
    pub(super) encrypted: bool,
    packed: HashMap<u32, Rc<Vec<u8>>>,
    pub(super) unpacked: usize,
    /// Whether the scan ended before the end of the file.
    pub(super) cut: bool,
    /// The remaining budget of font codes.
    pub(super) codes_left: usize,
}

/// A page, and its parent, whose resources it inherits. Unresolved references, so that thousands take little memory.
pub(super) struct Leaf {
    page: Value,
    above: Option<Value>,
}

impl<'a> File<'a> {
    pub(super) fn scan(bytes: &'a [u8]) -> Self {
        let mut file = File {
            bytes,
            places: HashMap::new(),
            pages: Vec::new(),
            root: None,
            info: None,
            encrypted: false,
            packed: HashMap::new(),
            unpacked: 0,
            cut: false,
            codes_left: CODES_MAX,
        };
        let mut at = 0;
        while let Some(found) = find(&bytes[at..], b"obj") {
            let here = at + found;
            at = here + 3;
            if file.places.len() >= OBJECTS_MAX {
                file.cut = true;
                break;
            }
            let Some(number) = number_before(&bytes[..here]) else { continue };
            file.places.insert(number, Place::At(at));
            let mut lexer = Lexer::new(bytes, at);
            let Some(Value::Dict(dict)) = lexer.value(0) else { continue };
            let end = lexer.at;
            if let Some(data) = stream_start(bytes, end) {
                at = data + file.stream_length(&dict, data);
                if is(&dict, "Type", "ObjStm") {
                    file.open_packed(number, &dict, data);
                }
            } else {
                at = end.max(at);
            }
            file.note(number, &dict);
        }
        let mut at = 0;
        while let Some(found) = find(&bytes[at..], b"trailer") {
            at += found + 7;
            let mut lexer = Lexer::new(bytes, at);
            if let Some(Value::Dict(dict)) = lexer.value(0) {
                file.note_trailer(&dict);
            }
        }
        file
    }

    fn note(&mut self, number: u32, dict: &Dict) {
        match dict.get("Type").and_then(Value::name) {
            Some("Page") => self.pages.push(number),
            Some("Catalog") => self.root = Some(number),
            Some("XRef") => self.note_trailer(dict),
            _ => {}
        }
    }

    fn note_trailer(&mut self, dict: &Dict) {
        self.encrypted |= dict.get("Encrypt").is_some_and(|value| !matches!(value, Value::Null));
        if let Some(Value::Reference(number)) = dict.get("Info") {
            self.info = Some(*number);
        }
    }

    /// The length of a stream's data: from its dictionary if that is correct, otherwise up to `endstream`.
    fn stream_length(&self, dict: &Dict, data: usize) -> usize {
        let rest = &self.bytes[data.min(self.bytes.len())..];
        let said = match dict.get("Length") {
            Some(Value::Reference(number)) => match self.places.get(number) {
                Some(Place::At(_)) => self.object(*number).and_then(|(value, _)| value.number()),
                _ => None,
            },
            other => other.and_then(Value::number),
        };
        let said = said.filter(|n| *n >= 0.0 && *n <= rest.len() as f64).map(|n| n as usize);
        if let Some(said) = said
            && find(&rest[said..rest.len().min(said + 20)], b"endstream").is_some()
        {
            return said;
        }
        find(rest, b"endstream").unwrap_or(rest.len())
    }

    /// Finds the objects of an object stream.
    fn open_packed(&mut self, number: u32, dict: &Dict, data: usize) {
        let length = self.stream_length(dict, data);
        let content = Rc::new(self.unpack(dict, data, length));
        let first = dict.get("First").and_then(Value::number).unwrap_or(0.0).max(0.0) as usize;
        let mut lexer = Lexer::new(&content, 0);
        while lexer.at < first && self.places.len() < OBJECTS_MAX {
            lexer.let_go();
            let (Some(Value::Number(inner)), Some(Value::Number(offset))) = (lexer.value(0), lexer.value(0)) else {
                break;
            };
            if inner < 0.0 || offset < 0.0 {
                break;
            }
            let place = first.saturating_add(offset as usize);
            let inner = inner as u32;
            self.places.insert(inner, Place::Within(number, place));
            let mut inside = Lexer::new(&content, place.min(content.len()));
            if let Some(Value::Dict(dict)) = inside.value(0) {
                self.note(inner, &dict);
            }
        }
        self.packed.insert(number, content);
    }

    /// The object of this number, and the start of its data if it is a stream.
    fn object(&self, number: u32) -> Option<(Value, Option<usize>)> {
        let (bytes, at) = match *self.places.get(&number)? {
            Place::At(at) => (self.bytes, at),
            Place::Within(stream, at) => {
                let content = self.packed.get(&stream)?;
                (content.as_slice(), at.min(content.len()))
            }
        };
        let mut lexer = Lexer::new(bytes, at);
        let value = lexer.value(0);
        let outside = bytes.len() == self.bytes.len() && std::ptr::eq(bytes, self.bytes);
        let data = if outside { stream_start(bytes, lexer.at) } else { None };
        Some((value?, data))
    }

    /// The value, with references resolved.
    pub(super) fn resolved(&self, value: &Value) -> Value {
        let mut value = value.clone();
        for _ in 0..8 {
            match value {
                Value::Reference(number) => value = self.object(number).map_or(Value::Null, |(value, _)| value),
                value => return value,
            }
        }
        Value::Null
    }

    pub(super) fn dict(&self, value: Option<&Value>) -> Option<Rc<Dict>> {
        if let Value::Dict(dict) = self.resolved(value?) { Some(dict) } else { None }
    }

    /// The decompressed data of the stream that a value refers to.
    pub(super) fn stream(&mut self, value: &Value) -> Option<(Rc<Dict>, Vec<u8>)> {
        let Value::Reference(number) = value else { return None };
        let (Value::Dict(dict), Some(data)) = self.object(*number)? else { return None };
        let length = self.stream_length(&dict, data);
        let content = self.unpack(&dict, data, length);
        Some((dict, content))
    }

    fn unpack(&mut self, dict: &Dict, data: usize, length: usize) -> Vec<u8> {
        let listed = |value: Option<Value>| match value {
            Some(Value::List(list)) => list,
            Some(Value::Null) | None => Rc::default(),
            Some(one) => Rc::new(vec![one]),
        };
        let filters = listed(dict.get("Filter").map(|value| self.resolved(value)));
        let parameters = listed(dict.get("DecodeParms").map(|value| self.resolved(value)));
        let mut content = self.bytes.get(data..data + length).unwrap_or_default().to_vec();
        for (n, filter) in filters.iter().take(4).enumerate() {
            let most = STREAM_BYTES_MAX.min(UNPACKED_BYTES_MAX.saturating_sub(self.unpacked));
            let parameters = parameters.get(n).and_then(|value| self.dict(Some(value)));
            content = match self.resolved(filter).name() {
                Some("FlateDecode" | "Fl") => {
                    let mut out = Vec::new();
                    // Keep the data decompressed before an error.
                    let _ = ZlibDecoder::new(&content[..]).take(most as u64).read_to_end(&mut out);
                    unpredicted(out, parameters.as_deref())
                }
                Some("LZWDecode" | "LZW") => unpredicted(lzw(&content, most), parameters.as_deref()),
                Some("ASCIIHexDecode" | "AHx") => {
                    let closed = [b"<", &content[..], b">"].concat();
                    Lexer::new(&closed, 0).hex()
                }
                Some("ASCII85Decode" | "A85") => ascii85(&content, most),
                _ => return Vec::new(),
            };
            self.unpacked += content.len();
        }
        content
    }

    pub(super) fn title(&self) -> Option<String> {
        let info = self.dict(Some(&Value::Reference(self.info?)))?;
        let Value::Text(bytes) = self.resolved(info.get("Title")?) else { return None };
        let text = match bytes.strip_prefix(&[0xfe, 0xff]) {
            Some(wide) => encoding_rs::UTF_16BE.decode_without_bom_handling(wide).0.into_owned(),
            None => encoding_rs::UTF_8
                .decode_without_bom_handling_and_without_replacement(&bytes)
                .unwrap_or_else(|| encoding_rs::WINDOWS_1252.decode_without_bom_handling(&bytes).0)
                .into_owned(),
        };
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect();
        (!text.is_empty()).then_some(text)
    }

    /// The pages in order, with inherited attributes.
    pub(super) fn pages(&self) -> Vec<Leaf> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let root = self.root.and_then(|root| self.dict(Some(&Value::Reference(root))));
        if let Some(tree) = root.as_ref().and_then(|root| root.get("Pages")) {
            let mut stack = vec![(tree.clone(), None::<Value>, 0)];
            while let Some((node, above, depth)) = stack.pop() {
                if let Value::Reference(number) = node
                    && !seen.insert(number)
                {
                    continue;
                }
                let Some(dict) = self.dict(Some(&node)) else { continue };
                let kids = dict.get("Kids").map(|kids| self.resolved(kids));
                if let (Some(Value::List(kids)), true) = (kids, depth < DEPTH_MAX) {
                    let above = if dict.contains_key("Resources") { Some(node) } else { above };
                    let room = PAGES_MAX.saturating_sub(stack.len());
                    let kids: Vec<Value> = kids.iter().filter(|kid| kid.is_light()).take(room).cloned().collect();
                    stack.extend(kids.into_iter().rev().map(|kid| (kid, above.clone(), depth + 1)));
                } else if found.len() < PAGES_MAX && depth > 0 {
                    found.push(Leaf { page: node, above });
                }
            }
        }
        if found.is_empty() {
            let alone = self.pages.iter().take(PAGES_MAX).map(|page| Value::Reference(*page));
            found.extend(alone.map(|page| Leaf { page, above: None }));
        }
        found
    }

    /// The contents of a page (one stream or a list), and its resources.
    pub(super) fn open(&self, leaf: &Leaf) -> Option<(Value, Rc<Dict>)> {
        let page = self.dict(Some(&leaf.page))?;
        let own = self.dict(page.get("Resources"));
        let inherited = || self.dict(self.dict(leaf.above.as_ref())?.get("Resources"));
        let contents = page.get("Contents").cloned().unwrap_or(Value::Null);
        Some((contents, own.or_else(inherited).unwrap_or_default()))
    }
}

pub(super) fn is(dict: &Dict, key: &str, name: &str) -> bool {
    dict.get(key).and_then(Value::name) == Some(name)
}

pub(super) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|b| *b == first) {
        at += found;
        if bytes[at..].starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The object number before `obj`: `12 0 `.
fn number_before(bytes: &[u8]) -> Option<u32> {
    let tail = &bytes[bytes.len().saturating_sub(24)..];
    let text: String = tail.iter().map(|b| if b.is_ascii() { char::from(*b) } else { '?' }).collect();
    let mut words =
        text.trim_end_matches(|c: char| c.is_ascii_whitespace() || c == '\0').rsplit(|c: char| !c.is_ascii_digit());
    let generation = words.next()?;
    let number = words.find(|word| !word.is_empty())?;
    let between = text.trim_end().strip_suffix(generation)?;
    let plain = between.trim_end().ends_with(number) && between.ends_with(|c: char| c.is_ascii_whitespace());
    (plain && !generation.is_empty()).then(|| number.parse().ok()).flatten()
}

/// The start of the stream data after a dictionary, if a stream follows.
fn stream_start(bytes: &[u8], at: usize) -> Option<usize> {
    let mut lexer = Lexer::new(bytes, at);
    lexer.skip_blanks();
    let rest = bytes.get(lexer.at..)?.strip_prefix(b"stream")?;
    let line =
        if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n") || rest.starts_with(b"\r")) };
    Some(lexer.at + 6 + line)
}

/// Reverses PNG predictors.
pub(super) fn unpredicted(data: Vec<u8>, parameters: Option<&Dict>) -> Vec<u8> {
    let number = |key: &str, usual: usize| {
        parameters.and_then(|p| p.get(key)?.number()).map_or(usual, |n| n.clamp(1.0, 65_536.0) as usize)
    };
    if number("Predictor", 1) < 10 {
        return data;
    }
    let pixel = (number("Colors", 1) * number("BitsPerComponent", 8)).div_ceil(8);
    let width = (number("Columns", 1) * number("Colors", 1) * number("BitsPerComponent", 8)).div_ceil(8);
    // The declared row size may exceed memory.
    let width = width.min(data.len());
    let mut out: Vec<u8> = Vec::with_capacity(data.len());
    let mut above = vec![0_u8; width];
    for row in data.chunks(width + 1) {
        let (kind, raw) = (row[0], &row[1..]);
        let mut line = vec![0_u8; width];
        for (n, byte) in raw.iter().enumerate() {
            let left = if n >= pixel { line[n - pixel] } else { 0 };
            let corner = if n >= pixel { above[n - pixel] } else { 0 };
            let guess = match kind {
                1 => left,
                2 => above[n],
                3 => u8::try_from((u16::from(left) + u16::from(above[n])) / 2).unwrap_or(0),
                4 => paeth(left, above[n], corner),
                _ => 0,
            };
            line[n] = byte.wrapping_add(guess);
        }
        out.extend_from_slice(&line[..raw.len()]);
        above = line;
    }
    out
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i16::from);
    let guess = a + b - c;
    let (da, db, dc) = ((guess - a).abs(), (guess - b).abs(), (guess - c).abs());
    if da <= db && da <= dc {
        left
    } else if db <= dc {
        above
    } else {
        corner
    }
}

pub(super) fn lzw(data: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    // Each entry refers to earlier output.
    let mut table: Vec<(usize, usize)> = Vec::new();
    let (mut bits, mut have, mut width) = (0_u32, 0, 9);
    let mut last: Option<(usize, usize)> = None;
    for byte in data {
        bits = bits << 8 | u32::from(*byte);
        have += 8;
        if have < width {
            continue;
        }
        have -= width;
        let code = (bits >> have) as usize & ((1 << width) - 1);
        bits &= (1 << have) - 1;
        let start = out.len();
        match code {
            256 => {
                table.clear();
                (width, last) = (9, None);
                continue;
            }
            257 => break,
            0..=255 => out.push(u8::try_from(code).unwrap_or(0)),
            _ => {
                let piece = match (table.get(code - 258), last) {
                    (Some((at, length)), _) => out[*at..at + length].to_vec(),
                    (None, Some((at, length))) => [&out[at..at + length], &out[at..=at]].concat(),
                    (None, None) => break,
                };
                out.extend_from_slice(&piece);
            }
        }
        if let Some((at, length)) = last
            && table.len() < 4_096 - 258
        {
            table.push((at, length + 1));
        }
        last = Some((start, out.len() - start));
        width = match table.len() + 259 {
            0..=511 => 9,
            512..=1_023 => 10,
            1_024..=2_047 => 11,
            _ => 12,
        };
        if out.len() >= most {
            break;
        }
    }
    out
}

pub(super) fn ascii85(data: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut group: Vec<u32> = Vec::new();
    let write = |out: &mut Vec<u8>, group: &[u32]| {
        let mut value: u32 = 0;
        for n in 0..5 {
            value = value.wrapping_mul(85).wrapping_add(group.get(n).copied().unwrap_or(84));
        }
        out.extend_from_slice(&value.to_be_bytes()[..group.len().saturating_sub(1).min(4)]);
    };
    for byte in data {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => write(&mut out, &[0; 5]),
            b'!'..=b'u' => {
                group.push(u32::from(byte - b'!'));
                if group.len() == 5 {
                    write(&mut out, &group);
                    group.clear();
                }
            }
            _ => {}
        }
        if out.len() >= most {
            break;
        }
    }
    if group.len() > 1 {
        write(&mut out, &group);
    }
    out
}
