//! The values of a PDF file: numbers, names, strings, lists, dictionaries, references.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Maximum nesting of lists and dictionaries.
pub(super) const DEPTH_MAX: usize = 40;

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
}

/// Parses values.
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

fn is_blank(b: u8) -> bool {
    matches!(b, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_end(b: u8) -> bool {
    is_blank(b) || b"()<>[]{}/%".contains(&b)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn skip_blanks(&mut self) {
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
        if depth > DEPTH_MAX {
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

    pub(super) fn hex(&mut self) -> Vec<u8> {
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

pub(super) fn is(dict: &Dict, key: &str, name: &str) -> bool {
    dict.get(key).and_then(Value::name) == Some(name)
}
