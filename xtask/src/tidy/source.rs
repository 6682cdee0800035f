//! Rust sources as the rules see them: comments, strings and tests blanked out, lines kept.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Folders with production code; `fuzz/` and the peers under `bench/` are workspaces of their own.
const ROOMS: &[&str] = &["crates/", "servers/", "apps/", "conformance/", "bench/server/", "examples/", "xtask/"];

/// One production file.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the repository.
    pub(super) path: String,
    /// The text with comments, string contents and test code replaced by blanks.
    pub(super) code: String,
    /// How many lines are not tests; comments and blank lines count.
    pub(super) lines: usize,
    /// The string literals outside tests, each with its line number from 1.
    pub(super) strings: Vec<(usize, String)>,
}

impl Source {
    /// Reads `text` as the file at `path`.
    pub(super) fn new(path: &str, text: &str) -> Source {
        let Masked { code, strings } = mask(text);
        let (code, test_lines) = blank_tests(&code);
        let lines: Vec<&str> = code.lines().collect();
        let strings = strings
            .into_iter()
            // A blanked-out test leaves no quote on the line the string began on.
            .filter(|(line, _)| lines.get(line - 1).is_some_and(|code| code.contains('"')))
            .collect();
        Source { path: path.to_string(), lines: text.lines().count() - test_lines, code, strings }
    }

    /// The identifiers and numbers of the code, each with its line number from 1.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().flat_map(|(line, text)| {
            text.split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|word| !word.is_empty())
                .map(move |word| (line + 1, word))
        })
    }
}

/// Reads every production file of the workspace.
pub(super) fn production(root: &Path, files: &[String]) -> Result<Vec<Source>> {
    let mut texts = Vec::new();
    for path in files {
        let in_room = ROOMS.iter().any(|room| path.starts_with(room));
        if in_room && path.ends_with(".rs") && !is_test_path(path) {
            let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
            texts.push((path.clone(), text));
        }
    }
    let tests: BTreeSet<String> = texts.iter().flat_map(|(path, text)| test_files(path, &mask(text).code)).collect();
    Ok(texts
        .into_iter()
        .filter(|(path, _)| !tests.iter().any(|test| path.starts_with(test.as_str())))
        .map(|(path, text)| Source::new(&path, &text))
        .collect())
}

/// Whether the path itself says that it is no production code.
fn is_test_path(path: &str) -> bool {
    let mut folders = path.split('/').rev().skip(1);
    folders.any(|folder| folder == "tests" || folder == "benches")
}

/// Where `#[cfg(test)] mod name;` of the file at `path` lives: `…/name.rs` and `…/name/`.
fn test_files(path: &str, code: &str) -> Vec<String> {
    let folder = match path.rsplit_once('/') {
        Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder.to_string(),
        _ => path.trim_end_matches(".rs").to_string(),
    };
    let mut found = Vec::new();
    for (start, _) in code.match_indices("#[cfg(test)]") {
        let rest = code[start + "#[cfg(test)]".len()..].trim_start();
        let Some(name) = rest.strip_prefix("mod ").and_then(|rest| {
            let (name, after) = rest.split_at(rest.find([';', '{'])?);
            after.starts_with(';').then(|| name.trim())
        }) else {
            continue;
        };
        found.push(format!("{folder}/{name}.rs"));
        found.push(format!("{folder}/{name}/"));
    }
    found
}

struct Masked {
    code: String,
    strings: Vec<(usize, String)>,
}

/// Blanks out comments and the contents of literals; every other character keeps its place.
fn mask(text: &str) -> Masked {
    let chars: Vec<char> = text.chars().collect();
    let mut masked = Masked { code: String::with_capacity(text.len()), strings: Vec::new() };
    let mut at = 0;
    let mut line = 1;
    while at < chars.len() {
        let end = match token_end(&chars, at) {
            Token::Comment(end) => {
                blank(&chars[at..end], &mut masked.code, &mut line);
                end
            }
            Token::Literal { inner, outer } => {
                let begun = line;
                push(&chars[at..inner.0], &mut masked.code, &mut line);
                let string: String = chars[inner.0..inner.1].iter().collect();
                blank(&chars[inner.0..inner.1], &mut masked.code, &mut line);
                push(&chars[inner.1..outer], &mut masked.code, &mut line);
                if chars[inner.0 - 1] == '"' {
                    masked.strings.push((begun, string));
                }
                outer
            }
            Token::Other(end) => {
                push(&chars[at..end], &mut masked.code, &mut line);
                end
            }
        };
        at = end;
    }
    masked
}

fn push(chars: &[char], code: &mut String, line: &mut usize) {
    for &c in chars {
        code.push(c);
        *line += usize::from(c == '\n');
    }
}

fn blank(chars: &[char], code: &mut String, line: &mut usize) {
    for &c in chars {
        code.push(if c == '\n' { '\n' } else { ' ' });
        *line += usize::from(c == '\n');
    }
}

enum Token {
    /// Ends before this index.
    Comment(usize),
    /// The contents, and the index after the closing delimiter.
    Literal { inner: (usize, usize), outer: usize },
    /// Code up to this index.
    Other(usize),
}

