//! Multi-round-trip requests: the input received so far, the input still required, and the encrypted state that carries
//! both from one stateless request to the next.

use crate::result_object;
use crate::seal;
use crate::seal::State;
use crate::shared::Shared;
use linchpin_core::message::{MethodName, Request};
use linchpin_core::service::RequestContext;
use linchpin_core::{Method, Principal, Reply, ReplyKind, ResultWriter};
use linchpin_proto::translate::error::missing_capabilities;
use linchpin_types::error::code;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The multi-round-trip state of one call. Empty, at no cost, for calls that never ask.
#[derive(Default)]
pub(crate) struct RoundTrips(Option<Box<Inner>>);

pub(crate) struct Inner {
    round: u32,
    /// Input of earlier round trips and of this one.
    answers: BTreeMap<String, Box<RawValue>>,
    /// Input that came before anything was asked for.
    given: BTreeMap<String, Box<RawValue>>,
    pub(crate) memos: BTreeMap<String, Box<RawValue>>,
    /// Input that is requested now: key, method, params.
    wanted: BTreeMap<String, (Cow<'static, str>, String)>,
    /// Missing capabilities of the client, as members of a `ClientCapabilities` object.
    missing: BTreeMap<&'static str, serde_json::Value>,
    /// Scopes that the handler found missing.
    pub(crate) scopes: Option<Arc<[Arc<str>]>>,
    /// What the handler asked and had an answer to, for the task that the call may become.
    #[cfg(feature = "tasks")]
    taken: BTreeMap<String, Taken>,
}

static EMPTY: Inner = Inner::new();

impl Inner {
    const fn new() -> Inner {
        Inner {
            round: 0,
            answers: BTreeMap::new(),
            given: BTreeMap::new(),
            memos: BTreeMap::new(),
            wanted: BTreeMap::new(),
            missing: BTreeMap::new(),
            scopes: None,
            #[cfg(feature = "tasks")]
            taken: BTreeMap::new(),
        }
    }
}

impl Deref for RoundTrips {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for RoundTrips {
    fn deref_mut(&mut self) -> &mut Inner {
        self.0.get_or_insert_with(|| Box::new(Inner::new()))
    }
}

/// What layers of all requests have memoized, in the extensions of the request's context: the state that the client is given
/// is made inside of them.
#[derive(Clone)]
pub(crate) struct OfChain(pub(crate) Arc<BTreeMap<String, Box<RawValue>>>);

#[cfg(feature = "tasks")]
struct Taken {
    method: Cow<'static, str>,
    params: String,
    times: u32,
}

/// A question that the rounds of a call have answered.
#[cfg(feature = "tasks")]
pub(crate) struct Answered {
    pub(crate) name: String,
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Box<RawValue>,
    pub(crate) answer: Box<RawValue>,
    /// How many times the handler has asked it.
    pub(crate) times: u32,
}

impl RoundTrips {
    /// Reads the state of the request. State that does not verify is rejected.
    pub(crate) fn of(request: &Request, principal: Option<&Principal>, shared: &Shared) -> Result<RoundTrips, Reply> {
        let mut round_trips = RoundTrips::default();
        let mut asked = None;
        let params = request.params;
        let refuse = |why: &str| Reply::error(Some(&request.id), code::INVALID_PARAMS, why, None);
        if let Some(state) = params.request_state.filter(|_| request.caller.features().multi_round_trip) {
            let sealed =
                request.string(Some(state)).ok_or_else(|| refuse("`requestState` must be the string that was sent"))?;
            let state: State = shared
                .keyring()
                .open(&sealed, &binding(request, principal), shared.limits.round_trips.state_bytes_max)
                .filter(|state| state.expires_ms > now_ms())
                .ok_or_else(|| {
                    refuse(
                        "`requestState` is not valid here: it was changed, has expired or belongs to another request",
                    )
                })?;
            round_trips.round = state.round;
            round_trips.answers = state.answers;
            round_trips.memos = state.memos;
            asked = Some(state.asked);
        }
        if let Some(responses) = params.input_responses.filter(|_| request.caller.features().multi_round_trip) {
            let responses: BTreeMap<String, Box<RawValue>> = serde_json::from_str(request.text(responses))
                .map_err(|_| refuse("`inputResponses` must be an object with one member for each input request"))?;
            match asked {
                // Only what the last round asked for: an answer that was taken stays, and nothing else is carried along.
                Some(asked) => {
                    for (key, answer) in responses.into_iter().filter(|(key, _)| asked.contains(key)) {
                        round_trips.answers.entry(key).or_insert(answer);
                    }
                }
                // Nothing was asked yet: what the handler takes is carried along.
                None => round_trips.given = responses,
            }
        }
        Ok(round_trips)
    }

    /// How often the client was asked before.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    pub(crate) fn answer(&self, key: &str) -> Option<&RawValue> {
        self.answers.get(key).or_else(|| self.given.get(key)).map(|raw| &**raw)
    }

