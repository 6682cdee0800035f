//! What requests of one service share.

use super::answer;
use super::body::HttpBody;
use super::calls::Calls;
use super::session::HttpSession;
use super::session_id::parts_of;
use super::sessions::Sessions;
use http::{Response, StatusCode};
use linchpin_core::gate::Gate;
use linchpin_core::{Id, Limits, Principal, Service};
use linchpin_proto::era::{HeaderVersion, header_version};
use linchpin_proto::http::rules::SessionHeaders;
use std::sync::Arc;

/// See the module's documentation.
pub(crate) struct Shared {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) retry_ms: u64,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    /// The path of the endpoint; empty if it has every path.
    pub(crate) path: Box<str>,
    /// Requests of revisions with sessions have none either.
    pub(crate) no_sessions: bool,
}

impl Shared {
    /// Returns the session that headers name if the principal may use it. `id` is the request's, for an error response.
    pub(crate) fn session_of(
        &self,
        named: &SessionHeaders<'_>,
        principal: Option<&Principal>,
        id: Option<&Id>,
    ) -> Result<Arc<HttpSession>, Box<Response<HttpBody>>> {
        let refuse = |status, why: &str| Err(Box::new(answer::refuse(status, id, why)));
        let Some(value) = named.id else {
            return refuse(
                StatusCode::BAD_REQUEST,
                "the Mcp-Session-Id header is missing: send the one that `initialize` returned (2026-07-28 does not use it)",
            );
        };
        let found = parts_of(value.as_bytes()).and_then(|(key, _)| self.sessions.find(key));
        // A session of another principal looks as if it did not exist.
        let own = |session: &Arc<HttpSession>| {
            let own = session.belongs_to(principal);
            if !own {
                answer::log_foreign_session(principal, session.public_id());
            }
            own
        };
        let Some(session) = found.filter(own) else {
            return refuse(StatusCode::NOT_FOUND, "unknown or expired session; start a new one with `initialize`");
        };
        let Some(version) = named.version else {
            // Older revisions lack the header, and the revision of others is known from `initialize`.
            return Ok(session);
        };
        let features = session.features();
        if version.as_bytes() == features.revision.as_str().as_bytes() {
            return Ok(session);
        }
        let version = version.to_str().unwrap_or_default().trim();
        if version == features.revision.as_str() {
            return Ok(session);
        }
        if header_version(version) == HeaderVersion::Unknown {
            return refuse(StatusCode::BAD_REQUEST, "unsupported MCP-Protocol-Version header");
        }
        if features.version_header {
            let why = format!("MCP-Protocol-Version differs from the session's; send {}", features.revision.as_str());
            return refuse(StatusCode::BAD_REQUEST, &why);
        }
        Ok(session)
    }
}
