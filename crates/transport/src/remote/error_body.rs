//! What a server says in the body of an error, and why it does not accept credentials.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use linchpin_core::limits::ClientLimits;
use linchpin_core::message::Kind;
use linchpin_proto::frame;
use linchpin_proto::translate::error::Seen;
use linchpin_web::WebBody;
use std::time::Duration;

const BODY_BYTES: usize = 64 << 10;
const BODY_READ: Duration = Duration::from_secs(5);
const REASON_CHARS: usize = 300;

/// The start of a body as text, for errors: empty if it cannot be read.
pub(super) async fn beginning(body: &mut WebBody, bytes_max: usize) -> BytesMut {
    let mut text = BytesMut::new();
    while text.len() < bytes_max {
        match body.chunk().await {
            Ok(Some(more)) => text.extend_from_slice(&more[..more.len().min(bytes_max - text.len())]),
            _ => break,
        }
    }
    text
}

/// What the server says: the message of the JSON-RPC error in the body, or else the description in its challenge.
pub(super) async fn reason(headers: &HeaderMap, body: &mut WebBody, limits: &ClientLimits) -> Option<String> {
    let text = tokio::time::timeout(BODY_READ, beginning(body, BODY_BYTES)).await.unwrap_or_default();
    let mut challenges = headers.get_all(WWW_AUTHENTICATE).iter();
    let described = || challenges.find_map(|value| description(&String::from_utf8_lossy(value.as_bytes())));
    message(text.freeze(), limits).or_else(described).map(|said| shown(&said)).filter(|said| !said.is_empty())
}

/// The message of a JSON-RPC error.
fn message(text: Bytes, limits: &ClientLimits) -> Option<String> {
    let mut said = None;
    let read = frame::hear(text, limits, &mut |message| {
        if let Kind::Response { outcome: Err(error), .. } = &message.kind {
            said = Some(Seen::read(message.text(*error)).message.into_owned());
        }
    });
    read.ok().and(said).filter(|said| !said.trim().is_empty())
}

/// `error_description` of a challenge.
fn description(challenge: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some(at) = rest.find('=') {
        let name = rest[..at].trim_end().rsplit([' ', '\t', ',']).next().unwrap_or_default();
        let (said, after) = value(rest[at + 1..].trim_start());
        if name.eq_ignore_ascii_case("error_description") {
            return Some(said);
        }
        rest = after;
    }
    None
}

/// A token or a quoted string, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut said, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return (said, &quoted[at + 1..]),
            c => {
                said.push(c);
                escaped = false;
            }
        }
    }
    (said, "")
}

/// Words of others, for an error message: one short line without control characters.
fn shown(said: &str) -> String {
    let line: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(REASON_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::description;

    #[test]
    fn the_description_is_found_among_the_parameters_of_challenges() {
        let rows = [
            (r#"Bearer error="invalid_token", error_description="The token expired""#, Some("The token expired")),
            (r#"Bearer realm="a, error_description=no", ERROR_DESCRIPTION = "say \"hi\"""#, Some("say \"hi\"")),
            ("Basic realm=x, Bearer error_description=expired, scope=a", Some("expired")),
            (r#"Bearer error_description="never ends"#, Some("never ends")),
            ("Negotiate YWJj==", None),
            ("Bearer", None),
            ("", None),
        ];
        for (challenge, want) in rows {
            assert_eq!(description(challenge).as_deref(), want, "{challenge}");
        }
    }
}
