//! Connection strings: `postgres://…` and `key=value` pairs.
//!
//! As libpq, and unlike the standard for URLs, this takes several hosts with ports, and addresses of sockets.

use super::target::hosts;
use linchpin_kit::ToolError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::collections::BTreeMap;

/// Connection parameters as a connection string says them.
#[derive(Default)]
pub(super) struct Parameters {
    pub(super) values: BTreeMap<String, String>,
    /// The authority of a URL as it was written, without the password.
    pub(super) authority: Option<String>,
    /// See [`shown_url`].
    shown: Option<String>,
}

/// Parameters that change nothing here.
pub(super) const IGNORED: [&str; 12] = [
    "gssdelegation",
    "load_balance_hosts",
    "max_protocol_version",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslcompression",
    "sslsni",
    "fallback_application_name",
    "client_encoding",
];

/// Parameters that are understood.
pub(super) const KNOWN: [&str; 14] = [
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "connect_timeout",
    "application_name",
    "service",
    "channel_binding",
    "target_session_attrs",
];

/// What names in URIs are made of, apart from letters and digits.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// Everything but letters, digits, `-`, `_` and `~` as `%XX`.
pub(crate) fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The text that was encoded; `None` when it is not one.
fn percent_decode(text: &str) -> Option<String> {
    let mut escapes = text.split('%').skip(1);
    let whole = escapes.all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|digit| digit.is_ascii_hexdigit()));
    whole.then(|| percent_decode_str(text).decode_utf8().ok())?.map(std::borrow::Cow::into_owned)
}

/// Where the database is, as it was written, with the passwords hidden: for people to read. It is taken apart as it is
/// for connecting, and nothing is shown of parameters that are unknown: they may be the rest of a password. `None`
/// where it cannot be understood, or where something may be meant in another way.
#[must_use]
pub fn shown_url(url: &str) -> Option<String> {
    let Parameters { values, shown, .. } = parameters(url).ok()?;
    let get = |key: &str| values.get(key).map_or("", String::as_str);
    hosts(get("host"), get("port")).ok()?;
    shown
}

/// A parameter as [`shown_url`] has it; its value as it is written there.
fn shown_value<'a>(key: &str, value: &'a str) -> Option<&'a str> {
    match key {
        "password" | "sslpassword" => Some("PASSWORD"),
        key => (KNOWN.contains(&key) || IGNORED.contains(&key)).then_some(value),
    }
}

/// What a connection string says.
pub(super) fn parameters(text: &str) -> Result<Parameters, ToolError> {
    let text = text.trim();
    match text.split_once("://") {
        Some((scheme @ ("postgres" | "postgresql"), rest)) => from_url(scheme, rest),
        Some((scheme, _)) if !scheme.contains('=') => {
            Err(ToolError::new("The scheme of the database URL is not postgres://")
                .hint("Use postgres://user@host:port/database."))
        }
        _ => from_pairs(text),
    }
}

/// `user:password@host:port,host:port/database?key=value`. Nothing of it is shown in errors: any part may be a secret
/// that was written in the wrong place.
fn from_url(scheme: &str, rest: &str) -> Result<Parameters, ToolError> {
    let broken = |what: &str| {
        ToolError::new(format!("Invalid database URL: {what}"))
            .hint("Use postgres://user:password@host:port/database?sslmode=…, with special characters as %XX.")
    };
    let decode = |text: &str, what: &str| percent_decode(text).ok_or_else(|| broken(what));
    let whole = rest;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, places) = authority.rsplit_once('@').map_or((None, authority), |(login, places)| (Some(login), places));
    let mut values = BTreeMap::new();
    let (mut who, mut hidden) = (String::new(), "");
    if let Some(login) = login {
        let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
        if !user.is_empty() {
            values.insert("user".to_owned(), decode(user, "the user")?);
            who = user.to_owned();
        }
        if let Some(password) = password {
            values.insert("password".to_owned(), decode(password, "the password")?);
            hidden = ":PASSWORD";
        }
    }
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for place in places.split(',') {
        let (name, port) = match place.strip_prefix('[') {
            Some(inner) => {
                let (name, after) = inner.split_once(']').ok_or_else(|| broken("an address in brackets"))?;
                (name, after.strip_prefix(':').unwrap_or_default())
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        names.push(decode(name, "the host")?);
        ports.push(port);
    }
    if !places.is_empty() {
        values.insert("host".to_owned(), names.join(","));
        values.insert("port".to_owned(), ports.join(","));
    }
    if !path.is_empty() {
        values.insert("dbname".to_owned(), decode(path, "the database")?);
    }
    let at = if login.is_some() { "@" } else { "" };
    let path_shown = &whole[authority.len()..rest.len()];
    let mut shown = format!("{scheme}://{who}{hidden}{at}{places}{path_shown}");
    let mut sign = '?';
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (written, raw) = pair.split_once('=').ok_or_else(|| broken("a parameter without a value"))?;
        let (key, value) = (decode(written, "a parameter")?, raw);
        let (key, value) = match (key.as_str(), decode(value, "a parameter's value")?) {
            ("ssl", value) if value == "true" => ("sslmode", "require".to_owned()),
            ("database", value) => ("dbname", value),
            (key, value) => (key, value),
        };
        if let Some(value) = shown_value(key, raw) {
            shown.extend([&*String::from(sign), written, "=", value]);
            sign = '&';
        }
        values.insert(key.to_owned(), value);
    }
    // The end of a password with a `/` or `?` in it would be here.
    let shown = (!whole[authority.len()..].contains('@')).then_some(shown);
    // The host can come from the query; then only the whole tells what the authority is.
    let at = if who.is_empty() { "" } else { "@" };
    let authority = (!places.is_empty()).then(|| format!("{who}{at}{places}"));
    Ok(Parameters { values, authority, shown })
}

/// `host=localhost dbname='my db'`
fn from_pairs(text: &str) -> Result<Parameters, ToolError> {
    let broken =
        || ToolError::new("Invalid connection string").hint("Use postgres://user@host/database, or key=value pairs.");
    let (mut values, mut shown) = (BTreeMap::new(), Vec::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(broken)?;
        let key = key.trim_end();
        // A name of more than one word begins with the rest of a value that should be in quotes.
        if key.contains(char::is_whitespace) {
            return Err(broken());
        }
        let after = after.trim_start();
        let quoted = after.starts_with('\'');
        let mut value = String::new();
        let mut letters = after.char_indices().skip(usize::from(quoted));
        let mut end = None;
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
                '\'' if quoted => {
                    end = Some(at + 1);
                    break;
                }
                letter if !quoted && letter.is_whitespace() => {
                    end = Some(at);
                    break;
                }
                letter => value.push(letter),
            }
        }
        if quoted && end.is_none() {
            return Err(broken());
        }
        rest = after[end.unwrap_or(after.len())..].trim_start();
        if let Some(value) = shown_value(key, &value) {
            let plain = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '\'' || c == '\\');
            let quoted = || format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
            shown.push(format!("{key}={}", if plain { value.to_owned() } else { quoted() }));
        }
        values.insert(key.to_owned(), value);
    }
    Ok(Parameters { values, authority: None, shown: Some(shown.join(" ")) })
}
