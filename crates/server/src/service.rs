//! A configured server behind its transports: resolves requests and starts them.

use crate::complete;
use crate::custom_method;
use crate::dispatch::{self};
use crate::downgrade;
use crate::error::Result;
use crate::handle::Registries;
use crate::invocation;
use crate::invocation::{Args, Source};
use crate::low_level::{self};
use crate::notification::{self, Watch};
use crate::registry::{Entry, Item, Snapshot};
use crate::request_layer;
use crate::running_call;
use crate::running_server::RunningServer;
use crate::shared::{clip, fail, method_not_found};
use crate::target::{CallStart as Started, Target};
#[cfg(feature = "tasks")]
use crate::tasks::call as task_call;
#[cfg(feature = "tasks")]
use crate::tasks::recovery;
#[cfg(feature = "tasks")]
use crate::tasks::start as task_start;
use crate::tool::Registered;
use crate::ui::{self, Shown};
use crate::viewer::{Subscriber, Viewer};
use crate::{list, listen};
use linchpin_core::message::{MethodName, Notification, Request};
use linchpin_core::service::{BoxFuture, CallStart, HeaderParam, RequestContext, Service};
use linchpin_core::subscription::{Filter, SubscribeError};
use linchpin_core::{
    Budget, Caller, Features, Id, Limits, Method, Observer, Reply, ReplyKind, ResultWriter, SubscriptionHandle,
};
use linchpin_types::capability::{
    EmptyCapability, PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability, extension,
};
use linchpin_types::error::code;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::page::CacheScope;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// How long cancelled calls may take to be dropped before shutdown hooks run: one that blocks its thread does not keep the
/// server from ending.
const DROP_TIME: Duration = Duration::from_secs(1);
/// The time limit of all shutdown hooks together.
const END_TIME: Duration = Duration::from_secs(1);

impl Service for RunningServer {
    fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    fn start(&self, request: Arc<Request>, context: Arc<RequestContext>, task: &mut Context<'_>) -> CallStart {
        if self.request_layers.is_empty() {
            self.begin(request, context, None, task)
        } else {
            request_layer::start(self, request, context, task)
        }
    }

    fn defines(&self, method: &str) -> bool {
        self.low_level.as_ref().map_or_else(|| self.methods.contains_key(method), |low| low.defines(method))
    }

    fn named_by(&self, method: &str) -> Option<Arc<str>> {
        self.methods.get(method)?.named_by.clone()
    }

    fn notified(&self, told: Notification, context: Arc<RequestContext>) {
        if let Some(core) = self.this.upgrade() {
            notification::notified(&core, told, context);
        }
    }

    fn session_resumed(&self, caller: &Caller, context: &RequestContext) {
        if let (Some(core), Some(session)) = (self.this.upgrade(), caller.session())
            && self.hooks.subscriptions()
        {
            notification::resumed(&core, session, context);
        }
    }

    fn header_params(&self, tool: &str, caller: &Caller, context: &RequestContext) -> Option<Arc<[HeaderParam]>> {
        if self.registries.mirrored.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.registries.tools.snapshot().find(tool, || Viewer::new(caller, context))?.item.headers.clone()
    }

    fn open_feed(&self, caller: &Caller, context: &RequestContext) -> Option<SubscriptionHandle> {
        let filter = Filter { tools: true, prompts: true, resources: true };
        self.subscription(filter, caller, context)
    }

    fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.observer.as_ref()
    }

    fn demands_scopes(&self) -> bool {
        let Registries { tools, resources, prompts, .. } = &*self.registries;
        tools.snapshot().entries.iter().any(|e| e.item.access.has_scopes())
            || resources.snapshot().entries.iter().any(|e| e.item.access.has_scopes())
            || prompts.snapshot().entries.iter().any(|e| e.item.access.has_scopes())
    }

    fn close(&self) {
        self.registries.changes.close();
    }

    fn ended(&self) -> BoxFuture<'static, ()> {
        for tasks in [&self.background, &self.ends] {
            tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        }
        let Some(core) = self.this.upgrade() else { return Box::pin(std::future::ready(())) };
        Box::pin(async move {
            #[cfg(feature = "tasks")]
            if let Some(storage) = core.task_storage.get().cloned() {
                recovery::leave(storage, Duration::from_millis(core.limits.calls.drain_ms_max)).await;
            }
            // Transports have cancelled the calls; they are dropped where they run.
            if tokio::time::timeout(DROP_TIME, running_call::idle(&core.shared)).await.is_err() {
                tracing::debug!("calls still run when the shutdown hooks begin");
            }
            let all = async {
                for end in core.shutdown_hooks.iter() {
                    let mut end = end();
                    let caught = poll_fn(|task| {
                        catch_unwind(AssertUnwindSafe(|| end.as_mut().poll(task))).unwrap_or_else(|_| {
                            tracing::error!("a shutdown hook panicked");
                            Poll::Ready(())
                        })
                    });
                    caught.await;
                }
            };
            if tokio::time::timeout(END_TIME, all).await.is_err() {
                tracing::debug!("shutdown hooks did not finish within 1 s");
            }
        })
    }
}

