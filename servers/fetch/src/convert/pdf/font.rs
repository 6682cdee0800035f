//! Fonts: the text and width of character codes.

use super::file::File;
use super::lexer::{Dict, Lexer, Value, is};
use std::collections::HashMap;

/// Maximum length of a document's text.
pub(super) const TEXT_BYTES_MAX: usize = 8 << 20;

/// The encoding of a font.
#[derive(Debug, Default)]
pub(super) struct Font {
    /// Bytes per code.
    wide: bool,
    pub(super) mapped: HashMap<u32, String>,
    /// For unmapped codes.
    plain: Option<&'static encoding_rs::Encoding>,
    pub(super) widths: HashMap<u32, f64>,
    usual_width: f64,
    /// The remaining number of mappings and widths; repeated ones count again.
    room: usize,
    /// The number used.
    pub(super) used: usize,
}

impl Font {
    pub(super) fn read(file: &mut File<'_>, value: &Value, room: usize) -> Font {
        let Some(dict) = file.dict(Some(value)) else { return Font { usual_width: 500.0, ..Font::default() } };
        let mut font = Font { wide: is(&dict, "Subtype", "Type0"), usual_width: 500.0, room, ..Font::default() };
        if font.wide {
            font.read_wide(file, &dict);
        } else {
            font.read_simple(file, &dict);
        }
        if let Some((_, cmap)) = dict.get("ToUnicode").and_then(|map| file.stream(map)) {
            font.read_map(&cmap);
        }
        font
    }

    /// Takes one code from the budget.
    fn takes_room(&mut self) -> bool {
        let has = self.has_room();
        self.used += usize::from(has);
        has
    }

    fn has_room(&self) -> bool {
        self.used < self.room
    }

    fn widen(&mut self, code: u32, width: f64) {
        if self.takes_room() {
            self.widths.insert(code, width);
        }
    }

    fn read_wide(&mut self, file: &File<'_>, dict: &Dict) {
        self.usual_width = 1_000.0;
        if dict
            .get("Encoding")
            .and_then(Value::name)
            .is_some_and(|name| name.contains("UCS2") || name.contains("UTF16"))
        {
            self.plain = Some(encoding_rs::UTF_16BE);
        }
        let Some(Value::List(below)) = dict.get("DescendantFonts").map(|fonts| file.resolved(fonts)) else { return };
        let Some(below) = file.dict(below.first()) else { return };
        if let Some(width) = below.get("DW").and_then(|width| file.resolved(width).number()) {
            self.usual_width = width;
        }
        let Some(Value::List(list)) = below.get("W").map(|list| file.resolved(list)) else { return };
        let mut at = 0;
        while at + 1 < list.len() && self.has_room() {
            let first = list[at].number().unwrap_or(0.0).max(0.0) as u32;
            match file.resolved(&list[at + 1]) {
                Value::List(widths) => {
                    for (n, width) in (0..).zip(widths.iter()) {
                        if !self.has_room() {
                            break;
                        }
                        self.widen(first.saturating_add(n), width.number().unwrap_or(1_000.0));
                    }
                    at += 2;
                }
                last => {
                    let last = last.number().unwrap_or(0.0).max(0.0) as u32;
                    let width = list.get(at + 2).and_then(Value::number).unwrap_or(1_000.0);
                    for code in first..=last.min(first.saturating_add(65_535)) {
                        if !self.has_room() {
                            break;
                        }
                        self.widen(code, width);
                    }
                    at += 3;
                }
            }
        }
    }

