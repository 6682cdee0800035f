//! PostgreSQL's lexical rules, exactly as in its `scan.l` with `standard_conforming_strings` on (which every
//! transaction pins).
//!
//! This file must get one thing right: it must never take what the server reads as SQL for the inside of a literal,
//! comment or quoted name. Where versions of PostgreSQL differ, or a rule is too obscure to matter, it refuses the text
//! instead of guessing: `U&"names"`, literals continued on the next line after `E'…'`, numbers directly followed by a
//! letter, names longer than 63 bytes, vertical tabs.

use linchpin_kit::ToolError;

/// Maximum bytes of a statement.
pub(crate) const SQL_BYTES_MAX: usize = 256 * 1024;

/// PostgreSQL truncates names to this many bytes.
const NAME_BYTES_MAX: usize = 63;

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or unquoted name; its text is in lower case, as the server folds it.
    Word,
    /// A `"quoted"` name; its text is the name.
    Quoted,
    /// A literal: `'…'`, `E'…'`, `B'…'`, `X'…'`, `U&'…'`, `$tag$…$tag$`. Has no text.
    Literal,
    /// A number. Has no text.
    Number,
    /// `$1`. Has no text.
    Param,
    /// An operator; its text is its name (`!=` is `<>`).
    Operator,
    /// One of `( ) [ ] , ; : . :: := ..`
    Mark,
}

/// A token and the offset of its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) at: usize,
}

impl Token {
    /// Whether it is this keyword, unquoted.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    /// Whether it is this mark.
    pub(crate) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    /// The name, if it can be one.
    pub(crate) fn name(&self) -> Option<&str> {
        matches!(self.kind, Kind::Word | Kind::Quoted).then_some(self.text.as_str())
    }
}

/// The tokens of a statement.
///
/// # Errors
/// When it is too long, ends inside a literal or comment, or contains a form that is refused (see the module).
pub(crate) fn tokens(sql: &str) -> Result<Vec<Token>, ToolError> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(ToolError::invalid(format!(
            "The statement has {} bytes; the limit is {SQL_BYTES_MAX}.",
            sql.len()
        ))
        .hint("Split it, or pass long values as params."));
    }
    // The protocol ends a string at NUL.
    if let Some(at) = sql.find('\0') {
        return Err(refuse(
            at,
            "The statement contains a NUL character",
            "Remove it: PostgreSQL text cannot contain it.",
        ));
    }
    let mut lexer = Lexer { bytes: sql.as_bytes(), sql, at: 0, tokens: Vec::new(), escapes: false };
    while lexer.blank()? {
        lexer.token()?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    bytes: &'a [u8],
    sql: &'a str,
    at: usize,
    tokens: Vec<Token>,
    /// Whether the last token was `E'…'` or `U&'…'`, which another literal could continue.
    escapes: bool,
}

