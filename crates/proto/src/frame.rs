//! From bytes to a message: one pass that finds the envelope and the members of `params` everyone needs.
//!
//! A message of the wrong shape is answered with its own id whenever that id can be read.

use bytes::Bytes;
use bytestring::ByteString;
use linchpin_core::id::Id;
use linchpin_core::json::{ScanError, Scanner, Span, read_str};
use linchpin_core::limits::{ClientLimits, Limits};
use linchpin_core::message::{Claims, Kind, Message, MethodName, Params, ResultMembers};
use linchpin_core::method::Method;
use linchpin_core::reply::Reply;
use linchpin_types::error::code;
use std::borrow::Cow;

/// Decodes a value that must be a string.
pub(crate) fn string(frame: &str, span: Span) -> Option<Cow<'_, str>> {
    read_str(span.of(frame))
}

/// A frame: one message, or a batch of them.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once; a box would cost every message an allocation")]
pub enum Frame {
    /// One message.
    One(Message),
    /// The elements of a JSON array, not yet read. Only one revision allows it; the engine decides.
    Batch(Vec<Bytes>),
}

/// Why a frame cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    /// The error frame to answer with. It has the request's id if that could be read.
    pub reply: Reply,
    /// Whether the frame is a response. On a connection it gets no answer: two peers could answer each other forever.
    pub is_response: bool,
}

impl From<Reply> for Unreadable {
    fn from(reply: Reply) -> Unreadable {
        Unreadable { reply, is_response: false }
    }
}

/// Reads a frame.
///
/// # Errors
/// If it is neither a message nor a batch.
#[inline]
pub fn read(frame: Bytes, limits: &Limits) -> Result<Frame, Unreadable> {
    let frame = utf8(frame)?;
    match Scanner::new(&frame, limits.messages.depth_max).peek() {
        Some(b'[') => batch(&frame, limits).map(Frame::Batch),
        _ => one(frame, limits).map(Frame::One),
    }
}

#[cold]
fn batch(frame: &ByteString, limits: &Limits) -> Result<Vec<Bytes>, Unreadable> {
    let mut parts = Vec::new();
    let mut s = Scanner::new(frame, limits.messages.depth_max);
    let scanned = s
        .array(&mut |s| {
            let span = s.value()?;
            if parts.len() == limits.messages.per_batch_max {
                return Err(ScanError::new(span.start(), "too many messages in the batch"));
            }
            parts.push(frame.as_bytes().slice(span.range()));
            Ok(())
        })
        .and_then(|_| s.end());
    match scanned {
        Err(e) => Err(refuse(None, e).into()),
        Ok(()) if parts.is_empty() => Err(Reply::error(None, code::INVALID_REQUEST, "the batch is empty", None).into()),
        Ok(()) => Ok(parts),
    }
}

/// Reads one message that is not a batch.
///
/// # Errors
/// If it is no message.
pub fn message(frame: Bytes, limits: &Limits) -> Result<Message, Unreadable> {
    one(utf8(frame)?, limits)
}

fn one(frame: ByteString, limits: &Limits) -> Result<Message, Unreadable> {
    let text: &str = &frame;
    let mut env = Envelope::default();
    let mut s = Scanner::new(text, limits.messages.depth_max);
    if s.peek() != Some(b'{') {
        let scanned = s.value().and_then(|_| s.end());
        let code = if scanned.is_ok() { code::INVALID_REQUEST } else { code::PARSE_ERROR };
        let why = scanned.err().map_or("a message is a JSON object".to_owned(), |e| {
            format!("invalid JSON at byte {}: {}", e.at(), e.what())
        });
        return Err(Reply::error(None, code, &why, None).into());
    }
    let scanned = s.object(&mut |s, key| env.member(s, &key.bytes())).and_then(|_| s.end());
    let id = env
        .id
        .and_then(|span| Id::from_json(span.of(text)))
        .filter(|id| id.as_bytes().len() <= limits.messages.id_bytes_max);
    // The id of a malformed response was chosen by this side: an error with that id could match another request of the
    // peer.
    let is_response = env.method.is_none() && (env.result.is_some() || env.error.is_some());
    let theirs = id.as_ref().filter(|_| !is_response);
    if let Err(e) = scanned {
        return Err(Unreadable { reply: refuse(theirs, e), is_response });
    }
    match env.kind(text, &id, limits) {
        Ok(kind) => {
            let params = env.params;
            Ok(Message::new(frame, kind, params))
        }
        Err(why) => {
            let reply = Reply::error(theirs, code::INVALID_REQUEST, why, None);
            Err(Unreadable { reply, is_response })
        }
    }
}

