//! Splits and quotes command lines like a shell.

use crate::fail::Failure;

/// Splits a line into words: quotes, backslashes and comments as in a shell.
pub(crate) fn split(line: &str) -> Result<Vec<String>, Failure> {
    shell_words::split(line).map_err(|_| Failure::usage(format!("unclosed quote in `{line}`")))
}

/// Joins words into a line that a shell splits into the same words.
pub(crate) fn joined(words: &[String]) -> String {
    shell_words::join(words)
}
