//! What can still be read of a line that is too long or broken: whether it was meant as an answer, and to which request.

use linchpin_proto::Id;
use linchpin_proto::json::Scanner;

/// What a line was meant as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meant {
    /// The answer to this request.
    Answer(u64),
    /// An answer, as it seems; its id cannot be seen.
    SomeAnswer,
    /// Cannot be told.
    Unknown,
    /// A request or notification.
    NoAnswer,
}

/// Judges by the first bytes of a line.
pub(super) fn by_head(head: &[u8]) -> Meant {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default(),
    };
    let (mut id, mut method, mut answer) = (None, false, false);
    // It ends in an error where the text does; what came before counts.
    let _ = Scanner::new(text, 127).object(&mut |s, key| {
        let name = key.name();
        method |= name == "method";
        // `error` alone is in many a log line.
        answer |= name == "result" || name == "jsonrpc";
        let value = s.value()?;
        // A number at the very end may go on.
        if name == "id" && (value.end as usize) < text.len() {
            id = number(value.of(text));
        }
        Ok(())
    });
    match id {
        _ if method => Meant::NoAnswer,
        Some(id) if answer => Meant::Answer(id),
        _ if answer => Meant::SomeAnswer,
        _ => Meant::Unknown,
    }
}

/// The id that stands at the very end of a line, `,"id":7}`: some servers write it last. The brace that follows it is the
/// message's own, so that it is no id of something inside.
pub(super) fn by_tail(tail: &[u8]) -> Option<u64> {
    let tail = tail.trim_ascii_end().strip_suffix(b"}")?;
    let at = memchr::memmem::rfind(tail, b"\"id\"")?;
    let value = tail[at + 4..].trim_ascii_start().strip_prefix(b":")?;
    number(std::str::from_utf8(value.trim_ascii()).ok()?)
}

/// An id in any of the spellings a server may give back.
fn number(json: &str) -> Option<u64> {
    match Id::from_json(json) {
        Some(id) => id.as_number(),
        None => json.parse().ok().filter(|n: &f64| n.fract() == 0.0 && (0.0..9e15).contains(n)).map(|n| n as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_a_broken_line_was_meant_for_is_found() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":"#, Meant::Answer(7)),
            (r#"{"id": "7", "result":{"co"#, Meant::Answer(7)),
            (r#"{"jsonrpc":"2.0","id": "7", "error":{"co"#, Meant::Answer(7)),
            (r#"{"id":7.0,"jsonrpc":"2.0","result":"é"#, Meant::Answer(7)),
            (r#"{"jsonrpc":"2.0","id":7"#, Meant::SomeAnswer),
            (r#"{"result":{"id":5,"x":[1,2"#, Meant::SomeAnswer),
            (r#"{"jsonrpc":"2.0","method":"x","id":7,"params":{"#, Meant::NoAnswer),
            (r#"{"level":"info","id":7,"msg":"hello"}"#, Meant::Unknown),
            (r#"{"level":"info","id":7,"error":"oh"}"#, Meant::Unknown),
            ("Server is listening on 7", Meant::Unknown),
            ("", Meant::Unknown),
        ];
        for (head, expected) in cases {
            assert_eq!(by_head(head.as_bytes()), expected, "{head}");
        }
        assert_eq!(by_head(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff"), Meant::Answer(7));
    }

    #[test]
    fn an_id_at_the_end_counts_only_when_it_is_the_messages_own() {
        for (tail, expected) in [
            (r#"...]},"jsonrpc":"2.0","id":12}"#, Some(12)),
            (r#"...]}, "id" : "12" } "#, Some(12)),
            (r#"...,"x":{"id":12}}"#, None),
            (r#"..."id":12},"#, None),
            (r#"..."id":"abc"}"#, None),
            (r#"..."id":12,"result":{}}"#, None),
            ("", None),
        ] {
            assert_eq!(by_tail(tail.as_bytes()), expected, "{tail}");
        }
    }
}
