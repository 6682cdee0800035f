//! A message as spans of the received bytes; a request and a notification with their caller.

use crate::caller::Caller;
use crate::id::Id;
use crate::json::{Span, read_str};
use crate::method::Method;
use bytestring::ByteString;
use linchpin_types::error::{ErrorObject, code};
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// A message of a peer, as spans of the received bytes.
///
/// ```
/// use linchpin_core::message::{Kind, Params};
/// use linchpin_core::{Id, Message, Method, MethodName};
///
/// let text = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// let kind = Kind::Request { id: Id::number(1), method: MethodName::Known(Method::Ping) };
/// let message = Message::new(text.into(), kind, Params::default());
/// assert_eq!(&**message.frame(), text);
/// assert_eq!(message.params_text(), "{}");
/// ```
#[derive(Debug)]
pub struct Message {
    frame: ByteString,
    /// The kind of message.
    pub kind: Kind,
    members: Members,
}

#[derive(Debug)]
enum Members {
    Params(Params),
    Result(ResultMembers),
}

/// The kind of a message.
///
/// ```
/// use linchpin_core::message::Kind;
/// use linchpin_core::{Id, Message};
///
/// /// The result of a response, or its error object, as JSON text.
/// fn outcome(message: &Message) -> Option<Result<&str, &str>> {
///     match &message.kind {
///         Kind::Response { outcome: Ok(result), .. } => Some(Ok(message.text(*result))),
///         Kind::Response { outcome: Err(error), .. } => Some(Err(message.text(*error))),
///         Kind::Request { .. } | Kind::Notification { .. } => None,
///     }
/// }
/// # let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
/// # let kind = Kind::Response { id: Id::number(1), outcome: Ok(linchpin_core::Span::new(33, 35)) };
/// # assert_eq!(outcome(&Message::with_result(text.into(), kind, Default::default())), Some(Ok("{}")));
/// ```
#[derive(Debug, PartialEq)]
pub enum Kind {
    /// A request.
    Request {
        /// The id, which the response repeats.
        id: Id,
        /// The method's name.
        method: MethodName,
    },
    /// A notification. Its `params` may be any value: one that is not an object makes it malformed, so it is ignored.
    Notification {
        /// The method's name.
        method: MethodName,
    },
    /// A response to a request of this side.
    Response {
        /// The id of the request.
        id: Id,
        /// The `result`, or the `error` object.
        outcome: Result<Span, Span>,
    },
}

/// A method name. Known requests are a [`Method`]; others keep their text.
///
/// ```
/// use linchpin_core::{Method, MethodName};
///
/// assert_eq!(MethodName::Known(Method::ToolsCall).as_str(), "tools/call");
/// assert_eq!(MethodName::Other("example/translate".into()).to_string(), "example/translate");
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum MethodName {
    /// A request method this crate knows.
    Known(Method),
    /// Any other name, unescaped.
    Other(Box<str>),
}

impl MethodName {
    /// Returns the name's text.
    pub fn as_str(&self) -> &str {
        match self {
            MethodName::Known(m) => m.as_str(),
            MethodName::Other(name) => name,
        }
    }
}

impl std::fmt::Display for MethodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The spans of the members of `params`, each of the whole JSON value including quotes.
///
/// ```
/// use linchpin_core::Span;
/// use linchpin_core::message::Params;
///
/// let text = r#"{"name":"add","arguments":{"a":1}}"#;
/// let params = Params::default().with(|params| params.name = Some(Span::new(8, 13)));
/// assert_eq!(params.name.unwrap().of(text), r#""add""#);
/// assert_eq!(params.cursor, None);
/// ```
#[derive(Clone, Copy, Default, Debug, PartialEq)]
#[non_exhaustive]
pub struct Params {
    /// All of `params`.
    pub all: Option<Span>,
    /// `name`
    pub name: Option<Span>,
    /// `arguments`
    pub arguments: Option<Span>,
    /// `_meta`
    pub meta: Option<Span>,
    /// Members of `_meta`, when it is an object.
    pub claims: Claims,
    /// `uri`
    pub uri: Option<Span>,
    /// `cursor`
    pub cursor: Option<Span>,
    /// `inputResponses`
    pub input_responses: Option<Span>,
    /// `requestState`
    pub request_state: Option<Span>,
    /// `task`: the client of 2025-11-25 wants the call as a task.
    pub task: Option<Span>,
    /// `taskId`
    pub task_id: Option<Span>,
    /// `requestId`, of a notification.
    pub request_id: Option<Span>,
    /// `progressToken`, of a notification. That of a request is in [`Claims`].
    pub progress_token: Option<Span>,
}

