//! What a request sends to say who it is from.

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, request};

/// The header of DPoP proofs.
pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent<'a> {
    /// None, or those of another scheme.
    Nothing,
    Bearer(&'a str),
    /// A token bound to a key, and the proofs that came with it.
    Dpop {
        token: &'a str,
        proof: Result<&'a str, &'static str>,
    },
    /// What no client may send.
    Malformed(&'static str),
}

/// Reads the credentials of a request.
pub(crate) fn of(head: &request::Parts) -> Sent<'_> {
    if head.uri.query().is_some_and(names_token) {
        return Sent::Malformed("the access token must be sent in the Authorization header, not in the URL");
    }
    let mut lines = head.headers.get_all(AUTHORIZATION).iter();
    let line = match (lines.next(), lines.next()) {
        (Some(line), None) => line,
        (Some(_), Some(_)) => return Sent::Malformed("there is more than one Authorization header"),
        // If there is a token, it is in there.
        (None, _) if is_form(head) => {
            return Sent::Malformed("the access token must be sent in the Authorization header, not in a form");
        }
        (None, _) => return Sent::Nothing,
    };
    let (scheme, token) = split(line.as_bytes());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        token.map_or(Sent::Malformed(MALFORMED), Sent::Bearer)
    } else if scheme.eq_ignore_ascii_case(b"dpop") {
        let Some(token) = token else { return Sent::Malformed(MALFORMED) };
        Sent::Dpop { token, proof: proof(head) }
    } else {
        Sent::Nothing
    }
}

/// The proof of a request.
pub(crate) fn proof(head: &request::Parts) -> Result<&str, &'static str> {
    let mut proofs = head.headers.get_all(DPOP).iter();
    match (proofs.next().map(|proof| proof.to_str()), proofs.next()) {
        (Some(Ok(proof)), None) => Ok(proof),
        (Some(_), _) => Err("there is more than one DPoP proof, or it is malformed"),
        (None, _) => Err("the DPoP proof is missing"),
    }
}

const MALFORMED: &str = "the Authorization header is malformed";

/// Scheme and token (RFC 6750, section 2.1).
fn split(line: &[u8]) -> (&[u8], Option<&str>) {
    let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (scheme, rest) = line.split_at(at);
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    let token = rest.trim_ascii();
    let formed = !token.is_empty() && token.iter().all(allowed);
    (scheme, std::str::from_utf8(token).ok().filter(|_| formed))
}

fn is_form(head: &request::Parts) -> bool {
    let content_type = head.headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    content_type.is_some_and(|value| starts_with(value, b"application/x-www-form-urlencoded"))
}

/// Whether a query has a parameter `access_token`.
fn names_token(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some("access_token"))
}

fn starts_with(value: &[u8], prefix: &[u8]) -> bool {
    value.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn credentials_are_read_as_rfc_6750_writes_them() {
        let rows: [(&str, &[&str], Sent<'_>); 11] = [
            ("/mcp", &[], Sent::Nothing),
            ("/mcp", &["Basic dXNlcg=="], Sent::Nothing),
            ("/mcp", &["Bearer abc.DEF-1~+/="], Sent::Bearer("abc.DEF-1~+/=")),
            ("/mcp", &["bearer  abc"], Sent::Bearer("abc")),
            ("/mcp", &["Bearer"], Sent::Malformed(MALFORMED)),
            ("/mcp", &["Bearer a b"], Sent::Malformed(MALFORMED)),
            ("/mcp", &["Bearer \"a\""], Sent::Malformed(MALFORMED)),
            ("/mcp", &["DPoP abc"], Sent::Dpop { token: "abc", proof: Err("the DPoP proof is missing") }),
            ("/mcp", &["Bearer a", "Bearer b"], Sent::Malformed("there is more than one Authorization header")),
            (
                "/mcp?a=1&access_token=x",
                &[],
                Sent::Malformed("the access token must be sent in the Authorization header, not in the URL"),
            ),
            ("/mcp?my_access_token=x", &["Bearer a"], Sent::Bearer("a")),
        ];
        for (path, lines, expected) in rows {
            let mut request = Request::get(path);
            for line in lines {
                request = request.header(AUTHORIZATION, *line);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(of(&head), expected, "{path} {lines:?}");
        }
    }
}
