//! A call of a tool that may become a task: answered directly, or moved to a runner.

use crate::cx::{CallState, Cx, Out};
use crate::digest::digest;
use crate::dispatch;
use crate::invocation::Args;
use crate::registry::Entry;
use crate::running_call::{self, About, Counted};
use crate::running_server::RunningServer;
use crate::shared::fail;
use crate::tasks::capacity::Slot;
use crate::tasks::link::Link;
use crate::tasks::live::{Handle, Handled};
use crate::tasks::options::{Mode, TaskTool};
use crate::tasks::owner::Owner;
use crate::tasks::record::{Call, Who};
use crate::tasks::recovery;
use crate::tasks::runner;
use crate::tasks::storage::{NewTask, Storage, TaskError};
use crate::tool::Registered;
use linchpin_core::message::Request;
use linchpin_core::service::{BoxFuture, CallStart, RequestContext};
use linchpin_core::{CallEvent, Cancel, Reply, ReplyKind, RunningCall};
use linchpin_proto::task;
use linchpin_types::error::code;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// What becomes of a call of a tool, as far as tasks are concerned.
pub(crate) enum Decision {
    /// It is a call like any other.
    Plain,
    /// It may become a task, or must; with the time to live that the caller asks for.
    Task(Mode, Option<u64>),
    Refused(Reply),
}

/// Decides about a call.
pub(crate) fn decide(core: &RunningServer, tool: &Registered, request: &Request) -> Decision {
    let features = request.caller.features();
    let tasks = tool.task.as_deref();
    let refuse =
        |code, why: &str, data: Option<&str>| Decision::Refused(Reply::error(Some(&request.id), code, why, data));
    let wish = match task::asked(request) {
        Ok(wish) => wish,
        Err(why) if core.has_tasks() => return refuse(code::INVALID_PARAMS, why, None),
        Err(_) => None,
    };
    match (tasks, wish) {
        (None, None) => Decision::Plain,
        (None, Some(_)) if core.has_tasks() => {
            let why = format!("tool `{}` cannot run as a task; call it without `task`", tool.def.name);
            refuse(code::METHOD_NOT_FOUND, &why, None)
        }
        (None, Some(_)) => Decision::Plain,
        (Some(_), Some(ttl)) => Decision::Task(Mode::Must, ttl),
        (Some(tasks), None) if features.task_extension => match (task::declared(request), tasks.mode) {
            (true, mode) => Decision::Task(mode, None),
            (false, Mode::Must) => {
                let why = format!("tool `{}` runs as a task, and the client did not declare tasks", tool.def.name);
                refuse(code::MISSING_REQUIRED_CLIENT_CAPABILITY, &why, Some(task::REQUIRED))
            }
            (false, _) => Decision::Plain,
        },
        (Some(TaskTool { mode: Mode::Must, .. }), None) => {
            let why = format!("tool `{}` runs as a task only; call it with `task`", tool.def.name);
            refuse(code::METHOD_NOT_FOUND, &why, None)
        }
        (Some(_), None) => Decision::Plain,
    }
}

