//! The objects of a PDF file: found by scanning, decompressed within limits.

use super::filters::{ascii85, lzw, unpredicted};
use super::lexer::{DEPTH_MAX, Dict, Lexer, Value, is};
use flate2::read::ZlibDecoder;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::rc::Rc;

const OBJECTS_MAX: usize = 300_000;
pub(super) const UNPACKED_BYTES_MAX: usize = 64 << 20;
/// Maximum mappings and widths of all fonts of a document.
const CODES_MAX: usize = 300_000;
pub(super) const STREAM_BYTES_MAX: usize = 16 << 20;
const PAGES_MAX: usize = 5_000;

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
                    let kids: Vec<Value> = kids.iter().take(room).cloned().collect();
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
