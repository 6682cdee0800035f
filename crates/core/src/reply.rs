//! Serialization of a response: once, into one buffer, within the size limit, including era-specific members.

use crate::exact;
use crate::features::Features;
use crate::id::Id;
use crate::json::{write_escaped, write_str};
use crate::principal::Principal;
use bytes::Bytes;
use linchpin_types::error::code;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// A serialized response: the whole frame and its metadata.
///
/// ```
/// use linchpin_core::{Id, Reply};
///
/// let reply = Reply::with_result(&Id::number(7), r#"{"answer":42}"#.into());
/// assert_eq!(reply.into_frame(), br#"{"jsonrpc":"2.0","id":7,"result":{"answer":42}}"#);
/// ```
#[derive(Clone, Debug)]
pub struct Reply {
    frame: Vec<u8>,
    /// The result, when it is shared with other answers: it follows `frame`, and a brace follows it.
    shared: Option<Bytes>,
    kind: ReplyKind,
    /// Where the members of `result` (or the `error` object) begin and end in `frame`.
    body: (usize, usize),
    /// Set if the request was refused for its scopes.
    missing: Option<Box<MissingScopes>>,
}

/// The scopes whose absence caused a request to be refused.
///
/// ```
/// use linchpin_core::reply::{MissingScopes, Reply};
/// use linchpin_core::{Id, Principal};
///
/// let missing = MissingScopes {
///     required: ["files:read".into(), "files:write".into()].into(),
///     principal: Some(Principal::new("ada").with_scopes(["files:read"])),
/// };
/// let reply = Reply::missing_scopes(&Id::number(1), missing);
/// assert!(reply.body().contains("missing scope: files:write"));
/// assert_eq!(reply.scopes_missing().unwrap().required.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct MissingScopes {
    /// All scopes that the request needs.
    pub required: Arc<[Arc<str>]>,
    /// The sender, who lacks some of them. `None` if the sender was not authenticated.
    pub principal: Option<Principal>,
}

/// The code of errors for missing scopes, outside of the range that JSON-RPC reserves.
pub const MISSING_SCOPES: i32 = 403;

/// The kind of a [`Reply`].
///
/// ```
/// use linchpin_core::reply::{Reply, ReplyKind};
///
/// assert_eq!(Reply::error(None, -32601, "unknown method", None).kind(), ReplyKind::Error(-32601));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplyKind {
    /// A result.
    Complete,
    /// A tool error result (`isError`).
    ToolError,
    /// A result that asks the client for input.
    InputRequired,
    /// A task, returned instead of a result.
    Task,
    /// A JSON-RPC error of this code.
    Error(i32),
}

impl Reply {
    /// Creates a JSON-RPC error. `data` is JSON text. `id` is `None` if it could not be read.
    pub fn error(id: Option<&Id>, code: i32, message: &str, data: Option<&str>) -> Reply {
        let mut frame = Vec::with_capacity(96 + message.len());
        frame.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
        if let Some(id) = id {
            frame.extend_from_slice(b"\"id\":");
            frame.extend_from_slice(id.as_bytes());
            frame.push(b',');
        }
        frame.extend_from_slice(b"\"error\":");
        let start = frame.len();
        frame.extend_from_slice(b"{\"code\":");
        frame.extend_from_slice(code.to_string().as_bytes());
        frame.extend_from_slice(b",\"message\":");
        write_str(&mut frame, message);
        if let Some(data) = data {
            frame.extend_from_slice(b",\"data\":");
            frame.extend_from_slice(data.as_bytes());
        }
        frame.push(b'}');
        let body = (start, frame.len());
        frame.push(b'}');
        Reply { frame, shared: None, kind: ReplyKind::Error(code), body, missing: None }
    }

