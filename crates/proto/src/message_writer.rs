//! Messages of a client: requests with the `_meta` that their revision requires, notifications, responses.

use bytes::Bytes;
use linchpin_core::Features;
use linchpin_core::connector::Outgoing;
use linchpin_core::json::{read_str, write_str};
use linchpin_core::method::Method;
use linchpin_types::capability::ClientCapabilities;
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::meta::{Meta, key};
use serde::Serialize;
use std::borrow::Cow;

/// Writes the messages of one client in one revision.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The negotiated revision; `None` before `initialize` has been answered.
    features: Option<&'static Features>,
    /// Members of `_meta` in every request, each followed by a comma; empty if there are none.
    claims: Box<[u8]>,
}

/// Additional data of a request besides its parameters.
#[derive(Clone, Copy, Default, Debug)]
pub struct Extras<'a> {
    /// Requests progress under the request's id.
    pub progress: bool,
    /// Requests log messages from this level on, in revisions that set it per request.
    pub log: Option<LoggingLevel>,
    /// Other members of `_meta`. Reserved keys are overridden.
    pub meta: Option<&'a Meta>,
}

impl Writer {
    /// A writer for the time before a session is agreed on.
    pub fn opening() -> Writer {
        Writer { features: None, claims: Box::default() }
    }

    /// A writer of messages of `features`.
    pub fn new(features: &'static Features, info: &Implementation, capabilities: &ClientCapabilities) -> Writer {
        let mut claims = Vec::new();
        if features.stateless {
            let mut member = |key: &str, json: &[u8]| {
                write_str(&mut claims, key);
                claims.push(b':');
                claims.extend_from_slice(json);
                claims.push(b',');
            };
            member(key::PROTOCOL_VERSION, format!("\"{}\"", features.revision.as_str()).as_bytes());
            member(key::CLIENT_INFO, &json(info));
            member(key::CLIENT_CAPABILITIES, &json(capabilities));
        }
        Writer { features: Some(features), claims: claims.into() }
    }

    /// A request. `params` writes the members of `params`, each with a comma behind it; `_meta` must not be among them.
    pub fn request(
        &self,
        id: u64,
        method: impl Into<Cow<'static, str>>,
        extras: Extras<'_>,
        params: impl FnOnce(&mut Members),
    ) -> Outgoing {
        let method = method.into();
        let mut members = Members::open(Some(id), &method, 64 + self.claims.len());
        params(&mut members);
        self.meta(&mut members, Some(id), extras);
        let mut out = Outgoing::new(method, self.features, members.close());
        out.id = Some(id);
        out
    }

    /// A notification.
    pub fn notification(&self, method: impl Into<Cow<'static, str>>, params: impl FnOnce(&mut Members)) -> Outgoing {
        let method = method.into();
        let mut members = Members::open(None, &method, 64);
        params(&mut members);
        Outgoing::new(method, self.features, members.close())
    }

    /// A notification for the handlers of a server, with the `_meta` of a request: a stateless client has no other way to say who
    /// it is.
    pub fn claimed_notification(
        &self,
        method: impl Into<Cow<'static, str>>,
        meta: Option<&Meta>,
        params: &Members,
    ) -> Outgoing {
        self.notification(method, |members| {
            members.append(params);
            self.meta(members, None, Extras { meta, ..Extras::default() });
        })
    }

    /// The response to a server request. `id` and `result` are JSON texts; the error is code and message.
    pub fn answer(&self, id: &str, outcome: Result<&str, (i32, &str)>) -> Outgoing {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id.as_bytes());
        match outcome {
            Ok(result) => {
                out.extend_from_slice(b",\"result\":");
                out.extend_from_slice(result.as_bytes());
            }
            Err((code, message)) => {
                out.extend_from_slice(format!(",\"error\":{{\"code\":{code},\"message\":").as_bytes());
                write_str(&mut out, message);
                out.push(b'}');
            }
        }
        out.push(b'}');
        Outgoing::new("", self.features, out)
    }

    fn meta(&self, members: &mut Members, id: Option<u64>, extras: Extras<'_>) {
        let own = extras.meta.filter(|meta| !meta.is_empty());
        let log = extras.log.filter(|_| self.features.is_some_and(|features| features.log_level_per_request));
        if self.claims.is_empty() && own.is_none() && log.is_none() && !extras.progress {
            return;
        }
        let out = &mut members.out;
        out.extend_from_slice(b"\"_meta\":{");
        out.extend_from_slice(&self.claims);
        if let Some(id) = id.filter(|_| extras.progress) {
            out.extend_from_slice(format!("\"progressToken\":{id},").as_bytes());
        }
        if let Some(level) = log {
            out.extend_from_slice(format!("\"{}\":", key::LOG_LEVEL).as_bytes());
            out.extend_from_slice(&json(&level));
            out.push(b',');
        }
        let reserved = |name: &str| {
            (name == key::PROGRESS_TOKEN && extras.progress)
                || (name == key::LOG_LEVEL && log.is_some())
                || (!self.claims.is_empty()
                    && [key::PROTOCOL_VERSION, key::CLIENT_INFO, key::CLIENT_CAPABILITIES].contains(&name))
        };
        for (name, value) in own.into_iter().flat_map(Meta::iter).filter(|(name, _)| !reserved(name)) {
            write_str(out, name);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
            out.push(b',');
        }
        if out.last() == Some(&b',') {
            out.pop();
        }
        out.extend_from_slice(b"},");
    }
}

