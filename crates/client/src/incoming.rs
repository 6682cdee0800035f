//! Unsolicited messages of a server: notifications and, with sessions, server requests.

use crate::Change;
use crate::active_transport::ActiveTransport;
use crate::connection_state::{ConnectionState, Event};
use crate::lock::lock;
use crate::request_parts::Progress;
use crate::supervise;
use linchpin_core::json::{Span, read_str};
use linchpin_core::message::{Kind, Message, MethodName};
use linchpin_core::method::Method;
use linchpin_core::service::boxed;
use linchpin_core::{ClientTransport, Id, Inbox, Outgoing, TransportError};
use linchpin_proto::message_writer::{Writer, one_line};
use linchpin_types::error::code;
use linchpin_types::jsonrpc::method::{NOTIFICATIONS_TASKS, NOTIFICATIONS_TASKS_STATUS};
use linchpin_types::meta::key::RELATED_TASK;
use linchpin_types::subscribe::SubscriptionFilter;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The inbox of one transport. Receives only as long as its connection lives.
pub(crate) struct Incoming {
    core: Weak<ConnectionState>,
    pub(crate) generation: u64,
    link: OnceLock<Weak<dyn ClientTransport>>,
    live: OnceLock<Weak<ActiveTransport>>,
}

impl Incoming {
    pub(crate) fn new(core: &Arc<ConnectionState>, generation: u64) -> Incoming {
        Incoming { core: Arc::downgrade(core), generation, link: OnceLock::new(), live: OnceLock::new() }
    }

    pub(crate) fn attach(&self, link: &Arc<dyn ClientTransport>) {
        let _ = self.link.set(Arc::downgrade(link));
    }

    pub(crate) fn opened(&self, live: &Arc<ActiveTransport>) {
        let _ = self.live.set(Arc::downgrade(live));
    }

    /// Returns the transport to respond on: after a fallback, not the one that was opened first.
    fn link(&self) -> Option<Arc<dyn ClientTransport>> {
        let live = self.live.get().and_then(Weak::upgrade).map(|live| live.link.clone());
        live.or_else(|| self.link.get().and_then(Weak::upgrade))
    }

    fn multi_round_trip(&self) -> bool {
        self.live.get().and_then(Weak::upgrade).is_some_and(|live| live.agreed.features.multi_round_trip)
    }

    fn asked(&self, core: &Arc<ConnectionState>, id: Id, method: &MethodName, message: &Message, during: Option<u64>) {
        let Some(link) = self.link() else { return };
        if self.multi_round_trip() {
            tracing::warn!("the server sent a request, which its protocol version does not have; it is ignored");
            return;
        }
        let live = self.live.get().cloned();
        let reply =
            |outcome: Result<&str, (i32, &str)>| link.notify_detached(answer(live.as_ref(), id.as_json(), outcome));
        if *method == MethodName::Known(Method::Ping) {
            return reply(Ok("{}"));
        }
        let question = match core.config.answers.question(method.as_str(), message.params_text()) {
            Ok(question) => question,
            Err((code, why)) => return reply(Err((code, &why))),
        };
        let Ok(permit) = core.asks.clone().try_acquire_owned() else {
            return reply(Err((
                code::INTERNAL_ERROR,
                "too many requests of the server are being handled; try again later",
            )));
        };
        let task = related_task(message);
        let server = core.server_name();
        let (answers, limit) = (core.config.answers.clone(), core.config.limits.server_requests.response_ms_max);
        let key: Box<str> = id.as_json().into();
        let (weak, done) = (self.core.clone(), key.clone());
        let asking = core.questions.ask(during);
        let task = tokio::spawn(boxed(async move {
            let answered = tokio::time::timeout(Duration::from_millis(limit), answers.answer(&server, question)).await;
            drop(asking);
            let answered = answered.map(|answer| {
                answer.map(|json| related(json, task.as_deref())).map_err(|why| (why.code, why.error.to_string()))
            });
            let outcome = match &answered {
                Ok(Ok(json)) => Ok(json.as_str()),
                Ok(Err((code, why))) => Err((*code, why.as_str())),
                Err(_) => Err((code::INTERNAL_ERROR, "no answer in time")),
            };
            if let Err(why) = &outcome {
                tracing::warn!(reason = why.1, "could not answer a request of the server");
            }
            if let Err(why) = link.notify(answer(live.as_ref(), &done, outcome)).await {
                tracing::warn!(%why, "could not send a response to the server");
            }
            if let Some(core) = weak.upgrade() {
                lock(&core.asking).remove(&done);
            }
            drop(permit);
        }));
        lock(&core.asking).insert(key, task.abort_handle());
        // It finished already; the entry would leak.
        if task.is_finished() {
            lock(&core.asking).remove(id.as_json());
        }
    }

