//! What is personal or secret in an event: found by the names of its members, not by guessing what texts look like.

use linchpin_kit::redact_urls;
use serde_json::{Map, Value, json};
use url::Url;

/// What stands in its place.
const HIDDEN: &str = "[redacted]";

/// Names that are private as a whole, as [`words`] writes them.
const NAMES: [&str; 4] = ["env", "geo", "remote addr", "user"];

/// Words that make every name private that has them: `userEmail`, `http.request.cookies`.
const WORDS: [&str; 31] = [
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "csrf",
    "email",
    "emails",
    "ip",
    "ips",
    "jwt",
    "oauth",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "phone",
    "pwd",
    "secret",
    "secrets",
    "session",
    "sessions",
    "sessid",
    "ssn",
    "telephone",
    "token",
    "username",
    "usernames",
    "xsrf",
];

/// Words that follow each other in a private name.
const PAIRS: [&str; 11] = [
    "api key",
    "credit card",
    "e mail",
    "http fragment",
    "http query",
    "query string",
    "url fragment",
    "url query",
    "user id",
    "user name",
    "x auth",
];

/// Ends of words that are several written as one.
const ENDS: [&str; 7] = ["apikey", "email", "password", "secret", "sessid", "sessionid", "token"];

fn is_private(name: &str) -> bool {
    let name = words(name);
    let spaced = format!(" {name} ");
    let mut each = name.split(' ');
    NAMES.iter().any(|known| name == *known)
        || ["x forwarded ", "x real "].iter().any(|start| name.starts_with(start))
        || PAIRS.iter().any(|pair| spaced.contains(&format!(" {pair} ")))
        || name.ends_with(" key")
        || each.any(|word| WORDS.contains(&word) || ENDS.iter().any(|end| word.ends_with(end)))
}

/// The words of a name in lower case, separated by blanks: `X-Auth_userID` is `x auth user id`.
fn words(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut words = String::with_capacity(name.len() + 4);
    for (n, c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            words.push(' ');
            continue;
        }
        let before = n.checked_sub(1).map(|n| chars[n]);
        let after = chars.get(n + 1).is_some_and(|c| c.is_lowercase());
        let begins = before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit() || b.is_uppercase() && after);
        if c.is_uppercase() && begins {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
        .split_whitespace()
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Hides what is private in a value, wherever it is: in members, in pairs of name and value, in `{"key": …, "value": …}`, in the
/// queries of texts that are addresses, and in the user information of every URL.
pub(crate) fn hide(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(name)) = members.get("key")
                && is_private(name)
                && members.contains_key("value")
            {
                hide_members(members, &["value", "query"]);
                return;
            }
            for (name, member) in members.iter_mut() {
                if is_private(name) && !member.is_null() {
                    *member = json!(HIDDEN);
                } else {
                    hide(member);
                }
            }
        }
        Value::Array(items) => {
            if let [Value::String(name), hidden] = items.as_mut_slice()
                && is_private(name)
            {
                *hidden = json!(HIDDEN);
                return;
            }
            items.iter_mut().for_each(hide);
        }
        Value::String(text) => {
            if let Some(short) = short_url(text).or_else(|| short_path(text)) {
                *text = short;
            }
            *text = without_credentials(text);
        }
        _ => {}
    }
}

fn hide_members(members: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if let Some(member) = members.get_mut(*name) {
            *member = json!(HIDDEN);
        }
    }
}

/// A text that is one URL, without its query, its fragment and its user information.
fn short_url(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok().filter(|url| url.has_host())?;
    let has_more =
        url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some();
    if !has_more {
        return None;
    }
    url.set_query(None);
    url.set_fragment(None);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(url.into())
}

/// A text that begins with an address of the same site, without that one's query and fragment.
fn short_path(text: &str) -> Option<String> {
    let path = &text[..text.find(char::is_whitespace).unwrap_or(text.len())];
    if path.starts_with(['?', '#']) {
        return path.contains('=').then(|| HIDDEN.to_owned());
    }
    let end = path.find(['?', '#']).filter(|_| ["/", "./", "../"].iter().any(|start| path.starts_with(start)))?;
    Some(format!("{}{}", &text[..end], &text[path.len()..]))
}