    /// Creates the refusal of a request whose sender lacks scopes: an error that names the missing ones, with
    /// `data.requiredScopes`. Over HTTP, the gate decides its status and challenge.
    pub fn missing_scopes(id: &Id, missing: MissingScopes) -> Reply {
        let lacks = |scope: &&Arc<str>| missing.principal.as_ref().is_none_or(|principal| !principal.has_scope(scope));
        let lacking: Vec<&str> = missing.required.iter().filter(lacks).map(|scope| &**scope).collect();
        let why = format!("missing scope{}: {}", if lacking.len() == 1 { "" } else { "s" }, lacking.join(", "));
        let required: Vec<&str> = missing.required.iter().map(|scope| &**scope).collect();
        let data = serde_json::json!({ "requiredScopes": required }).to_string();
        let mut reply = Reply::error(Some(id), MISSING_SCOPES, &why, Some(&data));
        reply.missing = Some(Box::new(missing));
        reply
    }

    /// Returns the details, if the request was refused for missing scopes.
    pub fn scopes_missing(&self) -> Option<&MissingScopes> {
        self.missing.as_deref()
    }

    /// Creates a result whose object is already serialized, including the members of [`Stamps`]. Its bytes are shared,
    /// not copied.
    pub fn with_result(id: &Id, result: Bytes) -> Reply {
        let id = id.as_bytes();
        let mut frame = Vec::with_capacity(id.len() + 34);
        frame.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        frame.extend_from_slice(id);
        frame.extend_from_slice(b",\"result\":");
        Reply { frame, shared: Some(result), kind: ReplyKind::Complete, body: (0, 0), missing: None }
    }

    /// Creates an error whose object, which has this code, is already serialized. Its bytes are shared, not copied.
    pub fn with_error(id: &Id, code: i32, error: Bytes) -> Reply {
        let id = id.as_bytes();
        let mut frame = Vec::with_capacity(id.len() + 34);
        frame.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        frame.extend_from_slice(id);
        frame.extend_from_slice(b",\"error\":");
        Reply { frame, shared: Some(error), kind: ReplyKind::Error(code), body: (0, 0), missing: None }
    }

    /// Sets the kind of a response whose result is already serialized.
    pub fn with_kind(mut self, kind: ReplyKind) -> Reply {
        self.kind = kind;
        self
    }

    /// Returns the kind of the response.
    pub fn kind(&self) -> ReplyKind {
        self.kind
    }

    /// Returns whether it is a JSON-RPC error or a tool error.
    pub fn is_error(&self) -> bool {
        matches!(self.kind, ReplyKind::Error(_) | ReplyKind::ToolError)
    }

    /// Returns the `result` or `error` object as JSON text.
    pub fn body(&self) -> &str {
        let body = self.shared.as_deref().unwrap_or_else(|| &self.frame[self.body.0..self.body.1]);
        std::str::from_utf8(body).unwrap_or_default()
    }

    /// Changes the `result` or `error` object, as a JSON value; the id stays. This is for middleware that must see or
    /// change all of it.
    ///
    /// The object is parsed and serialized again, at a cost that unedited replies do not have. Setting or removing
    /// `isError` makes a tool's result a failure or a success. The size limit of responses is not checked again.
    ///
    /// Numbers have the precision of an `f64` or of a 64-bit integer. If a number does not fit (`1e400`), the numbers that would
    /// lose digits appear as strings to `change` and are written as numbers again. [`Reply::edit_exactly`] keeps every digit.
    pub fn edit(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        match serde_json::from_str::<Map<String, Value>>(self.body()) {
            Ok(body) => self.edited(body, change),
            Err(_) => self.edit_exactly(change),
        }
    }

    /// Like [`Reply::edit`], for changes that do not read numbers: `change` sees numbers that an `f64` would change as strings,
    /// and they are written back unchanged. See [`exact`].
    pub fn edit_exactly(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        if let Ok(Value::Object(body)) = exact::read(self.body()) {
            self.edited(body, change);
        }
    }

