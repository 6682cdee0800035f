//! Around the handler: invalid arguments, middleware, and the call itself.

use crate::cx::Cx;
use crate::handler::{Args, Invocation, Run, Source};
use crate::layer::{Call, Layer, Next};
use crate::mrtr::RoundTrips;
use crate::service::RunningServer;
use crate::state::Owner;
use crate::tool_result;
use crate::validate::Checker;
use linchpin_core::message::Request;
use linchpin_core::service::{BoxFuture, RequestContext};
use linchpin_core::{Reply, Span};
use linchpin_types::error::code;
use std::sync::Arc;

/// Maximum size of arguments that are parsed again after a decoding error. As values they take up to forty times their
/// size.
pub(crate) const EXPLAINED_BYTES_MAX: usize = 256 << 10;

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

/// A handler with its registration data.
#[derive(Clone)]
pub(crate) struct Target {
    /// The registered name of the tool or prompt, or the URI or template of the resource.
    pub(crate) name: Arc<str>,
    pub(crate) run: Run,
    pub(crate) layers: Arc<[Layer]>,
    pub(crate) wants_cx: bool,
    /// Whether its state is per session.
    pub(crate) per_session: bool,
    pub(crate) explain: Option<Arc<Checker>>,
}

/// A started handler.
pub(crate) struct CallStart {
    pub(crate) future: BoxFuture<'static, Reply>,
    pub(crate) cx: Option<Cx>,
    /// The name of the handler, for the log.
    pub(crate) name: Option<Arc<str>>,
}

/// Starts the handler of `target`, through its layers. The context is created only if it is used.
pub(crate) fn start(
    core: &Arc<RunningServer>,
    target: &Target,
    request: &Request,
    door: RequestContext,
    args: Args,
) -> Result<CallStart, Reply> {
    through(core, target, core.layers(&target.layers), request, door, args)
}

/// Starts the handler of `target` without layers.
pub(crate) fn unlayered(
    core: &Arc<RunningServer>,
    target: &Target,
    request: &Request,
    door: RequestContext,
    args: Args,
) -> Result<CallStart, Reply> {
    through(core, target, None, request, door, args)
}

fn through(
    core: &Arc<RunningServer>,
    target: &Target,
    layers: Option<Arc<[Layer]>>,
    request: &Request,
    door: RequestContext,
    args: Args,
) -> Result<CallStart, Reply> {
    let out = core.writer(request);
    let owner = target.per_session.then(|| Owner::of(&request.caller, &door)).flatten();
    let cx = if target.wants_cx || layers.is_some() {
        let round_trips = RoundTrips::of(request, door.principal.as_ref(), core)?;
        Some(Cx::new(request.clone(), door, core.clone(), round_trips))
    } else {
        None
    };
    let invocation = Invocation { args, cx: cx.clone(), out, explain: target.explain.clone(), owner };
    let future = match (layers, &cx) {
        (Some(layers), Some(cx)) => Next::new(layers, target.run.clone()).run(Call::new(invocation, cx.clone())),
        _ => (target.run)(invocation),
    };
    Ok(CallStart { future, cx, name: Some(target.name.clone()) })
}

/// The arguments as sent in the request.
pub(crate) fn json_args(request: &Request, span: Option<Span>) -> Args {
    Args(Source::Json(request.frame.clone(), span))
}
