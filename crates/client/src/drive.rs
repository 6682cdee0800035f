//! Driving a task to its end: looking at it, listening to it, answering its questions.
//!
//! Specification: the tasks extension of 2026-07-28; for sessions 2025-11-25 "Tasks".

use crate::connection_state::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::lock::lock;
use crate::request_parts::{Options, Progress, RequestParts, Round};
use crate::response::{Response, ResultText};
use crate::result::members_of;
use crate::task_feed::{Told, Watcher};
use crate::task_questions::Questions;
use crate::task_record::Record;
use crate::{Result, listen, mrtr};
use bytestring::ByteString;
use linchpin_core::Features;
use linchpin_core::service::BoxFuture;
use linchpin_proto::message_writer::Extras;
use linchpin_types::error::{ErrorObject, code};
use linchpin_types::page::ResultType;
use linchpin_types::task::TaskStatus;
use linchpin_types::tool::TaskSupport;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A task that is older is listened to.
const LISTEN_AFTER: Duration = Duration::from_secs(2);
/// How much rarer a task is looked at while it is listened to, and at least how often.
const LISTENED: u32 = 4;
const LOOK_AT_LEAST: Duration = Duration::from_secs(60);
/// The pauses after failed looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How often in a row a server may say that it has an internal error.
const INTERNAL_MAX: u32 = 5;

/// A task that somebody waits for.
pub(crate) struct Drive {
    pub(crate) core: Arc<ConnectionState>,
    pub(crate) id: Box<str>,
    /// The tool, if it is known, for the check of its result.
    pub(crate) tool: Option<Box<str>>,
    pub(crate) options: Options,
    /// What is known of it already.
    pub(crate) first: Option<Record>,
    /// How long to wait; `None` is without end.
    pub(crate) limit: Option<Duration>,
    /// Whether the task is cancelled if nobody waits any more.
    pub(crate) cancels: bool,
}

/// Whether a call is to ask for a task: only revisions where the client decides.
pub(crate) async fn asks_for_task(core: &Arc<ConnectionState>, request: &RequestParts, wanted: bool) -> Result<bool> {
    if request.method != "tools/call" || !core.config.tasks {
        return Ok(false);
    }
    let live = core.live().await?;
    if !live.agreed.features.tool_execution || !live.agreed.capabilities.tasks.is_some_and(|tasks| tasks.tools_call()) {
        return Ok(false);
    }
    if !core.tools.is_complete()
        && let Err(why) = crate::list::tools(core).await
    {
        tracing::debug!(%why, "the list of tools, which says which are tasks, could not be read");
    }
    let support = core.tools.task_support(request.about.as_deref().unwrap_or_default());
    Ok(support == Some(TaskSupport::Required) || (support == Some(TaskSupport::Optional) && wanted))
}

/// The task that a call was answered with, if it was. `asked` is whether the call asked for one.
pub(crate) fn created(core: &ConnectionState, response: &Response, asked: bool) -> Result<Option<Record>> {
    if response.result_type == ResultType::Task {
        return Record::read(response.text()).map(Some);
    }
    let decides = core.latest().is_some_and(|live| live.agreed.features.tool_execution);
    if !decides || response.member(|members| members.content).is_some() {
        return Ok(None);
    }
    #[derive(Deserialize)]
    struct Created {
        #[serde(default)]
        task: Option<Record>,
    }
    match serde_json::from_str::<Created>(response.text()) {
        Ok(Created { task: Some(_) }) if !asked => {
            let why = "the server answered with a task, and the call asked for none";
            Err(Error::new(ErrorKind::InvalidResponse, why))
        }
        Ok(Created { task }) => Ok(task.filter(|task| !task.task_id.is_empty())),
        Err(_) => Ok(None),
    }
}

/// Looks at a task once.
pub(crate) async fn get(core: &Arc<ConnectionState>, id: &str, options: &Options) -> Result<Record> {
    let response = core.exchange(&about("tasks/get", id), options, &Round::default()).await;
    Record::of(id, response.map_err(|e| lost(id, e))?.text())
}

/// Asks the server to end a task.
pub(crate) async fn cancel(core: &Arc<ConnectionState>, id: &str, options: &Options) -> Result<()> {
    let live = core.live().await?;
    if !can_cancel(live.agreed.features, &live.agreed.capabilities) {
        return Err(Error::new(ErrorKind::InvalidRequest, "the server cannot cancel tasks"));
    }
    match core.exchange(&about("tasks/cancel", id), options, &Round::default()).await {
        Ok(_) => Ok(()),
        Err(why) => Err(refused(core, id, options, why).await),
    }
}

