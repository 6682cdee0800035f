//! Cuts a stream of bytes into lines, for both ends of a pipe.

use bytes::{Buf, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The next item of the stream.
pub(crate) enum Line {
    /// A line that is not blank, without its line break.
    Frame(Bytes),
    /// The start of a line that exceeds the limit. The rest is skipped.
    TooLong(Bytes),
    /// The end of that line: its last bytes, without the line break.
    LongEnd(Bytes),
    /// A last line without a line break; the stream has ended.
    Last(Bytes),
    /// The stream has ended.
    End,
}

/// Cuts the input into lines without copying them.
pub(crate) struct Lines<R> {
    input: R,
    buffer: BytesMut,
    limit: usize,
    /// Least free space before a read.
    room: usize,
    /// Bytes of the buffer known to hold no line break.
    scanned: usize,
    /// Nothing was read yet but perhaps the beginning of a byte order mark.
    at_start: bool,
    /// Inside a line that is too long: it is discarded, except for the last bytes, kept here.
    skipping: Option<Vec<u8>>,
    /// The last bytes of a line that was too long and has been reported.
    ended: Option<Bytes>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes. Before a read there are at least `room` bytes free.
    pub(crate) fn new(input: R, limit: usize, room: usize) -> Lines<R> {
        Lines { input, buffer: BytesMut::new(), limit, room, scanned: 0, at_start: true, skipping: None, ended: None }
    }

    /// Whether a whole line is in the buffer that [`Lines::buffered`] will give. Blank lines before it are thrown away,
    /// and where it ends is remembered, so that nothing is searched twice.
    pub(crate) fn has_line(&mut self) -> bool {
        self.ended.is_some() || self.find_line()
    }

    /// Finds the next line that counts: `scanned` is then where it ends.
    fn find_line(&mut self) -> bool {
        if self.scanned == self.buffer.len() {
            return false;
        }
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            self.scanned += at;
            let line = without_return(&self.buffer[..self.scanned]);
            if self.skipping.is_some() || line.len() > self.limit || !line.iter().all(|b| b.is_ascii_whitespace()) {
                return true;
            }
            self.buffer.advance(self.scanned + 1);
            self.scanned = 0;
        }
        self.scanned = self.buffer.len();
        false
    }

    /// A line that is in the buffer already.
    pub(crate) fn buffered(&mut self) -> Option<Line> {
        if let Some(tail) = self.ended.take() {
            return Some(Line::LongEnd(tail));
        }
        if !self.find_line() {
            return if self.skipping.is_some() || self.scanned > self.limit { self.skip() } else { None };
        }
        let mut line = self.buffer.split_to(self.scanned);
        self.buffer.advance(1);
        self.scanned = 0;
        line.truncate(without_return(&line).len());
        if let Some(mut tail) = self.skipping.take() {
            keep(&mut tail, &line);
            // The two bytes of the line break may have come apart.
            tail.truncate(without_return(&tail).len());
            return Some(Line::LongEnd(tail.into()));
        }
        if line.len() > self.limit {
            self.ended = Some(Bytes::copy_from_slice(&line[line.len().saturating_sub(TAIL_BYTES)..]));
            return Some(Line::TooLong(head(&line)));
        }
        Some(Line::Frame(line.freeze()))
    }

    /// Discards the buffered part of a line that is too long; reports it the first time.
    fn skip(&mut self) -> Option<Line> {
        let first = self.skipping.is_none().then(|| Line::TooLong(head(&self.buffer)));
        keep(self.skipping.get_or_insert_default(), &self.buffer);
        self.scanned = 0;
        if self.buffer.capacity() > IDLE_BYTES {
            self.buffer = BytesMut::new();
        } else {
            self.buffer.clear();
        }
        first
    }

    /// The next line. Cancel-safe: bytes that were read stay in the buffer.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            if let Some(line) = self.buffered() {
                return Ok(line);
            }
            if self.buffer.is_empty() && self.buffer.capacity() > IDLE_BYTES {
                // Release the memory of a long line.
                self.buffer = BytesMut::new();
            }
            if self.buffer.capacity() - self.buffer.len() < self.room {
                self.buffer.reserve(READ_BYTES.max(self.room));
            }
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                let rest = std::mem::take(&mut self.buffer);
                self.scanned = 0;
                let blank = self.skipping.is_some() || rest.iter().all(|b| b.is_ascii_whitespace());
                return Ok(if blank { Line::End } else { Line::Last(rest.freeze()) });
            }
            if self.at_start && (self.buffer.len() >= BOM.len() || !BOM.starts_with(&self.buffer)) {
                self.at_start = false;
                if self.buffer.starts_with(BOM) {
                    self.buffer.advance(BOM.len());
                    self.scanned = 0;
                }
            }
        }
    }
}

