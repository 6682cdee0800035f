//! What the operator restricts the server to, where a request does not name a repository, and whose words are trusted.

use linchpin_rest::{Args, Ask};
use serde_json::Value;

/// Most repositories of one search for issues: GitHub allows five operators, and without `OR` an issue would have to be in all.
pub(crate) const ISSUES_MAX: usize = 6;

/// A search in the allowed repositories only: what would widen it again is taken out of the query.
pub(crate) fn narrow(ask: Ask, only: &[String]) -> Ask {
    narrowed(ask, only, |named| named.join(" "))
}

/// The same for issues.
pub(crate) fn narrow_issues(ask: Ask, only: &[String]) -> Ask {
    narrowed(ask, only, |named| match named {
        [one] => one.clone(),
        several => format!("({})", several.join(" OR ")),
    })
}

fn narrowed(ask: Ask, only: &[String], join: fn(&[String]) -> String) -> Ask {
    let asked = words(ask.query_of("q").unwrap_or_default());
    let named: Vec<String> = chosen(&asked, only).iter().map(|one| format!("repo:{one}")).collect();
    let mut words: Vec<String> = asked.into_iter().filter(|word| !widens(word)).collect();
    words.push(join(&named));
    ask.set_query("q", words.join(" "))
}

/// In how many of the allowed repositories a search for issues is.
pub(crate) fn width(args: &Args, only: &[String]) -> usize {
    let of = |name| args.text(name);
    let query = format!("{} {} repo:{}/{}", of("q"), of("query"), of("owner"), of("repo"));
    chosen(&words(&query), only).len()
}

/// The allowed repositories that a query names; all of them if it names none.
fn chosen<'a>(asked: &[String], only: &'a [String]) -> Vec<&'a String> {
    let named = |one: &&String| {
        let mut names = asked.iter().filter_map(|word| word.split_once(':'));
        names.any(|(key, name)| key.eq_ignore_ascii_case("repo") && name.eq_ignore_ascii_case(one))
    };
    let named: Vec<&String> = only.iter().filter(named).collect();
    if named.is_empty() { only.iter().collect() } else { named }
}

/// Whether a word of a query leads elsewhere, or changes how the others belong together.
fn widens(word: &str) -> bool {
    let word = word.trim_start_matches('-').to_ascii_lowercase();
    let qualifier = ["repo:", "org:", "user:", "owner:", "enterprise:"].iter().any(|name| word.starts_with(name));
    qualifier || matches!(word.as_str(), "or" | "and" | "not")
}

/// The words of a query. What is in quotes is a part of one; a quote that nothing closes is left out, and so are parentheses
/// and backslashes, which could make a quote of ours another one for GitHub.
fn words(query: &str) -> Vec<String> {
    let mut query = query.replace('\\', " ");
    if query.matches('"').count() % 2 == 1 {
        query = query.rsplit_once('"').map(|(before, after)| format!("{before} {after}")).unwrap_or_default();
    }
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in query.chars() {
        let ends = !quoted && (c.is_whitespace() || matches!(c, '(' | ')'));
        if !ends {
            word.push(c);
        }
        let closes = quoted && c == '"';
        quoted ^= c == '"';
        if (ends || closes) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// Whether what a search found is in an allowed repository.
pub(crate) fn inside(item: &Value, only: &[String]) -> bool {
    repository(item).is_some_and(|name| only.iter().any(|one| one.eq_ignore_ascii_case(name)))
}

/// The repository that an item is, or is in: `owner/name`.
pub(crate) fn repository(item: &Value) -> Option<&str> {
    let own = item["full_name"].as_str().or_else(|| item["repository"]["full_name"].as_str());
    own.or_else(|| ["repository_url", "issue_url", "url"].iter().find_map(|name| of_url(item[*name].as_str()?)))
}

/// The repository that a URL of the API is about.
fn of_url(url: &str) -> Option<&str> {
    let after = url.split_once("/repos/")?.1;
    let end = after.match_indices('/').nth(1).map_or(after.len(), |(at, _)| at);
    Some(&after[..end])
}

/// Whether the author of an issue, a pull request, a review or a comment is somebody with rights in its repository.
pub(crate) fn trusted(item: &Value) -> bool {
    matches!(item["author_association"].as_str(), Some("OWNER" | "MEMBER" | "COLLABORATOR"))
}
