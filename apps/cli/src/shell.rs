//! Splits and quotes command lines like a shell.

/// Splits a line into words: quotes, backslashes and comments as in a shell. `None` where a quote is not closed.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    shell_words::split(line).ok()
}

/// A path as one word.
pub(crate) fn path(path: &std::path::Path) -> String {
    joined(&[path.display().to_string()])
}

/// Joins words into a line that a shell splits into the same words. A word that needs no quotes gets none.
pub(crate) fn joined(words: &[String]) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b));
    let words = words.iter().map(|word| if plain(word) { word.into() } else { shell_words::quote(word) });
    words.collect::<Vec<_>>().join(" ")
}
