//! Which of the upstream's tools clients see and may call.

use linchpin_core::json::Scanner;
use linchpin_core::message::Request;
use linchpin_core::{Id, Method, Reply, ReplyKind, Span};
use linchpin_types::error::code;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Patterns of names, with `*` for any characters and `?` for one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolFilter {
    only: Vec<Box<str>>,
    not: Vec<Box<str>>,
}

impl ToolFilter {
    /// Those that match one of `only`, or all if it is empty, and none of `not`.
    pub(crate) fn new(only: &[Box<str>], not: &[Box<str>]) -> ToolFilter {
        ToolFilter { only: only.to_vec(), not: not.to_vec() }
    }

    fn is_all(&self) -> bool {
        self.only.is_empty() && self.not.is_empty()
    }

    fn has(&self, name: &str) -> bool {
        let any = |patterns: &[Box<str>]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.only.is_empty() || any(&self.only)) && !any(&self.not)
    }

    /// The refusal of a call of a tool that is not shown: as if it did not exist.
    pub(crate) fn refused(&self, request: &Request) -> Option<Reply> {
        if self.is_all() || request.known() != Some(Method::ToolsCall) {
            return None;
        }
        let Some(name) = request.string(request.params.name) else {
            // Nothing that an upstream could read as a name.
            return Some(Reply::error(Some(&request.id), code::INVALID_PARAMS, "`name` must be a string", None));
        };
        (!self.has(&name)).then(|| unknown(request, &name))
    }

    /// A list of tools without those that are not shown. The others stay as they are.
    pub(crate) fn listed(&self, request: &Request, reply: Reply) -> Reply {
        if self.is_all() || request.known() != Some(Method::ToolsList) || reply.kind() != ReplyKind::Complete {
            return reply;
        }
        without(&request.id, reply.body(), |name| self.has(name)).unwrap_or_else(|| {
            Reply::error(Some(&request.id), code::INTERNAL_ERROR, "the upstream's list of tools cannot be read", None)
        })
    }
}

/// The refusal of a call of a tool that does not exist for this client.
pub(crate) fn unknown(request: &Request, name: &str) -> Reply {
    Reply::error(Some(&request.id), code::INVALID_PARAMS, &format!("Unknown tool: {name}"), None)
}

/// A list of tools with those that `keeps` names. What stays in it stays as it is.
pub(crate) fn without(id: &Id, body: &str, keeps: impl Fn(&str) -> bool) -> Option<Reply> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let mut found: Option<Span> = None;
    let read = Scanner::new(body, 127).object(&mut |s, key| {
        let value = s.value()?;
        if key.name() == "tools" {
            found = Some(value);
        }
        Ok(())
    });
    read.ok()?;
    let span = found?;
    let all: Vec<&RawValue> = serde_json::from_str(span.of(body)).ok()?;
    let kept = all
        .into_iter()
        .map(RawValue::get)
        .filter(|tool| serde_json::from_str::<Named<'_>>(tool).is_ok_and(|tool| keeps(&tool.name)));
    let kept: Vec<&str> = kept.collect();
    let made = [&body[..span.start()], "[", &kept.join(","), "]", &body[span.end()..]].concat();
    Some(Reply::with_result(id, made.into()))
}

/// Whether a pattern matches a whole name. Takes time proportional to both lengths multiplied at most.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and from which character of the name on it is tried.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("delete*", "deleteTask", true),
            ("*account", "getAccount", false),
            ("*Account", "getAccount", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("exact", "exactly", false),
            ("?", "é", true),
            ("?", "", false),
            ("*", "", true),
            ("", "", true),
            ("****", "anything", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn what_stays_in_a_list_stays_byte_for_byte() {
        let filter = ToolFilter::new(&["get_*".into()], &["*_secret".into()]);
        let body = r#"{ "tools" : [ {"name":"get_a", "n":1.0} ,{"name":"get_secret"},{"name":"put"},{"name":"get_\u0062"}],"nextCursor":"x" }"#;
        let kept = without(&Id::unknown(), body, |name| filter.has(name)).unwrap();
        assert_eq!(kept.body(), r#"{ "tools" : [{"name":"get_a", "n":1.0},{"name":"get_\u0062"}],"nextCursor":"x" }"#);
    }
}