    fn edited(&mut self, mut body: Map<String, Value>, change: impl FnOnce(&mut Map<String, Value>)) {
        change(&mut body);
        self.kind = match self.kind {
            ReplyKind::Error(code) => {
                let code = body.get("code").and_then(Value::as_i64).and_then(|c| i32::try_from(c).ok()).unwrap_or(code);
                ReplyKind::Error(code)
            }
            kind @ (ReplyKind::InputRequired | ReplyKind::Task) => kind,
            _ if body.get("isError") == Some(&Value::Bool(true)) => ReplyKind::ToolError,
            _ => ReplyKind::Complete,
        };
        let start = if self.shared.take().is_some() { self.frame.len() } else { self.body.0 };
        self.frame.truncate(start);
        self.frame.extend_from_slice(exact::text(&Value::Object(body)).as_bytes());
        self.body = (start, self.frame.len());
        self.frame.push(b'}');
    }

    /// Changes every text of the response, for middleware: `change` is called with each text and returns its replacement, or
    /// `None` to keep it.
    ///
    /// Texts are those of a tool's content blocks (including embedded resources) and every string of its structured
    /// content, the texts of a resource or a prompt, and the message of an error. Binary data, URIs and names are not
    /// changed; use [`Reply::edit`] for those.
    pub fn map_text(&mut self, mut change: impl FnMut(&str) -> Option<String>) {
        self.edit_exactly(|body| {
            for (key, value) in body {
                match key.as_str() {
                    "content" | "contents" | "messages" => map_strings(value, Some("text"), &mut change),
                    "structuredContent" | "message" => map_strings(value, None, &mut change),
                    _ => {}
                }
            }
        });
    }

    /// Returns the whole frame, ready for the wire.
    pub fn frame(&self) -> Cow<'_, [u8]> {
        match &self.shared {
            None => Cow::Borrowed(&self.frame),
            Some(shared) => Cow::Owned([&self.frame, &shared[..], b"}"].concat()),
        }
    }

    /// Appends the whole frame.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
        if let Some(shared) = &self.shared {
            out.extend_from_slice(shared);
            out.push(b'}');
        }
    }

    /// Returns the length of the frame in bytes.
    pub fn frame_len(&self) -> usize {
        self.frame.len() + self.shared.as_ref().map_or(0, |s| s.len() + 1)
    }

    /// Returns the frame in one piece, or in three of which the second is shared with other replies.
    pub fn into_parts(self) -> (Bytes, Option<(Bytes, Bytes)>) {
        (self.frame.into(), self.shared.map(|shared| (shared, Bytes::from_static(b"}"))))
    }

    /// Returns the whole frame, ready for the wire.
    pub fn into_frame(mut self) -> Vec<u8> {
        if let Some(shared) = self.shared.take() {
            self.frame.extend_from_slice(&shared);
            self.frame.push(b'}');
        }
        self.frame
    }
}

/// Changes the strings in `value`: all of them, or those that are members of this name.
fn map_strings(value: &mut Value, only: Option<&str>, change: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) if only.is_none() => {
            if let Some(new) = change(text) {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| map_strings(item, only, change)),
        Value::Object(members) => {
            for (key, member) in members {
                let only = only.filter(|only| only != key);
                map_strings(member, only, change);
            }
        }
        _ => {}
    }
}

/// Members that a revision adds to every result, rendered once per server.
///
/// ```
/// use linchpin_core::reply::{ReplyKind, ResultWriter, Stamps};
/// use linchpin_core::{Features, Id};
/// use linchpin_types::version::Revision;
/// use std::sync::Arc;
///
/// let stamps = Arc::new(Stamps { server_info: r#"{"name":"demo","version":"1.0"}"#.into() });
/// let features = Features::of(Revision::V2026_07_28);
/// let reply = ResultWriter::new(&Id::number(1), features, &stamps, 1024).finish(ReplyKind::Complete);
/// assert!(reply.body().contains(r#""io.modelcontextprotocol/serverInfo":{"name":"demo","version":"1.0"}"#));
/// ```
#[derive(Debug, Default)]
pub struct Stamps {
    /// `serverInfo` as JSON text; empty to leave it out.
    pub server_info: Box<str>,
}

