//! Transcripts of a session, as JSON Lines.
//!
//! The first line is `{"transcript":"linchpin","version":1,"target":…,"at_ms":…}`. Each further line has `ms`, the
//! milliseconds since then, and one of:
//!
//! | member | holds |
//! |---|---|
//! | `sent` | a message to the server |
//! | `heard` | a message from the server |
//! | `garbage` | output of the server that is not a message |
//! | `stderr` | a line of the server's standard error |
//! | `note` | an event of the connection |
//!
//! In the recording of a bridge, messages of its clients have `"side":"client"`: `heard` from them, `sent` to them.
//!
//! Secrets are masked. Unknown members and lines are ignored, so that later versions can add some.

use crate::fail::Failure;
use linchpin::client::{Tap, Traffic};
use linchpin_core::exact;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::record::redact::Redactor;

/// The only version.
const VERSION: u64 = 1;

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: u64 = 128 << 20;

/// Writes a transcript. Every line is written before the next message is processed.
pub(crate) struct Recorder {
    to: Arc<Mutex<File>>,
    /// Whose messages these are, where there are two sides.
    side: Option<&'static str>,
    begun: Instant,
    redactor: Arc<Redactor>,
}

impl Recorder {
    /// Creates a file that only its owner can read, replacing an existing one.
    pub(crate) fn begin(path: &Path, target: &str, redactor: Arc<Redactor>) -> Result<Recorder, Failure> {
        let wrong = |e: std::io::Error| Failure::usage(format!("cannot record to {}: {e}", path.display()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(wrong)?;
        #[cfg(unix)]
        if file.metadata().map_err(wrong)?.is_file() {
            // An existing file keeps its mode.
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(wrong)?;
        }
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let first =
            json!({ "transcript": "linchpin", "version": VERSION, "target": redactor.text(target), "at_ms": at_ms });
        writeln!(file, "{first}").map_err(wrong)?;
        Ok(Recorder { to: Arc::new(Mutex::new(file)), side: None, begun: Instant::now(), redactor })
    }

    /// A recorder of the messages of another side, to the same file.
    pub(crate) fn beside(&self, side: &'static str) -> Recorder {
        let (to, redactor) = (self.to.clone(), self.redactor.clone());
        Recorder { to, side: Some(side), begun: self.begun, redactor }
    }

    fn line(&self, member: &str, value: Value) {
        let mut line = json!({ "ms": self.begun.elapsed().as_millis() as u64 });
        if let Some(side) = self.side {
            line["side"] = side.into();
        }
        line[member] = value;
        let mut file = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not end the session.
        let _ = writeln!(file, "{}", exact::text(&line));
    }
}

impl Tap for Recorder {
    fn saw(&self, event: Traffic<'_>) {
        let text = |text: &str| Value::String(self.redactor.text(text));
        match event {
            Traffic::Sent(message) => self.line("sent", self.message(message)),
            Traffic::Heard(message) => self.line("heard", self.message(message)),
            Traffic::Garbage(what) => self.line("garbage", text(what)),
            Traffic::Stderr(line) => self.line("stderr", text(line)),
            Traffic::Note(note) => self.line("note", text(note)),
            _ => {}
        }
    }
}

impl Recorder {
    fn message(&self, json: &str) -> Value {
        match exact::read(json) {
            Ok(mut value) => {
                self.redactor.value(&mut value);
                value
            }
            Err(_) => Value::String(self.redactor.text(json)),
        }
    }
}

/// A parsed transcript: the messages of both sides, in order.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) target: String,
    pub(crate) lines: Vec<Line>,
}

/// A message and its sender.
#[derive(Debug)]
pub(crate) enum Line {
    Sent(Value),
    Heard(Value),
}

impl Transcript {
    /// Whether a file starts with a transcript header.
    pub(crate) fn is(path: &Path) -> bool {
        // Opening a pipe would block until the other end is opened.
        if !path.is_file() {
            return false;
        }
        let mut start = [0; 64];
        let read = File::open(path).and_then(|mut file| file.read(&mut start));
        read.is_ok_and(|n| {
            String::from_utf8_lossy(&start[..n]).replace(' ', "").starts_with("{\"transcript\":\"linchpin\"")
        })
    }

    pub(crate) fn read(path: &Path) -> Result<Transcript, Failure> {
        let wrong = |why: String| Failure::usage(format!("{}: {why}", path.display()));
        let file = File::open(path).map_err(|e| wrong(e.to_string()))?;
        let mut reader = BufReader::new(file);
        let mut transcript: Option<Transcript> = None;
        for number in 1.. {
            let mut line = String::new();
            let read = reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line).map_err(|e| wrong(e.to_string()))?;
            if read == 0 {
                break;
            }
            if read as u64 == LINE_BYTES_MAX {
                return Err(wrong(format!("line {number} is longer than {LINE_BYTES_MAX} bytes")));
            }
            if line.trim().is_empty() {
                continue;
            }
            let Ok(mut value) = exact::read(&line) else {
                // The last line of an interrupted recording may be truncated.
                if !line.ends_with('\n') && transcript.is_some() {
                    break;
                }
                return Err(wrong(format!("invalid JSON on line {number}"))
                    .hint("expected a transcript written by --record FILE"));
            };
            match &mut transcript {
                None => transcript = Some(begun(&value).map_err(wrong)?),
                // What a bridge's clients said is not the conversation with the server.
                Some(_) if value.get("side").is_some() => {}
                Some(transcript) => {
                    let said = [("sent", Line::Sent as fn(Value) -> Line), ("heard", Line::Heard)];
                    for (member, side) in said {
                        if let Some(message) = value.get_mut(member) {
                            transcript.lines.push(side(message.take()));
                        }
                    }
                }
            }
        }
        transcript.ok_or_else(|| wrong("is empty".to_owned()))
    }
}

fn begun(first: &Value) -> Result<Transcript, String> {
    if first.get("transcript").and_then(Value::as_str) != Some("linchpin") {
        return Err("is not a transcript: its first line is not a transcript header".to_owned());
    }
    match first.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        other => {
            let other = other.map_or("none".to_owned(), |v| v.to_string());
            return Err(format!("has version {other}; this program supports version {VERSION}"));
        }
    }
    let target = first.get("target").and_then(Value::as_str).unwrap_or("a transcript").to_owned();
    Ok(Transcript { target, lines: Vec::new() })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_that_was_there_is_its_owners_alone_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorded");
        std::fs::write(&path, "of everybody").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        Recorder::begin(&path, "target", Arc::default()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("{"));
    }
}