impl RunningServer {
    /// Starts a request and polls it once. `arguments` take the place of the request's own.
    #[inline]
    pub(crate) fn begin(
        &self,
        request: Arc<Request>,
        context: Arc<RequestContext>,
        arguments: Option<Arc<str>>,
        task: &mut Context<'_>,
    ) -> CallStart {
        if let Some(low) = &self.low_level {
            match (low.choose(&request.method), self.this.upgrade()) {
                (low_level::Choice::Handler(handler), Some(core)) => {
                    return low_level::start(&core.shared, &handler, request, context, task);
                }
                (low_level::Choice::BuiltIn, _) => {}
                _ => return low_level::unknown(&request),
            }
        }
        let method = match &request.method {
            MethodName::Known(method) => *method,
            MethodName::Other(name) => {
                let method = self.methods.get(name).filter(|method| method.is_for(&request.caller));
                let target = method.map(|method| method.target.clone());
                return self.custom(target, &request, context, arguments, task);
            }
        };
        match method {
            Method::ToolsCall => self.call_tool(request, context, arguments, task),
            Method::ResourcesRead => self.read(request, context, task),
            Method::PromptsGet => self.prompt(request, context, arguments, task),
            Method::CompletionComplete => complete::start(self, &request, context, task),
            Method::SubscriptionsListen => listen::open(self, &request, &context),
            #[cfg(feature = "tasks")]
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel | Method::TasksResult | Method::TasksList => {
                task_start::start(self, method, &request, &context, task)
            }
            Method::ResourcesSubscribe if self.hooks.subscriptions() => self.subscribe_watched(request, context, task),
            Method::ResourcesList if !self.refreshers.is_empty() => self.list_fresh(request, context, task),
            _ => CallStart::Done(self.answer(&request, &context)),
        }
    }

    /// Opens a subscription to changes for a viewer.
    pub(crate) fn subscription(
        &self,
        filter: Filter,
        caller: &Caller,
        context: &RequestContext,
    ) -> Option<SubscriptionHandle> {
        let max = self.limits.subscriptions.streams_max + self.limits.sessions.concurrent_max;
        self.registries.changes.open_for(filter, max, Subscriber::erased(caller, context))
    }

    fn launch(
        &self,
        target: &Target,
        request: &Arc<Request>,
        context: Arc<RequestContext>,
        args: Args,
        task: &mut Context<'_>,
    ) -> CallStart {
        match dispatch::start(&self.shared, self.layers(&target.layers), target, request, context, args) {
            Ok(call) => running_call::launch(&self.shared, request, call, Some(&target.name), task),
            Err(reply) => CallStart::Done(reply),
        }
    }

    fn call_tool(
        &self,
        request: Arc<Request>,
        context: Arc<RequestContext>,
        arguments: Option<Arc<str>>,
        task: &mut Context<'_>,
    ) -> CallStart {
        let refuse = |why: &str| match self.offers_tools() {
            true => fail(&request, code::INVALID_PARAMS, why),
            false => fail(&request, code::METHOD_NOT_FOUND, "this server has no tools"),
        };
        let Some(name) = request.string(request.params.name) else {
            return refuse("`name` must be the name of a tool");
        };
        let tools = self.registries.tools.snapshot();
        let viewer = || Viewer::of(&request, &context);
        // A tool for pages only is unknown to who shows none.
        let callable =
            |tool: &Arc<Entry<Registered>>| tool.item.ui.shown() != Shown::ToPages || ui::is_wanted_by(&request.caller);
        let Some(entry) = tools.find(&name, viewer).filter(|tool| callable(tool)) else {
            return refuse(&unknown_name("tool", &name, &tools, viewer));
        };
        if let Err(reply) = entry.item.access.admit(&request.id, &context) {
            return CallStart::Done(reply);
        }
        if arguments.is_none()
            && let Some(span) = request.params.arguments
            && !matches!(request.text(span).as_bytes(), [b'{', ..] | b"null")
        {
            return fail(&request, code::INVALID_PARAMS, "`arguments` must be an object");
        }
        let args = match arguments {
            None => invocation::json_args(&request, request.params.arguments),
            Some(json) => Args(Source::Owned(json)),
        };
        #[cfg(feature = "tasks")]
        let args = match task_call::decide(self, &entry.item, &request) {
            task_call::Decision::Plain => args,
            task_call::Decision::Refused(reply) => return CallStart::Done(reply),
            task_call::Decision::Task(mode, ttl) => {
                match task_call::start(self, entry, (&request, &context), args, (mode, ttl), task) {
                    Ok(started) => return started,
                    Err(args) => args,
                }
            }
        };
        self.launch(&entry.item.target, &request, context, args, task)
    }

