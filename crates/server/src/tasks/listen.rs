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

/// The tasks that a stream tells of.
pub(crate) struct TaskStream {
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
    work: Option<BoxFuture<'static, Done>>,
    watch: Option<Watch>,
    is_open: bool,
}

enum Done {
    /// The tasks that exist for the sender.
    Opened(Option<Watch>, Vec<String>),
    /// Something changed.
    Changed(Watch, String),
    /// The time of a task is over: nobody may have noticed.
    Expired(Watch),
    /// The notification of a task, unless it is gone: which, until when it may take, and the notification.
    Told(usize, Option<u64>, Option<Bytes>),
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
        let (storage, owner) = (core.tasks().clone(), Owner::of(context));
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        ids.truncate(storage.limits.tasks.per_stream_max);
        let (reading, whose) = (storage.clone(), owner.clone());
        let opening = Box::pin(async move {
            let mut found = Vec::new();
            for id in ids {
                if reading.get(&whose, &id).await.is_ok() {
                    found.push(id);
                }
            }
            let topics: Vec<String> = found.iter().map(|id| reading.topic(id)).collect();
            let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
            match reading.store.topic().watch(&topics).await {
                Ok(watch) => Done::Opened((!found.is_empty()).then_some(watch), found),
                Err(error) => {
                    let _ = TaskError::from(error);
                    Done::Opened(None, Vec::new())
                }
            }
        });
        Ok(Some(TaskStream {
            storage,
            owner,
            features: request.caller.features(),
            request: request.id.clone(),
            ids: Vec::new(),
            expires: Vec::new(),
            due: VecDeque::new(),
            work: Some(opening),
            watch: None,
            is_open: false,
        }))
    }

    /// Waits until the tasks are found, and returns their ids, for the acknowledgement.
    pub(crate) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<&[String]> {
        while !self.is_open {
            ready!(self.poll_work(cx));
        }
        Poll::Ready(&self.ids)
    }

    /// Polls for the next notification. It is never ready without one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            if self.work.is_none() {
                if let Some(at) = self.due.pop_front() {
                    self.work = Some(self.read(at));
                } else if let Some(mut watch) = self.watch.take() {
                    // A suspended task has no runner, which would end it when its time is over.
                    let left = self.expires.iter().flatten().min().map(|at| self.storage.left(*at));
                    self.work = Some(Box::pin(async move {
                        let next = watch.next();
                        let changed = match left {
                            Some(left) => tokio::time::timeout(left, next).await.ok(),
                            None => Some(next.await),
                        };
                        match changed {
                            Some((topic, _)) => Done::Changed(watch, topic),
                            None => Done::Expired(watch),
                        }
                    }));
                } else {
                    return Poll::Pending;
                }
            }
            if let Some(frame) = ready!(self.poll_work(cx)) {
                return Poll::Ready(frame);
            }
        }
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        let done = ready!(work.as_mut().poll(cx));
        self.work = None;
        match done {
            Done::Opened(watch, ids) => {
                // Each is told once at the beginning, so that nothing of before is missed.
                (self.watch, self.due, self.is_open) = (watch, (0..ids.len()).collect(), true);
                self.expires = vec![None; ids.len()];
                self.ids = ids;
            }
            Done::Changed(watch, topic) => {
                self.watch = Some(watch);
                if let Some(at) = self.ids.iter().position(|id| topic.ends_with(id.as_str())) {
                    self.due.push_back(at);
                }
            }
            Done::Expired(watch) => {
                let now = self.storage.now_ms();
                self.watch = Some(watch);
                let expired = self.expires.iter().enumerate().filter(|(_, at)| at.is_some_and(|at| at <= now));
                self.due.extend(expired.map(|(at, _)| at));
            }
            Done::Told(at, expires, frame) => {
                self.expires[at] = expires;
                return Poll::Ready(frame);
            }
        }
        Poll::Ready(None)
    }

    fn read(&self, at: usize) -> BoxFuture<'static, Done> {
        let (storage, owner, id) = (self.storage.clone(), self.owner.clone(), self.ids[at].clone());
        let (request, features) = (self.request.clone(), self.features);
        Box::pin(async move {
            let found = async {
                let record = storage.get(&owner, &id).await?;
                let end = storage.end(&owner, &id, &record).await?;
                Ok::<_, TaskError>((record, end))
            };
            let Ok((record, end)) = found.await else { return Done::Told(at, None, None) };
            let expires = (!record.state.status.is_end()).then(|| record.state.expires_ms());
            let mut members = Vec::with_capacity(320);
            render::subscription_meta(&mut members, &request);
            members.push(b',');
            methods::write(&mut members, &id, (&record, end), features, storage.now_ms());
            Done::Told(at, expires, Some(render::notification("notifications/tasks", &members)))
        })
    }
}
