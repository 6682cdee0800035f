//! Completion for the arguments of prompts and the variables of resource templates.

use crate::access::Access;
use crate::completion;
use crate::dispatch::{self};
use crate::invocation::{Args, Source};
use crate::running_call;
use crate::running_server::RunningServer;
use crate::shared::{clip, fail};
use crate::target::Target;
use crate::validate;
use crate::viewer::Viewer;
use linchpin_core::json::read_object;
use linchpin_core::message::Request;
use linchpin_core::service::{CallStart, RequestContext};
use linchpin_types::complete::{CompleteReference, CompleteRequestParams};
use linchpin_types::error::code;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::task::Context;

/// `completion/complete`
pub(crate) fn start(
    core: &RunningServer,
    request: &Arc<Request>,
    context: Arc<RequestContext>,
    task: &mut Context<'_>,
) -> CallStart {
    if !core.completes() {
        return fail(request, code::METHOD_NOT_FOUND, "this server has no completions");
    }
    let params = match read(request.params_text()) {
        Ok(params) => params,
        Err(e) => {
            let why = format!("malformed completion request: {}", validate::serde_message(&e));
            return fail(request, code::INVALID_PARAMS, &why);
        }
    };
    let (access, target) = match find(core, &params, || Viewer::of(request, &context)) {
        Ok(found) => found,
        Err(why) => return fail(request, code::INVALID_PARAMS, &why),
    };
    if let Err(reply) = access.admit(&request.id, &context) {
        return CallStart::Done(reply);
    }
    let Some(target) = target else { return CallStart::Done(completion::write(&[], core.writer(request))) };
    let known = params.context.map(|c| c.arguments).unwrap_or_default();
    let asked =
        serde_json::json!({ "argument": params.argument.name, "value": params.argument.value, "context": known });
    match dispatch::start(&core.shared, None, &target, request, context, Args(Source::Owned(asked.to_string().into())))
    {
        Ok(call) => running_call::launch(&core.shared, request, call, Some(&target.name), task),
        Err(reply) => CallStart::Done(reply),
    }
}

/// Reads the parameters, whose members are objects.
fn read(json: &str) -> serde_json::Result<CompleteRequestParams> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "ref")]
        reference: &'a RawValue,
        #[serde(borrow)]
        argument: &'a RawValue,
        #[serde(borrow)]
        context: Option<&'a RawValue>,
    }
    let params: Params<'_> = read_object(json)?;
    let reference = read_object(params.reference.get())?;
    let mut asked = CompleteRequestParams::new(reference, read_object(params.argument.get())?);
    asked.context = params.context.map(|context| read_object(context.get())).transpose()?;
    Ok(asked)
}

/// The item whose argument is completed, and the function that does it, if there is one.
fn find(
    core: &RunningServer,
    params: &CompleteRequestParams,
    viewer: impl FnOnce() -> Viewer,
) -> Result<(Access, Option<Target>), String> {
    let argument = params.argument.name.as_str();
    match &params.reference {
        CompleteReference::Prompt(prompt) => match core.registries.prompts.snapshot().find(&prompt.name, viewer) {
            None => Err(format!("Unknown prompt: {}", clip(&prompt.name))),
            Some(e) if !e.item.def.arguments.iter().any(|a| a.name == argument) => {
                Err(format!("prompt `{}` has no argument `{}`", prompt.name, clip(argument)))
            }
            Some(e) => Ok((e.item.access.clone(), e.item.completes.get(argument).cloned())),
        },
        CompleteReference::Resource(resource) => match core.registries.resources.snapshot().find(&resource.uri, viewer)
        {
            None => Err(format!("Unknown resource template: {}", clip(&resource.uri))),
            Some(e) if !e.item.template.as_ref().is_some_and(|t| t.variables().any(|name| name == argument)) => {
                Err(format!("resource template `{}` has no variable `{}`", clip(&resource.uri), clip(argument)))
            }
            Some(e) => Ok((e.item.access.clone(), e.item.completes.get(argument).cloned())),
        },
        _ => Err("Unknown kind of reference".into()),
    }
}
