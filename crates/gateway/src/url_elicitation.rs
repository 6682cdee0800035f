//! Pages that an upstream with sessions wants visited before a call (-32042), for a client whose requests are stateless: they
//! become what it is asked, and its retry repeats the call, which did not run.

use linchpin_core::message::Request;
use linchpin_core::{Caller, Method, Reply, ReplyKind};
use linchpin_proto::translate::ask;
use linchpin_proto::translate::error::Seen;
use linchpin_types::error::code;
use linchpin_types::jsonrpc::method;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The state of a client that was asked to visit pages. It holds nothing: the call is made anew.
const STATE: &str = "visited";
/// Pages that a client is asked to visit at once.
const PAGES_MAX: usize = 16;
/// How long to wait before a call is repeated whose pages were said to be visited: the first pause, and all together.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What a retry says of the pages.
pub(crate) enum Visited {
    /// It is none.
    Not,
    /// All were visited.
    All,
    /// The user does not want to.
    Refused,
}

impl Visited {
    /// Reads a request.
    pub(crate) fn of(request: &Request) -> Visited {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            action: String,
        }
        if request.string(request.params.request_state).as_deref() != Some(STATE) {
            return Visited::Not;
        }
        let answers = request.params.input_responses.map_or("{}", |span| request.text(span));
        let answers: BTreeMap<String, Answer> = serde_json::from_str(answers).unwrap_or_default();
        match !answers.is_empty() && answers.values().all(|answer| answer.action == "accept") {
            true => Visited::All,
            false => Visited::Refused,
        }
    }
}

/// The pauses before a call is repeated.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    let mut left = PAUSES.1;
    let mut next = PAUSES.0;
    std::iter::from_fn(move || {
        let pause = next.min(left);
        next *= 2;
        left -= pause;
        (!pause.is_zero()).then_some(pause)
    })
}

/// The result for a client that does not visit a page.
pub(crate) fn refused(request: &Request) -> Reply {
    let why = "The tool requires the user to visit a page first, and the user declined.";
    if request.known() != Some(Method::ToolsCall) {
        return Reply::error(Some(&request.id), code::INTERNAL_ERROR, why, None);
    }
    let result = json!({ "resultType": "complete", "content": [{ "type": "text", "text": why }], "isError": true });
    Reply::with_result(&request.id, result.to_string().into()).with_kind(ReplyKind::ToolError)
}

/// Whether an error asks for visits that this client can be asked for.
pub(crate) fn wanted(caller: &Caller, error: &str) -> bool {
    caller.caps().elicitation_url && Seen::read(error).code == code::URL_ELICITATION_REQUIRED
}

/// The result that asks for the visits. `None` if the error does not say which, or names what is not for a browser.
pub(crate) fn asked(request: &Request, error: &str) -> Option<Reply> {
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        elicitations: Vec<&'a RawValue>,
    }
    let seen = Seen::read(error);
    let data: Data<'_> = serde_json::from_str(seen.data?.get()).ok()?;
    let mut questions = Vec::new();
    for (n, elicitation) in data.elicitations.into_iter().take(PAGES_MAX).enumerate() {
        let mut params: Map<String, Value> = serde_json::from_str(elicitation.get()).ok()?;
        if !params.get("url").and_then(Value::as_str).is_some_and(is_for_a_browser) {
            return None;
        }
        params.remove("elicitationId");
        params.insert("mode".to_owned(), "url".into());
        questions.push((format!("u{}", n + 1), Value::Object(params).to_string()));
    }
    if questions.is_empty() {
        return None;
    }
    let questions: Vec<(&str, &str, &str)> =
        questions.iter().map(|(key, params)| (key.as_str(), method::ELICITATION_CREATE, params.as_str())).collect();
    let result = ask::input_required(&questions, STATE);
    Some(Reply::with_result(&request.id, result.into()).with_kind(ReplyKind::InputRequired))
}

/// Whether people may be sent to this address: no scripts, no credentials in it.
pub(crate) fn is_for_a_browser(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http"))
        && !authority.is_empty()
        && !authority.contains('@')
        && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_sent_to_pages_only() {
        for (url, fine) in [
            ("https://example.com/login?x=a@b", true),
            ("http://127.0.0.1:1/", true),
            ("javascript:alert(1)", false),
            ("javascript://example.com/%0aalert(1)", false),
            ("https://user:password@example.com/", false),
            ("https://example.com\\@evil.example/", true),
            ("https://", false),
            ("https://a b/", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(is_for_a_browser(url), fine, "{url}");
        }
        assert_eq!(pauses().map(|pause| pause.as_secs()).collect::<Vec<_>>(), [1, 2, 4, 8, 15]);
    }
}
