//! Tasks of a server, as seen by a host.

use crate::connection::Connection;
use crate::connection_state::ConnectionState;
use crate::drive::{self, Drive};
use crate::error::{Error, ErrorKind};
use crate::request::{Received, Request, Step, Steps};
use crate::request_parts::{Options, Progress, RequestParts, Round, Watched};
use crate::result::{RawCallToolResult, unexpected};
use crate::task_record::Record;
use crate::{Result, task_questions};
use linchpin_core::service::BoxFuture;
use linchpin_proto::message_writer::one_line;
use linchpin_types::error::ErrorObject;
use linchpin_types::task::{Task as TaskInfo, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

/// A handle to a task on a server: a call that continues to run independently of the request.
///
/// Awaiting it waits for the end of the task and returns the result of the call. Meanwhile the task is polled at the interval
/// that the server requests, the client subscribes to its changes if the server supports that, and its input requests are
/// passed to the callbacks of [`crate::Client`], each once. Dropping a `Task`, or its future, leaves the task running;
/// [`Task::cancel`] cancels it.
///
/// It is returned by [`crate::Request::detached`], and by [`Connection::task`] for an identifier that is already known.
/// Specification: the tasks extension of 2026-07-28; 2025-11-25 "Tasks".
///
/// ```
/// # use linchpin_client::{Connection, ErrorKind, Result};
/// async fn report(server: &Connection) -> Result<String> {
///     let task = server.call("yearly", serde_json::json!({ "year": 2025 })).detached().await?;
///     println!("runs as {:?}", task.id());
///     Ok(task.await?.ok()?.text())
/// }
/// ```
///
/// # Errors
/// When awaited: those of the call; [`ErrorKind::TaskLost`] if the server does not know the task,
/// [`ErrorKind::TaskCancelled`] if it was cancelled, [`ErrorKind::StillRunning`] if it takes longer than `calls.task_ms_max` or
/// [`Task::timeout`] allows.
#[must_use = "a task is waited for when it is awaited"]
pub struct Task {
    /// Keeps the connection open.
    connection: Connection,
    /// What a server answered that made no task of the call.
    done: Option<RawCallToolResult>,
    id: Box<str>,
    tool: Option<Box<str>>,
    first: Option<Record>,
    options: Options,
    limit: Option<Duration>,
    on_progress: Option<Box<dyn FnMut(Progress) + Send>>,
    /// The token of the call's progress, which goes on with the task where there are sessions.
    token: Option<u64>,
}

/// The state of a task, returned by [`Task::state`].
///
/// ```
/// # use linchpin_client::{Connection, Result};
/// async fn look(server: &Connection, id: &str) -> Result<()> {
///     let state = server.task(id).state().await?;
///     println!("{}: {} open input requests", state.task.status, state.input_requests.len());
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskState {
    /// The task's identifier, status, message and times.
    pub task: TaskInfo,
    /// The open input requests by key: `{"method": …, "params": …}`. Servers with sessions send theirs as requests.
    pub input_requests: BTreeMap<String, Box<RawValue>>,
    /// The result of the call, once completed. Servers with sessions return it only when the task is awaited.
    pub result: Option<RawCallToolResult>,
    /// The error of the call, if it failed and the server includes the reason.
    pub error: Option<ErrorObject>,
}

/// How a call began.
enum Begun {
    Done(RawCallToolResult),
    /// The task, and the token of the call's progress.
    Task(Record, u64),
}

impl Task {
    fn new(
        connection: &Connection,
        begun: Begun,
        tool: Option<Box<str>>,
        options: Options,
        on_progress: Option<Box<dyn FnMut(Progress) + Send>>,
    ) -> Task {
        let mut task = Task::known(connection, "");
        match begun {
            Begun::Done(result) => task.done = Some(result),
            Begun::Task(record, token) => {
                task.id = record.task_id.as_str().into();
                (task.first, task.token) = (Some(record), Some(token));
            }
        }
        Task { tool, options, on_progress, ..task }
    }

    /// A task whose identifier is known.
    fn known(connection: &Connection, id: &str) -> Task {
        let limits = &connection.core().config.limits;
        let timeout = (limits.calls.run_ms_max > 0).then(|| Duration::from_millis(limits.calls.run_ms_max));
        let limit = (limits.calls.task_ms_max > 0).then(|| Duration::from_millis(limits.calls.task_ms_max));
        let options = Options { timeout, ..Options::default() };
        let connection = connection.clone();
        Task {
            connection,
            done: None,
            id: id.into(),
            tool: None,
            first: None,
            options,
            limit,
            on_progress: None,
            token: None,
        }
    }

    /// Returns the identifier at the server; `None` if the server returned the result directly.
    pub fn id(&self) -> Option<&str> {
        self.done.is_none().then_some(&*self.id)
    }

    /// Returns the tool that was called, if that is known.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// Sets how long awaiting the task may take; zero means no timeout. Default: `calls.task_ms_max`, an hour.
    ///
    /// After the timeout the error is [`ErrorKind::StillRunning`], and the task continues to run.
    pub fn timeout(mut self, timeout: Duration) -> Task {
        self.limit = (!timeout.is_zero()).then_some(timeout);
        self
    }

    /// Sets a callback for the task's status messages, passed as [`Progress::message`]. It runs in the task that awaits.
    pub fn on_progress(mut self, hear: impl FnMut(Progress) + Send + 'static) -> Task {
        self.on_progress = Some(Box::new(hear));
        self
    }

    /// Requests the state of the task from the server.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`Error`]; [`ErrorKind::TaskLost`] if the server does not know the task.
    pub async fn state(&self) -> Result<TaskState> {
        if let Some(done) = &self.done {
            let task = TaskInfo::new("", TaskStatus::Completed, "");
            return Ok(TaskState { task, input_requests: BTreeMap::new(), result: Some(done.clone()), error: None });
        }
        let record = drive::get(self.core(), &self.id, &self.options).await?;
        let result = record.result.as_deref().map(RawCallToolResult::of).transpose()?;
        let error = record.error.as_deref().and_then(|error| serde_json::from_str(error.get()).ok());
        let task = record.task();
        Ok(TaskState { task, input_requests: record.input_requests.unwrap_or_default(), result, error })
    }

    /// Responds to an open input request of the task by its key, as the callbacks of the client would. `answer` serialises to the
    /// result of the request's method: an `ElicitResult`, a `CreateMessageResult`, a `ListRootsResult`.
    ///
    /// Servers with sessions send their input requests as ordinary requests, so this does not apply to them.
    ///
    /// ```
    /// # use linchpin_client::{Result, Task};
    /// use linchpin_types::elicit::ElicitResult;
    ///
    /// async fn decline_all(task: &Task) -> Result<()> {
    ///     for key in task.state().await?.input_requests.keys() {
    ///         task.answer(key, ElicitResult::decline()).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error`]; [`ErrorKind::InvalidRequest`] if `answer` cannot be serialised to JSON.
    pub async fn answer(&self, key: &str, answer: impl Serialize) -> Result<()> {
        let json = serde_json::to_string(&answer).map_err(|e| {
            Error::with_source(ErrorKind::InvalidRequest, format!("the answer to `{key}` cannot be JSON: {e}"), e)
        })?;
        let answers = [(key.to_owned(), one_line(&json).into_owned())];
        match task_questions::update(self.core(), &self.id, &answers, &self.options).await {
            Ok(()) => Ok(()),
            Err(why) => Err(drive::refused(self.core(), &self.id, &self.options, why).await),
        }
    }

    /// Asks the server to cancel the task. The task may complete nevertheless if it is about to end.
    ///
    /// # Errors
    /// [`Error`]; servers with sessions refuse to cancel a task that has ended, and may not support cancellation at
    /// all.
    pub async fn cancel(&self) -> Result<()> {
        if self.done.is_some() {
            return Ok(());
        }
        drive::cancel(self.core(), &self.id, &self.options).await?;
        self.core().config.book.remove(&self.core().target(), &self.id).await;
        Ok(())
    }

    /// Turns the wait into a stream of progress that ends with the result, as [`crate::Request::steps`] does.
    pub fn steps(mut self) -> Steps<RawCallToolResult> {
        let limit = self.core().config.limits.messages.queued_max;
        let watched = self.options.watched.get_or_insert_with(|| Arc::new(Watched::new(limit))).clone();
        self.on_progress = None;
        Steps::new(watched, self.run())
    }

    fn core(&self) -> &Arc<ConnectionState> {
        self.connection.core()
    }

    fn run(self) -> BoxFuture<'static, Result<RawCallToolResult>> {
        Box::pin(async move {
            let Task { connection, done, id, mut tool, first, options, limit, token, .. } = self;
            if let Some(done) = done {
                return Ok(done);
            }
            let core = connection.core().clone();
            if tool.is_none() {
                tool = core.config.book.find(&core.target(), &id).await.and_then(|task| Some(task.tool?.into()));
            }
            let watched = token.zip(options.watched.clone());
            let held = core.clone();
            let _watch = watched.as_ref().map(|(token, watched)| held.watch(*token, watched));
            let drive = Drive { core, id, tool, options, first, limit, cancels: false };
            RawCallToolResult::receive(drive.run().await?)
        })
    }
}