/// The token that starts at `at`.
fn token_end(chars: &[char], at: usize) -> Token {
    let next = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    match chars[at] {
        '/' if next(1) == '/' => {
            let length = chars[at..].iter().position(|&c| c == '\n');
            Token::Comment(length.map_or(chars.len(), |length| at + length))
        }
        '/' if next(1) == '*' => Token::Comment(block_comment_end(chars, at)),
        '"' => quoted(chars, at + 1, '"'),
        'b' | 'c' if next(1) == '"' => quoted(chars, at + 2, '"'),
        'b' if next(1) == '\'' => quoted(chars, at + 2, '\''),
        'r' if matches!(next(1), '"' | '#') => raw(chars, at + 1).unwrap_or(Token::Other(at + 1)),
        'b' | 'c' if next(1) == 'r' && matches!(next(2), '"' | '#') => {
            raw(chars, at + 2).unwrap_or(Token::Other(at + 1))
        }
        // A lifetime has no closing quote right after one character or an escape.
        '\'' if next(1) == '\\' || next(2) == '\'' => quoted(chars, at + 1, '\''),
        c if c.is_alphanumeric() || c == '_' => {
            let length = chars[at..].iter().position(|&c| !c.is_alphanumeric() && c != '_');
            Token::Other(length.map_or(chars.len(), |length| at + length))
        }
        _ => Token::Other(at + 1),
    }
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted(chars: &[char], inner: usize, close: char) -> Token {
    let mut at = inner;
    while at < chars.len() && chars[at] != close {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    let end = at.min(chars.len());
    Token::Literal { inner: (inner, end), outer: (end + 1).min(chars.len()) }
}

/// A raw string whose hashes begin at `hashes`; `None` for a raw identifier.
fn raw(chars: &[char], hashes: usize) -> Option<Token> {
    let count = chars[hashes..].iter().take_while(|&&c| c == '#').count();
    let inner = hashes + count + 1;
    if chars.get(inner - 1) != Some(&'"') {
        return None;
    }
    let closes =
        |at: usize| chars[at] == '"' && chars[at + 1..].iter().take(count).filter(|&&c| c == '#').count() == count;
    let end = (inner..chars.len()).find(|&at| closes(at)).unwrap_or(chars.len());
    Some(Token::Literal { inner: (inner, end), outer: (end + 1 + count).min(chars.len()) })
}

/// Blanks out every item behind a test attribute, and counts the lines that leaves empty.
fn blank_tests(code: &str) -> (String, usize) {
    const MARKS: &[&str] = &["#[cfg(test)]", "#[cfg(all(test", "#[test]", "#[tokio::test"];
    let mut code = code.to_string();
    let mut lines = 0;
    let mut from = 0;
    while let Some(start) = MARKS.iter().filter_map(|mark| code[from..].find(mark)).min().map(|offset| from + offset) {
        let end = item_end(&code, start);
        let blanked: String = code[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        // Blanks are as long in characters, not in bytes, so the end is counted anew.
        from = start + blanked.len();
        lines += blanked.matches('\n').count() + 1;
        code.replace_range(start..end, &blanked);
    }
    (code, lines)
}

/// The end of the item that starts at `start` with its attributes: its block, or its semicolon.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_i32;
    for (offset, c) in code[start..].char_indices() {
        let end = start + offset + c.len_utf8();
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth <= 0 {
                    return end;
                }
            }
            ';' | ',' if depth == 0 => return end,
            _ => {}
        }
    }
    code.len()
}

/// The functions of masked code: name, first and last line from 1.
pub(super) fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let line_of = |at: usize| 1 + code[..at].matches('\n').count();
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let alone = code[..start].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '#');
        let name: String =
            code[start + 3..].trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !alone || name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(&code[start..]) {
            found.push((name, line_of(start), line_of(start + end - 1)));
        }
    }
    found
}

/// The end of the first block outside brackets; `None` if a semicolon comes first.
fn body_end(code: &str) -> Option<usize> {
    let mut brackets = 0_i32;
    let mut braces = 0_i32;
    for (offset, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 && brackets == 0 {
                    return Some(offset + 1);
                }
            }
            ';' if brackets == 0 && braces == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank_and_code_keeps_its_place() {
        let cases = [
            ("a // unwrap()\nb", "a            \nb"),
            ("a /* x /* y */ z */ b", "a                   b"),
            (r#"f("a\"b", 'c', '\'')"#, r#"f("    ", ' ', '  ')"#),
            (r###"f(r#"a"b"#, br"c")"###, r###"f(r#"   "#, br" ")"###),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("r#type + 1", "r#type + 1"),
        ];
        for (text, expected) in cases {
            assert_eq!(mask(text).code, expected, "{text}");
        }
    }

    #[test]
    fn tests_are_no_production_code() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { x.unwrap() }\n}\nfn c() { s(\"q\") }\n";
        let source = Source::new("x.rs", text);
        let names: Vec<String> = functions(&source.code).into_iter().map(|f| f.0).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(source.strings, [(6, "q".to_string())]);
        let source = Source::new("x.rs", "#[cfg(test)]\nuse a::{b, c};\n#[test]\nfn t() { d }\nfn e() {}");
        let words: Vec<&str> = source.words().map(|(_, word)| word).collect();
        assert_eq!(words, ["fn", "e"]);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_found_from_where_it_is_declared() {
        let code = "#[cfg(test)]\nmod tests;\n#[cfg(test)] mod inline { }\nmod other;";
        assert_eq!(test_files("crates/a/src/lib.rs", code), ["crates/a/src/tests.rs", "crates/a/src/tests/"]);
        assert_eq!(test_files("crates/a/src/b.rs", code)[0], "crates/a/src/b/tests.rs");
    }

    #[test]
    fn functions_are_measured_from_their_name_to_their_last_brace() {
        let code = "impl X {\n  fn a(\n    x: [u8; 2],\n  ) -> u8 {\n    if x { }\n  }\n  fn b();\n  fn c() {}\n}\n";
        let expected = [("a".to_string(), 2, 6), ("c".to_string(), 8, 8)];
        assert_eq!(functions(code), expected);
    }
}
