//! Rewrites library messages for the command line: they name functions for programmers, where users of this program need
//! flags.

/// Texts of library messages, and their replacements.
const WORDS: &[(&str, &str)] = &[
    (" (connections.open_ms_max)", ""),
    ("allow_plain_http()", "--allow-plain-http"),
    ("; arguments are given one by one, not with the program's name; `child(\"…\")` takes a whole command line", ""),
    (", and nobody has said how to log in: give OAuth a login(…), for example a Browser, or client_credentials(…)", ""),
];

/// Returns a message as it is shown.
pub(crate) fn in_flags(message: &str) -> String {
    WORDS.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours))
}
