//! Requests that are sent when awaited.

use crate::book::BookedTask;
use crate::cache::Key;
use crate::connection::Connection;
use crate::drive::{self, Drive};
use crate::lock::lock;
use crate::request_parts::Progress;
use crate::request_parts::{Options, RequestParts, Watched};
use crate::response::{Response, ResultText};
use crate::result::{Decoded, RawCallToolResult};
use crate::task_record::Record;
use crate::{Error, ErrorKind, Result, mrtr};
use futures_core::Stream;
use linchpin_core::TraceContext;
use linchpin_core::service::BoxFuture;
use linchpin_proto::short_duration::ShortDuration;
use linchpin_types::jsonrpc::method::TOOLS_CALL;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::meta::Meta;
use linchpin_types::page::ResultType;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tracing::{Instrument, Span};

/// The result types of requests. Implemented by [`RawCallToolResult`] and [`Decoded`].
///
/// ```
/// use linchpin_client::{Received, Request, Result};
/// use std::time::Duration;
///
/// /// Sends a request of any kind with a short timeout.
/// async fn quickly<T: Received>(request: Request<T>) -> Result<T> {
///     request.timeout(Duration::from_secs(2)).await
/// }
/// # async fn run(server: linchpin_client::Connection) -> Result<()> {
/// let text = quickly(server.call("now", ())).await?.text();
/// let page = quickly(server.read("weather://oslo")).await?;
/// # Ok(()) }
/// ```
pub trait Received: Sized + Send + 'static {
    /// Reads a result from its JSON text.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidResponse`] if it has another shape.
    #[doc(hidden)]
    fn receive(result: ResultText) -> Result<Self>;
}

impl Received for RawCallToolResult {
    fn receive(result: ResultText) -> Result<RawCallToolResult> {
        RawCallToolResult::read(result)
    }
}

impl<T: DeserializeOwned + Send + 'static> Received for Decoded<T> {
    fn receive(result: ResultText) -> Result<Decoded<T>> {
        Decoded::of(result.text)
    }
}

/// A request that is sent when awaited, or when [`Request::steps`] is polled.
///
/// Cancel-safe: dropping the future cancels the request at the server.
///
/// ```
/// # use linchpin_client::{Connection, Result};
/// use std::time::Duration;
///
/// async fn convert(server: &Connection) -> Result<String> {
///     let call = server.call("convert", serde_json::json!({ "celsius": 20 }));
///     Ok(call.timeout(Duration::from_secs(5)).await?.text())
/// }
/// ```
#[must_use = "a request is sent when it is awaited"]
pub struct Request<T> {
    /// Keeps the connection open while the request runs.
    pub(crate) connection: Connection,
    pub(crate) request: Result<RequestParts>,
    pub(crate) options: Options,
    pub(crate) on_progress: Option<Box<dyn FnMut(Progress) + Send>>,
    rounds: bool,
    cached: Option<Key>,
    as_task: bool,
    result: PhantomData<fn() -> T>,
}

impl<T: Received> Request<T> {
    pub(crate) fn new(connection: &Connection, request: Result<RequestParts>) -> Request<T> {
        let core = connection.core();
        let (limits, config) = (&core.config.limits, &core.config);
        let timeout = (limits.calls.run_ms_max > 0).then(|| Duration::from_millis(limits.calls.run_ms_max));
        let log = *lock(&core.log_level);
        let options = Options { timeout, watched: None, log };
        let (connection, rounds) = (connection.clone(), config.rounds);
        Request {
            connection,
            request,
            options,
            on_progress: None,
            rounds,
            cached: None,
            as_task: false,
            result: PhantomData,
        }
    }

    /// Allows the result to be cached under this key.
    pub(crate) fn cached(mut self, key: Key) -> Request<T> {
        self.cached = Some(key);
        self
    }

    /// Sets the timeout of this request; zero means no timeout.
    ///
    /// If progress was requested, each progress notification resets the timeout. The timeout is paused while the host
    /// answers what the server requests during the call, such as user input, and starts again with the host's answer.
    /// In both cases `calls.run_with_progress_ms_max` is the upper limit.
    pub fn timeout(mut self, timeout: Duration) -> Request<T> {
        self.options.timeout = (!timeout.is_zero()).then_some(timeout);
        self
    }

    /// Requests progress. The callback runs in the task that awaits the request.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// async fn import(server: &Connection) -> Result<String> {
    ///     let call = server.call("import", ()).on_progress(|p| eprintln!("{} of {:?}", p.progress, p.total));
    ///     Ok(call.await?.text())
    /// }
    /// ```
    pub fn on_progress(mut self, hear: impl FnMut(Progress) + Send + 'static) -> Request<T> {
        self.on_progress = Some(Box::new(hear));
        self.watch()
    }

    /// Sets the minimum level of log messages for this request, in revisions that support it per request.
    pub fn log_level(mut self, least: LoggingLevel) -> Request<T> {
        self.options.log = Some(least);
        self
    }