/// Starts a call that becomes a task, or may. `Err` gives the arguments back: it stays a call.
pub(crate) fn start(
    core: &RunningServer,
    entry: &Arc<Entry<Registered>>,
    (request, context): (&Arc<Request>, &Arc<RequestContext>),
    args: Args,
    (mode, wish): (Mode, Option<u64>),
    poll: &mut Context<'_>,
) -> Result<CallStart, Args> {
    let Some(core) = core.this.upgrade() else {
        return Ok(fail(request, code::INTERNAL_ERROR, "the server is shutting down"));
    };
    if let Some(refused) = running_call::refuse_busy(&core.shared, request) {
        return Ok(CallStart::Done(refused));
    }
    recovery::ensure(&core);
    let storage = core.tasks().clone();
    let limits = &storage.limits.tasks;
    let owner = Owner::of(context);
    if args.json().len() > limits.argument_bytes_max {
        let why = format!("the arguments of a task exceed the server's limit of {} bytes", limits.argument_bytes_max);
        return if mode == Mode::Must { Ok(fail(request, code::INVALID_PARAMS, &why)) } else { Err(args) };
    }
    // Before the handler runs: what it did could not be taken back.
    let slot = match storage.capacity.run(&owner, limits) {
        Ok(slot) => slot,
        Err(why) if mode == Mode::Must => return Ok(fail(request, code::INTERNAL_ERROR, &why)),
        Err(_) => return Err(args),
    };
    let tool = &entry.item;
    let settings = tool.task.as_deref();
    let ttl = settings.and_then(|task| task.ttl).map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let ttl_ms = wish.map(|wish| wish.clamp(1, limits.ttl_ms_max)).or(ttl).unwrap_or(limits.ttl_ms);
    let is_idempotent = tool.def.annotations.as_ref().is_some_and(|hints| hints.idempotent_hint == Some(true));
    let again = settings.filter(|task| (task.resumable || is_idempotent) && storage.outlives());
    let new = NewTask {
        owner,
        tool: tool.def.name.as_str().into(),
        revision: request.caller.features().index as u8,
        ttl_ms,
        suspends: settings.is_some_and(|task| task.resumable),
        again: again.map(|_| call_again(request, context, &args, tool)),
        answered: Vec::new(),
    };
    let link = Arc::new(Link::new(mode, &context.headers));
    // A task keeps all of this for its whole life.
    let (request, context) = &(Arc::new(request.detached()), Arc::new(context.without_headers()));
    let args = args.of(request);
    let layers = core.layers(&tool.target.layers);
    let started = match dispatch::start_linked(
        &core.shared,
        layers,
        &tool.target,
        (request, context.clone()),
        args,
        link.clone(),
    ) {
        Ok(started) => started,
        Err(reply) => return Ok(CallStart::Done(reply)),
    };
    let (Some(cx), future) = (started.cx, started.future) else {
        return Ok(fail(request, code::INTERNAL_ERROR, "a task needs a context"));
    };
    let grace = (mode == Mode::May).then(|| sleep_ms(limits.grace_ms));
    let meanwhile = settings.and_then(|task| task.meanwhile.clone());
    let mut call = Box::new(TaskCall {
        about: About { request: request.clone(), name: Some(tool.target.name.clone()) },
        stop: Arc::new(Stopper { call: cx.0.clone(), link: link.clone() }),
        future: Some(future),
        cx,
        link,
        new: Some((new, slot)),
        meanwhile,
        grace,
        deadline: sleep_ms(core.limits.calls.run_ms_max),
        making: None,
        done: None,
        _counted: Counted::new(&core.shared),
        storage,
        core,
    });
    // What is done at once is answered at once, without another look at it.
    match call.poll_event(poll) {
        Poll::Ready(CallEvent::Done(reply)) => Ok(CallStart::Done(reply)),
        Poll::Ready(event) => Ok(CallStart::Running(Box::new(Begun { first: Some(event), call }))),
        Poll::Pending => Ok(CallStart::Running(call)),
    }
}

fn sleep_ms(ms: u64) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
}

/// What is needed to start the call again. Of `_meta` only what the protocol defines is kept: the rest may be secret.
fn call_again(request: &Request, context: &RequestContext, args: &Args, tool: &Registered) -> Call {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap_or_default();
    let mut meta = serde_json::Map::new();
    if let Some(span) = request.params.meta
        && let Ok(all) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(request.text(span))
    {
        let ours = |name: &str| name.starts_with("io.modelcontextprotocol/") || name == "progressToken";
        meta.extend(all.into_iter().filter(|(name, _)| ours(name)));
    }
    let arguments = args.json();
    let arguments = if arguments == "null" { "{}".into() } else { arguments };
    let params = serde_json::json!({ "name": tool.def.name, "arguments": raw(&arguments), "_meta": meta });
    Call {
        params: raw(&params.to_string()),
        capabilities: raw(request.caller.capabilities_json()),
        client_info: request.caller.client_info_json().map(raw),
        principal: context.principal.as_ref().map(Who::of),
        schema: digest(tool.def.input_schema.get()),
    }
}

