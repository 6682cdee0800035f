//! Requests from the server to the client, in revisions that have them.

use std::borrow::Cow;

/// The member of `_meta` in which a server request of a session carries the key that the same question has in stateless
/// requests. It is meant for bridges. Keys longer than [`KEY_BYTES_MAX`] are not sent.
pub const KEY_META: &str = "linchpin/key";
/// The longest key in [`KEY_META`].
pub const KEY_BYTES_MAX: usize = 128;
/// The member of `_meta` in which a tool error within a session names the capabilities that the client lacks, as
/// members of a `ClientCapabilities` object. Stateless revisions have an error of their own for that.
pub const REQUIRED_META: &str = "linchpin/requiredCapabilities";

/// A request from the server to the client, in revisions that have them.
///
/// ```
/// use linchpin_core::{ServerRequest, ServerRequestError};
/// use std::sync::mpsc;
///
/// let (sender, answers) = mpsc::channel();
/// let request = ServerRequest {
///     method: "elicitation/create".into(),
///     params: r#"{"message":"Which city?"}"#.into(),
///     answer: Box::new(move |answer| sender.send(answer).unwrap()),
/// };
/// request.refuse();
/// assert_eq!(answers.recv(), Ok(Err(ServerRequestError::Disconnected)));
/// ```
pub struct ServerRequest {
    /// The method, for example `elicitation/create`.
    pub method: Cow<'static, str>,
    /// `params` as JSON text.
    pub params: String,
    /// Receives the response: the `result` as JSON text, or an error.
    pub answer: Box<dyn FnOnce(Result<String, ServerRequestError>) + Send>,
}

impl ServerRequest {
    /// Answers that the client cannot be reached.
    pub fn refuse(self) {
        (self.answer)(Err(ServerRequestError::Disconnected));
    }
}

/// The reason why a server request failed.
///
/// ```
/// use linchpin_core::ServerRequestError;
///
/// fn explain(error: &ServerRequestError) -> String {
///     match error {
///         ServerRequestError::Rpc(code, message) => format!("error {code} of the client: {message}"),
///         _ => "the client has disconnected".to_owned(),
///     }
/// }
/// let error = ServerRequestError::Rpc(-32603, "no display".into());
/// assert_eq!(explain(&error), "error -32603 of the client: no display");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerRequestError {
    /// The client returned this error: code and message.
    Rpc(i32, String),
    /// The connection or the call ended first.
    Disconnected,
}

/// The requests of a session that belong to no call of the client. Most sessions have none, and allocate nothing for them.
#[derive(Default)]
pub(crate) enum SessionRequests {
    #[default]
    None,
    Some(Box<Requests>),
    Closed,
}

#[derive(Default)]
pub(crate) struct Requests {
    sent: u64,
    pending: Vec<(u64, ServerRequest)>,
}

/// The ids of these requests begin here, so that they are never those of requests within calls.
const FIRST_ID: u64 = 1 << 48;
/// How many may be pending in a session.
const PENDING_MAX: usize = 16;

impl SessionRequests {
    /// The requests of a session that goes on here. Its ids follow `first`, so that they are none that the client was asked
    /// under before.
    pub(crate) fn after(first: u32) -> SessionRequests {
        SessionRequests::Some(Box::new(Requests { sent: u64::from(first) << 16, pending: Vec::new() }))
    }

    /// Adds a request, and returns its id. Without room, or after the end, it is refused.
    pub(crate) fn add(&mut self, request: ServerRequest) -> Result<u64, ServerRequest> {
        if let SessionRequests::None = self {
            *self = SessionRequests::Some(Box::default());
        }
        let SessionRequests::Some(requests) = self else { return Err(request) };
        if requests.pending.len() >= PENDING_MAX {
            return Err(request);
        }
        let id = FIRST_ID + requests.sent;
        requests.sent += 1;
        requests.pending.push((id, request));
        Ok(id)
    }

    /// Takes a pending request.
    pub(crate) fn take(&mut self, id: u64) -> Option<ServerRequest> {
        let SessionRequests::Some(requests) = self else { return None };
        let at = requests.pending.iter().position(|(known, _)| *known == id)?;
        Some(requests.pending.swap_remove(at).1)
    }

    /// Takes all, and refuses those that come later.
    pub(crate) fn close(&mut self) -> Vec<ServerRequest> {
        match std::mem::replace(self, SessionRequests::Closed) {
            SessionRequests::Some(requests) => requests.pending.into_iter().map(|(_, request)| request).collect(),
            SessionRequests::None | SessionRequests::Closed => Vec::new(),
        }
    }
}
