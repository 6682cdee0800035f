//! What is personal or secret in an event: found by the names of its members, not by guessing what texts look like.

use serde_json::{Map, Value, json};
use url::Url;

/// What stands in its place.
const HIDDEN: &str = "[redacted]";

/// Names of members, headers and tags, without case; `-` is `_`.
const NAMES: [&str; 30] = [
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "authorization",
    "client_ip",
    "cookie",
    "cookies",
    "credit_card",
    "csrf_token",
    "email",
    "env",
    "geo",
    "ip",
    "ip_address",
    "jwt",
    "passwd",
    "password",
    "phone",
    "proxy_authorization",
    "refresh_token",
    "remote_addr",
    "secret",
    "session",
    "session_id",
    "set_cookie",
    "token",
    "user",
    "username",
    "x_api_key",
];

/// Further names that end or begin like this.
const LIKE: [&str; 8] = ["_token", "_secret", "_password", "_key", "user.", "x_forwarded_", "x_real_", "_ip"];

fn is_private(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let like = |part: &&str| if part.starts_with('_') { name.ends_with(part) } else { name.starts_with(part) };
    NAMES.contains(&name.as_str()) || LIKE.iter().any(like)
}

/// Hides what is private in a value, wherever it is: in members, in pairs of name and value, in `{"key": …, "value": …}`, and in
/// the queries and the user information of URLs.
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
            if let Some(short) = short_url(text) {
                *text = short;
            }
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
    let mut url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
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
}