    /// Adds a member to `_meta`, for example `traceparent`.
    ///
    /// # Errors
    /// When the request is awaited: if `value` cannot be serialised to JSON.
    pub fn meta(mut self, name: impl Into<String>, value: impl Serialize) -> Request<T> {
        if let Ok(request) = &mut self.request {
            let written = request.meta.get_or_insert_with(Meta::new).insert_as(name, &value);
            if let Err(why) = written {
                let text = format!("a member of `_meta` cannot be JSON: {why}");
                self.request = Err(Error::with_source(ErrorKind::InvalidRequest, text, why));
            }
        }
        self
    }

    /// Continues this trace at the server: sends `traceparent`, `tracestate` and `baggage` in `_meta`. For example, a handler
    /// that calls another server passes on the trace of its own request.
    ///
    /// [`crate::Client::trace_context`] does so for every `Request`.
    pub fn trace(mut self, trace: &TraceContext) -> Request<T> {
        if let Ok(request) = &mut self.request {
            request.trace(trace);
        }
        self
    }

    /// Sets the name of the request's target, for methods of extensions that require it. Over HTTP it is sent in the
    /// header `Mcp-Name`, in revisions that have that header. For the specification's own methods, the client sets it.
    pub fn named(mut self, about: &str) -> Request<T> {
        if let Ok(request) = &mut self.request {
            request.about = Some(about.into());
        }
        self
    }

    /// Sets whether the client handles multi-round-trip requests. Default: [`crate::Client::multi_round_trip`].
    pub fn multi_round_trip(mut self, on: bool) -> Request<T> {
        self.rounds = on;
        self
    }

    /// Turns the request into a stream of progress that ends with the result.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result, Step};
    /// async fn import(server: &Connection) -> Result<String> {
    ///     let mut steps = server.call("import", ()).steps();
    ///     while let Some(step) = steps.next().await {
    ///         match step {
    ///             Step::Progress(progress) => eprintln!("{}", progress.progress),
    ///             Step::Done(result) => return Ok(result?.text()),
    ///             _ => {}
    ///         }
    ///     }
    ///     Ok(String::new())
    /// }
    /// ```
    #[doc(alias = "progress")]
    #[doc(alias = "stream")]
    pub fn steps(self) -> Steps<T> {
        let mut call = self.watch();
        let watched = call.options.watched.clone();
        call.on_progress = None;
        Steps { watched, work: Some(call.run()), done: None }
    }

    /// The same request with another type of its result.
    fn received<U: Received>(self) -> Request<U> {
        let Request { connection, request, options, on_progress, rounds, cached, as_task, .. } = self;
        Request { connection, request, options, on_progress, rounds, cached, as_task, result: PhantomData }
    }

    fn watch(mut self) -> Request<T> {
        let limit = self.connection.core().config.limits.messages.queued_max;
        self.options.watched.get_or_insert_with(|| Arc::new(Watched::new(limit)));
        self
    }

    fn run(mut self) -> BoxFuture<'static, Result<T>> {
        let span = match &mut self.request {
            Ok(request) => self.connection.core().span(request),
            Err(_) => Span::none(),
        };
        let outcome = span.clone();
        let request = async move {
            let began = Instant::now();
            let result = self.send().await;
            let word = if result.is_ok() { "ok" } else { "error" };
            let duration = tracing::field::display(ShortDuration(began.elapsed()));
            tracing::record_all!(outcome, outcome = word, duration = duration);
            tracing::debug!(target: "linchpin::client", "request ended");
            result
        };
        Box::pin(request.instrument(span))
    }

    async fn send(mut self) -> Result<T> {
        let core = self.connection.core().clone();
        if let Some(kept) = self.cached.as_ref().and_then(|key| core.cache.get(key)) {
            return T::receive(kept);
        }
        let changes = core.cache.changes();
        let (response, rounds, task) = self.begin().await?;
        let Some(first) = task else {
            // Results that depend on input are never cached.
            if let Some(key) = self.cached.filter(|_| rounds == 0) {
                core.cache.put(key, response.text(), response.members(), response.ttl_ms(), changes);
            }
            return T::receive(response.into_text());
        };
        // With sessions, a task keeps the progress token of its call.
        let _watch = self.options.watched.as_ref().map(|watched| core.watch(response.id, watched));
        let limit = core.config.limits.calls.task_ms_max;
        let drive = Drive {
            core: core.clone(),
            id: first.task_id.as_str().into(),
            tool: self.request.ok().and_then(|request| request.about),
            options: self.options,
            first: Some(first),
            limit: (limit > 0).then(|| Duration::from_millis(limit)),
            cancels: true,
        };
        T::receive(drive.run().await?)
    }

    /// Sends the request, and sends it again while the server wants input. Returns the response, how often it was sent again,
    /// and the task that it was answered with, if it was.
    pub(crate) async fn begin(&mut self) -> Result<(Response, u32, Option<Record>)> {
        let core = self.connection.core();
        let request = self.request.as_mut().map_err(|why| why.clone())?;
        let asked = drive::asks_for_task(core, request, self.as_task).await?;
        if asked {
            request.members.raw("task", "{}");
        }
        let (response, rounds) = mrtr::run(core, request, &self.options, self.rounds).await?;
        if request.method != TOOLS_CALL || (response.result_type == ResultType::Task && !core.config.tasks) {
            return Ok((response, rounds, None));
        }
        let tool = request.about.as_deref();
        let Some(task) = drive::created(core, &response, asked)? else {
            mrtr::check(core, tool, &response).await?;
            return Ok((response, rounds, None));
        };
        let ended = task.status.is_terminal();
        if !ended {
            let entry = BookedTask::new(&task.task(), core.target(), tool);
            core.config.book.add(entry).await;
        }
        Ok((response, rounds, Some(task)))
    }
}