    fn told(&self, core: &Arc<ConnectionState>, method: &str, message: &Message) {
        let params = message.params();
        let text = |span: Option<Span>| read_str(message.text(span?)).map(Cow::into_owned);
        match method {
            "notifications/progress" => progress(core, message),
            "notifications/message" => match serde_json::from_str(message.params_text()) {
                Ok(message) => core.events.push(Event::Log(message)),
                Err(_) => tracing::debug!("a log message of the server cannot be read"),
            },
            "notifications/tools/list_changed" => changed(core, Change::Tools, message),
            "notifications/prompts/list_changed" => changed(core, Change::Prompts, message),
            "notifications/resources/list_changed" => changed(core, Change::Resources, message),
            "notifications/resources/updated" => {
                if let Some(uri) = text(params.uri) {
                    changed(core, Change::Updated(uri), message);
                }
            }
            "notifications/subscriptions/acknowledged" => {
                #[derive(Deserialize)]
                struct Acknowledged {
                    notifications: Option<SubscriptionFilter>,
                }
                if let Some(listen) = number(message, params.claims.subscription)
                    && let Ok(told) = serde_json::from_str::<Acknowledged>(message.params_text())
                {
                    let tasks = told.notifications.as_ref().map(|granted| granted.task_ids.clone());
                    core.feed.granted(&tasks.unwrap_or_default());
                    let missed = lock(&core.listeners).acknowledged(listen, told.notifications);
                    missed.into_iter().for_each(|change| report(core, change));
                }
            }
            "notifications/cancelled" => {
                let id = params.request_id.map(|id| message.text(id));
                if let Some(task) = id.and_then(|id| lock(&core.asking).remove(id)) {
                    task.abort();
                }
            }
            "notifications/elicitation/complete" => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Complete {
                    elicitation_id: String,
                }
                if let Ok(Complete { elicitation_id }) = serde_json::from_str(message.params_text()) {
                    let mut ids = lock(&core.visited.ids);
                    // Only waiting calls read these ids: the limit bounds the set against unsolicited ones.
                    if ids.len() >= 256 {
                        ids.clear();
                    }
                    ids.insert(elicitation_id);
                    drop(ids);
                    core.visited.changed.notify_waiters();
                }
            }
            NOTIFICATIONS_TASKS | NOTIFICATIONS_TASKS_STATUS => {
                core.feed.told(message);
                custom(core, method, message);
            }
            _ => custom(core, method, message),
        }
    }
}

/// Notifications that the client handles, and what a host does instead of hearing them.
pub(crate) const HEARD_OTHERWISE: [(&str, &str); 8] = [
    ("notifications/progress", "use `Request::steps` or `on_progress`"),
    ("notifications/message", "use `Client::on_log`"),
    ("notifications/tools/list_changed", "use `Client::on_change`"),
    ("notifications/prompts/list_changed", "use `Client::on_change`"),
    ("notifications/resources/list_changed", "use `Client::on_change`"),
    ("notifications/resources/updated", "use `Client::on_change`"),
    ("notifications/cancelled", "the future that answers a request of the server is dropped"),
    ("notifications/elicitation/complete", "the call that waits for it goes on"),
];