/// A writer for one result. Members are added in order; [`ResultWriter::finish`] closes it.
///
/// Once the size limit is exceeded, further output is discarded and `finish` returns an error reply.
///
/// ```
/// use linchpin_core::reply::{ReplyKind, ResultWriter};
/// use linchpin_core::{Features, Id};
/// use linchpin_types::version::Revision;
///
/// let features = Features::of(Revision::V2025_11_25);
/// let mut out = ResultWriter::new(&Id::number(1), features, &Default::default(), 1024);
/// out.key("text");
/// out.string("say \"hello\"");
/// out.key("count");
/// out.serialize(&3)?;
/// let reply = out.finish(ReplyKind::Complete);
/// assert_eq!(reply.body(), r#"{"text":"say \"hello\"","count":3}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub struct ResultWriter {
    frame: Vec<u8>,
    start: usize,
    limit: usize,
    over: bool,
    features: &'static Features,
    stamps: Arc<Stamps>,
    id: Id,
    meta: Vec<u8>,
    note: Option<Box<str>>,
    annotation: Option<Arc<str>>,
}

impl ResultWriter {
    /// Begins a result for the request `id`. `limit` counts the whole frame in bytes.
    pub fn new(id: &Id, features: &'static Features, stamps: &Arc<Stamps>, limit: usize) -> ResultWriter {
        let mut frame = Vec::with_capacity(320);
        frame.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        frame.extend_from_slice(id.as_bytes());
        frame.extend_from_slice(b",\"result\":");
        let start = frame.len();
        frame.push(b'{');
        ResultWriter {
            frame,
            start,
            limit,
            over: false,
            features,
            stamps: stamps.clone(),
            id: id.clone(),
            meta: Vec::new(),
            note: None,
            annotation: None,
        }
    }

    /// Releases the memory that is reserved for the result, for a call that takes long and may wait along with many
    /// others.
    ///
    /// ```
    /// # use linchpin_core::reply::{ReplyKind, ResultWriter};
    /// # use linchpin_core::{Features, Id};
    /// # use linchpin_types::version::Revision;
    /// # let features = Features::of(Revision::V2025_11_25);
    /// let mut out = ResultWriter::new(&Id::number(1), features, &Default::default(), 1024);
    /// out.shrink_to_fit();
    /// // An hour later:
    /// out.key("text");
    /// out.string("done");
    /// assert_eq!(out.finish(ReplyKind::Complete).body(), r#"{"text":"done"}"#);
    /// ```
    pub fn shrink_to_fit(&mut self) {
        self.frame.shrink_to_fit();
    }

