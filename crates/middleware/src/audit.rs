//! Audit logs: a line of JSON for each call.

use crate::time::rfc3339;
use linchpin_core::Method;
use linchpin_core::service::BoxFuture;
use linchpin_server::{Call, Next, Outcome, Reply};
use ring::digest;
use serde_json::{Map, Value, json};
use std::fmt;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// The longest name or URI of a record.
const NAME_BYTES_MAX: usize = 1_024;
/// The JSON-RPC error of a request that is refused because it could not be recorded.
const UNRECORDED: i32 = -31008;

/// An audit log: one line of JSON for each tool call, resource read, prompt request and custom method, with its caller,
/// time and outcome. Other requests, such as lists, are not recorded. Of the arguments, only the SHA-256 is recorded;
/// results are not recorded at all.
///
/// ```
/// use linchpin_middleware::Audit;
/// use linchpin_server::Server;
///
/// let audit = Audit::writer(std::io::stderr());
/// let server = Server::new("notes", "1.0").layer_requests(audit.layer());
/// ```
///
/// A line looks like this:
///
/// ```json
/// {"time":"2026-11-23T13:45:00.123Z","principal":"ada","method":"tools/call","name":"echo","arguments":"sha256:5d41…","outcome":"ok","durationMs":0.21}
/// ```
///
/// `principal` is the identity of the principal, `address` the client's address over HTTP, `session` the public id of the
/// session, and `code` the code of a JSON-RPC error. `outcome` is the result of [`Outcome::as_str`]. Lines contain only ASCII,
/// so that they are safe to display.
///
/// A line is written when its call ends, before the response is sent. A line that cannot be written (the disk is full) is
/// kept, and calls are refused until it is written.
///
/// Lines are written synchronously, on the threads of the runtime: a slow write blocks the server. The file should be a
/// regular file on a local disk, not a FIFO or a file on NFS. The program's `--audit -` does not detect failed writes to
/// standard error: lines may be lost there, and calls are not refused.
#[derive(Clone)]
pub struct Audit {
    sink: Arc<Mutex<Sink>>,
}

struct Sink {
    out: Box<dyn Write + Send>,
    /// Lines that could not be written yet.
    pending: Vec<u8>,
}

impl Audit {
    /// Creates an audit log that appends to a file. On Unix, a new file is readable and writable by its owner only.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn file(path: impl AsRef<Path>) -> io::Result<Audit> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).map(Audit::writer)
    }

    /// Creates an audit log that writes to any writer, for example standard error. Each line is written with one call
    /// of `write`, unless that call writes only part of it.
    pub fn writer(out: impl Write + Send + 'static) -> Audit {
        Audit { sink: Arc::new(Mutex::new(Sink { out: Box::new(out), pending: Vec::new() })) }
    }

    /// Writes a line for any other event, with the time and these members.
    pub fn event<'a>(&self, members: impl IntoIterator<Item = (&'a str, Value)>) {
        let mut all = Map::new();
        all.insert("time".to_owned(), rfc3339(SystemTime::now()).into());
        all.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self.write(&format!("{}\n", ascii(&Value::Object(all).to_string())));
    }

    /// Returns the layer, for `Server::layer_requests`. If it is added last, it records all calls, including those that
    /// other layers refuse, those of tools that do not exist, and those that lack the required scopes.
    pub fn layer(self) -> impl Fn(Call, Next) -> BoxFuture<'static, Reply> + Send + Sync + 'static {
        move |call, next| {
            if !is_recorded(call.method()) {
                return next.run(call);
            }
            if self.flush().is_err() {
                return Box::pin(std::future::ready(refuse(call)));
            }
            let mut record = Record::new(&call, self.clone());
            let reply = next.run(call);
            Box::pin(async move {
                let reply = reply.await;
                record.ended(&reply);
                reply
            })
        }
    }

    fn flush(&self) -> io::Result<()> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }

    fn write(&self, line: &str) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = sink.pending.is_empty();
        sink.pending.extend_from_slice(line.as_bytes());
        if let Err(error) = sink.flush()
            && was_empty
        {
            tracing::error!(%error, "cannot write the audit log; calls are refused until it can be written");
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Sink {
    fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.out.write(&self.pending) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => drop(self.pending.drain(..n)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.flush()
    }
}

fn is_recorded(method: &str) -> bool {
    matches!(Method::parse(method), None | Some(Method::ToolsCall | Method::ResourcesRead | Method::PromptsGet))
}

fn refuse(call: Call) -> Reply {
    const WHY: &str = "the audit log cannot be written, so no calls are accepted; try again later";
    match call.method() {
        "tools/call" => call.refuse(WHY),
        _ => call.refuse_protocol(UNRECORDED, WHY),
    }
}

/// What is known of a running call. Written when it is dropped, so also when the call is cancelled.
struct Record {
    audit: Audit,
    started: Instant,
    members: Map<String, Value>,
    outcome: Outcome,
}

impl Record {
    fn new(call: &Call, audit: Audit) -> Record {
        let mut members = Map::new();
        let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
        add("time", rfc3339(SystemTime::now()).into());
        if let Some(principal) = call.cx().principal() {
            add("principal", (**principal.identity()).into());
        }
        if let Some(peer) = call.cx().peer_addr() {
            add("address", peer.ip().to_string().into());
        }
        if let Some(session) = call.cx().session_id() {
            add("session", format!("{session:016x}").into());
        }
        add("method", clip(call.method()).into());
        add("name", clip(call.name()).into());
        let digest = digest::digest(&digest::SHA256, call.arguments().as_bytes());
        let digest = digest.as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        add("arguments", digest.into());
        Record { audit, started: Instant::now(), members, outcome: Outcome::Cancelled }
    }

    fn ended(&mut self, reply: &Reply) {
        self.outcome = reply.kind().into();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut members = std::mem::take(&mut self.members);
        members.insert("outcome".to_owned(), self.outcome.as_str().into());
        if let Outcome::Error(code) = self.outcome {
            members.insert("code".to_owned(), code.into());
        }
        let ms = self.started.elapsed().as_micros() as f64 / 1_000.0;
        members.insert("durationMs".to_owned(), json!(ms));
        self.audit.write(&format!("{}\n", ascii(&Value::Object(members).to_string())));
    }
}

/// What a client chose, without most of it if it is long.
fn clip(text: &str) -> &str {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// JSON text with everything beyond ASCII escaped.
fn ascii(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        if (' '..='~').contains(&c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ascii_and_the_same_json() {
        let value = json!({ "name": "ä\u{202e}𝄞\u{7f}\n\"" });
        let text = ascii(&value.to_string());
        assert_eq!(text, r#"{"name":"\u00e4\u202e\ud834\udd1e\u007f\n\""}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
