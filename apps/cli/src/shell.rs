//! Splits and quotes command lines like a shell.

use crate::fail::Failure;

/// Splits a line into words: quotes and backslashes as in a shell, nothing else is special.
pub(crate) fn split(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let (mut word, mut open, mut quote) = (String::new(), false, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('\''), c) => word.push(c),
            (_, '\\') => word.extend(chars.next()),
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, open) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (None, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(Failure::usage(format!("unclosed quote in `{line}`")));
    }
    if open || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// Joins words into a line that a shell splits into the same words.
pub(crate) fn joined(words: &[String]) -> String {
    let plain = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&b));
    let quoted: Vec<String> =
        words.iter().map(|w| if plain(w) { w.clone() } else { format!("'{}'", w.replace('\'', r"'\''")) }).collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_in_one_word_is_split_like_a_shell_does() {
        for (line, words) in [
            ("a b  c", &["a", "b", "c"][..]),
            (r#"a 'b c' "d \" e" '' f\ g"#, &["a", "b c", "d \" e", "", "f g"]),
            ("x=\"1 2\"3", &["x=1 23"]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        assert!(split("a 'b").is_err());
    }
}
