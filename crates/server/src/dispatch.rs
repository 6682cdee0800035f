//! Around the handler: invalid arguments, middleware, and the call itself.

use crate::cx::Cx;
use crate::invocation::EXPLAINED_BYTES_MAX;
use crate::invocation::{Args, Invocation};
use crate::layer::{Call, Layer, Next};
use crate::mrtr::RoundTrips;
use crate::shared::Shared;
use crate::state::Owner;
use crate::target::{CallStart, Target};
#[cfg(feature = "tasks")]
use crate::tasks::link::Link;
use crate::tool_result;
use linchpin_core::Reply;
use linchpin_core::message::Request;
use linchpin_core::service::RequestContext;
use linchpin_types::error::code;
use std::sync::Arc;

/// The slow path after a decoding error: walks schema and value together and lists every problem. For large arguments
/// only the position where decoding stopped is reported.
pub(crate) fn bad_arguments(call: Invocation, why: &str) -> Reply {
    let Some(explain) = &call.explain else {
        return tool_result::failure(call.out, &format!("invalid arguments: {why}"));
    };
    let json = call.args.json();
    let problems = match json.len() {
        0..=EXPLAINED_BYTES_MAX => explain.problems(&json, explain.problems_max()),
        _ => Vec::new(),
    };
    let text = invalid(explain.name(), &problems, why);
    tool_result::failure(call.out, &text)
}

/// The message about arguments that do not match their schema. `why` is used if the schema finds no problem.
pub(crate) fn invalid(name: &str, problems: &[String], why: &str) -> String {
    match problems {
        [] => format!("invalid arguments for `{name}`: {why}"),
        [one] => format!("invalid arguments for `{name}`: {one}"),
        all => format!("invalid arguments for `{name}`:\n- {}", all.join("\n- ")),
    }
}

/// Invalid variables of a URI or arguments of a prompt: an invalid-params error.
pub(crate) fn bad_variables(call: Invocation, why: &str) -> Reply {
    call.out.error(code::INVALID_PARAMS, &format!("invalid arguments: {why}"), None)
}

/// Invalid parameters of a custom method.
pub(crate) fn bad_parameters(call: Invocation, why: &str) -> Reply {
    call.out.error(code::INVALID_PARAMS, &format!("invalid parameters: {why}"), None)
}

/// Starts the handler of `target`, through `layers` if there are any. The context is created only if it is used.
pub(crate) fn start(
    shared: &Arc<Shared>,
    layers: Option<Arc<[Layer]>>,
    target: &Target,
    request: &Arc<Request>,
    context: Arc<RequestContext>,
    args: Args,
) -> Result<CallStart, Reply> {
    let owner = target.per_session.then(|| Owner::of(&request.caller, &context)).flatten();
    let cx = if target.wants_cx || layers.is_some() {
        let mut round_trips = RoundTrips::of(request, context.principal.as_ref(), shared)?;
        round_trips.remember(&context);
        Some(Cx::new(request.clone(), context, shared.clone(), round_trips))
    } else {
        None
    };
    Ok(invoke(shared, layers, target, request, args, cx, owner))
}

/// Like [`start`], for a call that may become a task: it always has a context.
#[cfg(feature = "tasks")]
pub(crate) fn start_linked(
    shared: &Arc<Shared>,
    layers: Option<Arc<[Layer]>>,
    target: &Target,
    (request, context): (&Arc<Request>, Arc<RequestContext>),
    args: Args,
    link: Arc<Link>,
) -> Result<CallStart, Reply> {
    let owner = target.per_session.then(|| Owner::of(&request.caller, &context)).flatten();
    let mut round_trips = RoundTrips::of(request, context.principal.as_ref(), shared)?;
    round_trips.remember(&context);
    let cx = Cx::linked(request.clone(), context, shared.clone(), round_trips, link);
    Ok(invoke(shared, layers, target, request, args, Some(cx), owner))
}

fn invoke(
    shared: &Arc<Shared>,
    layers: Option<Arc<[Layer]>>,
    target: &Target,
    request: &Arc<Request>,
    args: Args,
    cx: Option<Cx>,
    owner: Option<Owner>,
) -> CallStart {
    #[cfg_attr(not(feature = "tasks"), allow(unused_mut))]
    let mut out = shared.writer(request);
    #[cfg(feature = "tasks")]
    if cx.as_ref().is_some_and(|cx| cx.link().is_some()) {
        out.shrink_to_fit();
    }
    let invocation = Invocation { args, cx: cx.clone(), out, explain: target.explain.clone(), owner };
    let future = match (layers, &cx) {
        (Some(layers), Some(cx)) => {
            Next::new(layers, target.run.clone()).start(Call::new(invocation, cx.clone(), Some(target.name.clone())))
        }
        _ => (target.run)(invocation),
    };
    CallStart { future, cx }
}