/// The members of `params` while they are written.
#[derive(Debug)]
pub struct Members {
    out: Vec<u8>,
    /// The start of `params`, so that an empty one can be omitted.
    start: usize,
}

impl Members {
    fn open(id: Option<u64>, method: &str, room: usize) -> Members {
        let mut out = Vec::with_capacity(64 + method.len() + room);
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
        if let Some(id) = id {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(id.to_string().as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(b"\"method\":");
        write_str(&mut out, method);
        let start = out.len();
        out.extend_from_slice(b",\"params\":{");
        Members { out, start }
    }

    /// Prepared members, serialized once and sent several times.
    pub fn loose() -> Members {
        Members { out: Vec::new(), start: 0 }
    }

    /// The JSON text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// All members of `loose` ones.
    pub fn append(&mut self, loose: &Members) {
        self.out.extend_from_slice(&loose.out);
    }

    fn close(mut self) -> Bytes {
        if self.out.last() == Some(&b',') {
            self.out.pop();
            self.out.extend_from_slice(b"}}");
        } else {
            self.out.truncate(self.start);
            self.out.push(b'}');
        }
        self.out.into()
    }

    /// A member whose value is JSON text already. The text must be valid and hold no line end.
    pub fn raw(&mut self, name: &str, json: &str) {
        write_str(&mut self.out, name);
        self.out.push(b':');
        self.out.extend_from_slice(json.as_bytes());
        self.out.push(b',');
    }

    /// A member that is text.
    pub fn text(&mut self, name: &str, text: &str) {
        write_str(&mut self.out, name);
        self.out.push(b':');
        write_str(&mut self.out, text);
        self.out.push(b',');
    }

    /// A member that is serialised.
    ///
    /// # Errors
    /// When the value cannot be JSON, for example a map whose keys are not text. The member is then left out.
    pub fn value<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), serde_json::Error> {
        let before = self.out.len();
        write_str(&mut self.out, name);
        self.out.push(b':');
        let written = serde_json::to_writer(&mut self.out, value);
        match written {
            Ok(()) => self.out.push(b','),
            Err(_) => self.out.truncate(before),
        }
        written
    }

    /// All members of an object given as JSON text, as they stand, but without `_meta`, which is returned, and with it the
    /// text of the member `about`, if it is text.
    ///
    /// # Errors
    /// When the text is not valid JSON object.
    pub fn spread(
        &mut self,
        object: &str,
        about: Option<&str>,
    ) -> Result<(Option<Meta>, Option<Box<str>>), serde_json::Error> {
        use serde::de::Error as _;
        let members: Spread<'_> = serde_json::from_str(object)?;
        let (mut meta, mut found) = (None, None);
        for (name, value) in members.0 {
            if name == "_meta" {
                meta = Some(serde_json::from_str(value.get()).map_err(serde_json::Error::custom)?);
                continue;
            }
            if about == Some(&*name) {
                found = read_str(value.get()).map(|text| text.into());
            }
            self.raw(&name, &one_line(value.get()));
        }
        Ok((meta, found))
    }
}

/// JSON text without line ends between its tokens. Inside strings JSON has none.
pub fn one_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) { Cow::Owned(json.replace(['\n', '\r'], " ")) } else { Cow::Borrowed(json) }
}

/// The members of an object in their order.
struct Spread<'a>(Vec<(Cow<'a, str>, &'a serde_json::value::RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Spread<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> serde::de::Visitor<'de> for Object<'a> {
            type Value = Spread<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Spread<'a>, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de serde_json::value::RawValue>()? {
                    members.push((Cow::Owned(name), value));
                }
                Ok(Spread(members))
            }
        }
        deserializer.deserialize_map(Object(std::marker::PhantomData))
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    // Plain structs of text: there is nothing in them that JSON lacks.
    serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec())
}

/// What HTTP repeats of a request in `Mcp-Name`: which member of its parameters, if any.
pub fn about(method: &str) -> Option<&'static str> {
    match Method::parse(method) {
        Some(Method::ToolsCall | Method::PromptsGet) => Some("name"),
        Some(Method::ResourcesRead) => Some("uri"),
        _ if method.starts_with("tasks/") => Some("taskId"),
        _ => None,
    }
}
