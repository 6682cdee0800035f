//! The way of a call to the upstream and back.

use crate::call::Outlet;
use crate::exchange::{Failure, answered, begin, exchange, unanswered};
use crate::instance::Instance;
use crate::listen;
use crate::mirrored::Mirrored;
use crate::multi_round_trip;
use crate::options::Isolation;
use crate::parked::Parked;
use crate::place::{Core, can_be_asked};
use crate::refusal::Refusal;
use crate::url_elicitation::{self, Visited};
use linchpin_core::message::{Kind, Request};
use linchpin_core::service::RequestContext;
use linchpin_core::{Answer, Method, Reply};
use linchpin_proto::translate::{self, Claims, error, open, result};
use linchpin_types::error::code;
use linchpin_types::logging::LoggingLevel;
use std::sync::Arc;

/// Runs a call and returns its response.
pub(crate) async fn run(
    core: Arc<Core>,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    outlet: Arc<Outlet>,
) -> Reply {
    let reply = passed(&core, &request, &context, &outlet).await;
    core.tool_filter.listed(&request, reply)
}

async fn passed(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &Arc<RequestContext>,
    outlet: &Arc<Outlet>,
) -> Reply {
    if !request.caller.features().multi_round_trip {
        return attempt(core, request, context, outlet).await;
    }
    match core.parking.find(request, context) {
        Some(Ok(parked)) => {
            parked.answer(request);
            return parked.wait(&core.parking, &request.id, outlet).await;
        }
        Some(Err(why)) => match core.upstream(request, context).await {
            // It is the upstream's, which may be a bridge too.
            Ok(upstream) if upstream.multi_round_trip => {}
            Ok(_) => return Reply::error(Some(&request.id), code::INVALID_PARAMS, why, None),
            Err(refusal) => return refusal.reply(&request.id, &core.pool.name),
        },
        None => {}
    }
    match parks(core, request, context).await {
        Ok(false) => attempt(core, request, context, outlet).await,
        // Futures of what is rare are boxed, to keep the common one small.
        Ok(true) => Box::pin(park(core, request, context, outlet)).await,
        Err(refusal) => refusal.reply(&request.id, &core.pool.name),
    }
}

/// Whether the upstream may ask in the middle of the call, as this client cannot be asked.
async fn parks(core: &Arc<Core>, request: &Request, context: &RequestContext) -> Result<bool, Refusal> {
    let rounds = [Method::ToolsCall, Method::PromptsGet, Method::ResourcesRead];
    let asks = core.pool.options.isolation != Isolation::Shared && can_be_asked(&request.caller);
    if !asks || !request.known().is_some_and(|method| rounds.contains(&method)) {
        return Ok(false);
    }
    core.upstream(request, context).await.map(|upstream| upstream.server_requests)
}

/// Runs a call that stays when its client is asked something.
async fn park(core: &Arc<Core>, request: &Arc<Request>, context: &Arc<RequestContext>, outlet: &Arc<Outlet>) -> Reply {
    let Some(parked) = Parked::new(request, context) else {
        return Refusal::internal("the system cannot provide random numbers").reply(&request.id, &core.pool.name);
    };
    let source = Outlet::relayed(request.id.clone(), outlet.token().map(Into::into), parked.clone());
    source.set_logs(request.caller.log_level());
    let work = {
        let (core, request, context) = (core.clone(), request.clone(), context.clone());
        let parked = parked.clone();
        tokio::spawn(async move { parked.done(&core.parking, attempt(&core, &request, &context, &source).await) })
    };
    parked.works(work.abort_handle());
    parked.wait(&core.parking, &request.id, outlet).await
}

/// Runs a call, once more if the upstream did not take it.
async fn attempt(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &Arc<RequestContext>,
    outlet: &Arc<Outlet>,
) -> Reply {
    let done = run_once(core, request, context, outlet).await;
    let done = match done {
        // The upstream had forgotten the session, so that it did not run the call.
        Err(Failure::Forgotten) => Box::pin(run_once(core, request, context, outlet)).await,
        done => done,
    };
    match done {
        Ok(reply) => reply,
        Err(Failure::Refused(refusal)) => refusal.reply(&request.id, &core.pool.name),
        Err(Failure::Forgotten) => Refusal::unavailable("the upstream has forgotten a session that was just opened")
            .reply(&request.id, &core.pool.name),
    }
}

async fn run_once(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &Arc<RequestContext>,
    outlet: &Arc<Outlet>,
) -> Result<Reply, Failure> {
    let place = core.place(request, context).await?;
    let instance = place.instance();
    let own = request.caller.session().filter(|_| place.is_kept() && !instance.features().has_sessions);
    if let Some(session) = own {
        listen::hold(instance, session);
    }
    if request.known() == Some(Method::Initialize) {
        let opened = open::initialized(request.caller.features(), &instance.raw().agreed);
        return Ok(Reply::with_result(&request.id, opened.into()));
    }
    let session = request.caller.session().filter(|_| !place.is_kept() && instance.features().has_sessions);
    if let Some(level) = session.map(|session| session.log_level()).filter(|level| *level != LoggingLevel::Info) {
        // What the client has set was said on another connection.
        outlet.set_logs(Some(level));
        let _ = Box::pin(listen::least(core, instance, level)).await?;
    }
    let done = translated(core, request, context, outlet, instance).await;
    if matches!(done, Err(Failure::Forgotten)) {
        let why = "the upstream forgot the session";
        if place.is_kept() {
            let own = Some(core).filter(|core| core.pool.options.isolation != Isolation::Shared);
            let own = own.and_then(|core| core.own(&request.caller, context));
            own.unwrap_or_else(|| core.everybody(request.caller.features(), context)).forget(instance, why);
        } else {
            instance.clone().close_later(why);
        }
        // After that: who shares depends on it.
        core.pool.forget_era();
    }
    done
}

