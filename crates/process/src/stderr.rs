//! The standard error of a child: always drained, the last lines kept for errors.

use crate::command::Event;
use crate::mask::Secrets;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

/// Maximum length of a kept line; the rest is dropped.
const LINE_BYTES: usize = 4 << 10;
/// Bytes read at once.
const READ_BYTES: usize = 8 << 10;
/// Most lines shown in an error.
const LINES_SHOWN: usize = 40;

/// What a child wrote to standard error.
pub(crate) struct Stderr {
    kept: Mutex<Kept>,
    bytes_max: usize,
    secrets: Arc<Secrets>,
    ended: watch::Sender<bool>,
    /// Bytes read so far.
    read: AtomicU64,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines were dropped.
    more: bool,
}

impl Stderr {
    pub(crate) fn new(bytes_max: usize, secrets: Arc<Secrets>) -> Stderr {
        Stderr { kept: Mutex::default(), bytes_max, secrets, ended: watch::Sender::new(false), read: AtomicU64::new(0) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the end.
    pub(crate) async fn drain(&self, mut source: impl AsyncRead + Unpin, seen: impl Fn(Event<'_>)) {
        let mut chunk = vec![0; READ_BYTES];
        let (mut line, mut cut) = (Vec::new(), false);
        while let Ok(n @ 1..) = source.read(&mut chunk).await {
            self.read.fetch_add(n as u64, Ordering::Relaxed);
            let mut rest = &chunk[..n];
            while let Some(at) = memchr::memchr(b'\n', rest) {
                cut |= append(&mut line, &rest[..at]);
                self.line(&mut line, std::mem::take(&mut cut), &seen);
                rest = &rest[at + 1..];
            }
            cut |= append(&mut line, rest);
        }
        self.line(&mut line, cut, &seen);
        self.ended.send_replace(true);
    }

    fn line(&self, line: &mut Vec<u8>, cut: bool, seen: &impl Fn(Event<'_>)) {
        let text = String::from_utf8_lossy(line);
        let mut text = self.secrets.hide(text.trim_end().to_owned());
        line.clear();
        if text.is_empty() {
            return;
        }
        if cut {
            text.push('…');
        }
        seen(Event::Stderr(&text));
        let mut kept = self.kept();
        kept.bytes += text.len() + 1;
        kept.lines.push_back(text);
        while kept.bytes > self.bytes_max {
            let Some(first) = kept.lines.pop_front() else { break };
            kept.bytes -= first.len() + 1;
            kept.more = true;
        }
    }

    /// How many bytes were read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Resolves when everything was read.
    pub(crate) async fn ended(&self) {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// The last lines, as the end of a sentence; empty when there are none.
    pub(crate) fn last_lines(&self) -> String {
        let kept = self.kept();
        if kept.lines.is_empty() {
            return match kept.more {
                true => "; its standard error output exceeds the limit".to_owned(),
                false => "; it wrote nothing to standard error".to_owned(),
            };
        }
        let hidden = kept.lines.len().saturating_sub(LINES_SHOWN);
        let mut out = "; its last lines were:".to_owned();
        for line in kept.lines.iter().skip(hidden) {
            out.push_str("\n  ");
            out.push_str(line);
        }
        out
    }
}

/// Appends to a line as far as it fits; `true` if something was dropped.
fn append(line: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let room = LINE_BYTES - line.len();
    line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    bytes.len() > room
}