    fn read_simple(&mut self, file: &File<'_>, dict: &Dict) {
        let encoding = dict.get("Encoding").map(|value| file.resolved(value));
        let base = match &encoding {
            Some(Value::Name(name)) => Some(name.clone()),
            Some(Value::Dict(dict)) => dict.get("BaseEncoding").and_then(Value::name).map(str::to_owned),
            _ => None,
        };
        self.plain = Some(match base.as_deref() {
            Some("MacRomanEncoding") => encoding_rs::MACINTOSH,
            _ => encoding_rs::WINDOWS_1252,
        });
        if let Some(Value::Dict(dict)) = &encoding
            && let Some(Value::List(list)) = dict.get("Differences").map(|list| file.resolved(list))
        {
            let mut code = 0;
            for value in list.iter().take(1_024) {
                match value {
                    Value::Number(n) => code = n.max(0.0) as u32,
                    Value::Name(name) => {
                        if let Some(text) = glyph(name) {
                            self.map(code, text);
                        }
                        code = code.saturating_add(1);
                    }
                    _ => {}
                }
            }
        }
        let first = dict.get("FirstChar").and_then(|n| file.resolved(n).number()).unwrap_or(0.0).max(0.0) as u32;
        if let Some(Value::List(widths)) = dict.get("Widths").map(|list| file.resolved(list)) {
            for (n, width) in (0..1_024).zip(widths.iter()) {
                self.widen(first.saturating_add(n), file.resolved(width).number().unwrap_or(500.0));
            }
        }
    }

    /// Parses a `ToUnicode` map.
    fn read_map(&mut self, cmap: &[u8]) {
        let mut lexer = Lexer::new(cmap, 0);
        let mut stack: Vec<Value> = Vec::new();
        while let Some(value) = lexer.value(0) {
            let Value::Word(word) = &value else {
                if stack.len() < 4_096 {
                    stack.push(value);
                }
                continue;
            };
            match word.as_str() {
                "endcodespacerange" => {
                    if let Some(Value::Text(first)) = stack.first() {
                        self.wide = first.len() == 2;
                    }
                }
                _ if !self.has_room() => return,
                "endbfchar" => {
                    for pair in stack.chunks(2) {
                        if let [Value::Text(code), Value::Text(text)] = pair {
                            self.map(number(code), utf16(text));
                        }
                    }
                }
                "endbfrange" => {
                    for three in stack.chunks(3) {
                        self.map_range(three);
                    }
                }
                _ => {}
            }
            stack.clear();
        }
    }

    fn map(&mut self, code: u32, text: String) {
        if self.takes_room() {
            self.mapped.insert(code, text);
        }
    }

    fn map_range(&mut self, three: &[Value]) {
        let [Value::Text(first), Value::Text(last), to] = three else { return };
        let (first, last) = (number(first), number(last));
        let codes = first..=last.min(first.saturating_add(65_535));
        match to {
            Value::List(texts) => {
                for (code, text) in codes.zip(texts.iter()) {
                    if let Value::Text(text) = text {
                        self.map(code, utf16(text));
                    }
                }
            }
            Value::Text(start) => {
                let text = utf16(start);
                let mut chars = text.chars();
                let Some(last) = chars.next_back() else { return };
                let before = chars.as_str().to_owned();
                for (code, step) in codes.zip(0..) {
                    if !self.has_room() {
                        break;
                    }
                    match char::from_u32(u32::from(last).saturating_add(step)) {
                        Some(c) => self.map(code, format!("{before}{c}")),
                        // Invalid code points cost the same.
                        None => self.used += 1,
                    }
                }
            }
            _ => {}
        }
    }