impl Params {
    const NONE: Params = Params {
        all: None,
        name: None,
        arguments: None,
        meta: None,
        claims: Claims {
            version: None,
            capabilities: None,
            info: None,
            log: None,
            progress_token: None,
            subscription: None,
            related_task: None,
            traceparent: None,
            tracestate: None,
            baggage: None,
        },
        uri: None,
        cursor: None,
        input_responses: None,
        request_state: None,
        task: None,
        task_id: None,
        request_id: None,
        progress_token: None,
    };

    /// Returns these spans, changed by a closure.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Params)) -> Params {
        change(&mut self);
        self
    }
}

/// The spans of the members of a `result`, each of the whole JSON value including quotes. They are only read for the
/// results that servers send.
///
/// ```
/// use linchpin_core::Span;
/// use linchpin_core::message::ResultMembers;
///
/// let response = r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#;
/// let result = Span::new(33, 49);
/// let members = ResultMembers::default().with(|members| members.is_error = Some(Span::new(44, 48)));
/// assert_eq!(members.is_error.unwrap().of(response), "true");
///
/// let within = members.within(result);
/// assert_eq!(within.is_error.unwrap().of(result.of(response)), "true");
/// ```
#[derive(Clone, Copy, Default, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResultMembers {
    /// `resultType`
    pub result_type: Option<Span>,
    /// `_meta`
    pub meta: Option<Span>,
    /// `content`
    pub content: Option<Span>,
    /// `structuredContent`
    pub structured_content: Option<Span>,
    /// `isError`
    pub is_error: Option<Span>,
    /// `ttlMs`
    pub ttl_ms: Option<Span>,
    /// `cacheScope`
    pub cache_scope: Option<Span>,
    /// `inputRequests`
    pub input_requests: Option<Span>,
    /// `requestState`
    pub request_state: Option<Span>,
    /// `nextCursor`
    pub next_cursor: Option<Span>,
}

impl ResultMembers {
    const NONE: ResultMembers = ResultMembers {
        result_type: None,
        meta: None,
        content: None,
        structured_content: None,
        is_error: None,
        ttl_ms: None,
        cache_scope: None,
        input_requests: None,
        request_state: None,
        next_cursor: None,
    };

    /// Returns these spans, changed by a closure.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ResultMembers)) -> ResultMembers {
        change(&mut self);
        self
    }

    /// Returns the same spans, relative to the beginning of the result at `result`.
    pub fn within(mut self, result: Span) -> ResultMembers {
        for slot in [
            &mut self.result_type,
            &mut self.meta,
            &mut self.content,
            &mut self.structured_content,
            &mut self.is_error,
            &mut self.ttl_ms,
            &mut self.cache_scope,
            &mut self.input_requests,
            &mut self.request_state,
            &mut self.next_cursor,
        ] {
            *slot = slot.map(|span| Span::new(span.start() - result.start(), span.end() - result.start()));
        }
        self
    }

    /// Returns the slot of the member with this name.
    pub fn slot(&mut self, name: &str) -> Option<&mut Option<Span>> {
        Some(match name {
            "resultType" => &mut self.result_type,
            "_meta" => &mut self.meta,
            "content" => &mut self.content,
            "structuredContent" => &mut self.structured_content,
            "isError" => &mut self.is_error,
            "ttlMs" => &mut self.ttl_ms,
            "cacheScope" => &mut self.cache_scope,
            "inputRequests" => &mut self.input_requests,
            "requestState" => &mut self.request_state,
            "nextCursor" => &mut self.next_cursor,
            _ => return None,
        })
    }
}

