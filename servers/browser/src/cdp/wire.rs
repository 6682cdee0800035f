//! Messages on the pipe.

use super::{CdpError, Event};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// The buffer is given back when it has grown beyond this.
const KEPT_BYTES: usize = 1 << 20;
/// Where the id of a long response stands.
const HEAD_BYTES: usize = 64;

/// Most elements and members of a message.
const ELEMENTS_MAX: usize = 4 << 20;

/// A command.
#[derive(Serialize)]
pub(super) struct Outgoing<'a, P> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    pub(super) params: P,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<&'a str>,
}

/// What the browser writes.
pub(super) enum Incoming {
    /// The result of a command.
    Answer {
        /// The id of the command.
        id: u64,
        /// Its result.
        result: Result<Value, CdpError>,
    },
    /// An event.
    Event(Event),
    /// Something too long, or not understood.
    Skipped,
}

#[derive(Deserialize)]
struct Message {
    id: Option<u64>,
    method: Option<Box<str>>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Refusal>,
    #[serde(rename = "sessionId")]
    session: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

/// The messages of a stream.
pub(super) struct Frames<R> {
    input: R,
    buffer: Vec<u8>,
    /// Bytes that were searched for the end of the message.
    searched: usize,
    /// The first bytes of a message that is being skipped.
    skipping: Option<Vec<u8>>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(input: R, bytes_max: usize) -> Self {
        Frames { input, buffer: Vec::new(), searched: 0, skipping: None, bytes_max }
    }

    /// The next message; `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            if let Some(at) = memchr::memchr(0, &self.buffer[self.searched..]) {
                let end = self.searched + at;
                let incoming = match self.skipping.take() {
                    Some(head) => too_large(&head),
                    None if end > self.bytes_max => too_large(&self.buffer[..end.min(HEAD_BYTES)]),
                    None => read(&self.buffer[..end]),
                };
                self.buffer.drain(..=end);
                self.searched = 0;
                if self.buffer.capacity() > KEPT_BYTES && self.buffer.len() < READ_BYTES {
                    self.buffer.shrink_to(READ_BYTES);
                }
                return Ok(Some(incoming));
            }
            self.searched = self.buffer.len();
            if self.skipping.is_some() || self.buffer.len() > self.bytes_max {
                let head = &self.buffer[..self.buffer.len().min(HEAD_BYTES)];
                self.skipping.get_or_insert_with(|| head.to_vec());
                self.buffer.clear();
                self.searched = 0;
            }
            self.buffer.reserve(READ_BYTES);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

fn read(text: &[u8]) -> Incoming {
    // In memory a number costs sixteen times what it does here; what is long in good faith is text or a picture.
    if text.len() > ELEMENTS_MAX && memchr::memchr2_iter(b',', b'{', text).count() > ELEMENTS_MAX {
        return too_large(&text[..HEAD_BYTES]);
    }
    let Ok(message) = serde_json::from_slice::<Message>(text) else { return Incoming::Skipped };
    match message {
        Message { id: Some(id), error: Some(refusal), .. } => {
            Incoming::Answer { id, result: Err(CdpError::Refused(refusal.message)) }
        }
        Message { id: Some(id), result, .. } => Incoming::Answer { id, result: Ok(result) },
        Message { method: Some(method), params, session, .. } => {
            Incoming::Event(Event { session: session.map(Arc::from), method, params })
        }
        _ => Incoming::Skipped,
    }
}

/// A response begins with its id.
fn too_large(head: &[u8]) -> Incoming {
    let id = head.strip_prefix(b"{\"id\":").map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok())
    });
    match id.flatten() {
        Some(id) => Incoming::Answer { id, result: Err(CdpError::TooLarge) },
        None => Incoming::Skipped,
    }
}