    /// Returns the features of the caller's revision.
    pub fn features(&self) -> &'static Features {
        self.features
    }

    /// Sets the URI of the resource being read.
    pub fn set_uri(&mut self, note: impl Into<Box<str>>) {
        self.note = Some(note.into());
    }

    /// Returns the URI set by [`ResultWriter::set_uri`].
    pub fn uri(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Sets the media type of contents that do not name one, or the description of a prompt's result.
    pub fn annotate(&mut self, annotation: Option<Arc<str>>) {
        self.annotation = annotation;
    }

    /// Returns the text set by [`ResultWriter::annotate`].
    pub fn annotation(&self) -> Option<Arc<str>> {
        self.annotation.clone()
    }

    /// Discards the output and starts again.
    pub fn restart(&mut self) {
        self.frame.truncate(self.start + 1);
        self.meta.clear();
        self.over = false;
    }

    /// Begins a member: the name, which needs no escapes, to be followed by exactly one value.
    pub fn key(&mut self, name: &'static str) {
        debug_assert!(name.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\'), "{name} needs escapes");
        if self.room(name.len() + 4) {
            if self.frame.len() > self.start + 1 {
                self.frame.push(b',');
            }
            self.frame.push(b'"');
            self.frame.extend_from_slice(name.as_bytes());
            self.frame.extend_from_slice(b"\":");
        }
    }

    /// Begins a member with any name, to be followed by exactly one value.
    pub fn any_key(&mut self, name: &str) {
        if self.frame.len() > self.start + 1 {
            self.push(b",");
        }
        self.string(name);
        self.push(b":");
    }

    /// Adds whole members: JSON text without braces.
    pub fn members(&mut self, members: &[u8]) {
        if !members.is_empty() && self.frame.len() > self.start + 1 {
            self.push(b",");
        }
        self.push(members);
    }

    /// Appends JSON text unchanged.
    #[inline]
    pub fn push(&mut self, json: &[u8]) {
        if self.frame.len() + json.len() > self.limit {
            self.over = true;
        }
        if !self.over {
            self.frame.extend_from_slice(json);
        }
    }

    /// Appends a JSON string.
    pub fn string(&mut self, text: &str) {
        if self.room(text.len()) {
            write_str(&mut self.frame, text);
            self.over = self.frame.len() > self.limit;
        }
    }

    /// Serializes a value.
    ///
    /// # Errors
    /// If the value's `Serialize` implementation fails.
    pub fn serialize<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), serde_json::Error> {
        let result = serde_json::to_writer(&mut *self, value);
        if self.over { Ok(()) } else { result }
    }

    /// Returns the offset where the next byte goes, for [`ResultWriter::quote_from`].
    pub fn mark(&self) -> usize {
        self.frame.len()
    }

    /// Returns what was written between two marks.
    pub fn written(&self, from: usize, to: usize) -> &[u8] {
        self.frame.get(from..to).unwrap_or_default()
    }

    /// Appends, as one JSON string, the JSON text written between two marks.
    pub fn quote_from(&mut self, from: usize, to: usize) {
        if !self.room(to - from) {
            return;
        }
        let text = self.frame[from..to].to_vec();
        self.frame.reserve(text.len() + text.len() / 8 + 2);
        self.frame.push(b'"');
        write_escaped(&mut self.frame, &text);
        self.frame.push(b'"');
        self.over = self.frame.len() > self.limit;
    }

    /// Adds members to `_meta` of the result: JSON members without braces.
    pub fn meta(&mut self, members: &[u8]) {
        if !self.meta.is_empty() && !members.is_empty() {
            self.meta.push(b',');
        }
        self.meta.extend_from_slice(members);
    }

    /// Closes the result.
    pub fn finish(mut self, kind: ReplyKind) -> Reply {
        if self.features.result_types {
            self.key("resultType");
            self.push(match kind {
                ReplyKind::InputRequired => b"\"input_required\"",
                ReplyKind::Task => b"\"task\"",
                _ => b"\"complete\"",
            });
        }
        let stamped = self.features.server_info_in_results && !self.stamps.server_info.is_empty();
        if stamped || !self.meta.is_empty() {
            self.key("_meta");
            self.push(b"{");
            let meta = std::mem::take(&mut self.meta);
            self.push(&meta);
            if stamped {
                if !meta.is_empty() {
                    self.push(b",");
                }
                self.push(b"\"io.modelcontextprotocol/serverInfo\":");
                let stamps = self.stamps.clone();
                self.push(stamps.server_info.as_bytes());
            }
            self.push(b"}");
        }
        if self.over {
            let why =
                format!("the response exceeds the server's limit of {} bytes; request less at a time", self.limit);
            return Reply::error(Some(&self.id), code::INTERNAL_ERROR, &why, None);
        }
        self.frame.push(b'}');
        let body = (self.start, self.frame.len());
        self.frame.push(b'}');
        Reply { frame: self.frame, shared: None, kind, body, missing: None }
    }

    /// Replaces the response with a JSON-RPC error.
    pub fn error(self, code: i32, message: &str, data: Option<&str>) -> Reply {
        Reply::error(Some(&self.id), code, message, data)
    }

    fn room(&mut self, more: usize) -> bool {
        self.over |= self.frame.len() + more > self.limit;
        !self.over
    }
}