impl Request<RawCallToolResult> {
    /// Requests a task, if the tool allows it. This only has an effect in revision 2025-11-25; in other revisions the server
    /// decides, or there are no tasks.
    pub fn as_task(mut self) -> Request<RawCallToolResult> {
        self.as_task = true;
        self
    }
}

impl Request<Decoded<Box<RawValue>>> {
    /// Decodes the result as `T`.
    ///
    /// ```
    /// # use linchpin_client::{Connection, Result};
    /// #[derive(serde::Deserialize)]
    /// struct Found { notes: Vec<String> }
    ///
    /// async fn search(server: &Connection) -> Result<Vec<String>> {
    ///     let query = serde_json::json!({ "query": "milk" });
    ///     let found = server.request("com.example/search/run", query).named("milk").json::<Found>().await?;
    ///     Ok(found.into_inner().notes)
    /// }
    /// ```
    ///
    /// # Errors
    /// When awaited: [`Error`], also if the result has another shape.
    pub fn json<U: DeserializeOwned + Send + 'static>(self) -> Request<Decoded<U>> {
        self.received()
    }
}

impl<T: Received> IntoFuture for Request<T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'static, Result<T>>;

    fn into_future(mut self) -> Self::IntoFuture {
        let Some(mut hear) = self.on_progress.take() else { return self.run() };
        let mut steps = self.steps();
        Box::pin(async move {
            loop {
                match std::future::poll_fn(|cx| Pin::new(&mut steps).poll_next(cx)).await {
                    Some(Step::Progress(progress)) => hear(progress),
                    Some(Step::Done(result)) => return result,
                    None => return Err(Error::closed()),
                }
            }
        })
    }
}

/// A running request as a stream. See [`Request::steps`].
///
/// ```
/// # use linchpin_client::{Connection, Result, Step};
/// async fn import(server: &Connection) -> Result<()> {
///     let mut steps = server.call("import", ()).steps();
///     while let Some(step) = steps.next().await {
///         if let Step::Progress(at) = step {
///             println!("{} of {:?}", at.progress, at.total);
///         }
///     }
///     Ok(())
/// }
/// ```
#[must_use = "a request is sent when its steps are polled"]
pub struct Steps<T> {
    watched: Option<Arc<Watched>>,
    work: Option<BoxFuture<'static, Result<T>>>,
    done: Option<Result<T>>,
}

/// An item of [`Steps`].
///
/// ```
/// use linchpin_client::Step;
///
/// # async fn import(server: linchpin_client::Connection) -> linchpin_client::Result<()> {
/// let mut steps = server.call("import", ()).steps();
/// while let Some(step) = steps.next().await {
///     match step {
///         Step::Progress(at) => println!("{}", at.progress),
///         Step::Done(result) => println!("{}", result?.text()),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Step<T> {
    /// Progress was reported.
    Progress(Progress),
    /// The call is over. Always the last item.
    Done(Result<T>),
}

impl<T> Steps<T> {
    pub(crate) fn new(watched: Arc<Watched>, work: BoxFuture<'static, Result<T>>) -> Steps<T> {
        Steps { watched: Some(watched), work: Some(work), done: None }
    }

    /// Returns the next item, or `None` after the last. Cancel-safe.
    pub async fn next(&mut self) -> Option<Step<T>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl<T> Stream for Steps<T> {
    type Item = Step<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step<T>>> {
        let this = &mut *self;
        if let Some(work) = &mut this.work
            && let Poll::Ready(result) = work.as_mut().poll(cx)
        {
            (this.work, this.done) = (None, Some(result));
        }
        // Progress that arrived before the result is returned first.
        if let Some(watched) = &this.watched
            && let Poll::Ready(Some(progress)) = watched.queue.poll_next(cx)
        {
            return Poll::Ready(Some(Step::Progress(progress)));
        }
        match (this.done.take(), &this.work) {
            (Some(result), _) => Poll::Ready(Some(Step::Done(result))),
            (None, None) => Poll::Ready(None),
            (None, Some(_)) => Poll::Pending,
        }
    }
}

impl<T> Unpin for Steps<T> {}
