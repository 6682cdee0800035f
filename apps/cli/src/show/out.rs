//! Printing for people, and for programs. Nothing else in this program writes to standard output or standard error (`cargo
//! xtask tidy` sees to that), so that no text of a server reaches a terminal uncleaned: the writers here let no control
//! character through but line feeds and tabs, and no escape sequence but the styles that this program itself asked for.

use super::wrap::{columns, hanging, wrapped};
use linchpin_core::exact;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use linchpin_kit::near;

/// Standard output.
pub(crate) struct Out {
    to: io::StdoutLock<'static>,
    /// Of the terminal that it is.
    width: Option<usize>,
    pub(crate) style: Style,
}

impl Out {
    pub(crate) fn new() -> Out {
        let width = terminal_size::terminal_size_of(io::stdout()).map(width_of);
        Out { to: io::stdout().lock(), width, style: Style::of_stdout() }
    }

    /// Whether standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.style.terminal
    }

    /// Writes a line of text, wrapped at the terminal's width.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        let text = self
            .width
            .map(|width| wrapped(text.as_ref(), width, mark()))
            .map_or_else(|| text.as_ref().into(), Cow::Owned);
        self.whole_line(&text)
    }

    /// Writes an entry of a list like [`Out::line`]. What is wrapped is indented under its name.
    pub(crate) fn entry(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        let text = self
            .width
            .map(|width| hanging(text.as_ref(), width, mark()))
            .map_or_else(|| text.as_ref().into(), Cow::Owned);
        self.whole_line(&text)
    }

    /// Writes names and what each is, in two columns.
    pub(crate) fn table(&mut self, rows: &[(String, String)]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let text = columns(rows, self.width, mark());
        self.whole_line(&text)
    }

    /// Writes, on a terminal, how much a list has, below it.
    pub(crate) fn summary(&mut self, counts: &[(usize, &str)]) -> io::Result<()> {
        if !self.is_terminal() {
            return Ok(());
        }
        let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, one)| count(*n, one)).collect::<Vec<_>>();
        let summary = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        self.line(self.style.dim(&summary))
    }

    fn whole_line(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(clean(text).as_bytes())?;
        self.to.write_all(b"\n")
    }

    /// Writes content and a newline; byte for byte if standard output is not a terminal.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        if self.is_terminal() {
            return self.whole_line(text);
        }
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes indented JSON.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        // Through a value, so that raw JSON is indented too.
        self.json_text(&exact::pretty(&exact::of(value)))
    }

    /// Writes JSON on one line.
    pub(crate) fn json_line(&mut self, value: &Value) -> io::Result<()> {
        self.json_text(&exact::text(value))?;
        self.flush()
    }

    fn json_text(&mut self, json: &str) -> io::Result<()> {
        if self.is_terminal() {
            self.bytes(escaped(json).as_bytes())?;
        } else {
            self.bytes(json.as_bytes())?;
        }
        self.bytes(b"\n")
    }

    /// Writes raw bytes, which must not go to a terminal.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes a line to standard error, wrapped at the terminal's width. Errors are ignored.
pub(crate) fn note(text: impl AsRef<str>) {
    let width = terminal_size::terminal_size_of(io::stderr()).map(width_of);
    let text = width.map_or_else(|| text.as_ref().to_owned(), |width| wrapped(text.as_ref(), width, mark()));
    tell(&format!("{text}\n"));
}

/// Returns the width of a terminal, in characters.
fn width_of((width, _): (terminal_size::Width, terminal_size::Height)) -> usize {
    width.0.into()
}

/// Returns the width at which clap wraps help.
pub(crate) fn help_width(max: usize) -> usize {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal_size::terminal_size().map(width_of).or_else(columns).unwrap_or(100).min(max)
}

/// Whether the last line of the terminal is one that [`tell_over`] wrote.
static OVERWRITABLE: AtomicBool = AtomicBool::new(false);

/// Whether the last line of the terminal is a prompt, at which somebody may be typing.
static PROMPTING: AtomicBool = AtomicBool::new(false);

/// Erases the line of the terminal.
const ERASE: &str = "\r\x1b[2K";

/// Writes text to standard error without a newline, in one piece, so that lines of two tasks do not mix.
pub(crate) fn tell(text: &str) {
    let mut to = io::stderr().lock();
    if OVERWRITABLE.swap(false, Ordering::Relaxed) {
        let _ = to.write_all(ERASE.as_bytes());
    }
    PROMPTING.store(!text.ends_with('\n'), Ordering::Relaxed);
    let _ = to.write_all(clean(text).as_bytes());
}

/// Notes that the prompt has its answer.
pub(crate) fn prompt_is_over() {
    PROMPTING.store(false, Ordering::Relaxed);
}

