//! Masks secrets as dots wherever messages are shown or recorded.

use linchpin_core::exact;
use serde_json::Value;

/// The mask of a secret.
const DOTS: &str = "•••";

/// Recognizes secrets by their names and by the values given to this command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    /// Secret values, masked wherever they appear, longest first.
    known: Vec<String>,
}

/// Minimum length of a known secret: a shorter one would mask ordinary words.
const KNOWN_BYTES_MIN: usize = 6;

impl Redactor {
    /// Adds a secret value, masked wherever it appears.
    pub(crate) fn know(&mut self, secret: &str) {
        if secret.len() >= KNOWN_BYTES_MIN && !self.known.iter().any(|k| k == secret) {
            self.known.push(secret.to_owned());
            self.known.sort_by_key(|k| std::cmp::Reverse(k.len()));
        }
    }

    /// Masks secret members of a JSON message. Invalid JSON is treated as text.
    pub(crate) fn message(&self, json: &str) -> String {
        match exact::read(json) {
            Ok(mut value) => {
                self.value(&mut value);
                exact::text(&value)
            }
            Err(_) => self.text(json),
        }
    }

    /// Masks secret members in place.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                for (name, value) in members.iter_mut() {
                    match value {
                        Value::String(text) if is_secret(name) && !text.is_empty() => *text = DOTS.to_owned(),
                        _ => self.value(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Masks a header's value.
    pub(crate) fn header(&self, name: &str, value: &str, sensitive: bool) -> String {
        if sensitive || is_secret(name) { DOTS.to_owned() } else { self.text(value) }
    }

    /// Masks text: known values, credentials after `Bearer` and similar schemes, and secret query parameters.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.known.iter().filter(|s| !s.is_empty()) {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), DOTS);
            }
        }
        for scheme in ["Bearer ", "bearer ", "Basic ", "DPoP "] {
            text = after(&text, scheme, 8, |c| !c.is_ascii_whitespace() && !matches!(c, '"' | '\'' | ',' | ';' | '<'));
        }
        for member in QUERY {
            for mark in ['?', '&'] {
                let start = format!("{mark}{member}=");
                text =
                    after(&text, &start, 1, |c| !c.is_ascii_whitespace() && !matches!(c, '&' | '#' | '"' | '\'' | '<'));
            }
        }
        text
    }
}

/// Query parameters that hold secrets.
const QUERY: [&str; 9] =
    ["access_token", "refresh_token", "id_token", "token", "code", "client_secret", "api_key", "apikey", "key"];

/// Masks a run of at least `least` characters that follow `start`.
fn after(text: &str, start: &str, least: usize, part: impl Fn(char) -> bool) -> String {
    if !text.contains(start) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let (head, tail) = rest.split_at(at + start.len());
        out.push_str(head);
        let end = tail.find(|c| !part(c)).unwrap_or(tail.len());
        let (secret, next) = tail.split_at(end);
        out.push_str(if secret.chars().count() >= least { DOTS } else { secret });
        rest = next;
    }
    out.push_str(rest);
    out
}

/// Whether the value of a member or header of this name is a secret. `progressToken` and `nextCursor` are not.
pub(crate) fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    const WHOLE: [&str; 12] = [
        "token",
        "cookie",
        "setcookie",
        "authorization",
        "proxyauthorization",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "credential",
        "assertion",
        "dpop",
    ];
    const ENDS: [&str; 16] = [
        "accesstoken",
        "refreshtoken",
        "idtoken",
        "authtoken",
        "bearertoken",
        "sessiontoken",
        "apitoken",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "clientsecret",
        "clientassertion",
        "codeverifier",
        "password",
        "authorization",
    ];
    WHOLE.contains(&plain.as_str()) || ENDS.iter().any(|end| plain.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_become_dots_and_everything_else_stays() {
        let mut redactor = Redactor::default();
        redactor.know("hunter2hunter2");
        redactor.know("ab");
        for (given, shown) in [
            (r#"{"access_token":"abc","expires_in":3}"#, r#"{"access_token":"•••","expires_in":3}"#),
            (
                r#"{"a":[{"apiKey":"k","x-api-key":"k","Password":"p"}]}"#,
                r#"{"a":[{"apiKey":"•••","x-api-key":"•••","Password":"•••"}]}"#,
            ),
            (
                r#"{"progressToken":"t1","nextCursor":"c","maxTokens":5}"#,
                r#"{"progressToken":"t1","nextCursor":"c","maxTokens":5}"#,
            ),
            (r#"{"properties":{"token":{"type":"string"}}}"#, r#"{"properties":{"token":{"type":"string"}}}"#),
            (r#"{"text":"use Bearer abcdefgh12345, ok"}"#, r#"{"text":"use Bearer •••, ok"}"#),
            (r#"{"text":"Bearer of news"}"#, r#"{"text":"Bearer of news"}"#),
            (r#"{"uri":"https://x/y?a=1&access_token=zz&b=2"}"#, r#"{"uri":"https://x/y?a=1&access_token=•••&b=2"}"#),
            (r#"{"text":"it is hunter2hunter2!"}"#, r#"{"text":"it is •••!"}"#),
            ("abba is not JSON", "abba is not JSON"),
        ] {
            assert_eq!(redactor.message(given), shown);
        }
        assert_eq!(redactor.header("Authorization", "x", false), DOTS);
        assert_eq!(redactor.header("X-Custom", "x", true), DOTS);
        assert_eq!(redactor.header("Accept", "x", false), "x");
    }
}
