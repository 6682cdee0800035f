//! Rewrites library messages for the command line: they name functions for programmers, where users of this program need
//! flags.

/// Texts of library messages, and their replacements.
const WORDS: &[(&str, &str)] = &[
    (" (connections.open_ms_max)", ""),
    (" (child.open_ms_max)", ""),
    ("; raise the timeout, or request progress, which extends it", ""),
    ("allow_plain_http()", "--allow-plain-http"),
    ("; pass arguments separately, not with the program name; `child(\"…\")` parses a whole command line", ""),
    ("; a client registered with its operator can be added with pre_registered(…)", ""),
    ("it needs a token from its operator", "it needs a token: --bearer-env VAR"),
    (", or set client_metadata_url(…)", ""),
    (", but none is configured: set OAuth::login(…), for example with a Browser, or client_credentials(…)", ""),
];

/// Returns a message as it is shown.
pub(crate) fn in_flags(message: &str) -> String {
    let message = WORDS.iter().fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours));
    let Some((before, (_, after))) =
        message.split_once("pre_registered(").and_then(|(before, call)| Some((before, call.rsplit_once(')')?)))
    else {
        return message;
    };
    format!("{before}--client-id ID{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_library_are_shown_as_flags() {
        for (theirs, ours) in [
            ("plain", "plain"),
            ("needs allow_plain_http()", "needs --allow-plain-http"),
            ("no: 404; a client registered with its operator can be added with pre_registered(…)", "no: 404"),
            ("add it with pre_registered(Some(\"https://a\"), …)", "add it with --client-id ID"),
            ("it needs a token from its operator", "it needs a token: --bearer-env VAR"),
        ] {
            assert_eq!(in_flags(theirs), ours);
        }
    }
}
