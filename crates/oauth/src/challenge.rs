//! `WWW-Authenticate` challenges (RFC 9110, section 11.6.1).

use crate::scope::Scopes;
use http::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

/// The relevant members of a `WWW-Authenticate` header's `Bearer` or `DPoP` challenge.
///
/// ```
/// use http::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
/// use linchpin_oauth::Challenge;
///
/// let mut headers = HeaderMap::new();
/// let value = "Bearer error=\"insufficient_scope\", resource_metadata=\"https://mcp.example/.well-known/x\"";
/// headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(value));
/// let challenge = Challenge::of(&headers);
/// assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
/// assert_eq!(challenge.resource_metadata.as_deref(), Some("https://mcp.example/.well-known/x"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The URL of the protected-resource metadata (RFC 9728, section 5.1).
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scope: Option<Scopes>,
    /// Why the request was rejected: `invalid_token`, `insufficient_scope`, `use_dpop_nonce`.
    pub error: Option<String>,
    /// The error's description, written by the peer.
    pub error_description: Option<String>,
    /// Whether only tokens bound to a key are accepted: there is a `DPoP` challenge and no `Bearer` one.
    pub dpop: bool,
    /// The scheme of the first challenge, if none is for OAuth.
    pub other: Option<String>,
}

impl Challenge {
    /// Parses the challenges of a response.
    ///
    /// Invalid parts are skipped. If there are several OAuth challenges, the first that sets a member takes precedence.
    pub fn of(headers: &HeaderMap) -> Challenge {
        let lines = headers.get_all(WWW_AUTHENTICATE).iter().take(LINES_MAX);
        let all: Vec<Scheme> =
            lines.filter_map(|line| line.to_str().ok()).flat_map(|line| parse(cut(line, LINE_BYTES_MAX))).collect();
        let ours = |scheme: &&Scheme| scheme.is("bearer") || scheme.is("dpop");
        let get = |name: &str| all.iter().filter(ours).find_map(|scheme| scheme.get(name));
        Challenge {
            resource_metadata: get("resource_metadata"),
            scope: get("scope").map(|scope| Scopes::parse(&scope)).filter(|scopes| !scopes.is_empty()),
            error: get("error"),
            error_description: get("error_description"),
            dpop: all.iter().any(|s| s.is("dpop")) && !all.iter().any(|s| s.is("bearer")),
            other: all.first().filter(|_| !all.iter().any(|s| ours(&s))).map(|first| first.name.clone()),
        }
    }

    /// Returns the header value for a challenge with this scheme and these parameters, in this order. Empty values are
    /// omitted, and characters that are not allowed in a header are replaced by spaces.
    ///
    /// ```
    /// use linchpin_oauth::Challenge;
    ///
    /// let header = Challenge::header("Bearer", &[("error", "invalid_token"), ("scope", "a b")]);
    /// assert_eq!(header, r#"Bearer error="invalid_token", scope="a b""#);
    /// ```
    pub fn header(scheme: &'static str, params: &[(&'static str, &str)]) -> HeaderValue {
        let mut text = scheme.to_owned();
        let given = params.iter().filter(|(_, value)| !value.is_empty());
        for (at, (name, value)) in given.enumerate() {
            text.push_str(if at == 0 { " " } else { ", " });
            text.push_str(name);
            text.push_str("=\"");
            for c in value.chars() {
                match c {
                    '"' | '\\' => text.extend(['\\', c]),
                    ' '..='~' => text.push(c),
                    _ => text.push(' '),
                }
            }
            text.push('"');
        }
        HeaderValue::try_from(text).expect("printable ASCII fits into a header")
    }

    /// Whether the challenge has this error code.
    pub fn is(&self, error: &str) -> bool {
        self.error.as_deref() == Some(error)
    }
}

/// More than any server has reason to send.
const LINES_MAX: usize = 16;
const LINE_BYTES_MAX: usize = 8 * 1024;

/// One challenge.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scheme {
    name: String,
    params: Vec<(String, String)>,
}

impl Scheme {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn get(&self, name: &str) -> Option<String> {
        let found = self.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    }
}

/// Parses a list of challenges. The grammar needs one token of lookahead: after a comma comes either another parameter
/// (`name=value`) or another scheme (`name`, and then a space or the end).
fn parse(line: &str) -> Vec<Scheme> {
    let mut schemes = Vec::<Scheme>::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (name, after) = token(rest);
        if name.is_empty() {
            // Something that fits nowhere: go on behind the next comma.
            match rest.split_once(',') {
                Some((_, next)) => rest = next,
                None => return schemes,
            }
            continue;
        }
        let spaced = after.trim_start_matches([' ', '\t']);
        match spaced.strip_prefix('=').filter(|value| !value.starts_with('=')) {
            Some(value) => {
                let (value, after) = read_value(value.trim_start_matches([' ', '\t']));
                if let Some(scheme) = schemes.last_mut() {
                    scheme.params.push((name.to_owned(), value));
                }
                rest = after;
            }
            None => {
                schemes.push(Scheme { name: name.to_owned(), params: Vec::new() });
                rest = skip_token68(spaced);
            }
        }
    }
}