/// The first event of a call, then the rest.
struct Begun {
    first: Option<CallEvent>,
    call: Box<TaskCall>,
}

impl RunningCall for Begun {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        match self.first.take() {
            Some(event) => Poll::Ready(event),
            None => self.call.poll_event(cx),
        }
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.call.canceller()
    }
}

/// A call until it is answered, directly or with the task that it has become.
struct TaskCall {
    core: Arc<RunningServer>,
    storage: Arc<Storage>,
    about: About,
    cx: Cx,
    link: Arc<Link>,
    /// The handler, as long as it runs here.
    future: Option<BoxFuture<'static, Reply>>,
    new: Option<(NewTask, Slot)>,
    meanwhile: Option<Box<str>>,
    /// Until when it is answered directly.
    grace: Option<Pin<Box<Sleep>>>,
    deadline: Pin<Box<Sleep>>,
    making: Option<BoxFuture<'static, Made>>,
    done: Option<Reply>,
    stop: Arc<Stopper>,
    _counted: Counted,
}

/// The response with the task, or the handler once more and why there is no task.
type Made = Result<Reply, (Option<BoxFuture<'static, Reply>>, TaskError)>;

/// Cancels the call, unless it has become a task.
struct Stopper {
    call: Arc<CallState>,
    link: Arc<Link>,
}

impl Cancel for Stopper {
    fn cancel(&self) {
        if !self.link.has_moved() {
            self.call.cancel();
        }
    }
}

impl TaskCall {
    /// Begins to make the task: the handler moves, and is not polled meanwhile.
    fn make(&mut self, poll: &mut Context<'_>) {
        let (Some(future), Some((mut new, slot))) = (self.future.take(), self.new.take()) else { return };
        self.link.set_moved(true);
        // Steps and answers of the rounds before are the task's, too.
        let rounds = self.cx.round_trips();
        for (key, result) in &rounds.memos {
            if self.link.early_step(key).is_none() {
                self.link.keep_early(key, result.clone());
            }
        }
        if new.again.is_some() {
            new.answered = rounds.answered();
        }
        drop(rounds);
        let asked: Vec<_> = new.answered.iter().map(|answered| (answered.name.clone(), answered.times)).collect();
        let (storage, link, cx, core) = (self.storage.clone(), self.link.clone(), self.cx.clone(), self.core.clone());
        let (request, meanwhile) = (self.about.request.clone(), self.meanwhile.take());
        let mut making: BoxFuture<'static, Made> = Box::pin(async move {
            let live = match storage.create(new, slot).await {
                Ok(live) => live,
                Err(fault) => return Err((Some(future), fault)),
            };
            let handled = Handled::new(live.clone());
            asked.iter().for_each(|(name, times)| handled.has_asked(name, *times));
            let steps = link.steps();
            let count = steps.len();
            // A task that they have failed is told like any other.
            if let Err(error) = handled.keep_all(steps).await
                && live.stopped().is_none()
            {
                tracing::error!(task = &*live.id, %error, "could not store the first progress; the task was not created");
                live.undo();
                return Err((Some(future), TaskError::Store));
            }
            let reply = created(&core, &request, &live, meanwhile.as_deref());
            live.runs(link.running.clone(), request.caller.session());
            link.decide(Some(Arc::new(Handle(handled.clone()))));
            link.drop_steps(count);
            tokio::spawn(runner::run(handled, future, cx));
            Ok(reply)
        });
        // In memory this is done at once. Where it takes time, it goes on although the client may be gone meanwhile.
        self.making = Some(match making.as_mut().poll(poll) {
            Poll::Ready(made) => Box::pin(std::future::ready(made)),
            Poll::Pending => {
                let spawned = tokio::spawn(making);
                Box::pin(async move { spawned.await.unwrap_or_else(|_| Err((None, TaskError::Store))) })
            }
        });
    }

    /// The task could not be made: a call that need not be one goes on.
    fn not_made(&mut self, future: Option<BoxFuture<'static, Reply>>, fault: &TaskError) {
        self.link.set_moved(false);
        self.link.decide(None);
        self.grace = None;
        match future.filter(|_| self.link.mode != Mode::Must) {
            Some(future) => self.future = Some(future),
            None => {
                let request = &self.about.request;
                let why = fault.to_string();
                self.done = Some(Reply::error(Some(&request.id), code::INTERNAL_ERROR, &why, None));
            }
        }
    }

    fn is_time(&mut self, poll: &mut Context<'_>) -> bool {
        if self.link.has_moved() || self.new.is_none() {
            return false;
        }
        let is_over = self.grace.as_mut().is_some_and(|grace| grace.as_mut().poll(poll).is_ready());
        is_over || self.link.is_wanted()
    }
}