/// Reads what a server sent, as leniently as it can be understood: blanks around it, a missing `jsonrpc`, a member
/// twice (the last counts), `"error": null` beside a result, and batches, which are given one by one.
///
/// # Errors
/// Why it is not a message, as a phrase. Messages of a batch before the invalid one have been returned.
pub fn hear(frame: Bytes, limits: &ClientLimits, each: &mut dyn FnMut(Message)) -> Result<(), String> {
    if frame.len() >= u32::MAX as usize {
        return Err("longer than 4 GiB".to_owned());
    }
    let frame = ByteString::try_from(frame).map_err(|_| "not UTF-8 text".to_owned())?;
    let at = |e: ScanError| format!("invalid JSON at byte {}: {}", e.at(), e.what());
    let mut s = Scanner::new(&frame, limits.messages.depth_max);
    if s.peek() != Some(b'[') {
        return heard(frame, limits).map(each);
    }
    let mut parts = Vec::new();
    s.array(&mut |s| {
        let span = s.value()?;
        if parts.len() == limits.messages.per_batch_max {
            return Err(ScanError::new(span.start(), "too many messages in the batch"));
        }
        parts.push(span);
        Ok(())
    })
    .and_then(|_| s.end())
    .map_err(at)?;
    for part in parts {
        // A part of UTF-8 text between two JSON tokens is UTF-8 text.
        let part =
            ByteString::try_from(frame.as_bytes().slice(part.range())).map_err(|_| "not UTF-8 text".to_owned())?;
        each(heard(part, limits)?);
    }
    Ok(())
}

fn heard(frame: ByteString, limits: &ClientLimits) -> Result<Message, String> {
    let text: &str = &frame;
    let mut env = Envelope { lenient: true, ..Envelope::default() };
    let mut s = Scanner::new(text, limits.messages.depth_max);
    if s.peek() != Some(b'{') {
        return Err("not a JSON object".to_owned());
    }
    s.object(&mut |s, key| env.member(s, &key.bytes()))
        .and_then(|_| s.end())
        .map_err(|e| format!("invalid JSON at byte {}: {}", e.at(), e.what()))?;
    let id = env.id.map(|span| span.of(text)).filter(|id| *id != "null");
    let id = id
        .map(|id| Id::from_json(id).or_else(|| whole(id)))
        .map(|id| id.ok_or("its id is neither a string nor an integer"));
    // A line of a log may have such members too: an error is an object, and one without an id says what protocol it is
    // of.
    let ours = env.id.is_some_and(|span| span.of(text) != "null") || env.jsonrpc.is_some();
    let error = env.error.filter(|span| span.of(text).starts_with('{') && ours);
    let result = env.result;
    let kind = match (env.method, id.transpose()?, result, error) {
        (Some(method), id, None, None) => {
            let method = read_str(method.of(text)).ok_or("its method is not a string")?;
            let method = Method::parse(&method).map_or_else(|| MethodName::Other(method.into()), MethodName::Known);
            match id {
                Some(id) => Kind::Request { id, method },
                None => Kind::Notification { method },
            }
        }
        (None, id, _, Some(error)) => Kind::Response { id: id.unwrap_or_else(Id::unknown), outcome: Err(error) },
        (None, Some(id), Some(result), None) => Kind::Response { id, outcome: Ok(result) },
        _ => return Err("neither a request, a notification nor a response".to_owned()),
    };
    Ok(match kind {
        Kind::Response { .. } => Message::with_result(frame, kind, env.members),
        Kind::Request { .. } | Kind::Notification { .. } => Message::new(frame, kind, env.params),
    })
}