/// Skips a single token after a scheme, up to a comma, as in `Basic dXNlcg==`; leaves parameters in place.
fn skip_token68(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-._~+/".contains(c))).unwrap_or(text.len());
    let after = text[end..].trim_start_matches('=');
    let next = after.trim_start_matches([' ', '\t']);
    if end > 0 && (next.is_empty() || next.starts_with(',')) { after } else { text }
}

/// A value: quoted, or everything up to a space or comma.
fn read_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            _ => value.push(c),
        }
    }
    // Unterminated: the intended end is unknown.
    (String::new(), "")
}

fn token(text: &str) -> (&str, &str) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn cut(text: &str, max: usize) -> &str {
    text.get(..max).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(lines: &[&str]) -> Challenge {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        Challenge::of(&headers)
    }

    fn shown(c: &Challenge) -> String {
        let mut parts = Vec::new();
        let mut add = |name: &str, value: Option<String>| parts.extend(value.map(|value| format!("{name}={value}")));
        add("prm", c.resource_metadata.clone());
        add("scope", c.scope.as_ref().map(Scopes::to_string));
        add("error", c.error.clone());
        add("text", c.error_description.clone());
        add("dpop", c.dpop.then(|| "only".to_owned()));
        add("other", c.other.clone());
        parts.join(" | ")
    }

    #[test]
    fn challenges_are_read_as_servers_write_them() {
        let rows: &[(&[&str], &str)] = &[
            (&[], ""),
            (&["Bearer"], ""),
            (&["bearer REALM=\"x\""], ""),
            (&[r#"Bearer resource_metadata="https://a/b?x=1,2""#], "prm=https://a/b?x=1,2"),
            (&[r#"Bearer resource_metadata=https://a/b, scope=a"#], "prm=https://a/b | scope=a"),
            (&[r#"Bearer realm="a, Bearer scope=\"no\"", scope="a b""#], "scope=a b"),
            (
                &[r#"Bearer error="invalid_token",error_description="say \"when\"""#],
                "error=invalid_token | text=say \"when\"",
            ),
            (&[r#"Basic realm="x", Bearer scope="a""#], "scope=a"),
            (&[r#"Basic dXNlcg==, Bearer scope="a""#], "scope=a"),
            (&[r#"Negotiate, Bearer scope="a""#], "scope=a"),
            (&[r#"Negotiate"#, r#"Bearer   scope = "a" "#], "scope=a"),
            (&[r#"Basic scope="no", realm="x""#], "other=Basic"),
            (&[r#"DPoP algs="ES256", resource_metadata="https://a""#], "prm=https://a | dpop=only"),
            (&[r#"DPoP error="use_dpop_nonce", Bearer scope="a""#], "scope=a | error=use_dpop_nonce"),
            (&[r#"Bearer scope="""#], ""),
            (&[r#"Bearer scope="a"#], ""),
            (&[r#"Bearer ,,, scope="a",,"#], "scope=a"),
            (&[r#"Bearer "x", scope="a""#], "scope=a"),
        ];
        for (lines, want) in rows {
            assert_eq!(shown(&of(lines)), *want, "{lines:?}");
        }
    }

    fn quoted(value: &str) -> String {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }

    proptest! {
        #[test]
        fn what_a_server_quotes_is_read_back_whatever_stands_around_it(
            realm in "[ -~]{0,20}", text in "[!-~][ -~]{0,20}", first in "[A-Z][a-z]{2,6}", spaces in "[ \t]{0,2}",
        ) {
            prop_assume!(!first.eq_ignore_ascii_case("bearer") && !first.eq_ignore_ascii_case("dpop"));
            let line = format!(
                "{first} realm={},{spaces}Bearer realm={}{spaces},{spaces}error_description{spaces}={spaces}{},error=\"e\"",
                quoted(&realm), quoted(&realm), quoted(&text),
            );
            let read = of(&[&line]);
            prop_assert_eq!(read.error_description.as_deref(), Some(text.as_str()), "{}", line);
            prop_assert_eq!(read.error.as_deref(), Some("e"), "{}", line);
        }

        #[test]
        fn what_is_written_is_read_back(text in "[!-~][ -~]{0,20}", scope in "[a-z:]{1,9}( [a-z:]{1,9}){0,3}") {
            let header = Challenge::header("DPoP", &[("algs", "ES256"), ("error_description", &text), ("scope", &scope)]);
            let read = Challenge::of(&HeaderMap::from_iter([(WWW_AUTHENTICATE, header)]));
            prop_assert_eq!(read.error_description, Some(text));
            prop_assert_eq!(read.scope, Some(Scopes::parse(&scope)));
            prop_assert!(read.dpop);
        }

        #[test]
        fn whatever_is_written_is_one_header(text in any::<String>()) {
            Challenge::header("Bearer", &[("error_description", &text)]);
        }

        #[test]
        fn nothing_makes_it_panic_or_run_forever(line in "[ -~\t]{0,80}", marks in "[\"\\\\=, BearDPoP]{0,40}") {
            parse(&line);
            parse(&marks);
        }
    }
}