    fn custom(
        &self,
        target: Option<Arc<Target>>,
        request: &Arc<Request>,
        context: Arc<RequestContext>,
        arguments: Option<Arc<str>>,
        task: &mut Context<'_>,
    ) -> CallStart {
        let Some(target) = target else { return CallStart::Done(method_not_found(request)) };
        let replaced = arguments.map(|json| Args(Source::Owned(json)));
        match replaced.or_else(|| custom_method::parameters(request)) {
            Some(args) => self.launch(&target, request, context, args, task),
            None => fail(request, code::INVALID_PARAMS, "`params` must be an object"),
        }
    }

    fn read(&self, request: Arc<Request>, context: Arc<RequestContext>, task: &mut Context<'_>) -> CallStart {
        if !self.offers_resources() {
            return fail(&request, code::METHOD_NOT_FOUND, "this server has no resources");
        }
        let Some(uri) = request.string(request.params.uri).map(|u| u.into_owned()) else {
            return fail(&request, code::INVALID_PARAMS, "`uri` must be the URI of a resource");
        };
        let resources = self.registries.resources.snapshot();
        let Some((entry, vars)) = resources.resolve(&uri, || Viewer::of(&request, &context)) else {
            let data = serde_json::json!({ "uri": uri }).to_string();
            let code = request.caller.features().resource_not_found;
            let why = format!("resource not found: {}", clip(&uri));
            return CallStart::Done(Reply::error(Some(&request.id), code, &why, Some(&data)));
        };
        if let Err(reply) = entry.item.access.admit(&request.id, &context) {
            return CallStart::Done(reply);
        }
        let hints = entry.item.cache.unwrap_or((0, CacheScope::Private));
        let mut target = entry.item.target.clone();
        // The URI and the cache hints precede the handler's output.
        let (run, this) = (target.run.clone(), self.this.clone());
        target.run = Arc::new(move |mut call| {
            call.out.set_uri(uri.clone());
            if let Some(core) = this.upgrade() {
                core.cache_hints(&mut call.out, hints);
            }
            run(call)
        });
        self.launch(&target, &request, context, Args(Source::Vars(vars.into())), task)
    }

    fn prompt(
        &self,
        request: Arc<Request>,
        context: Arc<RequestContext>,
        arguments: Option<Arc<str>>,
        task: &mut Context<'_>,
    ) -> CallStart {
        if !self.offers_prompts() {
            return fail(&request, code::METHOD_NOT_FOUND, "this server has no prompts");
        }
        let Some(name) = request.string(request.params.name) else {
            return fail(&request, code::INVALID_PARAMS, "`name` must be the name of a prompt");
        };
        let prompts = self.registries.prompts.snapshot();
        let viewer = || Viewer::of(&request, &context);
        let Some(entry) = prompts.find(&name, viewer) else {
            return fail(&request, code::INVALID_PARAMS, &unknown_name("prompt", &name, &prompts, viewer));
        };
        if let Err(reply) = entry.item.access.admit(&request.id, &context) {
            return CallStart::Done(reply);
        }
        let given = arguments.as_deref().or_else(|| request.params.arguments.map(|span| request.text(span)));
        let given = match given.map(serde_json::from_str::<Option<BTreeMap<String, String>>>).transpose() {
            Ok(given) => given.flatten().unwrap_or_default(),
            Err(_) => return fail(&request, code::INVALID_PARAMS, "`arguments` must be an object of strings"),
        };
        for argument in entry.item.def.arguments.iter().filter(|a| a.required == Some(true)) {
            if !given.contains_key(&argument.name) {
                let why = format!("prompt `{name}` needs the argument `{}`", argument.name);
                return fail(&request, code::INVALID_PARAMS, &why);
            }
        }
        let vars: Vec<(String, String)> = given.into_iter().collect();
        self.launch(&entry.item.target, &request, context, Args(Source::Vars(vars.into())), task)
    }