/// A line without the first byte of a line break that has two.
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn head(line: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&line[..line.len().min(HEAD_BYTES)])
}

/// Appends `bytes` to the last bytes of a line.
fn keep(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
    let surplus = tail.len().saturating_sub(TAIL_BYTES);
    tail.drain(..surplus);
}

/// The byte order mark that some programs write before their first line.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";
/// Minimum buffer space for a read.
const READ_BYTES: usize = 16 << 10;
/// Bytes remembered of the beginning of a line that is too long.
const HEAD_BYTES: usize = 1 << 10;
/// Bytes remembered of its end.
const TAIL_BYTES: usize = 128;
/// Maximum capacity of an empty buffer.
const IDLE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of `input`, read in pieces of `piece` bytes, in short notation.
    async fn cut(input: &[u8], limit: usize, piece: usize) -> Vec<String> {
        let (mut near, far) = tokio::io::duplex(piece);
        let input = input.to_vec();
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut near, &input).await });
        let mut lines = Lines::new(far, limit, READ_BYTES);
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        let mut all = Vec::new();
        loop {
            all.push(match lines.next().await.unwrap() {
                Line::Frame(line) => text(line),
                Line::Last(line) => format!("last {}", text(line)),
                Line::TooLong(head) => format!("long {}", &text(head)[..3]),
                Line::LongEnd(tail) => format!("end {}", text(tail).chars().rev().take(3).collect::<String>()),
                Line::End => return all,
            });
        }
    }

    #[tokio::test]
    async fn lines_are_the_same_however_the_bytes_arrive() {
        let long = format!("abc{}xyz", "-".repeat(5_000));
        let input = format!("one\r\n\n  \r\ntwo\n{long}\nthree\n{long}\r\nfour");
        let expected = ["one", "two", "long abc", "end zyx", "three", "long abc", "end zyx", "last four"];
        for piece in [1, 7, 100, 4_096, 1 << 20] {
            assert_eq!(cut(input.as_bytes(), 100, piece).await, expected, "pieces of {piece}");
        }
        assert_eq!(cut(long.as_bytes(), 100, 64).await, ["long abc"], "an endless line ends with its stream");
        let blanks = format!("{}\r\none\n{0}\n\n", " ".repeat(99));
        for piece in [1, 7, 100, 4_096] {
            assert_eq!(cut(blanks.as_bytes(), 100, piece).await, ["one"], "pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_skipped_before_the_first_line() {
        let rows: [(&str, &[&str]); 5] = [
            ("\u{feff}one\n\u{feff}two", &["one", "last \u{feff}two"]),
            ("\u{feff}\n\none\n", &["one"]),
            ("\u{feff}one", &["last one"]),
            ("\u{feff}", &[]),
            ("\u{feff}\u{feff}\n", &["\u{feff}"]),
        ];
        for (input, expected) in rows {
            for piece in [1, 2, 100] {
                assert_eq!(cut(input.as_bytes(), 100, piece).await, expected, "{input:?} in pieces of {piece}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_is_there_only_when_it_will_be_given() {
        for (input, there) in
            [("", false), ("one", false), ("\n", false), (" \r\n\n\t", false), ("\n\none\n", true), (" \none", false)]
        {
            let mut lines = Lines::new(&b""[..], 100, READ_BYTES);
            lines.buffer.extend_from_slice(input.as_bytes());
            assert_eq!((lines.has_line(), lines.buffered().is_some()), (there, there), "{input:?}");
        }
    }
}
