//! Tasks of a `subscriptions/listen` stream.

use crate::running_server::RunningServer;
use crate::tasks::methods;
use crate::tasks::owner::Owner;
use crate::tasks::storage::{Storage, TaskError};
use bytes::Bytes;
use linchpin_core::message::Request;
use linchpin_core::service::{BoxFuture, RequestContext};
use linchpin_core::{Features, Id, Reply, render};
use linchpin_proto::task;
use linchpin_store::Watch;
use linchpin_types::error::code;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The notifications of the tasks that a stream tells of.
pub(crate) struct TaskStream {
    /// Finds the tasks; `None` once they are found.
    opening: Option<BoxFuture<'static, Tasks>>,
    /// Makes the next notification.
    next: Option<BoxFuture<'static, (Tasks, Bytes)>>,
}

impl TaskStream {
    /// `None` if the request names no tasks. The error is the response.
    pub(crate) fn of(
        core: &RunningServer,
        request: &Request,
        context: &RequestContext,
        mut ids: Vec<String>,
    ) -> Result<Option<TaskStream>, Reply> {
        if ids.is_empty() || !core.has_tasks() {
            return Ok(None);
        }
        if !task::declared(request) {
            let why = "the client did not declare the tasks extension in this request";
            let code = code::MISSING_REQUIRED_CLIENT_CAPABILITY;
            return Err(Reply::error(Some(&request.id), code, why, Some(task::REQUIRED)));
        }
        let storage = core.tasks().clone();
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        ids.truncate(storage.limits.tasks.per_stream_max);
        let tasks = Tasks {
            storage,
            owner: Owner::of(context),
            features: request.caller.features(),
            request: request.id.clone(),
            ids,
            expires: Vec::new(),
            due: VecDeque::new(),
            watch: None,
        };
        Ok(Some(TaskStream { opening: Some(Box::pin(tasks.found())), next: None }))
    }

    /// Waits until the tasks are found, and returns their ids, for the acknowledgement.
    pub(crate) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Vec<String>> {
        let Some(opening) = &mut self.opening else { return Poll::Ready(Vec::new()) };
        let tasks = ready!(opening.as_mut().poll(cx));
        let ids = tasks.ids.clone();
        self.opening = None;
        self.next = Some(Box::pin(tasks.next()));
        Poll::Ready(ids)
    }

    /// Polls for the next notification. It is never ready without one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let Some(next) = &mut self.next else { return Poll::Pending };
        let (tasks, frame) = ready!(next.as_mut().poll(cx));
        self.next = Some(Box::pin(tasks.next()));
        Poll::Ready(frame)
    }
}

struct Tasks {
    storage: Arc<Storage>,
    owner: Owner,
    features: &'static Features,
    /// The request of the stream.
    request: Id,
    ids: Vec<String>,
    /// Until when each may take, of those that have not ended.
    expires: Vec<Option<u64>>,
    /// What has to be read and told.
    due: VecDeque<usize>,
    /// `None` if there is nothing to tell.
    watch: Option<Watch>,
}

impl Tasks {
    /// Those that exist for the sender.
    async fn found(mut self) -> Tasks {
        let mut found = Vec::new();
        for id in std::mem::take(&mut self.ids) {
            if self.storage.get(&self.owner, &id).await.is_ok() {
                found.push(id);
            }
        }
        if found.is_empty() {
            return self;
        }
        let topics: Vec<String> = found.iter().map(|id| self.storage.topic(id)).collect();
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        match self.storage.store.topic().watch(&topics).await {
            Ok(watch) => {
                self.watch = Some(watch);
                // Each is told once at the beginning, so that nothing of before is missed.
                (self.due, self.expires) = ((0..found.len()).collect(), vec![None; found.len()]);
                self.ids = found;
            }
            // Says it in the log.
            Err(error) => drop(TaskError::from(error)),
        }
        self
    }

    /// The next notification, whenever it comes.
    async fn next(mut self) -> (Tasks, Bytes) {
        loop {
            while let Some(at) = self.due.pop_front() {
                if let Some(frame) = self.told(at).await {
                    return (self, frame);
                }
            }
            self.change().await;
        }
    }

    /// Waits until a task has to be told of.
    async fn change(&mut self) {
        let Some(watch) = &mut self.watch else { return std::future::pending().await };
        // A suspended task has no runner, which would end it when its time is over.
        let left = self.expires.iter().flatten().min().map(|at| self.storage.left(*at));
        let changed = match left {
            Some(left) => tokio::time::timeout(left, watch.next()).await.ok(),
            None => Some(watch.next().await),
        };
        match changed {
            Some((topic, _)) => self.due.extend(self.ids.iter().position(|id| topic.ends_with(id.as_str()))),
            // The time of a task is over: nobody may have noticed.
            None => {
                let now = self.storage.now_ms();
                let expired = self.expires.iter().enumerate().filter(|(_, at)| at.is_some_and(|at| at <= now));
                self.due.extend(expired.map(|(at, _)| at));
            }
        }
    }

    /// The notification of a task, unless it is gone.
    async fn told(&mut self, at: usize) -> Option<Bytes> {
        let id = &self.ids[at];
        self.expires[at] = None;
        let record = self.storage.get(&self.owner, id).await.ok()?;
        let end = self.storage.end(&self.owner, id, &record).await.ok()?;
        self.expires[at] = (!record.state.status.is_end()).then(|| record.state.expires_ms());
        let mut members = Vec::with_capacity(320);
        render::subscription_meta(&mut members, &self.request);
        members.push(b',');
        methods::write(&mut members, id, (&record, end), self.features, self.storage.now_ms());
        Some(render::notification("notifications/tasks", &members))
    }
}
