//! Rewrites library messages for the command line: they name functions for programmers, where users of this program need
//! flags.

/// Texts of library messages, and their replacements.
const WORDS: &[(&str, &str)] = &[
    (" (connections.open_ms_max)", ""),
    ("; give the call more time or ask for progress", ""),
    ("allow_plain_http()", "--allow-plain-http"),
    ("; pass arguments separately, not with the program name; `child(\"…\")` parses a whole command line", ""),
    (", but none is configured: set OAuth::login(…), for example with a Browser, or client_credentials(…)", ""),
];

/// Returns a message as it is shown.
pub(crate) fn in_flags(message: &str) -> String {
    WORDS.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours))
}