impl io::Write for ResultWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        if self.over { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_types::version::Revision;

    fn writer(features: &'static Features, limit: usize) -> ResultWriter {
        let stamps = Arc::new(Stamps { server_info: r#"{"name":"n","version":"1"}"#.into() });
        ResultWriter::new(&Id::number(7), features, &stamps, limit)
    }

    fn revisions() -> (&'static Features, &'static Features) {
        (Features::of(Revision::V2025_11_25), Features::of(Revision::V2026_07_28))
    }

    #[test]
    fn stamps_are_the_revisions() {
        let (session, alone) = revisions();
        let mut w = writer(session, 1000);
        w.key("a");
        w.string("\"");
        let r = w.finish(ReplyKind::Complete);
        assert_eq!(std::str::from_utf8(&r.frame()).unwrap(), r#"{"jsonrpc":"2.0","id":7,"result":{"a":"\""}}"#);
        assert_eq!(r.body(), r#"{"a":"\""}"#);
        let mut w = writer(alone, 1000);
        w.meta(b"\"x\":1");
        let r = w.finish(ReplyKind::InputRequired);
        assert_eq!(
            r.body(),
            r#"{"resultType":"input_required","_meta":{"x":1,"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}"#
        );
    }

    #[test]
    fn middleware_changes_texts_and_what_kind_of_answer_it_is() {
        let mut w = writer(revisions().0, 1000);
        w.key("content");
        w.push(br#"[{"type":"text","text":"key 123"},{"type":"resource","resource":{"uri":"k://123","text":"123"}}]"#);
        w.key("structuredContent");
        w.push(br#"{"a":["123",{"b":"x123"}],"n":123}"#);
        let mut r = w.finish(ReplyKind::Complete);
        r.map_text(|text| text.contains("123").then(|| text.replace("123", "***")));
        let body: Value = serde_json::from_str(r.body()).unwrap();
        assert_eq!(body["content"][0]["text"], "key ***");
        assert_eq!(body["content"][1]["resource"], serde_json::json!({"uri": "k://123", "text": "***"}));
        assert_eq!(body["structuredContent"], serde_json::json!({"a": ["***", {"b": "x***"}], "n": 123}));
        assert_eq!(r.kind(), ReplyKind::Complete);
        r.edit(|body| _ = body.insert("isError".into(), true.into()));
        assert_eq!(r.kind(), ReplyKind::ToolError);
        let frame: Value = serde_json::from_slice(&r.into_frame()).unwrap();
        assert_eq!((&frame["id"], &frame["result"]["isError"]), (&7.into(), &true.into()));

        let mut error = Reply::error(Some(&Id::number(7)), -32000, "no 123", None);
        error.map_text(|text| Some(text.replace("123", "***")));
        assert_eq!((error.kind(), error.body()), (ReplyKind::Error(-32000), r#"{"code":-32000,"message":"no ***"}"#));

        let mut shared = Reply::with_result(&Id::number(7), Bytes::from_static(b"{\"tools\":[]}"));
        shared.edit(|body| body.clear());
        assert_eq!(&*shared.frame(), br#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        assert_eq!(shared.frame_len(), shared.into_frame().len());
    }

    #[test]
    fn an_answer_over_the_limit_becomes_an_error_and_is_never_held() {
        let mut w = writer(revisions().0, 100);
        w.key("a");
        for _ in 0..1000 {
            w.string(&"x".repeat(50));
        }
        assert!(w.serialize(&vec![1; 1000]).is_ok());
        assert!(w.mark() <= 200);
        let r = w.finish(ReplyKind::Complete);
        assert_eq!(r.kind(), ReplyKind::Error(code::INTERNAL_ERROR));
        assert!(r.body().contains("100 bytes"));
    }
}