/// A text without the user information of its URLs: that of a database may be in a message. `webpack://@acme/web` has none.
pub(crate) fn without_credentials(text: &str) -> String {
    text.split("://@").map(redact_urls).collect::<Vec<_>>().join("://@")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_private_wherever_they_are() {
        let mut event = json!({
            "user": { "id": "7", "ip_address": "10.0.0.7" },
            "tags": [
                { "key": "user", "value": "id:7", "query": "user.id:7" }, { "key": "browser", "value": "Chrome" },
                { "key": "user.email", "value": "a@b.example" },
            ],
            "headers": [["Authorization", "Bearer x"], ["X-Forwarded-For", "10.0.0.7"], ["Accept", "text/html"]],
            "data": { "url": "https://u:p@shop.example/cart?token=x#y", "status_code": 500, "API-Key": "x", "github_token": "x" },
            "extra": { "password": null, "token": ["x"], "primary_key_count": 1, "monkey": "y" },
        });
        hide(&mut event);
        assert_eq!(
            event,
            json!({
                "user": HIDDEN,
                "tags": [
                    { "key": "user", "value": HIDDEN, "query": HIDDEN }, { "key": "browser", "value": "Chrome" },
                    { "key": "user.email", "value": HIDDEN },
                ],
                "headers": [["Authorization", HIDDEN], ["X-Forwarded-For", HIDDEN], ["Accept", "text/html"]],
                "data": { "url": "https://shop.example/cart", "status_code": 500, "API-Key": HIDDEN, "github_token": HIDDEN },
                "extra": { "password": null, "token": HIDDEN, "primary_key_count": 1, "monkey": "y" },
            })
        );
    }

    #[test]
    fn names_are_private_by_their_words_however_they_are_written() {
        for name in [
            "accessToken",
            "sessionId",
            "sessionID",
            "clientSecret",
            "userEmail",
            "user_email",
            "email_address",
            "phone_number",
            "phoneNumber",
            "clientIP",
            "userIPAddress",
            "csrfmiddlewaretoken",
            "X-CSRF-Token",
            "http.query",
            "http.fragment",
            "query_string",
            "queryString",
            "dbPassword",
            "PHPSESSID",
            "user_id",
            "apiKey",
            "x-auth-user",
            "Set-Cookie",
            "E-Mail",
            "app.user.email",
            "private key",
        ] {
            assert!(is_private(name), "{name}");
        }
        for name in [
            "url",
            "query",
            "status_code",
            "author",
            "user_agent",
            "monkey",
            "keyboard",
            "primary_key_count",
            "recipe",
            "script",
            "zip",
            "total_tokens",
            "description",
            "shipping",
            "browser.name",
            "from",
            "to",
            "message",
            "id",
        ] {
            assert!(!is_private(name), "{name}");
        }
    }

    #[test]
    fn addresses_lose_what_is_private_in_them_whatever_their_scheme_and_without_one() {
        for (text, shown) in [
            ("/reset?email=a@b.c", "/reset"),
            ("/reset#token=x", "/reset"),
            ("../reset?email=a@b.c", "../reset"),
            ("?token=x", HIDDEN),
            ("/reset?email=a@b.c HTTP/1.1", "/reset HTTP/1.1"),
            ("https://u:p@shop.example/cart?token=x#y", "https://shop.example/cart"),
            ("postgresql://app:pw@db/x?password=pw", "postgresql://db/x"),
            ("wss://shop.example/s?token=x", "wss://shop.example/s"),
            ("no connection to redis://:pw@cache/0", "no connection to redis://***@cache/0"),
            ("webpack://@acme/web/./src/a.ts", "webpack://@acme/web/./src/a.ts"),
            ("app:///main.js", "app:///main.js"),
            ("why? C# is no /path?", "why? C# is no /path?"),
            ("shop/cart.py", "shop/cart.py"),
        ] {
            let mut value = json!(text);
            hide(&mut value);
            assert_eq!(value, shown, "{text}");
        }
    }
}