/// Sends a request in the way that the eras of both sides have, and translates the answer.
async fn translated(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &RequestContext,
    outlet: &Arc<Outlet>,
    instance: &Arc<Instance>,
) -> Result<Reply, Failure> {
    let (client, upstream) = (request.caller.features(), instance.features());
    if client.has_sessions != upstream.has_sessions {
        outlet.only_increase();
    }
    match (client.has_sessions, upstream.has_sessions) {
        (true, false) => match listen::for_session(core, request, instance).await {
            Some(reply) => Ok(reply),
            None => {
                let own = own_headers(core, context, instance);
                Box::pin(multi_round_trip::run(core, request, outlet, instance, &own)).await
            }
        },
        (false, true) if request.known() == Some(Method::ServerDiscover) => Ok(Reply::with_result(
            &request.id,
            open::discovered(&instance.raw().agreed, &core.pool.options.clients).into(),
        )),
        (false, true) if request.known() == Some(Method::SubscriptionsListen) => {
            Box::pin(listen::stateless(core, request, outlet, instance)).await
        }
        (false, true) => {
            let visited = Visited::of(request);
            if let Visited::Refused = visited {
                return Ok(url_elicitation::refused(request));
            }
            if let Some(level) = request.caller.log_level() {
                // A refusal is not a reason not to call.
                let _ = listen::least(core, instance, level).await?;
            }
            let mut pauses = url_elicitation::pauses().filter(|_| matches!(visited, Visited::All));
            let answer = loop {
                let answer = sent(core, request, context, outlet, instance, Claims::Drop).await?;
                let Kind::Response { outcome: Err(error), .. } = &answer.message.kind else { break answer };
                if !url_elicitation::wanted(&request.caller, answer.message.text(*error)) {
                    break answer;
                }
                // Whoever has accepted may not have finished there. The call did not run.
                match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => match url_elicitation::asked(request, answer.message.text(*error)) {
                        Some(asked) => return Ok(asked),
                        None => break answer,
                    },
                }
            };
            Ok(answered(request, &answer, |span| {
                result::to_stateless(request, &answer.message, span, instance.server_info())
            }))
        }
        (true, true) if listen::joins(request, instance) => {
            Box::pin(listen::shared_session(core, request, instance)).await
        }
        _ => {
            let answer = sent(core, request, context, outlet, instance, Claims::Keep).await?;
            let reply = same(request, &answer);
            if client.has_sessions {
                listen::noted(core, request, context, instance, &reply);
            }
            Ok(reply)
        }
    }
}

/// Sends a request as it is but for its id, its token and its claims.
async fn sent(
    core: &Arc<Core>,
    request: &Arc<Request>,
    context: &RequestContext,
    outlet: &Arc<Outlet>,
    instance: &Arc<Instance>,
    claims: Claims<'_>,
) -> Result<Answer, Failure> {
    let own = own_headers(core, context, instance);
    // A client on a pipe repeats nothing in headers.
    let repeats = context.headers.is_empty();
    let mut repeated = if repeats { core.mirrored.headers(request, instance) } else { Vec::new() };
    for attempt in 0..2 {
        let mut pending = begin(instance, outlet)?;
        let mut out = translate::request(request, pending.id, instance.features(), claims, &[]);
        out.mirrored.extend(own.iter().chain(&repeated).cloned());
        let answer = exchange(core.limit_ms(), instance, outlet, &mut pending, out).await?;
        if attempt == 0
            && repeats
            && let Some(headers) = core.mirrored.wanted(core.limit_ms(), request, instance, &answer, claims).await
        {
            repeated = headers;
            continue;
        }
        if request.known() == Some(Method::ToolsList)
            && (repeats || !Mirrored::compares(instance))
            && let Kind::Response { outcome: Ok(span), .. } = &answer.message.kind
        {
            // What the upstream cannot compare is compared here, and what the client cannot repeat is repeated.
            core.mirrored.listed(answer.message.text(*span));
        }
        return Ok(answer);
    }
    Err(Refusal::internal("the upstream does not accept the headers that repeat its tool's arguments").into())
}

/// The answer of an upstream of the client's era.
fn same(request: &Request, answer: &Answer) -> Reply {
    let message = &answer.message;
    match &message.kind {
        Kind::Response { outcome: Ok(span), .. } if request.known() == Some(Method::SubscriptionsListen) => {
            result::listened(&request.id, message, *span)
        }
        Kind::Response { outcome: Ok(span), .. } => result::same(&request.id, message, *span),
        Kind::Response { outcome: Err(span), .. } => error::same(&request.id, message, *span),
        _ => unanswered(request),
    }
}

/// The client's headers that are sent on: those that the operator names, and arguments that are repeated for a stateless
/// upstream.
fn own_headers(core: &Core, context: &RequestContext, instance: &Instance) -> Vec<(Box<str>, String)> {
    let named = &core.pool.options.forward_headers;
    let repeats = instance.features().header_params;
    let wanted = |name: &str| (repeats && name.starts_with("mcp-param-")) || named.iter().any(|known| **known == *name);
    let all = context.headers.iter().filter(|(name, _)| wanted(name.as_str()));
    all.filter_map(|(name, value)| Some((name.as_str().into(), value.to_str().ok()?.to_owned()))).collect()
}
