//! Partial parsing of a line that is too long or broken: whether it is a response, and to which request.

use linchpin_core::Id;
use linchpin_core::json::Scanner;

/// Information from the first bytes of a line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Head {
    pub(crate) id: Option<Id>,
    /// It names a method or has parameters: a request or a notification.
    pub(crate) request: bool,
    /// It has a result. An `error` alone is in many a log line.
    pub(crate) result: bool,
    /// It contains `jsonrpc`.
    pub(crate) message: bool,
}

/// Parses the first bytes of a line.
pub(crate) fn by_head(head: &[u8]) -> Head {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default(),
    };
    let mut seen = Head::default();
    // Fails at the end of the text; the members before it count.
    let _ = Scanner::new(text, 127).object(&mut |s, key| {
        let name = key.name();
        seen.request |= name == "method" || name == "params";
        seen.result |= name == "result";
        seen.message |= name == "jsonrpc";
        let value = s.value()?;
        // A number at the very end may go on.
        if name == "id" && value.end() < text.len() {
            seen.id = id(value.of(text));
        }
        Ok(())
    });
    seen
}

/// The id at the very end of a line, `,"id":7}`: some peers write it last. The brace after it closes the message, so
/// the id does not belong to a nested object.
pub(crate) fn by_tail(tail: &[u8]) -> Option<Id> {
    let tail = tail.trim_ascii_end().strip_suffix(b"}")?;
    let at = memchr::memmem::rfind(tail, b"\"id\"")?;
    let value = tail[at + 4..].trim_ascii_start().strip_prefix(b":")?;
    id(std::str::from_utf8(value.trim_ascii()).ok()?)
}

/// Parses an id; an integer in another spelling, `7.0`, is that number.
fn id(json: &str) -> Option<Id> {
    let number = |n: &f64| n.fract() == 0.0 && (0.0..9e15).contains(n);
    Id::from_json(json).or_else(|| json.parse().ok().filter(number).map(|n: f64| Id::number(n as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_a_broken_line_was_meant_for_is_found() {
        // What is seen: q a request, r a result, m that it is a message; and the id.
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":"#, "rm", "7"),
            (r#"{"id": "7", "result":{"co"#, "r", "\"7\""),
            (r#"{"jsonrpc":"2.0","id": "7", "error":{"co"#, "m", "\"7\""),
            (r#"{"id":7.0,"jsonrpc":"2.0","result":"é"#, "rm", "7"),
            (r#"{"jsonrpc":"2.0","id":7"#, "m", ""),
            (r#"{"result":{"id":5,"x":[1,2"#, "r", ""),
            (r#"{"jsonrpc":"2.0","method":"x","id":7,"params":{"#, "qm", "7"),
            (r#"{"method":"x","params":{"id":7,"#, "q", ""),
            (r#"{"params":{"id":7,"#, "q", ""),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x","#, "qm", ""),
            (r#"{"level":"info","id":7,"msg":"hello"}"#, "", "7"),
            (r#"{"level":"info","id":7,"error":"oh"}"#, "", "7"),
            ("Server is listening on 7", "", ""),
            ("", "", ""),
        ];
        let check = |head: &[u8], marks: &str, id: &str| {
            let has = |mark| marks.contains(mark);
            let expected = Head { id: Id::from_json(id), request: has('q'), result: has('r'), message: has('m') };
            assert_eq!(by_head(head), expected, "{}", String::from_utf8_lossy(head));
        };
        for (head, marks, id) in cases {
            check(head.as_bytes(), marks, id);
        }
        check(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff", "rm", "7");
    }

    #[test]
    fn an_id_at_the_end_counts_only_when_it_is_the_messages_own() {
        for (tail, expected) in [
            (r#"...]},"jsonrpc":"2.0","id":12}"#, Some("12")),
            (r#"...]}, "id" : "12" } "#, Some("\"12\"")),
            (r#"..."id":"abc"}"#, Some("\"abc\"")),
            (r#"..."id":12.0}"#, Some("12")),
            (r#"...,"x":{"id":12}}"#, None),
            (r#"..."id":12},"#, None),
            (r#"..."id":12,"result":{}}"#, None),
            ("", None),
        ] {
            assert_eq!(by_tail(tail.as_bytes()), expected.and_then(Id::from_json), "{tail}");
        }
    }
}
