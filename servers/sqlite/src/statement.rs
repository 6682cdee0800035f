//! A look at SQL text before SQLite sees it. Some PRAGMAs take effect while they are prepared, so text after the first
//! statement must be refused before any of it is prepared. This is not a parser, and no guarantee rests on it alone:
//! the authorizer decides what a statement may do, and rusqlite refuses a second statement that was missed here.

use linchpin_kit::ToolError;

/// The beginning of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Offset of the first token, after whitespace, comments and semicolons.
    pub(crate) start: usize,
    /// The first words, in upper case; at most [`WORDS_MAX`].
    words: Vec<String>,
    /// Whether anything but comments follows the statement.
    pub(crate) more: bool,
}

/// Enough words to tell statements apart.
const WORDS_MAX: usize = 4;

impl Outline {
    /// Reads the beginning of a text. `None` if it contains no statement.
    pub(crate) fn at(sql: &str) -> Option<Outline> {
        let mut tokens = Tokens { sql, at: 0 };
        let (start, mut token) = tokens.by_ref().find(|(_, token)| *token != Token::Semicolon)?;
        let mut words = Vec::new();
        while let Token::Word(word) = token {
            words.push(word.to_ascii_uppercase());
            if words.len() == WORDS_MAX {
                break;
            }
            match tokens.next() {
                Some((_, next)) => token = next,
                None => break,
            }
        }
        let mut outline = Outline { start, words, more: false };
        // A trigger contains semicolons, so SQLite has to find its end.
        if !outline.is_trigger() {
            let ended = token == Token::Semicolon || tokens.by_ref().any(|(_, token)| token == Token::Semicolon);
            outline.more = ended && tokens.any(|(_, token)| token != Token::Semicolon);
        }
        Some(outline)
    }

    /// The first word; empty if the text does not begin with a word.
    pub(crate) fn verb(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Whether it begins with these words.
    pub(crate) fn begins(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && self.words.iter().zip(words).all(|(have, want)| have == want)
    }

    fn is_trigger(&self) -> bool {
        self.begins(&["CREATE", "TRIGGER"])
            || self.begins(&["CREATE", "TEMP", "TRIGGER"])
            || self.begins(&["CREATE", "TEMPORARY", "TRIGGER"])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Semicolon,
    Other,
}

/// Tokens with their offsets, split as by SQLite's tokenizer as far as it matters here.
struct Tokens<'a> {
    sql: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = &self.sql[self.at..];
            let first = rest.chars().next()?;
            let begin = self.at;
            let (length, token) = match first {
                ' ' | '\t' | '\n' | '\r' | '\x0c' | '\u{feff}' => (first.len_utf8(), None),
                '-' if rest.starts_with("--") => (until(rest, 2, "\n"), None),
                '/' if rest.starts_with("/*") => (until(rest, 2, "*/"), None),
                ';' => (1, Some(Token::Semicolon)),
                '\'' | '"' | '`' => (quoted(rest, first), Some(Token::Other)),
                '[' => (until(rest, 1, "]"), Some(Token::Other)),
                c if is_word(c) => {
                    let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                    (length, Some(Token::Word(&rest[..length])))
                }
                other => (other.len_utf8(), Some(Token::Other)),
            };
            self.at += length;
            if let Some(token) = token {
                return Some((begin, token));
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || (!c.is_ascii() && c != '\u{feff}')
}

/// The length up to and including `end`, searched for from `from`; the whole length if it is missing.
fn until(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

/// The length of a quoted text, in which a doubled quote stands for one.
fn quoted(text: &str, quote: char) -> usize {
    let mut at = 1;
    loop {
        match text[at..].find(quote) {
            None => return text.len(),
            Some(found) => {
                at += found + 1;
                if !text[at..].starts_with(quote) {
                    return at;
                }
                at += 1;
            }
        }
    }
}

/// A quoted name, for SQL; the name may contain anything.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Reads the beginning of a call's text.
pub(crate) fn outline(sql: &str) -> Result<Outline, ToolError> {
    if sql.contains('\0') {
        return Err(
            ToolError::invalid("Error: the query contains a NUL character").hint("SQL text ends there; remove it.")
        );
    }
    Outline::at(sql).ok_or_else(|| ToolError::invalid("Error: the query contains no statement"))
}

/// The error for more than one statement.
pub(crate) fn several_statements() -> ToolError {
    ToolError::invalid("Database error: You can only execute one statement at a time.")
        .hint("Use one call per statement.")
}

/// Refuses more than one statement.
pub(crate) fn single(outline: &Outline) -> Result<(), ToolError> {
    if outline.more { Err(several_statements()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_statement_is_found_behind_comments_and_semicolons() {
        for (sql, words) in [
            ("SELECT 1", "SELECT 1"),
            ("  -- SELECT\n /* x; */ ; ;\u{feff}insert INTO t VALUES (1)", "INSERT INTO T VALUES"),
            ("create Table if not exists t(a)", "CREATE TABLE IF NOT"),
            ("pragma main.x", "PRAGMA MAIN"),
            ("(SELECT 1)", ""),
            ("'a'", ""),
            ("VALUES(1)", "VALUES"),
        ] {
            assert_eq!(Outline::at(sql).unwrap().words.join(" "), words, "{sql}");
        }
        for empty in ["", " ;; ", "-- only", "/* never closed", ";\u{feff}\n"] {
            assert_eq!(Outline::at(empty), None, "{empty:?}");
        }
        assert_eq!(Outline::at(" /*x*/ SELECT").unwrap().start, 7);
    }

    #[test]
    fn a_second_statement_is_seen_and_a_semicolon_in_a_text_is_not() {
        for (sql, more) in [
            ("SELECT 1", false),
            ("SELECT 1;", false),
            ("SELECT 1; -- end", false),
            ("SELECT 1;; /* ; x */ ;", false),
            ("SELECT 1; x", true),
            ("SELECT 1; DROP TABLE t", true),
            ("SELECT;x", true),
            (";;SELECT ';' ; /**/ DROP TABLE t", true),
            ("SELECT ';x', \"a;b\", `;`, [;] FROM t", false),
            ("SELECT 'it''s; fine'", false),
            ("SELECT 'never closed; DROP TABLE t", false),
            ("SELECT 1 -- ; DROP TABLE t", false),
            ("SELECT 1 /* ; */; 'x'", true),
            ("CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END", false),
            ("CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END", false),
            ("CREATE TABLE a(b); CREATE TABLE c(d)", true),
        ] {
            assert_eq!(Outline::at(sql).unwrap().more, more, "{sql}");
        }
    }

    #[test]
    fn a_quoted_name_holds_anything() {
        assert_eq!(quote("a\"b; --"), "\"a\"\"b; --\"");
    }
}