impl RunningCall for TaskCall {
    fn poll_event(&mut self, poll: &mut Context<'_>) -> Poll<CallEvent> {
        loop {
            self.cx.0.queue().waker = Some(poll.waker().clone());
            if self.cx.is_cancelled() && !self.link.has_moved() {
                self.future = None;
                return Poll::Ready(CallEvent::Cancelled);
            }
            if let Some(out) = self.cx.0.queue().out.pop_front() {
                return Poll::Ready(match out {
                    Out::Notify(frame) => CallEvent::Notify(frame),
                    Out::ServerRequest(ask) => CallEvent::ServerRequest(ask),
                    Out::Pause(ms) => CallEvent::Pause(ms),
                });
            }
            if let Some(reply) = self.done.take() {
                return Poll::Ready(CallEvent::Done(reply));
            }
            if let Some(making) = &mut self.making {
                let made = std::task::ready!(making.as_mut().poll(poll));
                self.making = None;
                match made {
                    Ok(reply) => self.done = Some(reply),
                    Err((future, fault)) => self.not_made(future, &fault),
                }
                continue;
            }
            // A call that must be a task is one before its handler begins.
            if self.link.mode == Mode::Must && self.new.is_some() {
                self.make(poll);
                continue;
            }
            let Some(future) = &mut self.future else { return Poll::Ready(CallEvent::Cancelled) };
            let (shared, about) = (&self.core.shared, &self.about);
            if let Poll::Ready(reply) = running_call::poll(shared, &about.request, about.name.as_deref(), future, poll)
            {
                self.future = None;
                self.done = Some(running_call::settle(&self.core.shared, Some(&self.cx), reply));
                continue;
            }
            if self.is_time(poll) {
                self.make(poll);
                continue;
            }
            if self.deadline.as_mut().poll(poll).is_ready() {
                self.future = None;
                let limit = self.core.limits.calls.run_ms_max;
                let why = format!("it took longer than the server's limit of {limit} ms");
                self.done = Some(self.core.shared.failed(&self.about.request, &why));
                continue;
            }
            if self.cx.0.queue().out.is_empty() {
                return Poll::Pending;
            }
        }
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.stop.clone()
    }
}

impl Drop for TaskCall {
    fn drop(&mut self) {
        self.future = None;
        if !self.link.has_moved() {
            self.cx.0.close();
        }
    }
}

/// The response that tells of a task.
fn created(
    core: &RunningServer,
    request: &Request,
    live: &crate::tasks::storage::Live,
    meanwhile: Option<&str>,
) -> Reply {
    let features = request.caller.features();
    let mut out = core.shared.writer(request);
    let mut members = Vec::with_capacity(256);
    live.look(|record| {
        let now = live.storage.now_ms();
        task::members(&mut members, &live.id, &record.state, None, features, now);
    });
    if features.core_tasks {
        out.key("task");
        out.push(b"{");
        out.push(&members);
        out.push(b"}");
        if let Some(text) = meanwhile {
            let text = serde_json::Value::from(text).to_string();
            out.meta(format!("\"io.modelcontextprotocol/model-immediate-response\":{text}").as_bytes());
        }
    } else {
        out.members(&members);
    }
    out.finish(ReplyKind::Task)
}
