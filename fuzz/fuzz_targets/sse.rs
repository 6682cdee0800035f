//! An event stream cut anywhere gives the same events, and what is written is read back. The first byte says how long the
//! pieces are, the second how long an event may be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linchpin_proto::http::sse::{SseEvent, SseParser, event, priming};

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>, bytes_max: usize) -> (Vec<SseEvent>, bool, String, Option<u64>) {
    let (mut parser, mut events) = (SseParser::new(bytes_max), Vec::new());
    let mut failed = false;
    for piece in pieces {
        failed |= parser.feed(piece, &mut events).is_err();
    }
    (events, failed, parser.last_event_id().to_owned(), parser.retry_ms())
}

fuzz_target!(|data: &[u8]| {
    let [piece, limit, stream @ ..] = data else { return };
    let (piece, limit) = (usize::from(*piece).max(1), usize::from(*limit) * 8);
    let whole = read([stream].into_iter(), limit);
    assert_eq!(whole, read(stream.chunks(piece), limit));
    assert_eq!(whole, read(stream.chunks(1), limit));

    let text = String::from_utf8_lossy(stream);
    let id: String = text.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')).take(20).collect();
    let mut out = Vec::new();
    priming(&mut out, &id, Some(5));
    event(&mut out, Some(&id), text.as_bytes());
    let (events, failed, last, retry) = read(out.chunks(piece), usize::MAX);
    assert!(!failed && last == id && retry == Some(5) && events.len() == 2);
    assert_eq!(events[1].data, text.replace("\r\n", "\n").replace('\r', "\n"));
});
