//! Printing for people, and for programs.

use serde::Serialize;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};

pub(crate) use linchpin_kit::near;

/// Standard output.
pub(crate) struct Out {
    to: io::StdoutLock<'static>,
    pub(crate) style: Style,
}

impl Out {
    pub(crate) fn new() -> Out {
        Out { to: io::stdout().lock(), style: Style::of_stdout() }
    }

    /// Text and a line end.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        self.to.write_all(text.as_ref().as_bytes())?;
        self.to.write_all(b"\n")
    }

    /// Text of a server, with one line end after it. As it is, unless a terminal could take it for commands.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        let text = if self.style.terminal { clean(text) } else { text.to_owned() };
        self.line(text.strip_suffix('\n').unwrap_or(&text))
    }

    /// JSON over several lines.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        // Through `Value`, so that raw JSON is laid out too.
        let value = serde_json::to_value(value).map_err(io::Error::other)?;
        serde_json::to_writer_pretty(&mut self.to, &value).map_err(io::Error::from)?;
        self.line("")
    }

    /// JSON on one line.
    pub(crate) fn json_line(&mut self, value: &Value) -> io::Result<()> {
        self.line(value.to_string())?;
        self.to.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Whether somebody wants colours: on terminals, unless `NO_COLOR` says otherwise.
fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// How text is set off.
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
        let terminal = io::stderr().is_terminal();
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

    fn with(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Text of a server without what a terminal would obey: control characters and marks that turn the writing direction.
pub(crate) fn clean(text: &str) -> String {
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if odd(c) { '\u{fffd}' } else { c }).collect()
}

/// The first sentence or line of a description, for lists.
pub(crate) fn summary(text: &str, max: usize) -> String {
    let line = clean(text.trim().lines().next().unwrap_or_default());
    let sentence = line.find(". ").map_or(line.as_str(), |end| &line[..=end]);
    shorten(sentence.trim(), max)
}

/// At most `max` characters, with a mark where something was left out.
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

    #[test]
    fn text_of_servers_cannot_command_a_terminal() {
        assert_eq!(clean("a\x1b[2Jb\r\u{202e}c\n\td"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\n\td");
        assert_eq!(summary("First. Second.\nThird", 80), "First.");
        assert_eq!(summary("abcdef", 4), "abc…");
    }
}