    /// The text of a string, with its width in thousandths of the font size, its characters and its spaces.
    pub(super) fn show(&self, bytes: &[u8]) -> (String, f64, usize, usize) {
        let (mut text, mut width, mut blanks) = (String::new(), 0.0, 0);
        let step = if self.wide { 2 } else { 1 };
        let codes = bytes.chunks(step);
        let count = codes.len();
        for code in codes {
            // A string may expand to far more text than it has bytes.
            if text.len() >= TEXT_BYTES_MAX {
                break;
            }
            let value = number(code);
            width += self.widths.get(&value).copied().unwrap_or(self.usual_width);
            blanks += usize::from(code == [32]);
            match (self.mapped.get(&value), self.plain) {
                (Some(mapped), _) => text.push_str(mapped),
                (None, Some(plain)) => text.push_str(&plain.decode_without_bom_handling(code).0),
                (None, None) => {}
            }
        }
        text.retain(|c| c == '\t' || !c.is_control());
        (text, width, count, blanks)
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

fn utf16(bytes: &[u8]) -> String {
    encoding_rs::UTF_16BE.decode_without_bom_handling(&bytes[..bytes.len().min(64)]).0.into_owned()
}

/// The text of a glyph, for names that simple fonts use.
fn glyph(name: &str) -> Option<String> {
    let name = name.split('.').next().unwrap_or_default();
    let mut chars = name.chars();
    if let (Some(one), None) = (chars.next(), chars.next()) {
        return Some(one.to_string());
    }
    let hex = name.strip_prefix("uni").and_then(|hex| hex.get(..4)).or_else(|| name.strip_prefix('u'));
    if let Some(c) = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32) {
        return Some(c.to_string());
    }
    if let Some((_, text)) = GLYPHS.iter().find(|(known, _)| *known == name) {
        return Some((*text).to_owned());
    }
    let accents = [("grave", '\u{300}'), ("acute", '\u{301}'), ("circumflex", '\u{302}'), ("tilde", '\u{303}')];
    let more = [("dieresis", '\u{308}'), ("caron", '\u{30c}'), ("cedilla", '\u{327}'), ("ring", '\u{30a}')];
    let (letter, mark) =
        accents.iter().chain(&more).find_map(|(accent, mark)| Some((name.strip_suffix(accent)?, mark)))?;
    (letter.len() == 1).then(|| composed(letter, *mark))
}

/// Composes a letter and its accent.
fn composed(letter: &str, mark: char) -> String {
    let pair = format!("{letter}{mark}");
    let known = "àa\u{300} áa\u{301} âa\u{302} ãa\u{303} äa\u{308} åa\u{30a} çc\u{327} èe\u{300} ée\u{301} êe\u{302} ëe\u{308} ìi\u{300} íi\u{301} îi\u{302} ïi\u{308} ñn\u{303} òo\u{300} óo\u{301} ôo\u{302} õo\u{303} öo\u{308} ùu\u{300} úu\u{301} ûu\u{302} üu\u{308} ýy\u{301} ÀA\u{300} ÁA\u{301} ÂA\u{302} ÃA\u{303} ÄA\u{308} ÅA\u{30a} ÇC\u{327} ÈE\u{300} ÉE\u{301} ÊE\u{302} ËE\u{308} ÖO\u{308} ÜU\u{308} šs\u{30c} žz\u{30c} čc\u{30c}";
    let found = known.split(' ').find_map(|entry| {
        let one = entry.chars().next()?;
        (entry[one.len_utf8()..] == *pair).then_some(one)
    });
    found.map_or(pair, String::from)
}

const GLYPHS: [(&str, &str); 68] = [
    ("space", " "),
    ("exclam", "!"),
    ("quotedbl", "\""),
    ("numbersign", "#"),
    ("dollar", "$"),
    ("percent", "%"),
    ("ampersand", "&"),
    ("quotesingle", "'"),
    ("quoteright", "’"),
    ("quoteleft", "‘"),
    ("parenleft", "("),
    ("parenright", ")"),
    ("asterisk", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("hyphen", "-"),
    ("minus", "−"),
    ("period", "."),
    ("slash", "/"),
    ("zero", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("colon", ":"),
    ("semicolon", ";"),
    ("less", "<"),
    ("equal", "="),
    ("greater", ">"),
    ("question", "?"),
    ("at", "@"),
    ("bracketleft", "["),
    ("backslash", "\\"),
    ("bracketright", "]"),
    ("asciicircum", "^"),
    ("underscore", "_"),
    ("grave", "`"),
    ("braceleft", "{"),
    ("bar", "|"),
    ("braceright", "}"),
    ("asciitilde", "~"),
    ("fi", "fi"),
    ("fl", "fl"),
    ("ff", "ff"),
    ("ffi", "ffi"),
    ("ffl", "ffl"),
    ("endash", "–"),
    ("emdash", "—"),
    ("quotedblleft", "“"),
    ("quotedblright", "”"),
    ("quotedblbase", "„"),
    ("bullet", "•"),
    ("ellipsis", "…"),
    ("germandbls", "ß"),
    ("ae", "æ"),
    ("AE", "Æ"),
    ("oslash", "ø"),
    ("Oslash", "Ø"),
    ("section", "§"),
    ("degree", "°"),
    ("copyright", "©"),
    ("Euro", "€"),
    ("dotlessi", "ı"),
];
