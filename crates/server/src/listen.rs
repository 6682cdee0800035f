//! `subscriptions/listen`: a request that is acknowledged, then sends notifications until either side ends it.

use crate::notification::{self, Watch};
use crate::running_call::Flag;
use crate::running_server::RunningServer;
#[cfg(feature = "tasks")]
use crate::tasks::listen::TaskStream;
use linchpin_core::json::{read_object, write_str};
use linchpin_core::message::Request;
use linchpin_core::service::{BoxFuture, CallStart, RequestContext};
use linchpin_core::subscription::Filter;
use linchpin_core::{
    CallEvent, Cancel, Id, Reply, ReplyKind, ResultWriter, RunningCall, Subscription, SubscriptionHandle, render,
};
use linchpin_types::error::code;
use linchpin_types::subscribe::SubscriptionFilter;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;
use tokio::time::Sleep;

/// Opens a subscription.
pub(crate) fn open(core: &RunningServer, request: &Request, context: &RequestContext) -> CallStart {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        notifications: &'a RawValue,
    }
    let fail = |code, why: &str| CallStart::Done(Reply::error(Some(&request.id), code, why, None));
    let params = serde_json::from_str::<Params<'_>>(request.params_text());
    let wanted = match params.and_then(|params| read_object::<SubscriptionFilter>(params.notifications.get())) {
        Ok(wanted) => wanted,
        Err(e) => return fail(code::INVALID_PARAMS, &format!("`notifications` is malformed: {e}")),
    };
    if wanted.resource_subscriptions.len() > core.limits.subscriptions.resources_max {
        let why = format!("too many resources in one subscription (limit {})", core.limits.subscriptions.resources_max);
        return fail(code::INVALID_PARAMS, &why);
    }
    let [tools, resources, prompts] = core.offered();
    let on = |asked: Option<bool>, offered: bool| asked == Some(true) && offered;
    let filter = Filter {
        tools: on(wanted.tools_list_changed, tools),
        prompts: on(wanted.prompts_list_changed, prompts),
        resources: on(wanted.resources_list_changed, resources),
    };
    let Some(feed) = core.subscription(filter, &request.caller, context) else {
        return fail(code::INTERNAL_ERROR, "too many open subscriptions; close one and try again");
    };
    if resources && !wanted.resource_subscriptions.is_empty() {
        if let Err(busy) = notification::admit(core, &request.id) {
            return CallStart::Done(busy);
        }
        for uri in &wanted.resource_subscriptions {
            if let Err(reply) = core.may_subscribe(uri, request, context) {
                return CallStart::Done(reply);
            }
            if let Err(why) = feed.feed().subscribe(uri, core.limits.subscriptions.resources_max, &core.budget) {
                return CallStart::Done(core.subscribe_refused(&request.id, why));
            }
        }
    }
    #[cfg(feature = "tasks")]
    let tasks = match TaskStream::of(core, request, context, wanted.task_ids) {
        Ok(tasks) => tasks.map(Box::new),
        Err(reply) => return CallStart::Done(reply),
    };
    let (watch, opening) = watch(core, request, context, feed.feed()).unzip();
    let (end, shared) = (Box::new(core.writer(request)), feed.feed().clone());
    let lasts = context.principal.as_ref().and_then(|principal| principal.lasts(SystemTime::now()));
    CallStart::Running(Box::new(Listen {
        id: request.id.clone(),
        feed,
        filter,
        #[cfg(feature = "tasks")]
        tasks,
        opening,
        acknowledged: false,
        _watch: watch,
        expires: lasts.map(|lasts| Box::pin(tokio::time::sleep(lasts))),
        end: Some(end),
        stop: Arc::new(Stop { cancelled: Flag::default(), feed: shared }),
    }))
}

