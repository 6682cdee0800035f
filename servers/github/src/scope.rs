//! What the operator restricts the server to, where a request does not name a repository, and whose words are trusted.

use linchpin_rest::Ask;
use serde_json::Value;

/// A search in the allowed repositories only: what would widen it again is taken out of the query.
pub(crate) fn narrow(ask: Ask, only: &[String]) -> Ask {
    let asked = ask.query_of("q").unwrap_or_default().replace(['(', ')'], " ");
    let widens = |word: &&str| {
        let word = word.trim_start_matches('-').to_ascii_lowercase();
        let qualifier = ["repo:", "org:", "user:", "owner:", "enterprise:"].iter().any(|name| word.starts_with(name));
        qualifier || matches!(word.as_str(), "or" | "and" | "not")
    };
    let mut words: Vec<String> = asked.split_whitespace().filter(|word| !widens(word)).map(str::to_owned).collect();
    words.extend(only.iter().map(|repository| format!("repo:{repository}")));
    ask.set_query("q", words.join(" "))
}

/// Whether what a search found is in an allowed repository.
pub(crate) fn inside(item: &Value, only: &[String]) -> bool {
    repository(item).is_some_and(|name| only.iter().any(|one| one.eq_ignore_ascii_case(name)))
}

/// The repository that an item is, or is in: `owner/name`.
pub(crate) fn repository(item: &Value) -> Option<&str> {
    let own = item["full_name"].as_str().or_else(|| item["repository"]["full_name"].as_str());
    own.or_else(|| Some(item["repository_url"].as_str()?.rsplit_once("/repos/")?.1))
}

/// Whether the author of an issue, a pull request, a review or a comment is somebody with rights in its repository.
pub(crate) fn trusted(item: &Value) -> bool {
    matches!(item["author_association"].as_str(), Some("OWNER" | "MEMBER" | "COLLABORATOR"))
}