/// Overwrites the last line of the terminal on standard error, unless it is a prompt.
pub(crate) fn tell_over(text: &str) {
    let mut to = io::stderr().lock();
    if PROMPTING.load(Ordering::Relaxed) || (text.is_empty() && !OVERWRITABLE.load(Ordering::Relaxed)) {
        return;
    }
    OVERWRITABLE.store(!text.is_empty(), Ordering::Relaxed);
    let text = clean(&text.replace('\n', " "));
    let _ = to.write_all(format!("{ERASE}{text}").as_bytes()).and_then(|()| to.flush());
}

/// Whether standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Standard error for log messages.
pub(crate) struct Log;

/// Makes a [`Log`].
pub(crate) fn log() -> Log {
    Log
}

impl Write for Log {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        tell(&String::from_utf8_lossy(message));
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether colours are enabled: unless `NO_COLOR` or `TERM=dumb` disables them.
fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Text styles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    terminal: bool,
    colour: bool,
}

impl Style {
    /// For standard output.
    pub(crate) fn of_stdout() -> Style {
        let terminal = io::stdout().is_terminal();
        Style { terminal, colour: terminal && colours() }
    }

    /// For standard error.
    pub(crate) fn of_stderr() -> Style {
        let terminal = stderr_is_terminal();
        Style { terminal, colour: terminal && colours() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// Marks the style; escape sequences are inserted when the text is written.
    fn with(self, code: &str, text: &str) -> String {
        let mark = mark();
        if self.colour { format!("{mark}{code}m{text}{mark}0m") } else { text.to_owned() }
    }
}

/// What stands in text where a style begins or ends, before its code and an `m`. It is another in each process, so that no
/// server can write it.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("\x1b{:016x}:", RandomState::new().hash_one(())))
}

/// Text as a terminal may have it: styles as escape sequences, and [`is_unseen`] characters but line feeds and tabs replaced.
fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split(mark()).enumerate() {
        let (code, text) = if at == 0 { ("", part) } else { part.split_at(part.find('m').map_or(0, |end| end + 1)) };
        if !code.is_empty() {
            out.push_str("\x1b[");
            out.push_str(code);
        }
        out.extend(text.chars().map(|c| if is_unseen(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }));
    }
    out
}

/// JSON text with [`is_unseen`] characters escaped. They only stand in strings, but for the line feeds between members.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_unseen(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Whether a terminal obeys a character or shows nothing for it: control characters, line and paragraph separators, and what
/// Unicode calls default-ignorable (marks of the writing direction, zero-width marks, fillers, tags), but for the variation
/// selectors that emoji have.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the first sentence or line of a description, for lists.
pub(crate) fn summary(text: &str, max: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let sentence = line.find(". ").map_or(line, |end| &line[..=end]);
    shorten(sentence.trim(), max)
}

/// Truncates text to `max` characters, ending in an ellipsis.
pub(crate) fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Indents every line.
pub(crate) fn indent(text: &str, by: usize) -> String {
    let blanks = " ".repeat(by);
    let lines: Vec<String> =
        text.lines().map(|l| if l.is_empty() { String::new() } else { format!("{blanks}{l}") }).collect();
    lines.join("\n")
}

/// "1 tool", "2 tools".
pub(crate) fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLED: Style = Style { terminal: true, colour: true };

    #[test]
    fn text_of_servers_cannot_command_a_terminal() {
        assert_eq!(clean("a\x1b[2Jb\r\u{202e}c\n\td"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\n\td");
        for odd in "\0\x07\x08\x0b\x0c\r\x1b\x7f\u{80}\u{85}\u{9b}\u{9f}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{2028}\u{2029}\u{202a}\u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}\u{e0041}".chars() {
            assert_eq!(clean(&format!("a{odd}b")), "a\u{fffd}b", "{odd:?}");
            let json = escaped(&serde_json::json!({ (odd.to_string()): odd.to_string() }).to_string());
            assert!(!json.contains(is_unseen), "{json:?}");
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap()[odd.to_string()], odd.to_string());
        }
        for plain in ["Grüße\t日本語\n", "❤\u{fe0f} \u{301} \u{a0}", "العربية עברית"] {
            assert_eq!(
                (clean(plain).as_str(), escaped(plain).as_str()),
                (plain, plain.replace('\t', "\\u0009").as_str())
            );
        }
        assert_eq!(escaped("\"\u{9b}\u{7f}\u{e0041}\""), r#""\u009b\u007f\udb40\udc41""#);
    }

    #[test]
    fn styles_are_those_of_this_program_only() {
        let text = format!("{} \x1b[1mforged\x1b[0m", STYLED.bold("a\x1b[31mb"));
        assert_eq!(clean(&text), "\x1b[1ma\u{fffd}[31mb\x1b[0m \u{fffd}[1mforged\u{fffd}[0m");
        assert_eq!(clean(&STYLED.dim(&STYLED.good("x"))), "\x1b[2m\x1b[32mx\x1b[0m\x1b[0m");
        assert_eq!(Style { terminal: true, colour: false }.bold("x"), "x");
    }

    #[test]
    fn summaries_are_short() {
        assert_eq!(summary("First. Second.\nThird", 80), "First.");
        assert_eq!(summary("abcdef", 4), "abc…");
    }
}
