//! Failures of an API, worded so that a model can act on them.

use crate::keep::at;
use http::StatusCode;
use linchpin_kit::{ErrorKind, ToolError};
use serde_json::Value;
use std::time::Duration;

/// How an API tells failures, and the first words of ours.
///
/// ```
/// use linchpin_rest::Problems;
///
/// const PROBLEMS: Problems = Problems::PLAIN
///     .words(&[(404, "Not Found: it does not exist, or the token cannot see it"), (0, "GitHub API Error: {status} {reason}")])
///     .message(&["message", "errors"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Problems {
    words: &'static [(u16, &'static str)],
    message: &'static [&'static str],
    failed: Option<fn(&Value) -> Option<ErrorKind>>,
    advise: Option<fn(&Value) -> Option<&'static str>>,
}

impl Problems {
    /// The name of the API and the status; the whole answer as its words.
    pub const PLAIN: Problems = Problems { words: &[], message: &[], failed: None, advise: None };

    /// Sets the first line by status; 0 is every other one. `{status}` and `{reason}` are its number and its name. A failure with a
    /// status of success has the line of that status, or else of the one that its kind usually has: 403 for what is denied.
    #[must_use]
    pub const fn words(self, words: &'static [(u16, &'static str)]) -> Problems {
        Problems { words, ..self }
    }

    /// Sets where in the answer the API's own words are: paths of members, of which all that are there are shown.
    #[must_use]
    pub const fn message(self, paths: &'static [&'static str]) -> Problems {
        Problems { message: paths, ..self }
    }

    /// Sets how to see that an answer with a status of success is a failure.
    #[must_use]
    pub const fn failed(self, failed: fn(&Value) -> Option<ErrorKind>) -> Problems {
        Problems { failed: Some(failed), ..self }
    }

    /// Sets what can be done about a failure, in a sentence of ours, by the API's answer.
    #[must_use]
    pub const fn advise(self, advise: fn(&Value) -> Option<&'static str>) -> Problems {
        Problems { advise: Some(advise), ..self }
    }

    /// What can be done, by the body of an answer.
    pub(crate) fn advice(&self, body: &str) -> Option<&'static str> {
        self.advise.and_then(|advise| advise(&serde_json::from_str(body).ok()?))
    }

    /// What says of which kind the failure is that an answer with a status of success may be.
    pub(crate) fn of_success(&self) -> Option<fn(&Value) -> Option<ErrorKind>> {
        self.failed
    }

    /// The error for a status; the API's words are a block of their own.
    pub(crate) fn error(
        &self,
        title: &str,
        status: StatusCode,
        kind: ErrorKind,
        body: &str,
        hide: impl Fn(String) -> String,
    ) -> ToolError {
        // A limit may have the status of a missing permission.
        let numbers = match kind {
            ErrorKind::Limited { .. } => [429, 429, 0],
            _ if status.is_success() => [status.as_u16(), usual_status(kind), 0],
            _ => [status.as_u16(), 0, 0],
        };
        let line = numbers.iter().find_map(|number| self.words.iter().find(|(known, _)| known == number));
        let line = line.map(|(_, words)| *words);
        let reason = status.canonical_reason().unwrap_or("unknown status");
        let line = match line {
            Some(words) => words.replace("{status}", status.as_str()).replace("{reason}", reason),
            None => format!("{title} answered with status {} {reason}", status.as_u16()),
        };
        // Hidden once it is decoded: a JSON text may be written with escapes.
        ToolError::new(line).kind(kind).detail(hide(self.own_words(body)))
    }

    /// The error for a limit that is not waited for: it begins as that of the API does.
    pub(crate) fn limited(&self, title: &str, wait: Duration) -> ToolError {
        let line = self.words.iter().find(|(known, _)| *known == 429).map(|(_, words)| *words);
        let line = line.map(|words| words.replace("{status}", "429").replace("{reason}", "Too Many Requests"));
        ToolError::new(line.unwrap_or_else(|| format!("{title} allows no more requests at present")))
            .kind(ErrorKind::Limited { retry_after: Some(wait) })
            .hint(again_in(wait))
    }

    /// The API's own words. A page for browsers has none that help.
    fn own_words(&self, body: &str) -> String {
        let Ok(answer) = serde_json::from_str::<Value>(body) else {
            let is_page = body.trim_start().starts_with('<');
            return if is_page { String::new() } else { body.to_owned() };
        };
        let found = self.message.iter().filter_map(|path| at(&answer, path)).filter(|value| !value.is_null());
        let words: Vec<String> = found.map(crate::arg::plain).collect();
        if words.is_empty() { answer.to_string() } else { words.join("\n") }
    }
}

/// The kind of a status that is not a limit.
pub(crate) fn kind_of(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        401 | 403 | 402 | 451 => ErrorKind::Denied,
        404 | 410 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Timeout,
        409 | 412 | 423 => ErrorKind::Conflict,
        400..=499 => ErrorKind::Invalid,
        status => ErrorKind::Upstream { status: Some(status) },
    }
}

/// The status that a kind of failure usually has.
fn usual_status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::Denied => 403,
        ErrorKind::NotFound => 404,
        ErrorKind::Conflict => 409,
        ErrorKind::Invalid => 400,
        ErrorKind::Timeout => 504,
        _ => 502,
    }
}

pub(crate) fn again_in(wait: Duration) -> String {
    format!("Try again in {} s.", wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}
