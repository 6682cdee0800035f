//! What an API is like: where it is, its key, its limits, how its lists are paged.

use crate::Problems;
use http::HeaderMap;
use std::time::Duration;

/// What is known of an API beside its calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Profile {
    pub(crate) service: &'static str,
    pub(crate) title: &'static str,
    pub(crate) base: &'static str,
    pub(crate) bases: &'static [Base],
    pub(crate) base_variables: &'static [&'static str],
    pub(crate) key: Key,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) items: &'static str,
    pub(crate) pages: Pages,
    pub(crate) limits: Limits,
    pub(crate) classes: Classes,
    pub(crate) problems: Problems,
    pub(crate) scope: Scope,
    pub(crate) authors: &'static str,
    pub(crate) instructions: &'static str,
}

/// Another URL of an API that is spread over several hosts. Its requests and its key stay within its origin.
///
/// ```
/// use linchpin_rest::{Api, Base, Call, Key, get};
///
/// const BASES: &[Base] = &[Base::new("files", "https://files.notes.example/v1").key_in_header("x-key", "")];
/// const CALLS: &[Call] = &[get("get_file", "File", "files", "Reads a file.", "/files/home").at("files")];
/// const API: Api = Api::new("notes", "Notes", "https://api.notes.example", CALLS).key(Key::bearer(&["KEY"])).bases(BASES);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Base {
    pub(crate) name: &'static str,
    pub(crate) url: &'static str,
    pub(crate) key: Option<KeyPlace>,
}

impl Base {
    /// Describes it by a name and the URL that its paths begin with. If the operator has replaced the URL of the API, it is
    /// that one's with the name as a further segment.
    #[must_use]
    pub const fn new(name: &'static str, url: &'static str) -> Base {
        Base { name, url, key: None }
    }

    /// Sends the API's key in this header instead; `scheme` is what comes before it, with its blank.
    #[must_use]
    pub const fn key_in_header(self, name: &'static str, scheme: &'static str) -> Base {
        Base { key: Some(KeyPlace::Header { name, scheme }), ..self }
    }
}

/// Where the key comes from and how it is sent.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub(crate) variables: &'static [&'static str],
    pub(crate) place: KeyPlace,
    pub(crate) optional: bool,
    pub(crate) obtain: &'static str,
    pub(crate) scopes: Option<KeyScopes>,
}

/// How an API tells what a key may do: by a header of its responses that lists the key's scopes. When none of them allows
/// writing, the tools that write are no longer offered.
#[derive(Debug, Clone, Copy)]
pub struct KeyScopes {
    /// The header; scopes are separated by commas.
    pub header: &'static str,
    /// How the keys begin that have scopes. Of others the header means nothing.
    pub keys: &'static [&'static str],
    /// The scopes of which one is needed to write.
    pub write: &'static [&'static str],
}

impl KeyScopes {
    /// Whether this key may have scopes.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|begin| key.starts_with(begin))
    }

    /// Whether the headers of a response say that the key may write nothing.
    pub(crate) fn forbid_writing(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(self.header).and_then(|value| value.to_str().ok());
        given.is_some_and(|given| !given.split(',').any(|one| self.write.contains(&one.trim())))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    None,
    Header { name: &'static str, scheme: &'static str },
    Query(&'static str),
}

impl Key {
    /// No key: public APIs, and those whose requests an [`Authorize`](crate::Authorize) signs.
    pub const NONE: Key = Key { variables: &[], place: KeyPlace::None, optional: true, obtain: "", scopes: None };

    /// `Authorization: Bearer …`, from the first of these variables that has one, its `_FILE` or its `_KEYRING`.
    #[must_use]
    pub const fn bearer(variables: &'static [&'static str]) -> Key {
        Key::header(variables, "authorization", "Bearer ")
    }

    /// A header; `scheme` is what comes before the key, with its blank.
    #[must_use]
    pub const fn header(variables: &'static [&'static str], name: &'static str, scheme: &'static str) -> Key {
        Key { variables, place: KeyPlace::Header { name, scheme }, optional: false, ..Key::NONE }
    }

    /// A parameter of the query, for old APIs that take it nowhere else. It is added as the request is sent, and is in no
    /// URL that is kept or shown.
    #[must_use]
    pub const fn query(variables: &'static [&'static str], name: &'static str) -> Key {
        Key { variables, place: KeyPlace::Query(name), optional: false, ..Key::NONE }
    }

    /// Starts without one too.
    #[must_use]
    pub const fn optional(self) -> Key {
        Key { optional: true, ..self }
    }

    /// Says how the API tells what a key may do.
    #[must_use]
    pub const fn scopes(self, scopes: KeyScopes) -> Key {
        Key { scopes: Some(scopes), ..self }
    }

    /// Says where to get one, in a sentence.
    #[must_use]
    pub const fn obtain(self, sentence: &'static str) -> Key {
        Key { obtain: sentence, ..self }
    }
}

