//! The parameters of the callback URL.

use linchpin_oauth::Secret;
use std::fmt;

/// The longest callback URL that is read, in bytes.
pub(super) const CALLBACK_BYTES_MAX: usize = 16 * 1024;

/// The parameters of an authorization response (RFC 6749, sections 4.1.2 and 4.1.2.1; RFC 9207 for `iss`), as returned
/// by [`callback_params`].
///
/// Exactly one of `code` and `error` is set. The caller must check that `state` and `iss` are the expected ones.
///
/// # Example
///
/// ```
/// use linchpin_auth::login::callback_params;
///
/// let url = "http://127.0.0.1:41718/callback?code=c0de&state=abc&iss=https%3A%2F%2Flogin.example";
/// let callback = callback_params(url)?;
/// assert_eq!(callback.code.unwrap().expose(), "c0de");
/// assert_eq!(callback.iss.as_deref(), Some("https://login.example"));
/// # Ok::<(), linchpin_auth::login::CallbackError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Callback {
    /// The authorization code.
    pub code: Option<Secret>,
    /// The state of the request.
    pub state: Option<String>,
    /// The issuer.
    pub iss: Option<String>,
    /// The error code, for example `access_denied`.
    pub error: Option<String>,
    /// The error description for developers. It is written by the peer, so escape it for display.
    pub error_description: Option<String>,
}

/// Why a callback URL is invalid. It contains no part of the URL except names of parameters.
///
/// # Example
///
/// ```
/// use linchpin_auth::login::{CallbackError, callback_params};
///
/// let result = callback_params("http://127.0.0.1:41718/callback?code=a&code=b");
/// assert_eq!(result, Err(CallbackError::Duplicate("code")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallbackError {
    /// The URL is longer than 16 KiB.
    TooLong,
    /// This parameter is repeated, which RFC 6749 (section 3.1) forbids.
    Duplicate(&'static str),
    /// This parameter is not UTF-8.
    NotText(&'static str),
    /// The URL has neither `code` nor `error`, or both.
    NoAnswer,
}

impl fmt::Display for CallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallbackError::TooLong => write!(f, "the callback URL is longer than {CALLBACK_BYTES_MAX} bytes"),
            CallbackError::Duplicate(name) => write!(f, "the callback URL contains `{name}` more than once"),
            CallbackError::NotText(name) => write!(f, "`{name}` of the callback URL is not UTF-8"),
            CallbackError::NoAnswer => f.write_str(
                "the callback URL must contain either `code` or `error`: pass the whole URL that the browser was redirected to",
            ),
        }
    }
}

impl std::error::Error for CallbackError {}

/// Parses the query of a callback URL. Unknown parameters and a fragment are ignored; an empty `code` or `error` is
/// treated as missing.
///
/// # Errors
/// If a known parameter is repeated or is not UTF-8, if the query does not contain exactly one of `code` and `error`,
/// or if the URL is longer than 16 KiB.
pub fn callback_params(url: &str) -> Result<Callback, CallbackError> {
    if url.len() > CALLBACK_BYTES_MAX {
        return Err(CallbackError::TooLong);
    }
    let callback = parse_query(query_of(url))?;
    if callback.code.is_some() == callback.error.is_some() {
        return Err(CallbackError::NoAnswer);
    }
    Ok(callback)
}

/// The query: between the first `?` and a fragment.
fn query_of(url: &str) -> &str {
    let url = url.split_once('#').map_or(url, |(before, _)| before);
    url.split_once('?').map_or("", |(_, query)| query)
}

fn parse_query(query: &str) -> Result<Callback, CallbackError> {
    const NAMES: [&str; 5] = ["code", "state", "iss", "error", "error_description"];
    let mut values: [Option<String>; 5] = Default::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(at) = NAMES.iter().position(|known| *known == name) else {
            continue;
        };
        // The replacement character for invalid UTF-8.
        if value.contains(char::REPLACEMENT_CHARACTER) {
            return Err(CallbackError::NotText(NAMES[at]));
        }
        if values[at].replace(value.into_owned()).is_some() {
            return Err(CallbackError::Duplicate(NAMES[at]));
        }
    }
    let [code, state, iss, error, error_description] = values;
    let present = |value: &String| !value.is_empty();
    let code = code.filter(present).map(Secret::from);
    Ok(Callback { code, state, iss, error: error.filter(present), error_description })
}

