//! The tools.

use crate::SequentialThinking;
use crate::history::Thought;
use crate::input::{ExportArgs, ResetArgs, ThinkArgs};
use crate::store::{Caller, Owner};
use linchpin::Cx;
use linchpin_kit::{Paging, Provenance, TEXT_BYTES_MAX, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What `sequentialthinking` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Noted {
    /// The thought's number.
    pub thought_number: u64,
    /// How many thoughts are expected; at least the number.
    pub total_thoughts: u64,
    /// Whether another one is needed.
    pub next_thought_needed: bool,
    /// The branches so far, in the order they began.
    pub branches: Vec<String>,
    /// How many thoughts were written so far, dropped ones included.
    pub thought_history_length: u64,
    /// The handle of these thoughts: pass it with the next one.
    pub session_id: String,
    /// Whether the oldest thoughts or branches had to make room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// What may be wrong with the thought; it was noted all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What `sequentialthinking_reset` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reset {
    /// The handle; it can be used on.
    pub session_id: String,
    /// How many thoughts the history had.
    pub forgotten: u64,
}

/// What `sequentialthinking_export` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// The handle.
    pub session_id: String,
    /// The thoughts of this page.
    pub thoughts: Vec<Thought>,
    /// How many thoughts were written so far, dropped ones included.
    pub thought_history_length: u64,
    /// How many of the oldest were dropped to make room.
    pub dropped: u64,
    /// Where the page was cut.
    #[serde(flatten)]
    pub paging: Paging,
}

impl SequentialThinking {
    pub(crate) async fn think(&self, cx: &Cx, args: ThinkArgs) -> Result<ToolOutput<Noted>, ToolError> {
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
        ToolOutput::json(noted, Provenance::Server)
    }

    pub(crate) async fn reset(&self, cx: &Cx, args: ResetArgs) -> Result<ToolOutput<Reset>, ToolError> {
        let (session_id, forgotten) = self.store.reset(self.caller(cx, args.session_id.as_deref()))?;
        ToolOutput::json(Reset { session_id, forgotten }, Provenance::Server)
    }

    pub(crate) async fn export(&self, cx: &Cx, args: ExportArgs) -> Result<ToolOutput<Exported>, ToolError> {
        let place = args.cursor.as_deref().map_or(Ok(0), str::parse::<u64>).map_err(|_| {
            ToolError::new("Unknown cursor").hint("Pass next_cursor of the page before, or leave cursor out.")
        })?;
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
        // Models wrote them, after reading who knows what.
        Ok(ToolOutput::json(exported, Provenance::ThirdParty)?.notice(notice))
    }

    /// Who calls. A session has its own history. A stateless request belongs to the process's one client on stdio; over
    /// HTTP it may be anybody's, so without a handle it begins a history of its own. HTTP is where there are headers: every
    /// request has some there, and none elsewhere.
    fn caller<'a>(&self, cx: &'a Cx, handle: Option<&'a str>) -> Caller<'a> {
        let owner = match cx.peer() {
            Some(peer) => Owner::Session(peer),
            None if self.config.one_client && cx.headers().is_empty() => Owner::Process,
            None => Owner::Nobody,
        };
        Caller { owner, handle, principal: cx.principal(), now: Instant::now() }
    }
}