/// An id that is an integer in another spelling, `7.0`.
fn whole(id: &str) -> Option<Id> {
    let number: f64 = id.parse().ok()?;
    (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then(|| Id::number(number as u64))
}

fn utf8(frame: Bytes) -> Result<ByteString, Reply> {
    if frame.len() >= u32::MAX as usize {
        return Err(Reply::error(None, code::INVALID_REQUEST, "the message is longer than 4 GiB", None));
    }
    // Checked once; every later look at a part of the message is free.
    ByteString::try_from(frame)
        .map_err(|_| Reply::error(None, code::PARSE_ERROR, "the message is not valid UTF-8", None))
}

fn refuse(id: Option<&Id>, e: ScanError) -> Reply {
    let known = [DUPLICATE, linchpin_core::json::TOO_DEEP].contains(&e.what()) || e.what().starts_with("too many");
    let code = if known { code::INVALID_REQUEST } else { code::PARSE_ERROR };
    Reply::error(id, code, &format!("invalid message at byte {}: {}", e.at(), e.what()), None)
}

const DUPLICATE: &str = "duplicate key";

#[derive(Default)]
struct Envelope {
    jsonrpc: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    params: Params,
    /// Of `result`, when it is read leniently.
    members: ResultMembers,
    /// Duplicate members are not an error: the last counts.
    lenient: bool,
}

impl Envelope {
    fn member(&mut self, s: &mut Scanner<'_>, name: &[u8]) -> Result<(), ScanError> {
        let slot = match name {
            b"jsonrpc" => &mut self.jsonrpc,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"result" if self.lenient => return self.result(s),
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            b"params" => return self.params(s),
            _ => return s.value().map(drop),
        };
        if self.lenient {
            *slot = None;
        }
        fill(slot, s)
    }

    fn params(&mut self, s: &mut Scanner<'_>) -> Result<(), ScanError> {
        if self.params.all.is_some() && !self.lenient {
            return s.value().and_then(|v| Err(ScanError::new(v.start(), DUPLICATE)));
        }
        self.params = Params::default();
        let (found, lenient) = (&mut self.params, self.lenient);
        let all = if s.peek() == Some(b'{') {
            s.object(&mut |s, key| {
                let slot = match &*key.bytes() {
                    b"name" => &mut found.name,
                    b"arguments" => &mut found.arguments,
                    b"_meta" => return meta(found, s, lenient),
                    b"uri" => &mut found.uri,
                    b"cursor" => &mut found.cursor,
                    b"inputResponses" => &mut found.input_responses,
                    b"requestState" => &mut found.request_state,
                    b"task" => &mut found.task,
                    b"taskId" => &mut found.task_id,
                    // Of notifications, which get no error.
                    b"requestId" => return s.value().map(|value| found.request_id = Some(value)),
                    b"progressToken" => return s.value().map(|value| found.progress_token = Some(value)),
                    _ => return s.value().map(drop),
                };
                if lenient {
                    *slot = None;
                }
                fill(slot, s)
            })?
        } else {
            s.value()?
        };
        found.all = Some(all);
        Ok(())
    }

    fn result(&mut self, s: &mut Scanner<'_>) -> Result<(), ScanError> {
        let mut found = ResultMembers::default();
        let all = if s.peek() == Some(b'{') {
            s.object(&mut |s, key| {
                let value = s.value()?;
                if let Some(slot) = found.slot(&key.name()) {
                    *slot = Some(value);
                }
                Ok(())
            })?
        } else {
            s.value()?
        };
        (self.result, self.members) = (Some(all), found);
        Ok(())
    }

    fn kind(&self, text: &str, id: &Option<Id>, limits: &Limits) -> Result<Kind, &'static str> {
        if self.jsonrpc.and_then(|span| text.as_bytes().get(span.range())) != Some(b"\"2.0\"") {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        // The sender of an error could not read the id of what it answers.
        if let (None, None, Some(error)) = (self.method, self.result, self.error)
            && self.id.is_none_or(|span| span.of(text) == "null")
        {
            return Ok(Kind::Response { id: Id::unknown(), outcome: Err(error) });
        }
        if let Some(span) = self.id.filter(|_| id.is_none()) {
            let long = span.end() - span.start() > limits.messages.id_bytes_max;
            return Err(if long { "`id` is too long" } else { "`id` must be a string or an integer of 64 bits" });
        }
        // Notifications never get a response, not even an error: a malformed one is ignored.
        if id.is_some() && self.params.all.is_some_and(|span| text.as_bytes().get(span.start()) != Some(&b'{')) {
            return Err("`params` must be an object");
        }
        match (self.method, id, self.result, self.error) {
            (Some(method), id, None, None) => {
                let method = read_str(method.of(text)).ok_or("`method` must be a string")?;
                let method = Method::parse(&method).map_or_else(|| MethodName::Other(method.into()), MethodName::Known);
                Ok(match id {
                    Some(id) => Kind::Request { id: id.clone(), method },
                    None => Kind::Notification { method },
                })
            }
            (None, Some(id), Some(result), None) => Ok(Kind::Response { id: id.clone(), outcome: Ok(result) }),
            (None, Some(id), None, Some(error)) => Ok(Kind::Response { id: id.clone(), outcome: Err(error) }),
            _ => Err("neither a request, a notification nor a response"),
        }
    }
}

/// `_meta`: where it is, and where its members are that decide how the request is served.
fn meta(found: &mut Params, s: &mut Scanner<'_>, lenient: bool) -> Result<(), ScanError> {
    if lenient {
        (found.meta, found.claims) = (None, Claims::default());
    }
    if s.peek() != Some(b'{') || found.meta.is_some() {
        return fill(&mut found.meta, s);
    }
    let claims = &mut found.claims;
    let all = s.object(&mut |s, key| {
        let slot = match &*key.bytes() {
            b"io.modelcontextprotocol/protocolVersion" => &mut claims.version,
            b"io.modelcontextprotocol/clientCapabilities" => &mut claims.capabilities,
            b"io.modelcontextprotocol/clientInfo" => &mut claims.info,
            b"io.modelcontextprotocol/logLevel" => &mut claims.log,
            b"progressToken" => &mut claims.progress_token,
            b"io.modelcontextprotocol/subscriptionId" => {
                return s.value().map(|value| claims.subscription = Some(value));
            }
            b"io.modelcontextprotocol/related-task" => &mut claims.related_task,
            b"traceparent" => &mut claims.traceparent,
            b"tracestate" => &mut claims.tracestate,
            b"baggage" => &mut claims.baggage,
            _ => return s.value().map(drop),
        };
        if lenient {
            *slot = None;
        }
        fill(slot, s)
    })?;
    found.meta = Some(all);
    Ok(())
}

fn fill(slot: &mut Option<Span>, s: &mut Scanner<'_>) -> Result<(), ScanError> {
    let span = s.value()?;
    match slot.replace(span) {
        None => Ok(()),
        Some(_) => Err(ScanError::new(span.start(), DUPLICATE)),
    }
}
