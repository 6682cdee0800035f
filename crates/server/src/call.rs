//! What happens around a handler: refused arguments, middleware, and the way in.

use crate::answer;
use crate::core::Core;
use crate::cx::Cx;
use crate::explain::Checker;
use crate::handler::{Args, Invocation, Run, Source};
use crate::layer::{Call, Layer, Next};
use crate::rounds::Rounds;
use crate::state::Owner;
use linchpin_proto::frame::Request;
use linchpin_proto::service::{BoxFuture, Door};
use linchpin_proto::{Reply, Span};
use linchpin_types::error::code;
use std::sync::Arc;

/// Longest arguments that are read once more when they did not decode. Reading them as values takes up to forty times
/// their size.
pub(crate) const EXPLAINED_BYTES_MAX: usize = 256 << 10;

/// The slow path: the arguments did not decode, so walk schema and value together and list every problem. Of long
/// arguments it is only said where decoding stopped.
pub(crate) fn bad_arguments(call: Invocation, why: &str) -> Reply {
    let Some(explain) = &call.explain else { return answer::failure(call.out, &format!("invalid arguments: {why}")) };
    let json = call.args.json();
    let problems = match json.len() {
        0..=EXPLAINED_BYTES_MAX => explain.problems(&json, explain.problems_max()),
        _ => Vec::new(),
    };
    let text = invalid(explain.name(), &problems, why);
    answer::failure(call.out, &text)
}

/// The text about arguments that do not fit their schema. `why` is said when the schema found nothing.
pub(crate) fn invalid(name: &str, problems: &[String], why: &str) -> String {
    match problems {
        [] => format!("invalid arguments for `{name}`: {why}"),
        [one] => format!("invalid arguments for `{name}`: {one}"),
        all => format!("invalid arguments for `{name}`:\n- {}", all.join("\n- ")),
    }
}

/// Variables of a URI or arguments of a prompt that do not fit: bad parameters of the request.
pub(crate) fn bad_variables(call: Invocation, why: &str) -> Reply {
    call.out.error(code::INVALID_PARAMS, &format!("invalid arguments: {why}"), None)
}

/// A handler with what is known about it at registration.
#[derive(Clone)]
pub(crate) struct Target {
    /// The tool's or prompt's name, or the URI or template of the resource, as it was registered.
    pub(crate) name: Arc<str>,
    pub(crate) run: Run,
    pub(crate) layers: Arc<[Layer]>,
    pub(crate) wants_cx: bool,
    /// Whether its state is one for each session.
    pub(crate) per_session: bool,
    pub(crate) explain: Option<Arc<Checker>>,
}

/// A started handler.
pub(crate) struct Started {
    pub(crate) future: BoxFuture<'static, Reply>,
    pub(crate) cx: Option<Cx>,
    /// What is run, for the log.
    pub(crate) name: Option<Arc<str>>,
}

/// Starts the handler of `target`, through its layers. The context is made only if someone looks at it.
pub(crate) fn start(
    core: &Arc<Core>,
    target: &Target,
    request: &Request,
    door: Door,
    args: Args,
) -> Result<Started, Reply> {
    let out = core.writer(request);
    let layers = core.layers(&target.layers);
    let owner = target.per_session.then(|| owner(request, &door)).flatten();
    let cx = if target.wants_cx || layers.is_some() {
        let rounds = Rounds::of(request, door.principal.as_deref(), core)?;
        Some(Cx::new(request.clone(), door, core.clone(), rounds))
    } else {
        None
    };
    let invocation = Invocation { args, cx: cx.clone(), out, explain: target.explain.clone(), owner };
    let future = match (layers, &cx) {
        (Some(layers), Some(cx)) => Next::new(layers, target.run.clone()).run(Call::new(invocation, cx.clone())),
        _ => (target.run)(invocation),
    };
    Ok(Started { future, cx, name: Some(target.name.clone()) })
}

/// Who keeps the state of this call. Nobody where a request stands alone.
fn owner(request: &Request, door: &Door) -> Option<Owner> {
    let connection = door.connection.clone().map(Owner::Connection);
    connection.or_else(|| request.caller.session().cloned().map(Owner::Session))
}

/// Arguments as they stand in the request.
pub(crate) fn json_args(request: &Request, span: Option<Span>) -> Args {
    Args(Source::Json(request.frame.clone(), span))
}