/// The spans of the members of `_meta` that decide how a request is served.
///
/// ```
/// use linchpin_core::Span;
/// use linchpin_core::message::Claims;
///
/// let meta = r#"{"progressToken":null}"#;
/// let claims = Claims::default().with(|claims| claims.progress_token = Some(Span::new(17, 21)));
/// assert_eq!(claims.progress_token.unwrap().of(meta), "null");
/// assert_eq!(claims.without_nulls(meta).progress_token, None);
/// ```
#[derive(Clone, Copy, Default, Debug, PartialEq)]
#[non_exhaustive]
pub struct Claims {
    /// `io.modelcontextprotocol/protocolVersion`
    pub version: Option<Span>,
    /// `io.modelcontextprotocol/clientCapabilities`
    pub capabilities: Option<Span>,
    /// `io.modelcontextprotocol/clientInfo`
    pub info: Option<Span>,
    /// `io.modelcontextprotocol/logLevel`
    pub log: Option<Span>,
    /// `progressToken`
    pub progress_token: Option<Span>,
    /// `io.modelcontextprotocol/subscriptionId`, of a notification.
    pub subscription: Option<Span>,
    /// `io.modelcontextprotocol/related-task`: the task that the message belongs to.
    pub related_task: Option<Span>,
    /// `traceparent` of W3C Trace Context
    pub traceparent: Option<Span>,
    /// `tracestate` of W3C Trace Context
    pub tracestate: Option<Span>,
    /// `baggage` of W3C Baggage
    pub baggage: Option<Span>,
}

impl Claims {
    /// Returns these spans, changed by a closure.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Claims)) -> Claims {
        change(&mut self);
        self
    }

    /// Treats optional members that are `null` as absent, since some clients send `null` for them.
    pub fn without_nulls(mut self, frame: &str) -> Claims {
        for slot in [&mut self.info, &mut self.log, &mut self.progress_token] {
            *slot = slot.filter(|span| span.of(frame) != "null");
        }
        self
    }
}

/// A request with its caller. If the specification has its method, the caller's revision has it too.
///
/// ```
/// use linchpin_core::Request;
///
/// #[derive(serde::Deserialize)]
/// struct Search { words: String }
///
/// fn words(request: &Request) -> Option<String> {
///     Some(request.decode::<Search>().ok()?.words)
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The id, which the response repeats.
    pub id: Id,
    /// The method. Those of the specification exist in the caller's revision; others are up to the service.
    pub method: MethodName,
    /// The caller.
    pub caller: Caller,
    /// Where the parameters are in [`Request::frame`].
    pub params: Params,
    /// The progress token's JSON text, if the caller wants progress.
    pub progress_token: Option<Span>,
    /// The message as received.
    pub frame: ByteString,
}

impl Request {
    /// Creates a request from its text. The spans of `params` refer to `frame`. The caller wants no progress.
    ///
    /// ```
    /// use linchpin_core::message::{MethodName, Params};
    /// use linchpin_core::{Caller, ClientCaps, Features, Id, Request, Session, Span};
    ///
    /// let features = Features::all().find(|features| features.has_sessions).unwrap();
    /// let caller = Caller::of_session(Session::new(features, ClientCaps::default(), "{}", "").into());
    /// let method = MethodName::Other("example/search".into());
    /// let frame = r#"{"jsonrpc":"2.0","id":1,"method":"example/search","params":{"_meta":{"progressToken":7}}}"#;
    /// let request = Request::new(Id::number(1), method, caller, Params::default(), frame.into())
    ///     .with(|request| request.progress_token = Some(Span::new(85, 86)));
    /// assert_eq!(request.params_text(), "{}");
    /// assert_eq!(request.progress_token.map(|token| request.text(token)), Some("7"));
    /// ```
    #[inline]
    pub fn new(id: Id, method: MethodName, caller: Caller, params: Params, frame: ByteString) -> Request {
        Request { id, method, caller, params, progress_token: None, frame }
    }

