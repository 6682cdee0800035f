//! What the store keeps of a task.

use bytes::Bytes;
use linchpin_core::Features;
use linchpin_proto::task::{End, State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Results up to this size are in the record; longer ones have a record of their own.
pub(crate) const INLINE_BYTES_MAX: usize = 8 << 10;

/// A task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) state: State,
    pub(crate) tool: Box<str>,
    /// The revision of the call that made it: its index among all.
    pub(crate) revision: u8,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runner: Option<Runner>,
    /// Whether it may be started again.
    #[serde(default)]
    pub(crate) resumable: bool,
    /// Whether it may be suspended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) suspends: bool,
    /// Its handler was dropped while it waited for an answer: the number of questions that were open then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suspended: Option<usize>,
    /// How many times it was suspended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) suspensions: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<Kept>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Where the end is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    Here(End),
    /// Under a key of its own, which carries the run that wrote it.
    Apart(Runner),
}

/// The process that runs a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Runner {
    pub(crate) node: Box<str>,
    /// Counts the tasks that the node has started, so that no two runs have the same runner.
    pub(crate) run: u64,
}

impl Record {
    pub(crate) fn features(&self) -> &'static Features {
        let made = usize::from(self.revision);
        Features::all().find(|features| features.index == made).unwrap_or_else(newest)
    }

    /// Whether it is suspended and nobody has answered since.
    pub(crate) fn is_idle(&self) -> bool {
        self.suspended.is_some_and(|open| self.state.open().count() >= open)
    }

    /// Whether it is suspended and has an answer: whoever has given it starts the task again.
    pub(crate) fn is_answered(&self) -> bool {
        self.suspended.is_some() && !self.is_idle() && !self.state.status.is_end()
    }

    /// How many times it was started, without those after it was suspended.
    pub(crate) fn attempts(&self) -> u32 {
        self.state.attempt.saturating_sub(self.suspensions)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Record, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    pub(crate) fn bytes(&self) -> Bytes {
        // Most are shorter. Writing cannot fail: it is numbers, strings and checked JSON.
        let mut bytes = Vec::with_capacity(512);
        let _ = serde_json::to_writer(&mut bytes, self);
        bytes.into_boxed_slice().into()
    }
}

fn newest() -> &'static Features {
    Features::of(linchpin_types::version::Revision::LATEST)
}

/// What is needed to start a call again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    /// `params` of the call, without what only its first run needed.
    pub(crate) params: Box<RawValue>,
    pub(crate) capabilities: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_info: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<Who>,
    /// A digest of the tool's schema of arguments.
    pub(crate) schema: String,
}

/// A principal, without claims: those are the token's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) subject: String,
    pub(crate) issuer: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) scopes: Vec<String>,
}

impl Who {
    pub(crate) fn of(principal: &linchpin_core::Principal) -> Who {
        Who {
            subject: principal.subject().to_owned(),
            issuer: principal.issuer().map(str::to_owned),
            client: principal.client().map(str::to_owned),
            scopes: principal.scopes().map(str::to_owned).collect(),
        }
    }

    pub(crate) fn principal(&self) -> linchpin_core::Principal {
        let mut principal = linchpin_core::Principal::new(self.subject.as_str()).with_scopes(self.scopes.clone());
        if let Some(issuer) = &self.issuer {
            principal = principal.with_issuer(issuer.as_str());
        }
        if let Some(client) = &self.client {
            principal = principal.with_client(client.as_str());
        }
        principal
    }
}
