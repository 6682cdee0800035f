//! A call of a client with a session to an upstream that asks in its results: each question becomes a request to the
//! client, and the call is repeated with the answers.

use crate::answer_shape;
use crate::call::{Outlet, QUESTIONS_MAX};
use crate::exchange::{Failure, answered, begin, exchange};
use crate::instance::Instance;
use crate::mirrored::Mirrored;
use crate::place::Core;
use crate::refusal::Refusal;
use crate::tool_filter;
use crate::url_elicitation;
use linchpin_core::message::{Kind, Request};
use linchpin_core::service::{ServerRequest, ServerRequestError};
use linchpin_core::{Answer, ClientCaps, Features, Method, Reply, ReplyKind, render};
use linchpin_proto::translate::ask::{self, Question};
use linchpin_proto::translate::error::Seen;
use linchpin_proto::translate::{self, Claims, result};
use linchpin_types::error::code;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Rounds of one call.
const ROUNDS_MAX: usize = 16;
/// The longest pause before an upstream is told again that its page is being visited.
const PAGE_PAUSE: Duration = Duration::from_secs(30);
/// The longest `requestState`.
const STATE_BYTES_MAX: usize = 64 << 10;

/// The members of `_meta` of a session's requests to a stateless upstream.
fn claims(request: &Request, instance: &Instance) -> Vec<u8> {
    let caller = &request.caller;
    let capabilities = match instance.is_shared() {
        true => "{}",
        false => caller.capabilities_json(),
    };
    translate::claims(instance.features(), capabilities, caller.client_info_json(), caller.log_level())
}

pub(crate) async fn run(
    core: &Arc<Core>,
    request: &Arc<Request>,
    outlet: &Arc<Outlet>,
    instance: &Arc<Instance>,
    own: &[(Box<str>, String)],
) -> Result<Reply, Failure> {
    if let Some(name) = request.string(request.params.name).filter(|_| request.known() == Some(Method::ToolsCall))
        && core.mirrored.is_wrong(&name)
    {
        return Ok(tool_filter::unknown(request, &name));
    }
    let claims = claims(request, instance);
    let mut more: Vec<(&str, String)> = Vec::new();
    let mut repeated = core.mirrored.headers(request, instance);
    let (mut listed, mut waits) = (false, 0);
    let mut refused: HashSet<String> = HashSet::new();
    let mut pages = Pages { outlet: outlet.clone(), open: BTreeMap::new() };
    for _ in 0..ROUNDS_MAX {
        let mut pending = begin(instance, outlet)?;
        let members: Vec<(&str, &str)> = more.iter().map(|(name, json)| (*name, json.as_str())).collect();
        let mut out = translate::request(request, pending.id, instance.features(), Claims::Say(&claims), &members);
        out.mirrored.extend(own.iter().chain(&repeated).cloned());
        let answer = exchange(core.limit_ms(), instance, outlet, &mut pending, out).await?;
        drop(pending);
        if !listed
            && let Some(headers) =
                core.mirrored.wanted(core.limit_ms(), request, instance, &answer, Claims::Say(&claims)).await
        {
            (repeated, listed) = (headers, true);
            continue;
        }
        let Some(members) = result::asks(&answer.message) else {
            pages.left(&[]);
            return Ok(without_wrong(core, request, instance, finished(request, &answer)));
        };
        if request
            .known()
            .is_none_or(|method| !matches!(method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead))
        {
            return Err(Refusal::internal("the upstream asks for input where its revision does not allow it").into());
        }
        let round = ask::read(&answer.message, members, &mut elicitation_id).map_err(Refusal::internal)?;
        if round.state.as_ref().is_some_and(|state| state.len() > STATE_BYTES_MAX) {
            let why = format!("the upstream's `requestState` is longer than the limit of {STATE_BYTES_MAX} bytes");
            return Err(Refusal::internal(why).into());
        }
        more.clear();
        match round.questions {
            None => {
                let pause = (200_u64 << waits.min(5)).min(5_000);
                waits += 1;
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            Some(questions) => {
                if let Some(pause) = pages.left(&questions) {
                    tokio::time::sleep(pause).await;
                }
                // Whoever shares a connection has declared nothing there.
                let caps = if instance.is_shared() { ClientCaps::default() } else { request.caller.caps() };
                let client = (request.caller.features(), &caps);
                let answers = asked(client, outlet, questions, &mut refused, &mut pages).await?;
                more.push(("inputResponses", ask::responses(&answers)));
            }
        }
        if let Some(state) = round.state {
            more.push(("requestState", state));
        }
    }
    Err(Refusal::internal(format!("the upstream asked for input more than {ROUNDS_MAX} times")).into())
}

/// An id for an elicitation by URL. It only has to differ from others of the session.
fn elicitation_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("bridge-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Pages that the client's user went to visit. The upstream asks for one until it was finished; the user is asked once.
struct Pages {
    outlet: Arc<Outlet>,
    /// By address: the id that the client knows, and how often the upstream has asked since.
    open: BTreeMap<String, (String, u32)>,
}

impl Pages {
    /// Tells the client of those that this round does not ask for any more. The pause before the answer, if it asks for some
    /// again.
    fn left(&mut self, questions: &[Question]) -> Option<Duration> {
        let asked: HashSet<String> = questions.iter().filter_map(page).collect();
        let mut pause = None;
        let outlet = &self.outlet;
        self.open.retain(|url, (id, times)| {
            if asked.contains(url) {
                pause = pause.max(Some(Duration::from_secs(1 << (*times).min(5)).min(PAGE_PAUSE)));
                *times += 1;
                return true;
            }
            let member = format!("\"elicitationId\":\"{id}\"");
            outlet.notify(render::notification("notifications/elicitation/complete", member.as_bytes()));
            false
        });
        pause
    }
}

/// The address of a question that is a page to be visited.
fn page(question: &Question) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        url: String,
    }
    question.elicitation.as_ref()?;
    serde_json::from_str::<Params>(&question.params).ok().map(|params| params.url)
}

