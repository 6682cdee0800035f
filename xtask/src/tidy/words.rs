//! Retired words: names and phrases that a standard term has replaced.

use super::{Finding, Tree};

/// What must not come back, and what is said instead. Written in halves where this file would find itself.
const RETIRED: &[(&str, &str)] = &[
    ("#[offer", "#[register"),
    ("AskUrl", "ElicitUrl"),
    ("Dialing", "ConnectOptions"),
    ("Door", "RequestContext"),
    ("Fault", "ToolError"),
    ("FeedHandle", "SubscriptionHandle"),
    ("Interests", "ChangeFilter"),
    ("Keeper", "TokenSource"),
    ("LinkError", "TransportError"),
    ("TooManyRounds", "TooManyRoundTrips"),
    ("ToolBook", "ToolIndex"),
    ("Toolbox", "ToolSet"),
    ("a person", "a user"),
    ("ask_ms_max", "server_requests.response_ms_max"),
    ("Who may come in", "authorization"),
    ("Wishes", "RegistrationMetadata"),
    ("ask_url", "elicit_url"),
    ("asks_max", "server_requests.concurrent_max"),
    ("at_end", "on_shutdown"),
    ("belong into", "belong in"),
    ("belongs into", "belongs in"),
    ("doomed", "must_close"),
    ("elicits_in_rounds", "multi_round_trip"),
    ("form_raw", "elicit_raw"),
    ("hang_up", "close_after_flush"),
    ("in good order", "gracefully"),
    ("is no JSON", "is not valid JSON"),
    ("is to be started", "start it"),
    ("leaves_all_to_others", "is_empty_here"),
    ("on_ask", "on_elicitation"),
    ("release_stream", "close_sse_stream"),
    ("rounds_max", "round_trips.per_request_max"),
    ("salvage", "partial_parse"),
    ("stands_alone", "is_stateless_request"),
    ("stand alone", "are stateless"),
    ("stands alone", "is stateless"),
    ("tell_later", "notify_detached"),
    ("text of strangers", "third-party text"),
    ("the person", "the user"),
    ("who may come in", "authorization"),
    ("wires", "transports"),
];

/// The file that lists them.
const HERE: &str = "xtask/src/tidy/words.rs";

/// Places where a retired word stands in tracked code and documents.
pub(super) fn retired(tree: &Tree<'_>) -> Vec<Finding> {
    let text = |path: &&String| {
        [".rs", ".md", ".stderr", ".toml", ".mjs", ".js", ".py", ".sh", ".txt", ".html", ".yml"]
            .iter()
            .any(|kind| path.ends_with(kind))
            && *path != HERE
    };
    let mut found = Vec::new();
    for path in tree.files.iter().filter(text) {
        let Some(text) = tree.read(path) else {
            continue;
        };
        for (line, word, instead) in find(&text) {
            found.push(Finding::new(format!("{path}:{line}"), format!("`{word}` is retired; use `{instead}`")));
        }
    }
    found
}

fn find(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let holds = |line: &str, word: &str| {
        line.match_indices(word)
            .any(|(at, _)| !part(line[..at].chars().next_back()) && !part(line[at + word.len()..].chars().next()))
    };
    let lines = (1..).zip(text.lines());
    lines
        .flat_map(|(number, line)| {
            RETIRED.iter().filter(move |(word, _)| holds(line, word)).map(move |&(word, new)| (number, word, new))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_word_is_found_as_a_whole_word_only() {
        let text = "elicits\nlet x = on_ask(1);\nlet y = on_asking;\n// it stands alone.\n";
        assert_eq!(find(text), [(2, "on_ask", "on_elicitation"), (4, "stands alone", "is stateless")]);
    }
}