/// A notification for a handler of the host, if it has one.
fn custom(core: &ConnectionState, method: &str, message: &Message) {
    match core.config.notifications.get(method) {
        Some(hear) => core.events.push(Event::Notification(hear.clone(), message.params_text().to_owned())),
        None => tracing::debug!("the server sent a notification that the host has no handler for"),
    }
}

fn changed(core: &ConnectionState, change: Change, message: &Message) {
    let listen = number(message, message.params().claims.subscription);
    // First: whoever hears of it reads anew.
    report(core, change.clone());
    lock(&core.listeners).changed(&change, listen);
}

/// A number of this side, in whatever spelling the server repeats it.
fn number(message: &Message, span: Option<Span>) -> Option<u64> {
    message.text(span?).trim_matches('"').parse().ok()
}

/// Invalidates outdated state and notifies the host.
pub(crate) fn report(core: &ConnectionState, change: Change) {
    core.cache.changed(&change);
    if change == Change::Tools {
        core.tools.outdated();
    }
    if core.config.on_change.is_some() {
        core.events.push(Event::Change(change));
    }
}

impl Inbox for Incoming {
    fn received(&self, message: Message, during: Option<u64>) {
        let Some(core) = self.core.upgrade() else { return };
        match &message.kind {
            Kind::Request { id, method } => self.asked(&core, id.clone(), method, &message, during),
            Kind::Notification { method } => self.told(&core, method.as_str(), &message),
            Kind::Response { .. } => {}
        }
    }

    fn closed(&self, why: TransportError) {
        let (Some(core), Some(live)) = (self.core.upgrade(), self.live.get().and_then(Weak::upgrade)) else { return };
        let _ = live.lost.set(why);
        lock(&core.listeners).lost(core.config.restart.is_none());
        for (_, task) in lock(&core.asking).drain() {
            task.abort();
        }
        if core.config.restart.is_some() && !core.is_closed() {
            supervise::watch(&core, live.generation);
        }
    }

    fn forgotten(&self) {
        let Some(core) = self.core.upgrade().filter(|core| !core.is_closed() && core.hears()) else { return };
        supervise::renew(&core, self.generation);
    }
}

/// Which task a question belongs to, as JSON text (2025-11-25 "Tasks": the response has to name it again).
fn related_task(message: &Message) -> Option<Box<RawValue>> {
    let task = message.text(message.params().claims.related_task?);
    RawValue::from_string(task.to_owned()).ok()
}

/// A result that names its task.
fn related(json: String, task: Option<&RawValue>) -> String {
    let Some(task) = task else { return json };
    let Ok(serde_json::Value::Object(mut result)) = serde_json::from_str(&json) else { return json };
    let meta = result.entry("_meta").or_insert_with(|| serde_json::json!({}));
    if let (Some(meta), Ok(task)) = (meta.as_object_mut(), serde_json::from_str(task.get())) {
        meta.insert(RELATED_TASK.to_owned(), task);
    }
    one_line(&serde_json::Value::Object(result).to_string()).into_owned()
}

/// A response, in the negotiated revision if there is one yet; transports add the session.
fn answer(live: Option<&Weak<ActiveTransport>>, id: &str, outcome: Result<&str, (i32, &str)>) -> Outgoing {
    match live.and_then(Weak::upgrade) {
        Some(live) => live.writer.answer(id, outcome),
        None => Writer::opening().answer(id, outcome),
    }
}

fn progress(core: &ConnectionState, message: &Message) {
    #[derive(Deserialize)]
    struct Seen {
        #[serde(default)]
        progress: f64,
        #[serde(default)]
        total: Option<f64>,
        #[serde(default)]
        message: Option<String>,
    }
    let Some(watched) = number(message, message.params().progress_token).and_then(|token| core.watched(token)) else {
        return;
    };
    if let Ok(seen) = serde_json::from_str::<Seen>(message.params_text()) {
        watched.queue.push(Progress { progress: seen.progress, total: seen.total, message: seen.message });
        watched.touched.notify_one();
    }
}