fn refuse(at: usize, what: &str, hint: &str) -> ToolError {
    ToolError::invalid(format!("{what} (at byte {at}).", at = at + 1)).hint(hint)
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is_operator(byte: u8) -> bool {
    b"~!@#^&|`?+-*/%<>=".contains(&byte)
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: Kind, text: impl Into<String>, at: usize) {
        self.escapes = false;
        self.tokens.push(Token { kind, text: text.into(), at });
    }

    /// Skips whitespace and comments. Returns whether anything follows.
    fn blank(&mut self) -> Result<bool, ToolError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                _ if self.at >= self.bytes.len() => return Ok(false),
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0c, _) => self.at += 1,
                (b'-', b'-') => {
                    let end = self.bytes[self.at..].iter().position(|b| matches!(b, b'\n' | b'\r'));
                    self.at = end.map_or(self.bytes.len(), |end| self.at + end);
                }
                (b'/', b'*') => self.comment()?,
                _ => return Ok(true),
            }
        }
    }

    /// Comments nest.
    fn comment(&mut self) -> Result<(), ToolError> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                _ if self.at >= self.bytes.len() => {
                    return Err(refuse(start, "A comment is not closed", "Close it with */."));
                }
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => {
                    (depth, self.at) = (depth - 1, self.at + 2);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    fn token(&mut self) -> Result<(), ToolError> {
        let start = self.at;
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'\'', ..) => self.literal(start, 0, false),
            (b'e' | b'E', b'\'', _) => self.literal(start, 1, true),
            (b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', _) => self.literal(start, 1, false),
            (b'u' | b'U', b'&', b'\'') => {
                self.literal(start, 2, false)?;
                self.escapes = true;
                Ok(())
            }
            (b'u' | b'U', b'&', b'"') => Err(refuse(
                start,
                "Names written as U&\"…\" are not accepted",
                "Write the name as a plain quoted name, with its characters as they are.",
            )),
            (b'"', ..) => self.quoted(start),
            (b'$', next, _) if next.is_ascii_digit() => {
                self.at += 1;
                self.digits();
                self.push(Kind::Param, "", start);
                self.no_word("A parameter")
            }
            (b'$', ..) => self.dollars(start),
            (byte, ..) if byte.is_ascii_digit() => self.number(start),
            (b'.', next, _) if next.is_ascii_digit() => self.number(start),
            (byte, ..) if starts_name(byte) => self.word(start),
            (b':', b':', _) => self.mark(start, "::"),
            (b':', b'=', _) => self.mark(start, ":="),
            (b'.', b'.', _) => self.mark(start, ".."),
            (byte @ (b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'.'), ..) => {
                self.at += 1;
                self.push(Kind::Mark, char::from(byte), start);
                Ok(())
            }
            (byte, ..) if is_operator(byte) => self.operator(start),
            _ => Err(refuse(
                start,
                "A character that has no meaning in SQL",
                "Remove it; control characters belong in literals.",
            )),
        }
    }

    fn mark(&mut self, start: usize, mark: &str) -> Result<(), ToolError> {
        self.at += mark.len();
        self.push(Kind::Mark, mark, start);
        Ok(())
    }

    /// A literal in single quotes; in `E'…'` a backslash escapes the next character.
    fn literal(&mut self, start: usize, prefix: usize, escapes: bool) -> Result<(), ToolError> {
        if self.escapes {
            return Err(refuse(
                start,
                "A literal that may continue the previous one",
                "Write one literal on one line, or join two with ||.",
            ));
        }
        self.at += prefix + 1;
        loop {
            match (self.peek(0), self.peek(1)) {
                _ if self.at >= self.bytes.len() => {
                    return Err(refuse(start, "A literal is not closed", "Close it with '; write ' inside it as ''."));
                }
                (b'\'', b'\'') => self.at += 2,
                (b'\'', _) => break self.at += 1,
                (b'\\', _) if escapes => self.at = (self.at + 2).min(self.bytes.len()),
                _ => self.at += 1,
            }
        }
        self.push(Kind::Literal, "", start);
        self.escapes = escapes;
        Ok(())
    }

    fn quoted(&mut self, start: usize) -> Result<(), ToolError> {
        let mut name = String::new();
        self.at += 1;
        loop {
            let rest = &self.sql[self.at..];
            let Some(end) = rest.find('"') else {
                return Err(refuse(
                    start,
                    "A quoted name is not closed",
                    "Close it with \"; write \" inside it as \"\".",
                ));
            };
            name.push_str(&rest[..end]);
            self.at += end + 1;
            if self.peek(0) != b'"' {
                break;
            }
            name.push('"');
            self.at += 1;
        }
        self.name_fits(&name, start)?;
        self.push(Kind::Quoted, name, start);
        Ok(())
    }

    fn word(&mut self, start: usize) -> Result<(), ToolError> {
        while self.at < self.bytes.len() && continues_name(self.bytes[self.at]) {
            self.at += 1;
        }
        let word = self.sql[start..self.at].to_ascii_lowercase();
        self.name_fits(&word, start)?;
        self.push(Kind::Word, word, start);
        Ok(())
    }

    fn name_fits(&self, name: &str, start: usize) -> Result<(), ToolError> {
        if name.len() <= NAME_BYTES_MAX && !name.is_empty() {
            return Ok(());
        }
        Err(refuse(
            start,
            "A name must have 1 to 63 bytes",
            "PostgreSQL truncates longer names; write the name as it is stored.",
        ))
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn number(&mut self, start: usize) -> Result<(), ToolError> {
        self.digits();
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits();
            }
        }
        self.push(Kind::Number, "", start);
        self.no_word("A number")
    }

    /// Versions of PostgreSQL read `1abc` differently.
    fn no_word(&self, what: &str) -> Result<(), ToolError> {
        if self.at < self.bytes.len() && starts_name(self.bytes[self.at]) {
            return Err(refuse(
                self.at,
                &format!("{what} is directly followed by a letter"),
                "Put a space between them; write numbers in decimal without underscores.",
            ));
        }
        Ok(())
    }

    /// `$tag$ … $tag$`; the tag may be empty and contains no `$`.
    fn dollars(&mut self, start: usize) -> Result<(), ToolError> {
        let tag_end = self.bytes[start + 1..].iter().position(|b| !(continues_name(*b) && *b != b'$'));
        let Some(end) = tag_end.map(|n| start + 1 + n).filter(|end| self.bytes[*end] == b'$') else {
            return Err(refuse(start, "A stray $", "Parameters are $1, $2, …"));
        };
        let tag = &self.sql[start..=end];
        let Some(close) = self.sql[end + 1..].find(tag) else {
            return Err(refuse(start, "A literal is not closed", &format!("Close it with {tag}.")));
        };
        self.at = end + 1 + close + tag.len();
        self.push(Kind::Literal, "", start);
        Ok(())
    }

    /// The longest run of operator characters, up to a comment that begins in it, and without a trailing `+` or `-`
    /// unless it contains a character that standard operators do not have.
    fn operator(&mut self, start: usize) -> Result<(), ToolError> {
        let comment = |at: usize| matches!(self.bytes.get(at..at + 2), Some(b"/*" | b"--"));
        let ends = |at: &usize| !is_operator(self.bytes[*at]) || comment(*at);
        // Stops early, because this runs for every operator of a long statement.
        let end = (start..self.bytes.len()).take(NAME_BYTES_MAX + 1).find(ends);
        let run = &self.bytes[start..end.unwrap_or(self.bytes.len())];
        let mut length = run.len();
        if length > NAME_BYTES_MAX {
            return Err(refuse(
                start,
                "An operator is longer than 63 characters",
                "Put spaces between operators; PostgreSQL has no longer ones.",
            ));
        }
        while length > 1
            && matches!(run[length - 1], b'+' | b'-')
            && !run[..length - 1].iter().any(|b| b"~!@#^&|`?%".contains(b))
        {
            length -= 1;
        }
        let text = &self.sql[start..start + length];
        self.at = start + length;
        let name = if text == "!=" { "<>" } else { text };
        self.push(Kind::Operator, name, start);
        Ok(())
    }
}

