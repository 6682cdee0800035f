//! Git's output, within limits.

use linchpin_kit::redact_urls;
use std::ffi::OsString;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;

/// The fields of NUL-separated output.
pub(crate) fn fields(out: &[u8]) -> Vec<String> {
    let out = out.strip_suffix(b"\0").unwrap_or(out);
    if out.is_empty() { Vec::new() } else { out.split(|byte| *byte == 0).map(lossy).collect() }
}

/// The records of output, without one that its limit has cut. Each ends with `end`.
pub(crate) fn whole_records(out: &[u8], cut: bool, end: u8) -> &[u8] {
    let whole = if cut { out.iter().rposition(|byte| *byte == end).map_or(0, |at| at + 1) } else { out.len() };
    &out[..whole]
}

/// How to read the output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// Keep this many bytes and stop git if there are more. For read-only commands.
    Upto(usize),
    /// The same, but skip the bytes before this offset.
    From(u64, usize),
    /// Keep this many bytes, discard the rest, and let git finish.
    Head(usize),
    /// The same, but of each part between line feeds and NULs keep only the beginning: at most so many bytes per part,
    /// and so many in all.
    Parts(usize, usize),
    /// Keep the NUL-terminated records that begin with this, up to so many bytes.
    Records(&'static [u8], usize),
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Done {
    /// The exit code; `None` if a signal ended it, for example ours after the output was cut.
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    /// Whether some output was discarded.
    pub(crate) cut: bool,
    /// The first 64 KiB of stderr.
    pub(crate) err: Vec<u8>,
    /// The subcommand.
    pub(crate) what: OsString,
}

impl Done {
    /// Whether git succeeded; a command that was stopped because its output was cut counts as successful.
    pub(crate) fn good(&self) -> bool {
        self.code == Some(0) || self.cut && self.code.is_none()
    }

    /// The output as text: invalid UTF-8 becomes U+FFFD, and the final line feed is removed.
    pub(crate) fn text(&self) -> String {
        let mut text = lossy(&self.out);
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }

    /// Git's message for errors; it may include text of remotes, and names and values from the repository. Passwords in
    /// URLs are redacted.
    pub(crate) fn message(&self) -> String {
        let output = if self.err.trim_ascii().is_empty() { &self.out } else { &self.err };
        redact_urls(&lossy(output))
    }

    /// The part of stderr to search for known messages: without lists of names, which are on lines of their own after a
    /// tab, and without text of remotes.
    pub(crate) fn complaint(&self) -> String {
        let text = lossy(&self.err);
        let of_others =
            |line: &&str| line.starts_with('\t') || line.starts_with("remote:") || line.contains("remote error:");
        text.lines().filter(|line| !of_others(line)).collect::<Vec<_>>().join("\n")
    }
}

/// Collects output within its limits.
pub(crate) struct Sink {
    pub(crate) keep: Keep,
    pub(crate) out: Vec<u8>,
    pub(crate) cut: bool,
    /// Bytes discarded before those that are kept.
    pub(crate) passed: u64,
    /// Bytes since the last line feed or NUL.
    pub(crate) part: usize,
}

impl Sink {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, out: Vec::new(), cut: false, passed: 0, part: 0 }
    }

    /// Reads to the end; `true` if it stopped early because the limit was reached.
    pub(crate) async fn fill(&mut self, mut from: impl AsyncRead + Unpin) -> bool {
        // Not zeroed: most output is short, and untouched memory costs nothing.
        let mut chunk = Vec::with_capacity(64 * 1024);
        loop {
            chunk.clear();
            let read = match from.read_buf(&mut chunk).await {
                Ok(0) | Err(_) => return false,
                Ok(_) => chunk.as_slice(),
            };
            match self.keep {
                Keep::Upto(max) => {
                    self.take(read, max);
                    if self.cut {
                        return true;
                    }
                }
                Keep::From(start, max) => {
                    let before = start.saturating_sub(self.passed).min(read.len() as u64);
                    self.passed += before;
                    self.take(&read[usize::try_from(before).unwrap_or(read.len())..], max);
                    if self.cut {
                        return true;
                    }
                }
                Keep::Parts(each, max) => {
                    self.parts(read, each, max);
                    if self.cut {
                        return true;
                    }
                }
                Keep::Head(max) => self.take(read, max),
                Keep::Records(prefix, max) => self.records(read, prefix, max),
            }
        }
    }

    pub(crate) fn take(&mut self, read: &[u8], max: usize) {
        let left = max.saturating_sub(self.out.len());
        self.cut |= read.len() > left;
        self.out.extend_from_slice(&read[..read.len().min(left)]);
    }

    pub(crate) fn parts(&mut self, read: &[u8], each: usize, max: usize) {
        for piece in read.split_inclusive(|byte| matches!(byte, b'\n' | b'\0')) {
            let (body, end) = match piece.split_last() {
                Some((b'\n' | b'\0', body)) => (body, &piece[body.len()..]),
                _ => (piece, &piece[piece.len()..]),
            };
            let left = each.saturating_sub(self.part).min(body.len());
            self.take(&body[..left], max);
            self.take(end, max);
            self.part = if end.is_empty() { self.part + body.len() } else { 0 };
        }
    }

    /// The last record in `out` may be incomplete; a complete one that does not match is removed.
    pub(crate) fn records(&mut self, read: &[u8], prefix: &[u8], max: usize) {
        for piece in read.split_inclusive(|byte| *byte == 0) {
            self.take(piece, max);
            if self.out.last() == Some(&0) && !self.cut {
                let body = &self.out[..self.out.len() - 1];
                let start = body.iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
                if !body[start..].starts_with(prefix) {
                    self.out.truncate(start);
                }
            }
        }
    }

    pub(crate) fn kept(self) -> Vec<u8> {
        self.out
    }
}

/// Text with U+FFFD for invalid UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_parts_the_beginning_is_kept_however_they_arrive() {
        let whole = b"short\nlonger than that\0\n\nlonger";
        for size in 1..=whole.len() {
            let mut sink = Sink::new(Keep::Parts(6, 100));
            whole.chunks(size).for_each(|piece| sink.parts(piece, 6, 100));
            assert_eq!(
                (sink.out.as_slice(), sink.cut),
                (&b"short\nlonger\0\n\nlonger"[..], false),
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn a_record_that_was_cut_is_left_out() {
        let whole = b"one\0two\0three\0";
        for (limit, kept) in [(0, &b""[..]), (3, b""), (4, b"one\0"), (7, b"one\0"), (8, b"one\0two\0"), (14, whole)] {
            let mut sink = Sink::new(Keep::Upto(limit));
            sink.take(whole, limit);
            assert_eq!(whole_records(&sink.out, sink.cut, 0), kept, "{limit}");
        }
        assert_eq!(whole_records(b"a\nb", false, b'\n'), b"a\nb", "the last line need not end");
    }

    #[test]
    fn only_wanted_records_are_kept_however_they_arrive() {
        let whole = b"160000 a\x00100644 b\x00160000 c\x00";
        for size in 1..whole.len() {
            let mut sink = Sink::new(Keep::Records(b"160000", 100));
            for piece in whole.chunks(size) {
                sink.records(piece, b"160000", 100);
            }
            assert_eq!(sink.out, b"160000 a\x00160000 c\x00", "in pieces of {size}");
        }
    }
}
