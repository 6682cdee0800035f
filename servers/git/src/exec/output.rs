//! What git wrote, within bounds.

use linchpin_kit::redact_urls;
use std::ffi::OsString;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;

/// The fields of output that separates them with NUL.
pub(crate) fn fields(out: &[u8]) -> Vec<String> {
    let out = out.strip_suffix(b"\0").unwrap_or(out);
    if out.is_empty() { Vec::new() } else { out.split(|byte| *byte == 0).map(lossy).collect() }
}

/// What is done with the output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// Keep this many bytes; when more comes, stop git. For runs that only read.
    Upto(usize),
    /// The same from this byte on; what comes before is thrown away.
    From(u64, usize),
    /// Keep this many bytes and throw the rest away, but let git finish.
    Head(usize),
    /// The same, but of what stands between line feeds and NULs only the beginning: so many bytes of each, and so many
    /// in all.
    Parts(usize, usize),
    /// Keep the records (ended by NUL) that begin with this, at most so many bytes.
    Records(&'static [u8], usize),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    /// The exit code; `None` when a signal ended it, for example ours after the output was cut.
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    /// Whether there was more output than was kept.
    pub(crate) cut: bool,
    /// The first 64 KiB of what it complained about.
    pub(crate) err: Vec<u8>,
    /// The subcommand.
    pub(crate) what: OsString,
}

impl Done {
    /// Whether git was content; output that was cut counts as such.
    pub(crate) fn good(&self) -> bool {
        self.code == Some(0) || self.cut && self.code.is_none()
    }

    /// The output as text: what is not UTF-8 becomes U+FFFD, and the line feed at the end is dropped.
    pub(crate) fn text(&self) -> String {
        let mut text = lossy(&self.out);
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }

    /// What git said, for errors: its own words, those of remotes, and names and values of the repository. Passwords in
    /// URLs are redacted.
    pub(crate) fn words(&self) -> String {
        let words = if self.err.trim_ascii().is_empty() { &self.out } else { &self.err };
        redact_urls(&lossy(words))
    }

    /// The complaints to be looked into: without lists of names, which stand on lines of their own after a tab, and what
    /// a remote said.
    pub(crate) fn complaint(&self) -> String {
        let text = lossy(&self.err);
        let of_others =
            |line: &&str| line.starts_with('\t') || line.starts_with("remote:") || line.contains("remote error:");
        text.lines().filter(|line| !of_others(line)).collect::<Vec<_>>().join("\n")
    }
}

/// Takes output in, within its bounds.
pub(crate) struct Sink {
    pub(crate) keep: Keep,
    pub(crate) out: Vec<u8>,
    pub(crate) cut: bool,
    /// Bytes that were thrown away before those that are kept.
    pub(crate) passed: u64,
    /// Bytes since the last line feed or NUL.
    pub(crate) part: usize,
}

impl Sink {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, out: Vec::new(), cut: false, passed: 0, part: 0 }
    }

    /// Reads to the end; `true` when it stopped before, because there is more than may be kept.
    pub(crate) async fn fill(&mut self, mut from: impl AsyncRead + Unpin) -> bool {
        // Not filled beforehand: most answers are short, and memory that is not touched costs nothing.
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
        let room = max.saturating_sub(self.out.len());
        self.cut |= read.len() > room;
        self.out.extend_from_slice(&read[..read.len().min(room)]);
    }

    pub(crate) fn parts(&mut self, read: &[u8], each: usize, max: usize) {
        for piece in read.split_inclusive(|byte| matches!(byte, b'\n' | b'\0')) {
            let (body, end) = match piece.split_last() {
                Some((b'\n' | b'\0', body)) => (body, &piece[body.len()..]),
                _ => (piece, &piece[piece.len()..]),
            };
            let room = each.saturating_sub(self.part).min(body.len());
            self.take(&body[..room], max);
            self.take(end, max);
            self.part = if end.is_empty() { self.part + body.len() } else { 0 };
        }
    }

    /// The last record in `out` may be unfinished; a finished one that is not wanted is taken out again.
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

/// Text with U+FFFD for what is not UTF-8.
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
