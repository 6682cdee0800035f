//! Errors of the bridge itself. Their codes are outside of the ranges that JSON-RPC and the protocol reserve.

use linchpin_core::{Id, Reply, TransportError};
use linchpin_types::error::code;
use serde_json::json;
use std::sync::Arc;

/// The upstream cannot be reached, or all connections are in use. The request was not sent.
pub(crate) const UNAVAILABLE: i32 = -31_001;
/// The upstream did not answer in time.
pub(crate) const TIMEOUT: i32 = -31_002;
/// The upstream ended during the call, which may or may not have run.
pub(crate) const UNKNOWN: i32 = -31_007;

/// Why a call got no answer of the upstream.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    code: i32,
    why: Arc<str>,
    retry_ms: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(code: i32, why: impl Into<Arc<str>>) -> Refusal {
        Refusal { code, why: why.into(), retry_ms: None }
    }

    /// The upstream is not available.
    pub(crate) fn unavailable(why: impl Into<Arc<str>>) -> Refusal {
        Refusal::new(UNAVAILABLE, why)
    }

    /// The upstream or the client did something that the protocol does not allow.
    pub(crate) fn internal(why: impl Into<Arc<str>>) -> Refusal {
        Refusal::new(code::INTERNAL_ERROR, why)
    }

    /// When it may work again.
    pub(crate) fn retry_after(mut self, ms: u64) -> Refusal {
        self.retry_ms = Some(ms);
        self
    }

    /// What a lost exchange means for a request that was sent.
    pub(crate) fn lost(why: &TransportError) -> Refusal {
        let text = why.to_string();
        match why {
            TransportError::Unreachable(_) | TransportError::Unauthorized(_) => Refusal::unavailable(text),
            TransportError::Closed(_) | TransportError::CutOff(_) => Refusal::new(UNKNOWN, text),
            _ => Refusal::internal(text),
        }
    }

    pub(crate) fn why(&self) -> &Arc<str> {
        &self.why
    }

    /// The response to the client.
    pub(crate) fn reply(&self, id: &Id, upstream: &str) -> Reply {
        let what = match self.code {
            UNAVAILABLE => "the upstream server is not available",
            TIMEOUT => "the upstream server did not answer in time",
            UNKNOWN => "the upstream server ended during the call, which may or may not have run",
            _ => return Reply::error(Some(id), self.code, &self.why, None),
        };
        let mut data = json!({ "upstream": upstream, "reason": &*self.why });
        if let Some(ms) = self.retry_ms {
            data["retryAfterMs"] = ms.into();
        }
        Reply::error(Some(id), self.code, &format!("{what}: {}", self.why), Some(&data.to_string()))
    }
}
