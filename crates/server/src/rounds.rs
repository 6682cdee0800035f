//! Questions across rounds: what the client has answered so far, what is still wanted, and the sealed state that carries
//! both from one stand-alone request to the next.

use crate::core::Core;
use linchpin_proto::frame::Request;
use linchpin_proto::seal::{self, State};
use linchpin_proto::{Method, Reply, ReplyKind, ResultWriter};
use linchpin_types::error::code;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// One call's share of a conversation. Empty, and costing nothing, for calls that never ask.
#[derive(Default)]
pub(crate) struct Rounds {
    round: u32,
    /// Answers of earlier rounds and of this one.
    answers: BTreeMap<String, Box<RawValue>>,
    pub(crate) memos: BTreeMap<String, Box<RawValue>>,
    /// Asked in this round and not answered yet: key, method, params.
    wanted: BTreeMap<String, (&'static str, String)>,
    /// Capabilities the client would need, as members of a `ClientCapabilities` object.
    missing: BTreeMap<&'static str, serde_json::Value>,
}

impl Rounds {
    /// Reads what the request brings. State that does not verify is refused.
    pub(crate) fn of(request: &Request, principal: Option<&str>, core: &Core) -> Result<Rounds, Reply> {
        let mut rounds = Rounds::default();
        let params = request.params;
        let refuse = |why: &str| Reply::error(Some(&request.id), code::INVALID_PARAMS, why, None);
        if let Some(state) = params.request_state.filter(|_| request.caller.wire().elicits_in_rounds) {
            let sealed =
                request.string(Some(state)).ok_or_else(|| refuse("`requestState` must be the string that was sent"))?;
            let state: State = core
                .keyring()
                .open(&sealed, &binding(request, principal), core.limits.state_bytes_max)
                .filter(|state| state.expires_ms > now_ms())
                .ok_or_else(|| {
                    refuse(
                        "`requestState` is not valid here: it was changed, has expired or belongs to another request",
                    )
                })?;
            rounds.round = state.round;
            rounds.answers = state.answers;
            rounds.memos = state.memos;
        }
        if let Some(responses) = params.input_responses.filter(|_| request.caller.wire().elicits_in_rounds) {
            let responses: BTreeMap<String, Box<RawValue>> = serde_json::from_str(request.text(responses))
                .map_err(|_| refuse("`inputResponses` must be an object with one member for each input request"))?;
            rounds.answers.extend(responses);
        }
        Ok(rounds)
    }

    pub(crate) fn answer(&self, key: &str) -> Option<&RawValue> {
        self.answers.get(key).map(|raw| &**raw)
    }

    /// Notes a question to be asked; an answer that made no sense is forgotten.
    pub(crate) fn want(&mut self, key: &str, method: &'static str, params: String) {
        self.answers.remove(key);
        self.wanted.insert(key.to_owned(), (method, params));
    }

    pub(crate) fn lack(&mut self, capability: &'static str, settings: serde_json::Value) {
        self.missing.insert(capability, settings);
    }

    /// Whether the call cannot go on without the client.
    pub(crate) fn pending(&self) -> bool {
        !self.wanted.is_empty() || !self.missing.is_empty()
    }

    /// The answer for a call that ended because it needs the client: `input_required`, or what capability is missing.
    pub(crate) fn reply(&mut self, request: &Request, principal: Option<&str>, core: &Core) -> Reply {
        if !self.missing.is_empty() {
            let data = serde_json::json!({ "requiredCapabilities": self.missing });
            let why = "the client did not declare a capability that this request needs";
            return Reply::error(
                Some(&request.id),
                code::MISSING_REQUIRED_CLIENT_CAPABILITY,
                why,
                Some(&data.to_string()),
            );
        }
        if self.round >= core.limits.rounds_max {
            let why = format!("gave up after {} rounds of questions", self.round);
            return Reply::error(Some(&request.id), code::INTERNAL_ERROR, &why, None);
        }
        let state = State {
            expires_ms: now_ms() + core.limits.state_ms_max,
            round: self.round + 1,
            answers: std::mem::take(&mut self.answers),
            memos: std::mem::take(&mut self.memos),
        };
        let sealed = core.keyring().seal(&state, &binding(request, principal), core.random());
        if sealed.len() > core.limits.state_bytes_max {
            let why = format!(
                "the state to carry over is {} bytes; the limit is {}",
                sealed.len(),
                core.limits.state_bytes_max
            );
            return Reply::error(Some(&request.id), code::INTERNAL_ERROR, &why, None);
        }
        let mut out: ResultWriter = core.writer(request);
        out.key("inputRequests");
        out.push(b"{");
        for (i, (key, (method, params))) in self.wanted.iter().enumerate() {
            if i > 0 {
                out.push(b",");
            }
            out.string(key);
            out.push(b":{\"method\":");
            out.string(method);
            out.push(b",\"params\":");
            out.push(params.as_bytes());
            out.push(b"}");
        }
        out.push(b"}");
        out.key("requestState");
        out.string(&sealed);
        out.finish(ReplyKind::InputRequired)
    }
}

/// What the state is bound to: the principal, the method, and what the call is about.
fn binding(request: &Request, principal: Option<&str>) -> [u8; 32] {
    let part = |span: Option<linchpin_proto::Span>| span.map_or("null", |s| request.text(s));
    let about = match request.method {
        Method::ResourcesRead => format!("[{}]", part(request.params.uri)),
        _ => format!("[{},{}]", part(request.params.name), part(request.params.arguments)),
    };
    seal::binding(principal, request.method.as_str(), &about)
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}
