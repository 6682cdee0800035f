//! Server-sent events: writing them, and reading them back however they are cut into pieces.
//!
//! The reader follows the event-stream rules of the HTML standard; the only thing it adds is a limit.

use std::fmt;

/// Appends one event. `data` is split at line ends, which JSON frames never hold but other text may. An `id` that an
/// event stream cannot carry (with a line end or NUL) is left out.
pub fn event(out: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    out.reserve(data.len() + id.map_or(0, |id| id.len() + 5) + 8);
    field_id(out, id);
    field_data(out, data);
    out.push(b'\n');
}

/// Appends one event of another type than `message`, for example the `endpoint` event of revision 2024-11-05. Line ends
/// in the type are dropped.
pub fn named(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    out.extend_from_slice(b"event: ");
    out.extend(name.bytes().filter(|b| !matches!(b, b'\r' | b'\n')));
    out.push(b'\n');
    field_data(out, data);
    out.push(b'\n');
}

/// Appends the event that opens a resumable stream: an id and empty data, and optionally after how many milliseconds to
/// come back when the stream ends.
pub fn priming(out: &mut Vec<u8>, id: &str, retry_ms: Option<u64>) {
    field_id(out, Some(id));
    if let Some(ms) = retry_ms {
        field_retry(out, ms);
    }
    field_data(out, b"");
    out.push(b'\n');
}

/// Appends a comment, which keeps a quiet stream alive and which readers skip. Line ends in it are dropped.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    out.push(b':');
    if !text.is_empty() {
        out.push(b' ');
        out.extend(text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')));
    }
    out.extend_from_slice(b"\n\n");
}

fn field_id(out: &mut Vec<u8>, id: Option<&str>) {
    if let Some(id) = id.filter(|id| !id.contains(['\r', '\n', '\0'])) {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
}

fn field_retry(out: &mut Vec<u8>, ms: u64) {
    out.extend_from_slice(b"retry: ");
    out.extend_from_slice(ms.to_string().as_bytes());
    out.push(b'\n');
}

fn field_data(out: &mut Vec<u8>, mut data: &[u8]) {
    loop {
        out.extend_from_slice(b"data: ");
        let Some(n) = memchr::memchr2(b'\r', b'\n', data) else {
            out.extend_from_slice(data);
            out.push(b'\n');
            return;
        };
        out.extend_from_slice(&data[..n]);
        out.push(b'\n');
        data = &data[n + if data[n..].starts_with(b"\r\n") { 2 } else { 1 }..];
    }
}

/// One event of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SseEvent {
    /// The type; `message` when the stream named none.
    pub name: String,
    /// The data, its lines joined by line feeds. Empty for a priming event.
    pub data: String,
    /// The stream's last event id when this event was dispatched; empty when there was none yet.
    pub id: String,
}

/// Reads an event stream piece by piece. Invalid UTF-8 becomes replacement characters, as the HTML standard says.
#[derive(Debug)]
pub struct SseParser {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_cr: bool,
    first_line: bool,
    data: String,
    has_data: bool,
    name: String,
    id: String,
    last_id: String,
    retry_ms: Option<u64>,
    bytes_max: usize,
    failed: bool,
}

impl SseParser {
    /// A reader at the start of a stream that refuses events longer than `bytes_max`, names and ids included.
    pub fn new(bytes_max: usize) -> SseParser {
        SseParser {
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            data: String::new(),
            has_data: false,
            name: String::new(),
            id: String::new(),
            last_id: String::new(),
            retry_ms: None,
            bytes_max,
            failed: false,
        }
    }

    /// Parses the next chunk of the stream and appends the completed events.
    ///
    /// # Errors
    /// [`SseTooLong`] when an event passes the limit; the reader is then of no further use and fails on every call.
    /// Events that were complete before it are appended all the same.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseTooLong> {
        while !self.failed && !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|b| matches!(b, b'\r' | b'\n'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.failed = self.held() + part.len() > self.bytes_max;
            if self.failed {
                break;
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.line_ended());
        }
        if self.failed { Err(SseTooLong { bytes_max: self.bytes_max }) } else { Ok(()) }
    }

    /// The id to send as `Last-Event-ID` when the stream is resumed; empty if there is none.
    pub fn last_event_id(&self) -> &str {
        &self.last_id
    }

    /// The reconnection delay requested by the server, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn held(&self) -> usize {
        self.line.len() + self.data.len() + self.name.len() + self.id.len()
    }

    fn line_ended(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let bom: &[u8] = if std::mem::take(&mut self.first_line) { b"\xef\xbb\xbf" } else { b"" };
        let text = String::from_utf8_lossy(line.strip_prefix(bom).unwrap_or(&line));
        let event = if text.is_empty() {
            self.dispatch()
        } else {
            let (name, value) = text.split_once(':').unwrap_or((&text, ""));
            self.field(name, value.strip_prefix(' ').unwrap_or(value));
            None
        };
        // The line's memory is used again.
        self.line = line;
        self.line.clear();
        event
    }

    fn field(&mut self, name: &str, value: &str) {
        match name {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            // Comments have an empty name; unknown fields are skipped.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        self.last_id.clone_from(&self.id);
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then(|| SseEvent {
            name: if name.is_empty() { "message".to_owned() } else { name },
            data,
            id: self.last_id.clone(),
        })
    }
}

/// An event was longer than the reader allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SseTooLong {
    /// The limit in bytes.
    pub bytes_max: usize,
}

