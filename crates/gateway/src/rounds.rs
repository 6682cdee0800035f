//! A call of a client with a session to an upstream that asks in its results: each question becomes a request to the
//! client, and the call is repeated with the answers.

use crate::call::Outlet;
use crate::exchange::{Failure, answered, begin, exchange};
use crate::instance::Instance;
use crate::place::Core;
use crate::refusal::Refusal;
use linchpin_core::message::{Kind, Request};
use linchpin_core::service::ServerRequest;
use linchpin_core::{Answer, Method, Reply, ReplyKind, render};
use linchpin_proto::translate::ask::{self, Question};
use linchpin_proto::translate::error::Seen;
use linchpin_proto::translate::{self, Claims, result};
use linchpin_types::error::code;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Rounds of one call.
const ROUNDS_MAX: usize = 16;
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
    let claims = claims(request, instance);
    let mut more: Vec<(&str, String)> = Vec::new();
    let mut repeated: Vec<(Box<str>, String)> = Vec::new();
    let (mut listed, mut waits) = (false, 0);
    let mut refused: HashSet<String> = HashSet::new();
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
            return Ok(finished(request, &answer));
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
                let answers = asked(outlet, questions, &mut refused).await?;
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

/// Asks the client all questions at once. One that it refuses is left out, so that the upstream can go on without; at the
/// second time the call fails.
async fn asked(
    outlet: &Arc<Outlet>,
    questions: Vec<Question>,
    refused: &mut HashSet<String>,
) -> Result<Vec<(String, String)>, Failure> {
    let mut waiting = Vec::with_capacity(questions.len());
    for question in questions {
        let (answered, answer) = oneshot::channel();
        outlet.ask(ServerRequest {
            method: question.method.into(),
            params: question.params,
            answer: Box::new(move |outcome| drop(answered.send(outcome))),
        });
        waiting.push((question.key, question.elicitation, answer));
    }
    let mut answers = Vec::with_capacity(waiting.len());
    for (key, elicitation, answer) in waiting {
        match answer.await {
            Ok(Ok(result)) => {
                if let Some(id) = elicitation {
                    // The upstream learns of it with the answer; what is open at the URL is its own affair.
                    let member = format!("\"elicitationId\":\"{id}\"");
                    outlet.notify(render::notification("notifications/elicitation/complete", member.as_bytes()));
                }
                answers.push((key, result));
            }
            _ if refused.insert(key.clone()) => {}
            Ok(Err(why)) => {
                return Err(Refusal::internal(format!("the client cannot answer `{key}`: {why:?}")).into());
            }
            Err(_) => return Err(Refusal::internal(format!("there is no answer to `{key}`")).into()),
        }
    }
    Ok(answers)
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
