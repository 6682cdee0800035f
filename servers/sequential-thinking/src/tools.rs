//! The tools.

use crate::SequentialThinking;
use crate::history::Thought;
use crate::input::{ExportArgs, ResetArgs, ThinkArgs};
use crate::store::Caller;
use linchpin::Cx;
use linchpin::Error;
use linchpin_kit::{Paging, Provenance, TEXT_BYTES_MAX, ToolOutput, unknown_cursor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The result of `sequentialthinking`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Noted {
    /// The number of the thought.
    pub thought_number: u64,
    /// The estimated total of thoughts; at least the number.
    pub total_thoughts: u64,
    /// Whether another thought is needed.
    pub next_thought_needed: bool,
    /// The branches, in order of creation.
    pub branches: Vec<String>,
    /// The number of thoughts so far, including dropped ones.
    pub thought_history_length: u64,
    /// The handle of this history: pass it with the next thought.
    pub session_id: String,
    /// Whether the oldest thoughts or branches were dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Possible mistakes in the thought, which was recorded anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The result of `sequentialthinking_reset`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reset {
    /// The handle, which stays valid.
    pub session_id: String,
    /// The number of deleted thoughts.
    pub forgotten: u64,
}

/// The result of `sequentialthinking_export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// The handle.
    pub session_id: String,
    /// The thoughts of this page.
    pub thoughts: Vec<Thought>,
    /// The number of thoughts so far, including dropped ones.
    pub thought_history_length: u64,
    /// The number of dropped thoughts, the oldest.
    pub dropped: u64,
    /// Pagination.
    #[serde(flatten)]
    pub paging: Paging,
}

impl SequentialThinking {
    pub(crate) async fn think(&self, cx: &Cx, args: ThinkArgs) -> Result<ToolOutput<Noted>, Error> {
        let handle = args.session_id.clone();
        let step = args.understood(self.config.limits.thought_bytes_max)?;
        let (session_id, standing) = self.store.think(self.caller(cx, handle.as_deref()), &step)?;
        self.config.log.show(&step);
        let noted = Noted {
            thought_number: step.number,
            total_thoughts: step.total,
            next_thought_needed: step.next_thought_needed,
            branches: standing.branches,
            thought_history_length: standing.length,
            session_id,
            truncated: standing.truncated,
            warnings: standing.warnings,
        };
        Ok(ToolOutput::json(noted, Provenance::Server)?)
    }

    pub(crate) async fn reset(&self, cx: &Cx, args: ResetArgs) -> Result<ToolOutput<Reset>, Error> {
        let (session_id, forgotten) = self.store.reset(self.caller(cx, args.session_id.as_deref()))?;
        Ok(ToolOutput::json(Reset { session_id, forgotten }, Provenance::Server)?)
    }

    pub(crate) async fn export(&self, cx: &Cx, args: ExportArgs) -> Result<ToolOutput<Exported>, Error> {
        let place = args.cursor.as_deref().map_or(Ok(0), |text| text.parse().map_err(|_| unknown_cursor(text)))?;
        let page = self.store.page(self.caller(cx, args.session_id.as_deref()), place, TEXT_BYTES_MAX)?;
        let paging = page.next.map_or_else(Paging::whole, |next| Paging::more(next.to_string()));
        let notice = paging.notice();
        let exported = Exported {
            session_id: page.handle,
            thoughts: page.thoughts,
            thought_history_length: page.length,
            dropped: page.dropped,
            paging,
        };
        // Thoughts may contain third-party content.
        Ok(ToolOutput::json(exported, Provenance::ThirdParty)?.notice(notice))
    }

    fn caller<'a>(&'a self, cx: &'a Cx, handle: Option<&'a str>) -> Caller<'a> {
        let principal = cx.principal().map(|principal| &**principal.identity());
        Caller { session: &self.session, handle, principal, now: Instant::now() }
    }
}