impl Connection {
    /// Returns a handle to a task whose identifier is known, for example from before a restart. Sends nothing yet.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// async fn resume(server: &Connection, id: &str) -> Result<String> {
    ///     Ok(server.task(id).await?.ok()?.text())
    /// }
    /// ```
    pub fn task(&self, id: &str) -> Task {
        Task::known(self, id)
    }

    /// Returns the tasks that the server lists for this client (2025-11-25, if it supports that) or, without such a
    /// list, the tasks recorded by the client that this server still knows; see [`crate::Client::book`]. A list is
    /// truncated at `lists.pages_max` and `lists.items_max`.
    ///
    /// # Errors
    /// [`Error`]; [`ErrorKind::Book`] if the record cannot be read.
    #[doc(alias = "list_tasks")]
    pub async fn tasks(&self) -> Result<Vec<linchpin_types::task::Task>> {
        tasks(self).await
    }
}

impl Request<RawCallToolResult> {
    /// Sends the call and, if it becomes a task, returns a handle without waiting for the end of the task. If the server returns
    /// the result directly, the handle contains it.
    ///
    /// Dropping the future cancels the call; dropping the [`Task`] does not.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// async fn start(server: &Connection) -> Result<Option<String>> {
    ///     let task = server.call("yearly", serde_json::json!({ "year": 2025 })).detached().await?;
    ///     Ok(task.id().map(str::to_owned))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error`].
    pub async fn detached(mut self) -> Result<Task> {
        let connection = self.connection.clone();
        if let Ok(request) = &mut self.request {
            // The span of the request also continues the trace.
            let _ = connection.core().span(request);
        }
        let (mut hear, watched) = (self.on_progress.take(), self.options.watched.clone());
        let (response, _, task) = {
            let mut begin = std::pin::pin!(self.begin());
            loop {
                let progress = async {
                    match &watched {
                        Some(watched) => watched.queue.next().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    begun = &mut begin => break begun?,
                    progress = progress => if let (Some(progress), Some(hear)) = (progress, &mut hear) { hear(progress) },
                }
            }
        };
        let begun = match task {
            Some(record) => Begun::Task(record, response.id),
            None => Begun::Done(RawCallToolResult::receive(response.into_text())?),
        };
        let tool = self.request.ok().and_then(|request| request.about);
        Ok(Task::new(&connection, begun, tool, self.options, hear))
    }
}

impl IntoFuture for Task {
    type Output = Result<RawCallToolResult>;
    type IntoFuture = BoxFuture<'static, Result<RawCallToolResult>>;