    /// `resources/list` with a refresh before the first page. Later pages use the same list.
    fn list_fresh(&self, request: Arc<Request>, context: Arc<RequestContext>, task: &mut Context<'_>) -> CallStart {
        let later = request.params.cursor.is_some_and(|span| request.text(span) != "null");
        let Some(core) = self.this.upgrade().filter(|_| !later && self.offers_resources()) else {
            return CallStart::Done(self.answer(&request, &context));
        };
        let this = core.clone();
        let asked = request.clone();
        let future = Box::pin(async move {
            let mut failed = None;
            for refresh in this.refreshers.iter() {
                if let Err(error) = refresh().await {
                    failed = failed.or(Some(error));
                }
            }
            let some =
                || this.registries.resources.snapshot().entries.iter().any(|entry| entry.item.template.is_none());
            match failed {
                Some(error) if !some() => this.writer(&asked).error(code::INTERNAL_ERROR, &error.to_string(), None),
                _ => this.answer(&asked, &context),
            }
        });
        running_call::launch(&core.shared, &request, Started { future, cx: None }, None, task)
    }

    /// Requests without a handler.
    fn answer(&self, request: &Request, context: &RequestContext) -> Reply {
        let offered = self.offered();
        let missing =
            |what| Reply::error(Some(&request.id), code::METHOD_NOT_FOUND, &format!("this server has no {what}"), None);
        let Some(method) = request.known() else { return method_not_found(request) };
        match method {
            Method::ToolsList if !offered[0] => missing("tools"),
            Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe
                if !offered[1] =>
            {
                missing("resources")
            }
            Method::PromptsList if !offered[2] => missing("prompts"),
            Method::ToolsList => list::tools(self, request, context),
            Method::ResourcesList => list::resources(self, request, context),
            Method::ResourcesTemplatesList => list::templates(self, request, context),
            Method::PromptsList => list::prompts(self, request, context),
            Method::Initialize => self.initialize(request, context),
            Method::ServerDiscover => self.discover(request, context),
            Method::LoggingSetLevel => self.set_level(request),
            Method::ResourcesSubscribe => self.subscribe(request, context, true),
            Method::ResourcesUnsubscribe => self.subscribe(request, context, false),
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel | Method::TasksResult | Method::TasksList => {
                method_not_found(request)
            }
            _ => self.writer(request).finish(ReplyKind::Complete),
        }
    }

    fn capabilities(&self, caller: &Caller, context: &RequestContext) -> String {
        let features = caller.features();
        if let Some(low) = &self.low_level {
            return low.capabilities.clone();
        }
        let [tools, resources, prompts] = self.offered();
        let mut capabilities = ServerCapabilities::new().with_logging(EmptyCapability::default());
        capabilities.tools = tools.then(|| ToolsCapability::new().with_list_changed(true));
        capabilities.resources =
            resources.then(|| ResourcesCapability::new().with_subscribe(true).with_list_changed(true));
        capabilities.prompts = prompts.then(|| PromptsCapability::new().with_list_changed(true));
        capabilities.completions = (features.completions_capability && self.completes()).then(EmptyCapability::default);
        // Revisions with sessions have no such member. Those who use it there anyway are answered in kind.
        // Tasks they have of their own.
        let told = |id: &str| features.extensions || (id != extension::TASKS && caller.extension(id).is_some());
        let extensions = self.extensions.iter().filter(|(id, _)| told(id));
        capabilities.extensions.extend(extensions.map(|(id, how)| (id.clone(), how.clone())));
        #[cfg(feature = "tasks")]
        if self.has_tasks() {
            task_start::announce(&mut capabilities, features, context);
        }
        #[cfg(not(feature = "tasks"))]
        let _ = context;
        serde_json::to_string(&capabilities).unwrap_or_else(|_| "{}".into())
    }

    fn initialize(&self, request: &Request, context: &RequestContext) -> Reply {
        let features = request.caller.features();
        let mut out = self.writer(request);
        out.key("protocolVersion");
        out.string(features.revision.as_str());
        out.key("capabilities");
        out.push(self.capabilities(&request.caller, context).as_bytes());
        out.key("serverInfo");
        let _ = out.serialize(&downgrade::implementation(self.info.clone(), features));
        self.instruct(&mut out);
        out.finish(ReplyKind::Complete)
    }

    fn discover(&self, request: &Request, context: &RequestContext) -> Reply {
        let mut out = self.writer(request);
        out.key("supportedVersions");
        let _ = out.serialize(&Features::all().map(|f| f.revision.as_str()).collect::<Vec<_>>());
        out.key("capabilities");
        out.push(self.capabilities(&request.caller, context).as_bytes());
        self.instruct(&mut out);
        self.cache_hints(&mut out, self.list_cache);
        out.finish(ReplyKind::Complete)
    }

