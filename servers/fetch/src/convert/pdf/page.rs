//! A page: runs its operators, and decides where text begins a word, a line or a paragraph.

use super::file::{File, Leaf, STREAM_BYTES_MAX, find};
use super::font::{Font, TEXT_BYTES_MAX};
use super::lexer::{Dict, Lexer, Value, is};
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum operators of all pages.
pub(super) const OPERATORS_MAX: usize = 5_000_000;
const FORMS_DEEP_MAX: usize = 6;
/// Maximum cached fonts; others, and those inline in the resources, are parsed on each use, with a small budget of
/// codes.
const FONTS_MAX: usize = 4_096;
const CODES_UNKEPT_MAX: usize = 512;
/// Maximum entries of a cached resource dictionary.
const RESOURCES_MAX: usize = 50_000;
/// Maximum operands of an operator; the supported ones have at most six.
const OPERANDS_MAX: usize = 8;

/// A transformation: `x' = a·x + c·y + e`, `y' = b·x + d·y + f`.
type Matrix = [f64; 6];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// The product: first `m`, then `n`.
fn times(m: &Matrix, n: &Matrix) -> Matrix {
    [
        m[0] * n[0] + m[1] * n[2],
        m[0] * n[1] + m[1] * n[3],
        m[2] * n[0] + m[3] * n[2],
        m[2] * n[1] + m[3] * n[3],
        m[4] * n[0] + m[5] * n[2] + n[4],
        m[4] * n[1] + m[5] * n[3] + n[5],
    ]
}

#[derive(Clone)]
struct Drawing {
    ctm: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    char_space: f64,
    word_space: f64,
    stretch: f64,
    leading: f64,
}

/// A resource dictionary, and its font or form dictionary.
type Resources = (Rc<Dict>, Option<Rc<Dict>>);

/// Looks up a resource by name. Caches the last one, because pages use it for each line.
fn named(file: &File<'_>, kept: &mut Option<Resources>, of: &Rc<Dict>, name: &str) -> Option<Rc<Dict>> {
    if let Some((_, known)) = kept.as_ref().filter(|(resources, _)| Rc::ptr_eq(resources, of)) {
        return known.clone();
    }
    let found = file.dict(of.get(name));
    if found.as_ref().is_none_or(|found| found.len() <= RESOURCES_MAX) {
        *kept = Some((of.clone(), found.clone()));
    }
    found
}

/// A page being drawn.
pub(super) struct Page<'f, 'a> {
    file: &'f mut File<'a>,
    fonts: &'f mut HashMap<u32, Rc<Font>>,
    operators: &'f mut usize,
    /// The last used fonts and forms.
    fonts_here: Option<Resources>,
    forms_here: Option<Resources>,
    now: Drawing,
    kept: Vec<Drawing>,
    tm: Matrix,
    line: Matrix,
    /// The end and height of the last text.
    last: Option<(f64, f64, f64)>,
    pub(super) text: String,
}

impl<'f, 'a> Page<'f, 'a> {
    pub(super) fn new(file: &'f mut File<'a>, fonts: &'f mut HashMap<u32, Rc<Font>>, operators: &'f mut usize) -> Self {
        let now = Drawing {
            ctm: IDENTITY,
            font: None,
            size: 1.0,
            char_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
        };
        let (tm, line) = (IDENTITY, IDENTITY);
        let (fonts_here, forms_here, kept, text) = (None, None, Vec::new(), String::new());
        Self { file, fonts, operators, fonts_here, forms_here, now, kept, tm, line, last: None, text }
    }

    pub(super) fn draw_page(&mut self, leaf: &Leaf) {
        let Some((contents, resources)) = self.file.open(leaf) else { return };
        let parts = match self.file.resolved(&contents) {
            Value::List(parts) => parts,
            _ => Rc::new(vec![contents]),
        };
        let mut content = Vec::new();
        for part in parts.iter().take(10_000) {
            if let Some((_, data)) = self.file.stream(part) {
                content.extend_from_slice(&data);
                content.push(b'\n');
            }
            if content.len() > STREAM_BYTES_MAX {
                break;
            }
        }
        self.draw(&content, &resources, 0);
    }

    fn draw(&mut self, content: &[u8], resources: &Rc<Dict>, depth: usize) {
        let mut lexer = Lexer::new(content, 0);
        let mut operands: Vec<Value> = Vec::new();
        while let Some(value) = lexer.value(0) {
            let Value::Word(operator) = value else {
                if operands.len() < OPERANDS_MAX {
                    operands.push(value);
                }
                continue;
            };
            *self.operators += 1;
            if self.is_full() {
                return;
            }
            match operator.as_str() {
                "BI" => {
                    let rest = &content[lexer.at.min(content.len())..];
                    lexer.at += find(rest, b"EI").map_or(rest.len(), |at| at + 2);
                }
                "Do" => {
                    if let Some(Value::Name(name)) = operands.first() {
                        self.form(name, resources, depth);
                    }
                }
                "Tf" => self.choose_font(&operands, resources),
                other => self.operate(other, &operands),
            }
            operands.clear();
        }
    }

    fn is_full(&self) -> bool {
        *self.operators >= OPERATORS_MAX || self.text.len() >= TEXT_BYTES_MAX
    }