/// Why a server refused an answer or a cancellation: the task is gone, or that does not suit it.
pub(crate) async fn refused(core: &Arc<ConnectionState>, id: &str, options: &Options, why: Error) -> Error {
    if !why.is_rpc(code::INVALID_PARAMS) {
        return why;
    }
    match get(core, id, options).await {
        Ok(_) => why,
        Err(gone) => gone,
    }
}

/// A request about a task.
pub(crate) fn about(method: &'static str, id: &str) -> RequestParts {
    let mut request = RequestParts::new(method);
    request.about = Some(id.into());
    request.members.text("taskId", id);
    request
}

/// An unknown task is one that is lost.
pub(crate) fn lost(id: &str, e: Error) -> Error {
    if e.is_rpc(code::INVALID_PARAMS) { Error::task_lost(id, &e) } else { e }
}

fn can_cancel(features: &Features, can: &linchpin_types::capability::ServerCapabilities) -> bool {
    !features.tool_execution || can.tasks.is_some_and(|tasks| tasks.cancel.is_some())
}

impl Drive {
    /// Waits for the end of the task.
    pub(crate) async fn run(mut self) -> Result<ResultText> {
        let mut watch = Watch { drive: (self.core.clone(), self.id.clone()), cancels: self.cancels, listened: false };
        let outcome = self.follow(&mut watch).await;
        // What nobody will answer, and what cannot be understood, need not go on.
        let hopeless = |e: &Error| matches!(e.kind(), ErrorKind::Input | ErrorKind::InvalidResponse);
        watch.cancels &= outcome.as_ref().is_err_and(hopeless);
        drop(watch);
        let is_over = match &outcome {
            Ok(_) => true,
            Err(e) => e.kind() == ErrorKind::TaskLost,
        };
        if is_over {
            self.core.config.book.remove(&self.core.target(), &self.id).await;
        }
        outcome?
    }

    /// Returns what the task ended with; an error if it has not ended, as far as is known.
    async fn follow(&mut self, watch: &mut Watch) -> Result<Result<ResultText>> {
        let feed = self.core.feed.watch(&self.id);
        let features = self.core.live().await?.agreed.features;
        let began = Instant::now();
        let mut state = Following {
            drive: self,
            features,
            told: 0,
            questions: Questions::default(),
            interval: Duration::ZERO,
            next: began,
            failures: 0,
            fetch: None,
            fetch_at: features.tool_execution.then_some(began),
            refused: None,
            empty: None,
        };
        if let Some(first) = state.drive.first.take()
            && let Some(end) = state.take(first, &feed)?
        {
            return Ok(end);
        }
        let deadline = state.drive.limit.map(|limit| began + limit);
        let far = began + Duration::from_secs(86_400 * 365);
        let mut look: Option<BoxFuture<'static, Result<Record>>> = None;
        loop {
            state.fetch_if_due();
            state.questions.ask_next(&state.drive.core, &state.drive.id, &state.drive.options);
            let fetch_at = state.fetch_at.filter(|_| state.fetch.is_none());
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline.unwrap_or(far)), if deadline.is_some() => {
                    return Err(Error::still_running(&state.drive.id, state.drive.limit.unwrap_or_default()));
                }
                told = feed.next() => match told {
                    Told::Look => state.next = Instant::now(),
                    Told::Record(json) => match Record::of(&state.drive.id, &json) {
                        Ok(record) => if let Some(end) = state.hear(record, &feed)? { return Ok(end) },
                        Err(why) => tracing::debug!(%why, "a notification about a task is not used"),
                    },
                },
                answered = pending(state.questions.asking()) => {
                    state.questions.answered();
                    if let Err(why) = answered {
                        let drive = &state.drive;
                        return Err(refused(&drive.core, &drive.id, &state.quiet(), why).await);
                    }
                    state.next = state.next.min(Instant::now() + state.interval);
                }
                fetched = pending(state.fetch.as_mut()) => {
                    state.fetch = None;
                    if let Some(end) = state.fetched(fetched).await? {
                        return Ok(end);
                    }
                }
                looked = pending(look.as_mut()) => {
                    look = None;
                    match looked {
                        Ok(record) => {
                            state.failures = 0;
                            if let Some(end) = state.take(record, &feed)? {
                                return Ok(end);
                            }
                        }
                        Err(why) => state.next = Instant::now() + state.pause(why)?,
                    }
                }
                () = tokio::time::sleep_until(state.next), if look.is_none() => look = Some(state.look()),
                () = tokio::time::sleep_until(fetch_at.unwrap_or(far)), if fetch_at.is_some() => {}
                () = tokio::time::sleep_until(began + LISTEN_AFTER), if features.listens && !watch.listened => {
                    watch.listened = true;
                    feed.want();
                    listen::follow_tasks(&state.drive.core);
                }
            }
        }
    }
}

