//! Starts requests about tasks, and declares that there are tasks.

use crate::running_call;
use crate::running_server::RunningServer;
use crate::shared::method_not_found;
use crate::target::CallStart as Started;
use crate::tasks::methods::Asks;
use crate::tasks::owner::Owner;
use crate::tasks::result;
use linchpin_core::message::Request;
use linchpin_core::service::{BoxFuture, CallStart, RequestContext};
use linchpin_core::{Features, Method, Reply};
use linchpin_proto::task;
use linchpin_types::capability::ServerCapabilities;
use linchpin_types::error::code;
use serde_json::json;
use std::sync::Arc;
use std::task::Context;

/// Declares tasks, as the revision has them.
pub(crate) fn announce(capabilities: &mut ServerCapabilities, features: &Features, context: &RequestContext) {
    let raw = |value: serde_json::Value| serde_json::value::to_raw_value(&value).unwrap_or_default();
    if features.task_extension {
        capabilities.extensions.insert(linchpin_proto::task::EXTENSION.to_owned(), raw(json!({})));
    }
    if features.core_tasks {
        let mut tasks = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        // Tasks of nobody in particular cannot be listed: their ids are their keys.
        if Owner::of(context).is_somebody() {
            tasks["list"] = json!({});
        }
        capabilities.tasks = serde_json::from_value(tasks).ok();
    }
}

/// Starts a request about tasks.
pub(crate) fn start(
    core: &RunningServer,
    method: Method,
    request: &Arc<Request>,
    context: &Arc<RequestContext>,
    poll: &mut Context<'_>,
) -> CallStart {
    let owner = Owner::of(context);
    let is_list = method == Method::TasksList;
    if !core.has_tasks() || (is_list && !owner.is_somebody()) {
        return CallStart::Done(method_not_found(request));
    }
    let refuse = |code, why: &str, data| CallStart::Done(Reply::error(Some(&request.id), code, why, data));
    if request.caller.features().task_extension && !task::declared(request) {
        let why = "the client did not declare the tasks extension in this request";
        return refuse(code::MISSING_REQUIRED_CLIENT_CAPABILITY, why, Some(task::REQUIRED));
    }
    let Some(core) = core.this.upgrade() else {
        return refuse(code::INTERNAL_ERROR, "the server is shutting down", None);
    };
    let id = task::id_of(request);
    let (request, context) = (request.clone(), context.clone());
    let asks = Asks { core: core.clone(), storage: core.tasks().clone(), request: request.clone(), context, owner };
    let future: BoxFuture<'static, Reply> = match (method, id) {
        (Method::TasksList, _) => Box::pin(async move { asks.list().await }),
        (_, None) => {
            return refuse(code::INVALID_PARAMS, "`taskId` must be the id of a task", None);
        }
        (Method::TasksUpdate, Some(id)) => Box::pin(async move { asks.update(&id).await }),
        (Method::TasksCancel, Some(id)) => Box::pin(async move { asks.cancel(&id).await }),
        (Method::TasksResult, Some(id)) => return result::start(asks, id, poll),
        (_, Some(id)) => Box::pin(async move { asks.get(&id).await }),
    };
    running_call::launch(&core.shared, &request, Started { future, cx: None }, None, poll)
}