    fn operate(&mut self, operator: &str, operands: &[Value]) {
        let n = |at: usize| operands.get(at).and_then(Value::number).unwrap_or(0.0);
        let matrix = || [n(0), n(1), n(2), n(3), n(4), n(5)];
        match operator {
            "q" if self.kept.len() < 512 => self.kept.push(self.now.clone()),
            "Q" => {
                if let Some(kept) = self.kept.pop() {
                    self.now = kept;
                }
            }
            "cm" => self.now.ctm = times(&matrix(), &self.now.ctm),
            "BT" => (self.tm, self.line) = (IDENTITY, IDENTITY),
            "Tc" => self.now.char_space = n(0),
            "Tw" => self.now.word_space = n(0),
            "Tz" => self.now.stretch = n(0) / 100.0,
            "TL" => self.now.leading = n(0),
            "Td" => self.next_line(n(0), n(1)),
            "TD" => {
                self.now.leading = -n(1);
                self.next_line(n(0), n(1));
            }
            "Tm" => (self.tm, self.line) = (matrix(), matrix()),
            "T*" => self.next_line(0.0, -self.now.leading),
            "Tj" => self.show(operands.first()),
            "'" => {
                self.next_line(0.0, -self.now.leading);
                self.show(operands.first());
            }
            "\"" => {
                (self.now.word_space, self.now.char_space) = (n(0), n(1));
                self.next_line(0.0, -self.now.leading);
                self.show(operands.get(2));
            }
            "TJ" => {
                let Some(Value::List(pieces)) = operands.first() else { return };
                for piece in pieces.iter() {
                    // One list may hold as much as a page.
                    if self.is_full() {
                        break;
                    }
                    match piece {
                        Value::Number(back) => self.advance(-back / 1_000.0 * self.now.size * self.now.stretch),
                        text => self.show(Some(text)),
                    }
                }
            }
            _ => {}
        }
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line = times(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line);
        self.tm = self.line;
    }

    fn advance(&mut self, by: f64) {
        self.tm = times(&[1.0, 0.0, 0.0, 1.0, by, 0.0], &self.tm);
    }

    fn choose_font(&mut self, operands: &[Value], resources: &Rc<Dict>) {
        let (Some(Value::Name(name)), Some(size)) = (operands.first(), operands.get(1).and_then(Value::number)) else {
            return;
        };
        self.now.size = size;
        let fonts = named(self.file, &mut self.fonts_here, resources, "Font");
        let Some(value) = fonts.as_ref().and_then(|fonts| fonts.get(name)) else { return };
        let kept = if let Value::Reference(number) = value { Some(*number) } else { None };
        let kept = kept.filter(|number| self.fonts.len() < FONTS_MAX || self.fonts.contains_key(number));
        if let Some(known) = kept.and_then(|number| self.fonts.get(&number)) {
            self.now.font = Some(known.clone());
            return;
        }
        let room = if kept.is_some() { self.file.codes_left } else { CODES_UNKEPT_MAX };
        let font = Rc::new(Font::read(self.file, value, room));
        if let Some(number) = kept {
            self.file.codes_left -= font.used.min(self.file.codes_left);
            self.fonts.insert(number, font.clone());
        }
        self.now.font = Some(font);
    }

    fn form(&mut self, name: &str, resources: &Rc<Dict>, depth: usize) {
        // A form costs more than other operators.
        *self.operators += 100;
        if depth >= FORMS_DEEP_MAX || self.is_full() {
            return;
        }
        let Some(objects) = named(self.file, &mut self.forms_here, resources, "XObject") else { return };
        let Some(Value::Reference(number)) = objects.get(name) else { return };
        let is_form = self.file.dict(Some(&Value::Reference(*number))).is_some_and(|dict| is(&dict, "Subtype", "Form"));
        if !is_form {
            return;
        }
        let Some((dict, content)) = self.file.stream(&Value::Reference(*number)) else { return };
        let own = self.file.dict(dict.get("Resources")).unwrap_or_else(|| resources.clone());
        let before = (self.now.clone(), self.kept.len());
        if let Some(Value::List(list)) = dict.get("Matrix") {
            let mut matrix = IDENTITY;
            for (slot, value) in matrix.iter_mut().zip(list.iter()) {
                *slot = value.number().unwrap_or(0.0);
            }
            self.now.ctm = times(&matrix, &self.now.ctm);
        }
        self.draw(&content, &own, depth + 1);
        self.now = before.0;
        self.kept.truncate(before.1);
    }

    fn show(&mut self, value: Option<&Value>) {
        let (Some(Value::Text(bytes)), Some(font)) = (value, self.now.font.clone()) else { return };
        let (text, width, chars, blanks) = font.show(bytes);
        let start = times(&self.tm, &self.now.ctm);
        let (x, y) = (start[4], start[5]);
        let height = (self.now.size * (start[2] * start[2] + start[3] * start[3]).sqrt()).abs().max(0.01);
        if !text.is_empty() {
            self.separate(x, y, height, text.starts_with(' '));
            self.text.push_str(&text);
        }
        let spaces = chars as f64 * self.now.char_space + blanks as f64 * self.now.word_space;
        self.advance((width / 1_000.0 * self.now.size + spaces) * self.now.stretch);
        if !text.is_empty() {
            let end = times(&self.tm, &self.now.ctm);
            self.last = Some((end[4], end[5], height));
        }
    }

    /// Adds the separator between the last text and the next.
    fn separate(&mut self, x: f64, y: f64, height: f64, blank: bool) {
        let Some((last_x, last_y, last_height)) = self.last else { return };
        let down = (y - last_y).abs();
        let size = height.max(last_height);
        if down > size * 0.5 {
            self.text.push_str(if down > size * 1.9 { "\n\n" } else { "\n" });
        } else if x < last_x - size * 2.0 {
            self.text.push('\n');
        } else if x - last_x > size * 0.17 && !blank && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }
}