    fn into_future(mut self) -> Self::IntoFuture {
        let Some(mut hear) = self.on_progress.take() else { return self.run() };
        let mut steps = self.steps();
        Box::pin(async move {
            while let Some(step) = steps.next().await {
                match step {
                    Step::Progress(progress) => hear(progress),
                    Step::Done(result) => return result,
                }
            }
            Err(Error::closed())
        })
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("id", &self.id()).field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// The tasks that a server lists or, where it has no list, those in the book that it still knows.
async fn tasks(connection: &Connection) -> Result<Vec<TaskInfo>> {
    let core = connection.core();
    let live = core.live().await?;
    let listed = live.agreed.capabilities.tasks.is_some_and(|tasks| tasks.list.is_some());
    if live.agreed.features.tool_execution && listed {
        return list(core).await;
    }
    let (target, mut found) = (core.target(), Vec::new());
    for booked in core.config.book.tasks().await?.into_iter().filter(|task| task.target == target) {
        match Task::known(connection, &booked.id).state().await {
            Ok(state) => found.push(state.task),
            Err(e) if e.kind() == ErrorKind::TaskLost => core.config.book.remove(&target, &booked.id).await,
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

/// All pages of `tasks/list`, within the limits of lists.
async fn list(core: &Arc<ConnectionState>) -> Result<Vec<TaskInfo>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        #[serde(default)]
        tasks: Vec<Record>,
        #[serde(default)]
        next_cursor: Option<String>,
    }
    let limits = &core.config.limits;
    let timeout = (limits.calls.run_ms_max > 0).then(|| Duration::from_millis(limits.calls.run_ms_max));
    let options = Options { timeout, ..Options::default() };
    let (mut found, mut seen, mut cursor): (Vec<TaskInfo>, _, Option<String>) = (Vec::new(), HashSet::new(), None);
    for _ in 0..limits.lists.pages_max {
        let mut request = RequestParts::new("tasks/list");
        if let Some(cursor) = &cursor {
            request.members.text("cursor", cursor);
        }
        let response = core.exchange(&request, &options, &Round::default()).await?;
        let page: Page =
            serde_json::from_str(response.text()).map_err(|e| unexpected("the answer to tasks/list", e))?;
        found.extend(page.tasks.iter().map(Record::task));
        let next = page.next_cursor.filter(|next| !next.is_empty() && seen.insert(next.clone()));
        if next.is_none() || found.len() > limits.lists.items_max {
            break;
        }
        cursor = next;
    }
    found.truncate(limits.lists.items_max);
    Ok(found)
}