impl fmt::Display for SseTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event of the stream is longer than the limit of {} bytes", self.bytes_max)
    }
}

impl std::error::Error for SseTooLong {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> (Vec<(String, String, String)>, SseParser) {
        let (mut parser, mut events) = (SseParser::new(1 << 16), Vec::new());
        for piece in pieces {
            parser.feed(piece, &mut events).unwrap();
        }
        (events.into_iter().map(|e| (e.name, e.data, e.id)).collect(), parser)
    }

    #[test]
    fn what_is_written_is_what_the_wire_should_carry() {
        let mut out = Vec::new();
        priming(&mut out, "s1-0", Some(500));
        priming(&mut out, "s1-0", None);
        event(&mut out, Some("s1-1"), br#"{"jsonrpc":"2.0"}"#);
        event(&mut out, None, b"a\nb\r\nc\rd");
        event(&mut out, Some("bad\nid"), b"");
        named(&mut out, "endpoint", b"/messages?s=1");
        comment(&mut out, "");
        comment(&mut out, "still\r\nhere");
        let want = "id: s1-0\nretry: 500\ndata: \n\nid: s1-0\ndata: \n\nid: s1-1\ndata: {\"jsonrpc\":\"2.0\"}\n\n\
                    data: a\ndata: b\ndata: c\ndata: d\n\ndata: \n\nevent: endpoint\ndata: /messages?s=1\n\n\
                    :\n\n: stillhere\n\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn the_stream_rules_of_the_html_standard_hold() {
        // Stream; events as `name|data|id`, joined by blanks.
        let cases = [
            ("data: a\n\n", "message|a|"),
            ("data:a\n\n", "message|a|"),
            ("data:  a\n\n", "message| a|"),
            ("data\n\n", "message||"),
            ("data:\ndata:\n\n", "message|\n|"),
            ("data: a\r\ndata: b\r\n\r\n", "message|a\nb|"),
            ("data: a\r\n\r\ndata: b\r\r", "message|a| message|b|"),
            ("\u{feff}data: a\n\n", "message|a|"),
            ("\n\u{feff}data: a\n\n", ""),
            (": hello\ndata: a\n:\n\n", "message|a|"),
            ("event: x\ndata: a\n\ndata: b\n\n", "x|a| message|b|"),
            ("event: x\n\ndata: b\n\n", "message|b|"),
            ("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", "message|a|1 message|b|1 message|c|"),
            ("id: 1\n\ndata: b\n\n", "message|b|1"),
            ("id: 1\nid: 2\0\ndata: a\n\n", "message|a|1"),
            ("data: a", ""),
            ("data: a\n", ""),
            ("unknown: a\nDATA: a\n\n", ""),
            ("data: a:b: c\n\n", "message|a:b: c|"),
        ];
        for (stream, want) in cases {
            let got: Vec<String> =
                read(&[stream.as_bytes()]).0.iter().map(|(n, d, i)| format!("{n}|{d}|{i}")).collect();
            assert_eq!(got.join(" "), want, "{stream:?}");
        }
        assert_eq!(read(&[b"data: \xff\n\n"]).0[0].1, "\u{fffd}");
    }

    #[test]
    fn retry_takes_digits_only() {
        for (line, want) in [
            ("retry: 500", Some(500)),
            ("retry: 5x", None),
            ("retry:", None),
            ("retry: -1", None),
            ("retry: 99999999999999999999", None),
        ] {
            assert_eq!(read(&[format!("{line}\n").as_bytes()]).1.retry_ms(), want, "{line}");
        }
        assert_eq!(read(&[b"retry: 7\nretry: x\n"]).1.retry_ms(), Some(7));
    }

    #[test]
    fn an_event_over_the_limit_fails_for_good_and_what_was_complete_is_kept() {
        let long = [b"data: ok\n\n".as_slice(), b"data: ", &[b'x'; 100], b"\n\n"].concat();
        for piece in [1, 3, long.len()] {
            let (mut parser, mut events) = (SseParser::new(100), Vec::new());
            let result = long.chunks(piece).try_for_each(|piece| parser.feed(piece, &mut events));
            assert_eq!((result, events.len()), (Err(SseTooLong { bytes_max: 100 }), 1));
            assert!(parser.feed(b"\n\ndata: a\n\n", &mut events).is_err());
            assert_eq!(events.len(), 1);
        }
        // Many short lines grow the event too.
        let (mut parser, mut events) = (SseParser::new(100), Vec::new());
        assert!((0..30).try_for_each(|_| parser.feed(b"data: 12345\n", &mut events)).is_err());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(stream in "(data|id|event|retry|:| |a|é|\u{feff}|\r|\n|\r\n|\n\n|0){0,60}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
            cuts.sort();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let (whole, a) = read(&[bytes]);
            let (cut, b) = read(&pieces);
            prop_assert_eq!(whole, cut);
            prop_assert_eq!((a.last_event_id(), a.retry_ms()), (b.last_event_id(), b.retry_ms()));
        }

        #[test]
        fn written_events_are_read_back(events in prop::collection::vec(("[^\r\n\0]{0,9}", "[^\r]{0,40}"), 0..6)) {
            let mut out = Vec::new();
            for (id, data) in &events {
                comment(&mut out, data);
                event(&mut out, Some(id), data.as_bytes());
            }
            let want: Vec<_> = events.into_iter().map(|(id, data)| ("message".to_owned(), data, id)).collect();
            prop_assert_eq!(read(&[&out]).0, want);
        }
    }
}