    /// Returns the request with the changes that a closure makes.
    #[must_use]
    #[inline]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns a copy in memory of its own. A request as received is a slice of the transport's read buffer and keeps the
    /// whole buffer alive (8 KiB over HTTP), which is too much for a request that is kept for long.
    ///
    /// ```
    /// # use linchpin_core::Request;
    /// fn keep(request: &Request, kept: &mut Vec<Request>) {
    ///     kept.push(request.detached());
    /// }
    /// ```
    #[must_use]
    pub fn detached(&self) -> Request {
        let frame = ByteString::from(String::from(&*self.frame));
        let caller = self.caller.described_by(&self.frame, &frame);
        Request { frame, caller, ..self.clone() }
    }

    /// Returns the method, if the specification has it.
    pub fn known(&self) -> Option<Method> {
        match self.method {
            MethodName::Known(method) => Some(method),
            MethodName::Other(_) => None,
        }
    }

    /// Returns the JSON text at `span`.
    pub fn text(&self, span: Span) -> &str {
        span.of(&self.frame)
    }

    /// Returns `params`, or an empty object.
    pub fn params_text(&self) -> &str {
        self.params.all.map_or("{}", |s| self.text(s))
    }

    /// Decodes `params`.
    ///
    /// # Errors
    /// An invalid-params error, for the caller.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ErrorObject> {
        serde_json::from_str(self.params_text())
            .map_err(|e| ErrorObject::new(code::INVALID_PARAMS, format!("invalid parameters: {e}")))
    }

    /// Decodes a member that must be a string.
    pub fn string(&self, span: Option<Span>) -> Option<Cow<'_, str>> {
        read_str(span?.of(&self.frame))
    }
}

/// A notification with its caller.
///
/// ```
/// use linchpin_core::Notification;
///
/// /// Whether the client tells that its roots have changed.
/// fn roots_changed(notification: &Notification) -> bool {
///     notification.method.as_str() == "notifications/roots/list_changed"
/// }
/// # use linchpin_core::message::{MethodName, Params};
/// # use linchpin_core::{Caller, ClientCaps, Features, Session};
/// # let features = Features::all().find(|features| features.has_sessions).unwrap();
/// # let session = Session::new(features, ClientCaps::default(), "{}", "");
/// # let method = MethodName::Other("notifications/roots/list_changed".into());
/// # let frame = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
/// # let caller = Caller::of_session(session.into());
/// # let notification = Notification::new(method, caller, Params::default(), frame.into());
/// # assert!(roots_changed(&notification));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// The name.
    pub method: MethodName,
    /// The caller.
    pub caller: Caller,
    /// Where the parameters are in [`Notification::frame`].
    pub params: Params,
    /// The message as received.
    pub frame: ByteString,
}

impl Notification {
    /// Creates a notification from its text. The spans of `params` refer to `frame`.
    #[inline]
    pub fn new(method: MethodName, caller: Caller, params: Params, frame: ByteString) -> Notification {
        Notification { method, caller, params, frame }
    }

    /// Returns `params`, or an empty object.
    pub fn params_text(&self) -> &str {
        self.params.all.map_or("{}", |s| s.of(&self.frame))
    }
}

impl Message {
    /// Creates a request or notification from its text. The spans refer to `frame`.
    pub fn new(frame: ByteString, kind: Kind, params: Params) -> Message {
        Message { frame, kind, members: Members::Params(params) }
    }

    /// Creates a response from its text. The spans refer to `frame`.
    pub fn with_result(frame: ByteString, kind: Kind, result: ResultMembers) -> Message {
        Message { frame, kind, members: Members::Result(result) }
    }

    /// Returns the members of `params`; all of them are `None` for a response.
    pub fn params(&self) -> &Params {
        match &self.members {
            Members::Params(params) => params,
            Members::Result(_) => &Params::NONE,
        }
    }

    /// Returns the members of `result`; all of them are `None` for a request or notification.
    pub fn result(&self) -> &ResultMembers {
        match &self.members {
            Members::Result(result) => result,
            Members::Params(_) => &ResultMembers::NONE,
        }
    }

    /// Returns the JSON text at `span`.
    pub fn text(&self, span: Span) -> &str {
        span.of(&self.frame)
    }

    /// Returns `params`, or an empty object.
    pub fn params_text(&self) -> &str {
        self.params().all.map_or("{}", |s| self.text(s))
    }

    /// The message as received.
    pub fn frame(&self) -> &ByteString {
        &self.frame
    }
}