    fn instruct(&self, out: &mut ResultWriter) {
        if let Some(instructions) = &self.instructions {
            out.key("instructions");
            out.string(instructions);
        }
    }

    fn set_level(&self, request: &Request) -> Reply {
        #[derive(Deserialize)]
        struct Params {
            level: LoggingLevel,
        }
        match (serde_json::from_str::<Params>(request.params_text()), request.caller.session()) {
            (Ok(params), Some(session)) => {
                session.set_log_level(params.level);
                self.writer(request).finish(ReplyKind::Complete)
            }
            _ => Reply::error(
                Some(&request.id),
                code::INVALID_PARAMS,
                "`level` must be a log level, for example \"warning\"",
                None,
            ),
        }
    }

    /// The response for a rejected subscription: a full table is not an error of its parameters.
    pub(crate) fn subscribe_refused(&self, id: &Id, why: SubscribeError) -> Reply {
        let code = if why == SubscribeError::OutOfMemory { code::INTERNAL_ERROR } else { code::INVALID_PARAMS };
        Reply::error(Some(id), code, &why.to_string(), None)
    }

    /// `resources/subscribe` of a server with hooks for subscriptions.
    fn subscribe_watched(
        &self,
        request: Arc<Request>,
        context: Arc<RequestContext>,
        task: &mut Context<'_>,
    ) -> CallStart {
        let session = request.caller.session().and_then(|session| Some((session, session.feed()?)));
        let (uri, core) = (request.string(request.params.uri), self.this.upgrade());
        let (Some((session, feed)), Some(uri), Some(core)) = (session, uri, core) else {
            return CallStart::Done(self.answer(&request, &context));
        };
        if let Err(busy) = notification::admit(&core, &request.id) {
            return CallStart::Done(busy);
        }
        // Nobody hears of changes who was refused, has cancelled, or has waited too long.
        let subscription = Watch::of(session, &core, &context).ask(&uri, feed.feed());
        let reply = self.answer(&request, &context);
        if reply.is_error() {
            return CallStart::Done(reply);
        }
        let (this, asked) = (core.clone(), request.clone());
        let future = Box::pin(async move {
            subscription.run(&this, &asked.id, &asked.caller).await.map_or_else(|refused| refused, |()| reply)
        });
        running_call::launch(&core.shared, &request, Started { future, cx: None }, None, task)
    }

    /// Whether the sender of a request may subscribe to a resource. The error is the response if not. What does not exist for
    /// the sender can be subscribed to as what does not exist at all.
    pub(crate) fn may_subscribe(&self, uri: &str, request: &Request, context: &RequestContext) -> Result<(), Reply> {
        let resources = self.registries.resources.snapshot();
        match resources.resolve(uri, || Viewer::of(request, context)) {
            Some((entry, _)) => entry.item.access.admit(&request.id, context),
            None => Ok(()),
        }
    }

    fn subscribe(&self, request: &Request, context: &RequestContext, on: bool) -> Reply {
        let refuse = |why: &str| Reply::error(Some(&request.id), code::INVALID_PARAMS, why, None);
        let Some(uri) = request.string(request.params.uri) else {
            return refuse("`uri` must be the URI of a resource");
        };
        let Some(feed) = request.caller.session().and_then(|s| s.feed()) else {
            return refuse("this connection cannot carry subscriptions");
        };
        if !on {
            feed.feed().unsubscribe(&uri);
            if let Some(watch) = request.caller.session().and_then(|session| Watch::existing(session)) {
                watch.unsubscribe(request.caller.clone(), &uri);
            }
        } else if let Err(reply) = self.may_subscribe(&uri, request, context) {
            return reply;
        } else if let Err(why) = feed.feed().subscribe(&uri, self.limits.subscriptions.resources_max, &self.budget) {
            return self.subscribe_refused(&request.id, why);
        }
        self.writer(request).finish(ReplyKind::Complete)
    }
}

/// The message for an unknown name, with the most similar one.
fn unknown_name<T: Item>(kind: &str, name: &str, snapshot: &Snapshot<T>, viewer: impl Fn() -> Viewer) -> String {
    if let Some(owners) = snapshot.contested(name, &viewer) {
        return format!("Several {kind}s answer to {}: use {owners}", clip(name));
    }
    let near = snapshot.near(name, &viewer).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
    format!("Unknown {kind}: {}{near}", clip(name))
}