    /// The handler took an answer, which is kept for the next rounds.
    pub(crate) fn keep(&mut self, key: &str) {
        if !self.given.is_empty()
            && let Some(answer) = self.given.remove(key)
        {
            self.answers.entry(key.to_owned()).or_insert(answer);
        }
    }

    /// The handler took an answer.
    #[cfg(feature = "tasks")]
    pub(crate) fn take(&mut self, key: &str, method: Cow<'static, str>, params: String) {
        self.taken.entry(key.to_owned()).or_insert(Taken { method, params, times: 0 }).times += 1;
    }

    /// The questions whose answers the handler took.
    #[cfg(feature = "tasks")]
    pub(crate) fn answered(&self) -> Vec<Answered> {
        let answered = self.taken.iter().filter_map(|(name, taken)| {
            let params = RawValue::from_string(taken.params.clone()).ok()?;
            let (answer, method) = (self.answers.get(name)?.clone(), taken.method.clone());
            Some(Answered { name: name.clone(), method, params, answer, times: taken.times })
        });
        answered.collect()
    }

    /// Requests an input; an invalid earlier one is discarded.
    pub(crate) fn want(&mut self, key: &str, method: Cow<'static, str>, params: String) {
        self.answers.remove(key);
        self.given.remove(key);
        self.wanted.insert(key.to_owned(), (method, params));
    }

    pub(crate) fn lack(&mut self, capability: &'static str, settings: serde_json::Value) {
        self.missing.insert(capability, settings);
    }

    /// Whether the call needs the client to continue.
    pub(crate) fn pending(&self) -> bool {
        !self.wanted.is_empty() || !self.missing.is_empty()
    }

    /// Adds what the layers around a call have memoized.
    pub(crate) fn remember(&mut self, context: &RequestContext) {
        if let Some(OfChain(memos)) = context.extensions.get() {
            for (key, value) in memos.iter() {
                self.memos.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// Whether the call waits for input that the client can give.
    pub(crate) fn asks(&self) -> bool {
        !self.wanted.is_empty() && self.missing.is_empty()
    }

    /// What the client lacks, as members of a `ClientCapabilities` object; `None` if nothing.
    pub(crate) fn missing(&self) -> Option<serde_json::Value> {
        (!self.missing.is_empty()).then(|| serde_json::json!(self.missing))
    }

    /// The response of a call that needs the client: `input_required`, or the missing capability.
    pub(crate) fn reply(&mut self, request: &Request, principal: Option<&Principal>, shared: &Shared) -> Reply {
        if !self.missing.is_empty() {
            let data = serde_json::json!({ "requiredCapabilities": self.missing });
            let why = missing_capabilities(self.missing.iter().map(|(name, settings)| (*name, settings)));
            return Reply::error(
                Some(&request.id),
                code::MISSING_REQUIRED_CLIENT_CAPABILITY,
                &why,
                Some(&data.to_string()),
            );
        }
        if self.round >= shared.limits.round_trips.per_request_max {
            let why = format!("gave up after {} round trips", self.round);
            return Reply::error(Some(&request.id), code::INTERNAL_ERROR, &why, None);
        }
        let state = State {
            expires_ms: now_ms() + shared.limits.round_trips.state_ms_max,
            round: self.round + 1,
            answers: std::mem::take(&mut self.answers),
            memos: std::mem::take(&mut self.memos),
            asked: self.wanted.keys().cloned().collect(),
        };
        let sealed = shared.keyring().seal(&state, &binding(request, principal), shared.random());
        if sealed.len() > shared.limits.round_trips.state_bytes_max {
            let why = format!(
                "the state to carry over is {} bytes; the limit is {}",
                sealed.len(),
                shared.limits.round_trips.state_bytes_max
            );
            return Reply::error(Some(&request.id), code::INTERNAL_ERROR, &why, None);
        }
        let mut out: ResultWriter = shared.writer(request);
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

/// The binding of the state: the principal, the method, and the parameters. No arguments are the same as an empty object.
fn binding(request: &Request, principal: Option<&Principal>) -> [u8; 32] {
    let part = |span: Option<linchpin_core::Span>| span.map_or("null", |s| request.text(s));
    let about = match &request.method {
        MethodName::Known(Method::ResourcesRead) => format!("[{}]", part(request.params.uri)),
        MethodName::Known(Method::CompletionComplete) | MethodName::Other(_) => {
            result_object::own(request).unwrap_or_default()
        }
        _ => {
            let arguments = Some(part(request.params.arguments)).filter(|json| *json != "null").unwrap_or("{}");
            format!("[{},{arguments}]", part(request.params.name))
        }
    };
    seal::binding(principal.map(|principal| &**principal.identity()), request.method.as_str(), &about)
}

/// The system's time: processes that share a key must agree on it. A test that moves tokio's clock moves it too; otherwise
/// the two instants are the same.
pub(crate) fn now_ms() -> u64 {
    let (real, clock) = (std::time::Instant::now(), tokio::time::Instant::now().into_std());
    let now = SystemTime::now() + clock.saturating_duration_since(real);
    now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}