/// Whether the client's user agreed.
fn is_accepted(result: &str) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        action: String,
    }
    serde_json::from_str::<Answer>(result).is_ok_and(|answer| answer.action == "accept")
}

/// A question that the client was asked.
struct Waiting {
    key: String,
    method: String,
    /// The page that it is to visit: its id and its address.
    page: Option<(String, String)>,
    answer: oneshot::Receiver<Result<String, ServerRequestError>>,
}

impl Waiting {
    /// The key and the answer, unless the client refuses it for the first time.
    async fn answered(
        self,
        refused: &mut HashSet<String>,
        pages: &mut Pages,
    ) -> Result<Option<(String, String)>, Failure> {
        let Waiting { key, method, page, answer } = self;
        let why = match answer.await {
            Ok(Ok(result)) if !answer_shape::fits(&method, &result) => {
                format!("no answer to `{key}`: {}", answer_shape::WRONG)
            }
            Ok(Ok(result)) => {
                if let Some((id, url)) = page.filter(|_| is_accepted(&result)) {
                    pages.open.insert(url, (id, 0));
                }
                return Ok(Some((key, result)));
            }
            Ok(Err(ServerRequestError::Rpc(code, why))) => format!("the client cannot answer `{key}`: {why} ({code})"),
            _ => format!("there is no answer to `{key}`"),
        };
        if refused.insert(key) { Ok(None) } else { Err(Refusal::internal(why).into()) }
    }
}

/// Asks the client all questions, as many at once as a call may have. One that it refuses, or has not declared, is left
/// out, so that the upstream can go on without; at the second time the call fails.
async fn asked(
    (client, caps): (&Features, &ClientCaps),
    outlet: &Arc<Outlet>,
    questions: Vec<Question>,
    refused: &mut HashSet<String>,
    pages: &mut Pages,
) -> Result<Vec<(String, String)>, Failure> {
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let url = page(&question);
        if url.as_ref().is_some_and(|url| pages.open.contains_key(url)) {
            answers.push((question.key, "{\"action\":\"accept\"}".to_owned()));
            continue;
        }
        if question.elicitation.is_some() && !url.as_deref().is_some_and(url_elicitation::is_for_a_browser) {
            tracing::warn!("the upstream asks its user to open a URL that is not a web page");
            if refused.insert(question.key.clone()) {
                continue;
            }
            return Err(Refusal::internal("the upstream asks the user to open a URL that is not a web page").into());
        }
        let params = match ask::is_declared(&question.method, &question.params, client, caps) {
            true => ask::for_session(&question.method, &question.params, client, caps),
            false => Err(format!("the upstream asks for `{}`, which the client has not declared", question.method)),
        };
        let params = match params {
            Ok(params) => params,
            Err(_) if refused.insert(question.key.clone()) => continue,
            Err(why) => return Err(Refusal::internal(why).into()),
        };
        if waiting.len() == QUESTIONS_MAX
            && let Some(first) = waiting.pop_front()
        {
            answers.extend(first.answered(refused, pages).await?);
        }
        let (answered, answer) = oneshot::channel();
        outlet.ask(ServerRequest {
            method: question.method.clone().into(),
            params,
            answer: Box::new(move |outcome| drop(answered.send(outcome))),
        });
        let page = question.elicitation.zip(url);
        waiting.push_back(Waiting { key: question.key, method: question.method, page, answer });
    }
    for asked in waiting {
        answers.extend(asked.answered(refused, pages).await?);
    }
    Ok(answers)
}

/// A list of tools without those that say in a wrong way which arguments they want repeated in headers: a session's client
/// does not look at that.
fn without_wrong(core: &Core, request: &Request, instance: &Instance, reply: Reply) -> Reply {
    if request.known() != Some(Method::ToolsList) || reply.is_error() || !Mirrored::compares(instance) {
        return reply;
    }
    match core.mirrored.listed(reply.body()) {
        true => tool_filter::without(&request.id, reply.body(), |name| !core.mirrored.is_wrong(name)).unwrap_or(reply),
        false => reply,
    }
}

/// The response for the client.
fn finished(request: &Request, answer: &Answer) -> Reply {
    let message = &answer.message;
    if let Kind::Response { outcome: Err(span), .. } = &message.kind {
        let seen = Seen::read(message.text(*span));
        if seen.code == code::MISSING_REQUIRED_CLIENT_CAPABILITY {
            return missing(request, &seen);
        }
    }
    answered(request, answer, |span| result::to_session(request, message, span))
}

/// The upstream needs a capability that the client does not have. For a model this is the tool's result.
fn missing(request: &Request, seen: &Seen<'_>) -> Reply {
    let needed = seen.data.map_or("", RawValue::get);
    if request.known() != Some(Method::ToolsCall) {
        let data = Some(needed).filter(|data| !data.is_empty());
        return Reply::error(Some(&request.id), code::INTERNAL_ERROR, &seen.message, data);
    }
    let text = format!("The tool needs something that this client cannot do: {} {needed}", seen.message);
    let result = json!({ "content": [{ "type": "text", "text": text.trim_end() }], "isError": true });
    Reply::with_result(&request.id, result.to_string().into()).with_kind(ReplyKind::ToolError)
}
