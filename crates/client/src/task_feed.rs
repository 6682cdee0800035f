//! What servers tell of tasks: who waits for which task, and the newest record that arrived for it.

use crate::lock::lock;
use linchpin_core::Message;
use linchpin_core::json::read_str;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::Notify;

/// The maximum number of tasks on one stream; the others are polled only.
const TASKS_MAX: usize = 100;

#[derive(Default)]
pub(crate) struct TaskFeed {
    watchers: Mutex<HashMap<Box<str>, Vec<Weak<Watcher>>>>,
    /// The stream that is open: the key of its subscriber, and the tasks.
    pub(crate) stream: Mutex<Option<(u64, Vec<String>)>>,
    /// Whether the stream is about to be opened with other tasks.
    pub(crate) scheduled: AtomicBool,
}

/// Somebody who waits for a task.
#[derive(Default)]
pub(crate) struct Watcher {
    /// The newest record, as JSON text.
    told: Mutex<Option<String>>,
    /// The record may have changed since the last look at it.
    missed: AtomicBool,
    changed: Notify,
    wanted: AtomicBool,
    granted: AtomicBool,
}

/// What a watcher heard.
pub(crate) enum Told {
    /// A record, as JSON text.
    Record(String),
    /// There may be news: look.
    Look,
}

impl Watcher {
    /// Returns what was told, once. Cancel-safe.
    pub(crate) async fn next(&self) -> Told {
        loop {
            if let Some(record) = lock(&self.told).take() {
                return Told::Record(record);
            }
            if self.missed.swap(false, Ordering::AcqRel) {
                return Told::Look;
            }
            self.changed.notified().await;
        }
    }

    /// Whether the server promised to tell of changes.
    pub(crate) fn is_told(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }

    /// Wants to be told of changes from now on.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::Release);
    }
}

impl TaskFeed {
    pub(crate) fn watch(&self, id: &str) -> Arc<Watcher> {
        let watcher = Arc::new(Watcher::default());
        let mut watchers = lock(&self.watchers);
        watchers.retain(|_, those| {
            those.retain(|one| one.strong_count() > 0);
            !those.is_empty()
        });
        watchers.entry(id.into()).or_default().push(Arc::downgrade(&watcher));
        watcher
    }

    /// A record arrived, as the parameters of a notification.
    pub(crate) fn told(&self, notification: &Message) {
        let Some(task_id) = notification.params().task_id.and_then(|id| read_str(notification.text(id))) else {
            tracing::debug!("a notification about a task cannot be read");
            return;
        };
        self.each(&task_id, |watcher| {
            *lock(&watcher.told) = Some(notification.params_text().to_owned());
            watcher.changed.notify_one();
        });
    }

    /// A stream was opened that tells of these tasks. What happened before is to be looked for.
    pub(crate) fn granted(&self, ids: &[String]) {
        for id in ids {
            self.each(id, |watcher| {
                watcher.granted.store(true, Ordering::Release);
                watcher.missed.store(true, Ordering::Release);
                watcher.changed.notify_one();
            });
        }
    }

    /// The stream ended.
    pub(crate) fn ended(&self, ids: &[String]) {
        for id in ids {
            self.each(id, |watcher| watcher.granted.store(false, Ordering::Release));
        }
    }

    /// The tasks that a stream should tell of.
    pub(crate) fn wanted(&self) -> Vec<String> {
        let watchers = lock(&self.watchers);
        let wanted = |one: &Weak<Watcher>| one.upgrade().is_some_and(|one| one.wanted.load(Ordering::Acquire));
        let ids = watchers.iter().filter(|(_, those)| those.iter().any(wanted)).map(|(id, _)| id.to_string());
        ids.collect::<BTreeSet<_>>().into_iter().take(TASKS_MAX).collect()
    }

    fn each(&self, id: &str, act: impl Fn(&Watcher)) {
        let those: Vec<_> = lock(&self.watchers).get(id).into_iter().flatten().filter_map(Weak::upgrade).collect();
        those.iter().for_each(|watcher| act(watcher));
    }
}