/// The operators that a keyword implies.
pub(crate) fn implied(word: &str) -> &'static [&'static str] {
    match word {
        "like" => &["~~", "!~~"],
        "ilike" => &["~~*", "!~~*"],
        "similar" => &["~", "!~"],
        "between" => &["<", "<=", ">", ">="],
        "in" => &["=", "<>"],
        "case" | "nullif" | "using" | "natural" | "distinct" | "any" | "some" | "all" => &["="],
        _ => &[],
    }
}

/// A name as SQL writes it.
pub(crate) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn brief(sql: &str) -> String {
        let mut out = Vec::new();
        for token in tokens(sql).unwrap_or_else(|e| panic!("{sql}: {e}")) {
            out.push(match token.kind {
                Kind::Word => token.text,
                Kind::Quoted => format!("\"{}\"", token.text),
                Kind::Literal => "L".into(),
                Kind::Number => "N".into(),
                Kind::Param => "P".into(),
                Kind::Operator => format!("o{}", token.text),
                Kind::Mark => token.text,
            });
        }
        out.join(" ")
    }

    #[test]
    fn tokens_are_those_of_postgresql() {
        let cases = [
            ("SELECT Ä_x FROM \"T\"\"x\"", "select Ä_x from \"T\"x\""),
            ("select 'it''s' , E'\\'--' , B'01', X'fF', N'a', U&'\\0041'", "select L , L , L , L , L , L"),
            // A backslash has no meaning in a standard literal, which ends at the next quote.
            ("select '\\' , pg_sleep(1) -- '", "select L , pg_sleep ( N )"),
            ("select $$a'b$$, $t$ $$ $t$, $1, a$1$b", "select L , L , P , a$1$b"),
            ("select $1$x$ y $x$", "select P L"),
            ("a/* x /* y */ -- */b", "a b"),
            ("a/*/*/**/*/*/b", "a b"),
            ("a--c\rb", "a b"),
            ("1.5e-3+.5 2. 1..2", "N o+ N N N .. N"),
            ("a<-1 a@-1 a<>-b a!=b a=-1", "a o< o- N a o@- N a o<> o- b a o<> b a o= o- N"),
            ("a*/**/b", "a o* b"),
            ("a+--b\nc", "a o+ c"),
            ("x::int[] := y..z", "x :: int [ ] := y .. z"),
            ("e 'x' n\"y\"", "e L n \"y\""),
            ("abce'x'", "abce L"),
            ("u & 'x'", "u o& L"),
            ("a\u{a0}b", "a\u{a0}b"),
        ];
        for (sql, expected) in cases {
            assert_eq!(brief(sql), expected, "{sql}");
        }
    }

    #[test]
    fn many_operators_in_a_row_are_refused_at_once() {
        let sql = |n: usize| format!("select {}1", "+".repeat(n));
        assert_eq!(tokens(&sql(NAME_BYTES_MAX)).unwrap().len(), NAME_BYTES_MAX + 2);
        for n in [NAME_BYTES_MAX + 1, SQL_BYTES_MAX - 8] {
            assert!(tokens(&sql(n)).unwrap_err().to_string().contains("longer than 63"), "{n}");
        }
        assert_eq!(tokens(&format!("select 1{}1", "+/**/".repeat(50_000))).unwrap().len(), 50_003);
        let comment = format!("select 1 +/*{}*/ 1", "+".repeat(SQL_BYTES_MAX / 2));
        assert_eq!(brief(&comment), "select N o+ N");
    }

    #[test]
    fn what_versions_read_differently_is_refused() {
        let long = format!("select {}", "x".repeat(64));
        let cases = [
            "select U&\"\\0041\"",
            "select u&\"a\" uescape '!'",
            "select E'a'\n'b\\' , pg_sleep(1) --'",
            "select U&'a' -- c\n'b'",
            "select 1abc",
            "select 0x1F",
            "select 1_000",
            "select $1abc",
            "select 1.pg_sleep",
            long.as_str(),
            "select \"\"",
            "select 'a",
            "select \"a",
            "select /* a",
            "select /* a /* */",
            "select $x$ a $y$",
            "select $ a",
            "select E'a\\'",
            "select \u{b} 1",
            "select \\ 1",
            "select \0 1",
            "select {1}",
        ];
        for sql in cases {
            assert!(tokens(sql).is_err(), "{sql:?}");
        }
        assert!(tokens(&" ".repeat(SQL_BYTES_MAX + 1)).is_err());
    }

    proptest! {
        /// Whatever a literal, quoted name or comment contains, the text after it is seen.
        #[test]
        fn nothing_hides_what_follows(inside in "[^\x00\n]{0,40}") {
            let quoted = inside.replace('\'', "''");
            let escaped = inside.replace('\\', "\\\\").replace('\'', "\\'");
            let mut texts = vec![format!("'{quoted}'"), format!("E'{escaped}'")];
            if !inside.contains("$q$") && !inside.ends_with("$q") && !inside.ends_with('$') {
                texts.push(format!("$q${inside}$q$"));
            }
            if !inside.contains("/*") && !inside.contains("*/") && !inside.ends_with(['*', '/']) {
                texts.push(format!("/*{inside} */"));
            }
            if !inside.contains(['\n', '\r']) {
                texts.push(format!("--{inside}\n"));
            }
            for text in texts {
                let seen = tokens(&format!("select {text} danger(")).unwrap();
                prop_assert!(seen.iter().any(|t| t.is_word("danger")), "{text}");
                prop_assert!(seen.iter().all(|t| t.kind != Kind::Word || ["select", "danger"].contains(&t.text.as_str())), "{text}");
            }
        }

        /// Any input gives tokens in order, or an error; nothing panics.
        #[test]
        fn any_text_is_read_or_refused(sql in "[ -~\n\\\\'\"$/*é-]{0,60}") {
            if let Ok(tokens) = tokens(&sql) {
                prop_assert!(tokens.windows(2).all(|pair| pair[0].at < pair[1].at));
            }
        }
    }
}