/// Waits for a future that may be absent.
async fn pending<T>(future: Option<&mut BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Where the wait for a task is.
struct Following<'a> {
    drive: &'a mut Drive,
    features: &'static Features,
    /// How many status messages were passed on.
    told: u32,
    questions: Questions,
    interval: Duration,
    /// The time of the next look.
    next: Instant,
    /// Failed looks in a row.
    failures: u32,
    /// `tasks/result`, in revisions that have it: open from the start, because questions come on its stream.
    fetch: Option<BoxFuture<'static, Result<Response>>>,
    /// When to open it again; `None` once it was refused, until the task has ended or asks something.
    fetch_at: Option<Instant>,
    refused: Option<Error>,
    /// An answer of `tasks/result` that has nothing of a call's result. Python's SDK answers so for a task that failed or was
    /// cancelled: the state of the task tells.
    empty: Option<ResultText>,
}

impl Following<'_> {
    fn look(&self) -> BoxFuture<'static, Result<Record>> {
        let (core, id, options) = (self.drive.core.clone(), self.drive.id.clone(), self.quiet());
        Box::pin(async move { get(&core, &id, &options).await })
    }

    /// Options of the requests about the task: no progress of their own.
    fn quiet(&self) -> Options {
        Options { watched: None, ..self.drive.options.clone() }
    }

    fn fetch_if_due(&mut self) {
        if self.fetch.is_some() || self.fetch_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        let (core, id) = (self.drive.core.clone(), self.drive.id.clone());
        let options = Options { timeout: None, ..self.quiet() };
        self.fetch =
            Some(Box::pin(
                async move { core.exchange(&about("tasks/result", &id), &options, &Round::default()).await },
            ));
    }

    /// A record that the server sent by itself. It may lack what the answer to a look has.
    fn hear(&mut self, record: Record, feed: &Arc<Watcher>) -> Result<Option<Result<ResultText>>> {
        let whole = match record.status {
            TaskStatus::Completed => record.result.is_some() || self.features.tool_execution,
            TaskStatus::InputRequired => record.input_requests.is_some() || self.features.tool_execution,
            _ => true,
        };
        if whole {
            return self.take(record, feed);
        }
        self.next = Instant::now();
        Ok(None)
    }

    /// Returns what the task ended with, if it has.
    fn take(&mut self, record: Record, feed: &Arc<Watcher>) -> Result<Option<Result<ResultText>>> {
        self.tell(&record);
        self.interval = record.interval();
        let wait = if feed.is_told() { (self.interval * LISTENED).min(LOOK_AT_LEAST) } else { self.interval };
        self.next = Instant::now() + around(wait);
        if let Some(empty) = self.empty.take_if(|_| record.status == TaskStatus::Completed) {
            let checked = mrtr::check_known(&self.drive.core, self.drive.tool.as_deref(), None, false);
            return Ok(Some(checked.map(|()| empty)));
        }
        let (id, fetches) = (&*self.drive.id, self.features.tool_execution && self.empty.is_none());
        match record.status {
            TaskStatus::Cancelled => return Ok(Some(Err(Error::task_cancelled(id, record.status_message.as_deref())))),
            TaskStatus::Completed | TaskStatus::Failed if fetches => {
                if let Some(refused) = self.refused.take() {
                    return Ok(Some(Err(refused)));
                }
                self.fetch_at.get_or_insert_with(Instant::now);
            }
            TaskStatus::Completed => {
                let Some(result) = record.result else {
                    let why = format!("the task {id} is completed and has no result");
                    return Err(Error::new(ErrorKind::InvalidResponse, why));
                };
                return Ok(Some(self.result(ByteString::from(Box::<str>::from(result).into_string()))));
            }
            TaskStatus::Failed => {
                let error = record.error.map_or_else(
                    || {
                        let message = record.status_message.unwrap_or_else(|| "the task failed".to_owned());
                        serde_json::to_string(&ErrorObject::new(code::INTERNAL_ERROR, message)).unwrap_or_default()
                    },
                    |error| error.get().to_owned(),
                );
                return Ok(Some(Err(Error::refused(&error))));
            }
            TaskStatus::InputRequired if fetches => {
                // A server that refuses `tasks/result` while it asks is not asked again at once.
                self.refused = None;
                let after = self.interval;
                self.fetch_at.get_or_insert_with(|| Instant::now() + after);
            }
            TaskStatus::InputRequired => self.questions.take(record.input_requests.unwrap_or_default())?,
            _ => {
                self.refused = None;
                self.questions.take(Default::default())?;
            }
        }
        Ok(None)
    }

    /// The result of a completed task, checked as that of a call.
    fn result(&self, text: ByteString) -> Result<ResultText> {
        let members = members_of(&text)?;
        let result = ResultText { text, members };
        let of = |span: Option<linchpin_core::json::Span>| span.map(|span| span.of(&result.text));
        let (structured, failed) = (of(members.structured_content), of(members.is_error) == Some("true"));
        mrtr::check_known(&self.drive.core, self.drive.tool.as_deref(), structured, failed)?;
        Ok(result)
    }

    /// `tasks/result` was answered.
    async fn fetched(&mut self, fetched: Result<Response>) -> Result<Option<Result<ResultText>>> {
        match fetched {
            Ok(response) => {
                let text = response.into_text();
                let members = &text.members;
                if members.content.is_none() && members.structured_content.is_none() && members.is_error.is_none() {
                    (self.fetch_at, self.empty) = (None, Some(text));
                    self.next = Instant::now();
                    return Ok(None);
                }
                let structured = text.members.structured_content.map(|span| span.of(&text.text));
                let failed = text.members.is_error.is_some_and(|span| span.of(&text.text) == "true");
                let checked = mrtr::check_known(&self.drive.core, self.drive.tool.as_deref(), structured, failed);
                Ok(Some(checked.map(|()| text)))
            }
            Err(why) if why.rpc().is_some() => {
                // The error of the call, or one of this request? The state of the task tells.
                (self.fetch_at, self.refused) = (None, Some(why));
                self.next = Instant::now();
                Ok(None)
            }
            Err(why) => {
                self.fetch_at = Some(Instant::now() + self.pause(why)?);
                Ok(None)
            }
        }
    }

    /// How long to wait after this error; the error itself if waiting does not help.
    fn pause(&mut self, why: Error) -> Result<Duration> {
        let core = &self.drive.core;
        let passes = match why.kind() {
            ErrorKind::Rpc => why.is_rpc(code::INTERNAL_ERROR) && self.failures < INTERNAL_MAX,
            ErrorKind::Transport | ErrorKind::Timeout | ErrorKind::Connect => {
                !core.is_closed() && (!why.is_closed() || core.config.restart.is_some())
            }
            _ => false,
        };
        if !passes {
            return Err(why);
        }
        tracing::debug!(%why, "the state of a task is not known; asking again later");
        let pause = PAUSES.0.saturating_mul(1 << self.failures.min(6)).min(PAUSES.1);
        self.failures += 1;
        Ok(around(pause))
    }

    /// Passes a new status message on.
    fn tell(&mut self, record: &Record) {
        let (Some(watched), Some(message)) = (&self.drive.options.watched, &record.status_message) else { return };
        let mut last = lock(&watched.message);
        if last.as_ref() == Some(message) {
            return;
        }
        *last = Some(message.clone());
        self.told += 1;
        watched.queue.push(Progress { progress: self.told.into(), total: None, message: Some(message.clone()) });
        watched.touched.notify_one();
    }
}

/// About this long: ±10 %, so that many clients do not ask at once.
fn around(wait: Duration) -> Duration {
    let noise = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.subsec_nanos());
    wait.mul_f64(0.9 + 0.2 * f64::from(noise % 1_000) / 1_000.0)
}

/// Ends the task, if that is wanted, when nobody waits for it any more; and the stream that tells of it.
struct Watch {
    drive: (Arc<ConnectionState>, Box<str>),
    cancels: bool,
    listened: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (core, id) = &self.drive;
        if self.listened && tokio::runtime::Handle::try_current().is_ok() {
            listen::follow_tasks(core);
        }
        let Some(live) = core.latest().filter(|live| self.cancels && live.lost.get().is_none()) else { return };
        if !can_cancel(live.agreed.features, &live.agreed.capabilities) {
            return;
        }
        let mut out = live.writer.request(core.next_id(), "tasks/cancel", Extras::default(), |members| {
            members.text("taskId", id);
        });
        out.about = Some(id.clone());
        live.link.notify_detached(out);
        core.config.book.forget(&core.target(), id);
    }
}