/// The value of `state` in any URL; `None` unless it occurs exactly once.
pub(super) fn state_of(url: &str) -> Option<String> {
    let mut states = form_urlencoded::parse(query_of(url).as_bytes()).filter(|(name, _)| name == "state");
    let (_, state) = states.next()?;
    states.next().is_none().then(|| state.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    #[test]
    fn an_answer_is_read_as_a_form() {
        let rows = [
            (
                "http://127.0.0.1:1/callback?code=a+b%2Bc%26&state=%C3%BC&iss=https%3A%2F%2Fas.example",
                Callback {
                    code: Some(Secret::new("a b+c&")),
                    state: text("ü"),
                    iss: text("https://as.example"),
                    ..Callback::default()
                },
            ),
            (
                "?error=access_denied&error_description=the+user%20said+no&state=s&code=",
                Callback {
                    state: text("s"),
                    error: text("access_denied"),
                    error_description: text("the user said no"),
                    ..Callback::default()
                },
            ),
            (
                "http://h/?x=1&x=2&%63ode=c&&=&session_state=a?b#?code=d",
                Callback { code: Some(Secret::new("c")), ..Callback::default() },
            ),
        ];
        for (url, expected) in rows {
            assert_eq!(callback_params(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let long = format!("?code={}", "c".repeat(CALLBACK_BYTES_MAX));
        let rows = [
            ("", CallbackError::NoAnswer),
            ("http://h/callback", CallbackError::NoAnswer),
            ("http://h/callback?state=s", CallbackError::NoAnswer),
            ("http://h/callback#code=c", CallbackError::NoAnswer),
            ("?code=&error=", CallbackError::NoAnswer),
            ("?code=c&error=e", CallbackError::NoAnswer),
            ("?code=c&code=c", CallbackError::Duplicate("code")),
            ("?code=c&c%6fde=d", CallbackError::Duplicate("code")),
            ("?code=c&state=&state=s", CallbackError::Duplicate("state")),
            ("?code=c&iss=a&iss=b", CallbackError::Duplicate("iss")),
            ("?code=c&error_description=a&error_description=b", CallbackError::Duplicate("error_description")),
            ("?code=%ff", CallbackError::NotText("code")),
            ("?code=c&state=%C3", CallbackError::NotText("state")),
            (&long, CallbackError::TooLong),
        ];
        for (url, expected) in rows {
            assert_eq!(callback_params(url), Err(expected), "{url:.80}");
        }
    }

    #[test]
    fn an_error_quotes_nothing_of_the_url() {
        for url in ["?code=hunter2&code=hunter2", "?state=hunter2", "?code=hunter2%ff"] {
            let error = callback_params(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}");
        }
        let callback = callback_params("?code=hunter2").unwrap();
        assert!(!format!("{callback:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn whatever_is_written_as_a_form_is_read_back(
            code in "\\PC{1,20}", state in proptest::option::of("\\PC{0,20}"),
            iss in proptest::option::of("\\PC{0,20}"), noise in "[a-z]{6,9}", refused: bool,
        ) {
            prop_assume!(!code.contains('\u{FFFD}'));
            let clean = |value: &Option<String>| !value.as_ref().is_some_and(|value| value.contains('\u{FFFD}'));
            prop_assume!(clean(&state) && clean(&iss) && noise != "error_description");
            let mut form = form_urlencoded::Serializer::new("http://127.0.0.1:1/callback?".to_owned());
            form.append_pair(&noise, &code);
            if let Some(state) = &state {
                form.append_pair("state", state);
            }
            form.append_pair(if refused { "error" } else { "code" }, &code);
            if let Some(iss) = &iss {
                form.append_pair("iss", iss);
            }
            form.append_pair(&noise, &code);
            let callback = callback_params(&form.finish()).unwrap();
            prop_assert_eq!(callback.code, (!refused).then(|| Secret::new(code.clone())));
            prop_assert_eq!(callback.error, refused.then_some(code));
            prop_assert_eq!(callback.state, state);
            prop_assert_eq!(callback.iss, iss);
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(url in "(\\?|#|&|=|%|code|state|error|\\PC){0,40}") {
            if let Ok(callback) = callback_params(&url) {
                prop_assert!(callback.code.is_some() != callback.error.is_some());
            }
        }
    }
}