/// How the pages of a list are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pages {
    /// There is one.
    One,
    /// A `Link` header with `rel="next"`, of which these parameters are taken. The rest of that URL is not used.
    Link(&'static [&'static str]),
    /// A token at this path of the answer, for this parameter.
    Token {
        /// Names separated by dots.
        at: &'static str,
        /// The parameter of the next request.
        param: &'static str,
    },
    /// A count, of pages or of items.
    Count {
        /// The parameter.
        param: &'static str,
        /// The first value.
        first: u64,
        /// The last value.
        last: u64,
        /// Path of a member that says whether there is more; without one, a page that is not empty has a next.
        more: &'static str,
        /// What is counted.
        step: Step,
    },
}

/// What [`Pages::Count`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Pages.
    Page,
    /// Items: the next value is that of the first item that has not been seen.
    Item,
}

/// What an API says about its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Other statuses than 429 that may mean a limit, if the headers say so.
    pub statuses: &'static [u16],
    /// The header with the size of each window; one of size 0 is no limit. Empty if there is no such header.
    pub size: &'static str,
    /// The header with what is left; several windows are separated by commas.
    pub remaining: &'static str,
    /// The header that says when a window begins anew.
    pub reset: Reset,
    /// Shortest time between the beginnings of two requests with one key, in milliseconds; 0 without.
    pub pace_ms: u64,
}

/// Which requests share a limit: when one of them has used it up, the others of its class are not sent either.
///
/// ```
/// use linchpin_rest::{Api, Call, Classes, get};
///
/// const CALLS: &[Call] = &[get("search_notes", "Search notes", "notes", "Searches all notes.", "/search/notes")];
/// const API: Api = Api::new("notes", "Notes", "https://api.notes.example", CALLS).classes(Classes::Prefixes(&["/search/"]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Classes {
    /// All.
    One,
    /// Those whose path begins with the first of these that fits, and all others. What `Retry-After` says without a used-up
    /// window holds for all classes.
    Prefixes(&'static [&'static str]),
    /// Those of one path: each method of an API has its own.
    Paths,
}

impl Classes {
    /// The class of a request with this path.
    pub(crate) fn of(self, path: &'static str) -> &'static str {
        match self {
            Classes::One => "",
            Classes::Prefixes(prefixes) => prefixes.iter().find(|prefix| path.starts_with(**prefix)).unwrap_or(&""),
            Classes::Paths => path,
        }
    }

    /// Whether `Retry-After` is about all classes.
    pub(crate) fn retry_together(self) -> bool {
        self != Classes::Paths
    }
}

/// The form of a header that says when a limit ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// Seconds from now.
    In(&'static str),
    /// Seconds since 1970.
    At(&'static str),
}

impl Limits {
    /// Nothing but status 429 and `Retry-After`.
    pub const NONE: Limits = Limits { statuses: &[], size: "", remaining: "", reset: Reset::In(""), pace_ms: 0 };

    /// How long nothing more is allowed, by the headers of a response. The windows that have nothing left count.
    pub(crate) fn closed_for(&self, headers: &HeaderMap, epoch: Duration) -> Option<Duration> {
        let (name, absolute) = match self.reset {
            Reset::In(name) => (name, false),
            Reset::At(name) => (name, true),
        };
        let seconds = |reset: u64| if absolute { reset.saturating_sub(epoch.as_secs()) } else { reset };
        let windows = self.empty(headers).into_iter().zip(numbers(headers, name));
        let closed = windows.filter_map(|(empty, reset)| empty.then(|| reset.map(seconds))?);
        closed.max().map(Duration::from_secs)
    }

    /// Whether there is nothing left.
    pub(crate) fn is_closed(&self, headers: &HeaderMap) -> bool {
        self.empty(headers).contains(&true)
    }

    /// Whether each window has nothing left.
    fn empty(&self, headers: &HeaderMap) -> Vec<bool> {
        let sizes = numbers(headers, self.size);
        let is_limit = |at: usize| sizes.get(at).copied().flatten() != Some(0);
        let left = numbers(headers, self.remaining).into_iter().enumerate();
        left.map(|(at, left)| left == Some(0) && is_limit(at)).collect()
    }
}

/// The numbers in a header, one for each window.
fn numbers(headers: &HeaderMap, name: &str) -> Vec<Option<u64>> {
    let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(',').map(|one| one.trim().parse().ok()).collect()
}

/// What an operator can restrict a server to, see [`Config::only`](crate::Config::only).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Nothing.
    None,
    /// The values of these segments of the path, joined with `/`: `owner/repo`.
    Segments(&'static [&'static str]),
    /// The value of this parameter in the query or the body: a channel.
    Parameter(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_size_0_is_no_limit() {
        let limits = Limits { size: "l", remaining: "r", reset: Reset::In("t"), ..Limits::NONE };
        let closed = |size: &'static str, remaining: &'static str| {
            let mut headers = HeaderMap::new();
            for (name, value) in [("l", size), ("r", remaining), ("t", "1, 719977")] {
                headers.insert(name, value.parse().unwrap());
            }
            let wait = limits.closed_for(&headers, Duration::ZERO);
            assert_eq!(limits.is_closed(&headers), wait.is_some());
            wait.map(|wait| wait.as_secs())
        };
        assert_eq!(closed("50, 0", "49, 0"), None);
        assert_eq!(closed("50, 0", "0, 0"), Some(1));
        assert_eq!(closed("1, 15000", "0, 0"), Some(719_977));
        assert_eq!(closed("", "1, 0"), Some(719_977));
    }
}