/// The hooks for the resources of a new stream: what they refuse is not subscribed to. `None` if there is nothing to run.
fn watch(
    core: &RunningServer,
    request: &Request,
    context: &RequestContext,
    feed: &Arc<Subscription>,
) -> Option<(Arc<Watch>, BoxFuture<'static, ()>)> {
    let uris = feed.subscriptions();
    let core = core.this.upgrade().filter(|core| core.hooks.subscriptions() && !uris.is_empty())?;
    let (id, caller, feed) = (request.id.clone(), request.caller.detached(), feed.clone());
    let watch = Arc::new(Watch::new(core.this.clone(), caller.clone(), context));
    let watching = watch.clone();
    let opening = Box::pin(async move {
        for uri in uris {
            if let Err(refused) = watching.ask(&uri, &feed).run(&core, &id, &caller).await {
                tracing::debug!(error = refused.body(), "a subscription was refused");
            }
        }
    });
    Some((watch, opening))
}

/// The granted filter, as members of an object.
fn granted(filter: Filter, uris: &[Box<str>]) -> Vec<u8> {
    let mut out = Vec::new();
    let flags = [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ];
    for (name, _) in flags.iter().filter(|(_, on)| *on) {
        separate(&mut out);
        write_str(&mut out, name);
        out.extend_from_slice(b":true");
    }
    list(&mut out, "resourceSubscriptions", uris.iter().map(|uri| &**uri));
    out
}

/// Adds a member with these texts, if there are any.
fn list<'a>(out: &mut Vec<u8>, name: &str, texts: impl Iterator<Item = &'a str>) {
    for (at, text) in texts.enumerate() {
        if at == 0 {
            separate(out);
            write_str(out, name);
            out.extend_from_slice(b":[]");
        }
        out.pop();
        if at > 0 {
            out.push(b',');
        }
        write_str(out, text);
        out.push(b']');
    }
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

struct Listen {
    id: Id,
    feed: SubscriptionHandle,
    filter: Filter,
    #[cfg(feature = "tasks")]
    tasks: Option<Box<TaskStream>>,
    /// Runs the hooks of the subscriptions.
    opening: Option<BoxFuture<'static, ()>>,
    acknowledged: bool,
    /// Runs the hooks when the stream ends.
    _watch: Option<Arc<Watch>>,
    /// Ends the stream when the authentication of its reader expires.
    expires: Option<Pin<Box<Sleep>>>,
    end: Option<Box<ResultWriter>>,
    stop: Arc<Stop>,
}

/// Ends a subscription from outside of the task that polls it.
struct Stop {
    cancelled: Flag,
    feed: Arc<Subscription>,
}

impl Cancel for Stop {
    fn cancel(&self) {
        self.cancelled.cancel();
    }

    fn finish(&self) {
        self.feed.close();
    }
}

impl RunningCall for Listen {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        if self.stop.cancelled.poll(cx) {
            return Poll::Ready(CallEvent::Cancelled);
        }
        if let Some(opening) = &mut self.opening {
            ready!(opening.as_mut().poll(cx));
            self.opening = None;
        }
        if !self.acknowledged {
            #[cfg(feature = "tasks")]
            let ids = match &mut self.tasks {
                Some(tasks) => ready!(tasks.poll_open(cx)),
                None => Vec::new(),
            };
            #[cfg(not(feature = "tasks"))]
            let ids: Vec<String> = Vec::new();
            self.acknowledged = true;
            let mut granted = granted(self.filter, &self.feed.feed().subscriptions());
            list(&mut granted, "taskIds", ids.iter().map(String::as_str));
            return Poll::Ready(CallEvent::Notify(render::acknowledged(&self.id, &granted)));
        }
        if self.expires.as_mut().is_some_and(|expires| expires.as_mut().poll(cx).is_ready()) {
            self.expires = None;
            self.feed.feed().close();
        }
        match self.feed.feed().poll_next(cx) {
            #[cfg(feature = "tasks")]
            Poll::Pending if self.tasks.is_some() => match &mut self.tasks {
                Some(tasks) => tasks.poll_next(cx).map(CallEvent::Notify),
                None => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(change)) => Poll::Ready(CallEvent::Notify(change.frame(Some(&self.id)))),
            Poll::Ready(None) => match self.end.take() {
                Some(mut end) => {
                    let meta = format!("\"io.modelcontextprotocol/subscriptionId\":{}", self.id);
                    end.meta(meta.as_bytes());
                    Poll::Ready(CallEvent::Done(end.finish(ReplyKind::Complete)))
                }
                None => Poll::Ready(CallEvent::Cancelled),
            },
        }
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.stop.clone()
    }
}
