//! What a connection consists of: the link it has now, and everything that outlives a link.

use crate::cache::Cache;
use crate::call::Progress;
use crate::client::Recipe;
use crate::error::{Error, Refused};
use crate::listen::Listeners;
use crate::queue::Queue;
use crate::rounds::Round;
use crate::tools::ToolBook;
use crate::{Change, Result, open, supervise};
use arc_swap::ArcSwapOption;
use bytestring::ByteString;
use linchpin_proto::frame::{Kind, Message};
use linchpin_proto::json::{Scanner, Span, read_str};
use linchpin_proto::opening::Agreed;
use linchpin_proto::outgoing::{Extras, Members, Writer};
use linchpin_proto::{Answer, Dial, Link, LinkError, Wire};
use linchpin_types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use linchpin_types::meta::Meta;
use linchpin_types::page::ResultType;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;

pub(crate) struct Core {
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) dial: Arc<dyn Dial>,
    pub(crate) live: ArcSwapOption<Live>,
    /// Held while a link is being opened, so that it is opened once.
    pub(crate) opening: tokio::sync::Mutex<()>,
    pub(crate) generations: AtomicU64,
    ids: AtomicU64,
    closed: AtomicBool,
    restarts: AtomicU32,
    given_up: Mutex<Option<LinkError>>,
    /// Calls that want to hear of their progress, by their ids, which are the tokens.
    progress: Mutex<HashMap<u64, Arc<Watched>>>,
    /// For the handlers of the host.
    pub(crate) events: Arc<Queue<Event>>,
    pub(crate) listeners: Mutex<Listeners>,
    pub(crate) tools: ToolBook,
    pub(crate) cache: Cache,
    /// Questions that may be answered at once.
    pub(crate) asks: Arc<Semaphore>,
    /// Questions being answered, by the JSON text of their ids, so that the server can withdraw them.
    pub(crate) asking: Mutex<HashMap<Box<str>, AbortHandle>>,
    pub(crate) visited: Visited,
    pub(crate) log_level: Mutex<Option<LoggingLevel>>,
}

/// URLs the server said to be done with.
#[derive(Default)]
pub(crate) struct Visited {
    pub(crate) ids: Mutex<HashSet<String>>,
    pub(crate) changed: Notify,
}

/// An open link and what was agreed on it.
pub(crate) struct Live {
    pub(crate) link: Arc<dyn Link>,
    pub(crate) agreed: Agreed,
    pub(crate) writer: Writer,
    pub(crate) generation: u64,
    pub(crate) since: Instant,
    pub(crate) lost: OnceLock<LinkError>,
}

/// What handlers of the host hear.
pub(crate) enum Event {
    Log(LoggingMessageNotificationParams),
    Change(Change),
}

/// A call that hears of its progress.
pub(crate) struct Watched {
    pub(crate) queue: Queue<Progress>,
    /// Progress came: the deadline starts anew.
    pub(crate) touched: Notify,
}

/// A request before it has an id.
pub(crate) struct Request {
    pub(crate) method: Cow<'static, str>,
    pub(crate) members: Members,
    pub(crate) about: Option<Box<str>>,
    /// Where the arguments of a tool are in `members`.
    pub(crate) arguments: Option<Range<usize>>,
    pub(crate) meta: Option<Meta>,
}

/// How a request is made.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// `None` is without end.
    pub(crate) timeout: Option<Duration>,
    pub(crate) watched: Option<Arc<Watched>>,
    pub(crate) log: Option<LoggingLevel>,
}

/// A successful answer.
pub(crate) struct Response {
    pub(crate) message: Message,
    pub(crate) result: Span,
    /// Always [`ResultType::Complete`] where the revision has no `resultType`.
    pub(crate) result_type: ResultType,
}

impl Response {
    pub(crate) fn text(&self) -> &str {
        self.message.text(self.result)
    }

    /// The result, sharing the message's memory.
    pub(crate) fn into_text(self) -> ByteString {
        let bytes = self.message.frame().as_bytes().slice(self.result.range());
        // A part of UTF-8 text between two JSON tokens is UTF-8 text.
        ByteString::try_from(bytes).unwrap_or_default()
    }
}

/// Locks without minding that another holder panicked: what is guarded is consistent between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Request {
    pub(crate) fn new(method: impl Into<Cow<'static, str>>) -> Request {
        Request { method: method.into(), members: Members::loose(), about: None, arguments: None, meta: None }
    }
}

impl Core {
    pub(crate) fn new(recipe: Arc<Recipe>, dial: Arc<dyn Dial>) -> Core {
        let limits = recipe.limits.clone();
        Core {
            dial,
            live: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::new(()),
            generations: AtomicU64::new(0),
            ids: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            restarts: AtomicU32::new(0),
            given_up: Mutex::default(),
            progress: Mutex::default(),
            events: Arc::new(Queue::new(limits.queue_messages_max)),
            listeners: Mutex::default(),
            tools: ToolBook::default(),
            cache: Cache::new(if recipe.cache { limits.cache_bytes_max } else { 0 }),
            asks: Arc::new(Semaphore::new(limits.asks_max)),
            asking: Mutex::default(),
            visited: Visited::default(),
            log_level: Mutex::new(recipe.log_level),
            recipe,
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Links that were opened one after the other without one of them holding.
    pub(crate) fn restarts_in_a_row(&self) -> u32 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// No further attempts are made; calls fail with this.
    pub(crate) fn give_up(&self, why: LinkError) {
        tracing::warn!(%why, "gave up");
        *lock(&self.given_up) = Some(why);
        lock(&self.listeners).close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What the last link agreed on, even if that link is lost.
    pub(crate) fn latest(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    /// The link to use. A lost one is made again when the host wants that.
    pub(crate) async fn live(self: &Arc<Core>) -> Result<Arc<Live>> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        if let Some(live) = self.live.load_full() {
            match live.lost.get() {
                None => return Ok(live),
                Some(why) if self.recipe.restart.is_none() => return Err(Error::Link(why.clone())),
                Some(_) => {}
            }
            if let Some(why) = lock(&self.given_up).clone() {
                return Err(Error::Link(why));
            }
            return self.reopen(live.generation).await;
        }
        self.reopen(0).await
    }

    /// Makes the link anew unless somebody else has done so since `generation`.
    pub(crate) async fn reopen(self: &Arc<Core>, generation: u64) -> Result<Arc<Live>> {
        let _one = self.opening.lock().await;
        if self.is_closed() {
            return Err(Error::Closed);
        }
        if let Some(live) = self.live.load_full().filter(|l| l.generation > generation && l.lost.get().is_none()) {
            return Ok(live);
        }
        let again = self.live.load_full();
        if let Some(old) = &again {
            let held = old.since.elapsed() > supervise::HELD;
            let n = if held { 0 } else { self.restarts.load(Ordering::Relaxed) + 1 };
            self.restarts.store(n, Ordering::Relaxed);
        }
        let live = open::open(self).await?;
        if again.is_some() {
            supervise::restore(self, &live).await;
        }
        Ok(live)
    }

    /// Ends everything. The link to close, the first time.
    pub(crate) fn shut(&self) -> Option<Arc<Live>> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        self.events.close();
        lock(&self.listeners).close();
        for (_, task) in lock(&self.asking).drain() {
            task.abort();
        }
        self.live.load_full()
    }

    /// Sends a request and waits for its result; once more where the server has forgotten the session.
    pub(crate) async fn exchange(
        self: &Arc<Core>,
        request: &Request,
        options: &Options,
        round: &Round,
    ) -> Result<Response> {
        let live = self.live().await?;
        match self.exchange_on(&live, request, options, round).await {
            Err(Error::Link(LinkError::Forgotten)) => {
                let live = self.reopen(live.generation).await?;
                self.exchange_on(&live, request, options, round).await
            }
            other => other,
        }
    }

    /// Sends a request on this link.
    pub(crate) async fn exchange_on(
        &self,
        live: &Arc<Live>,
        request: &Request,
        options: &Options,
        round: &Round,
    ) -> Result<Response> {
        let id = self.next_id();
        let extras = Extras { progress: options.watched.is_some(), log: options.log, meta: request.meta.as_ref() };
        let mut out = live.writer.request(id, request.method.clone(), extras, |members| {
            members.append(&request.members);
            round.write(members);
        });
        out.about.clone_from(&request.about);
        if let Some(arguments) = &request.arguments {
            let text = std::str::from_utf8(&request.members.as_bytes()[arguments.clone()]).unwrap_or("{}");
            out.mirrored = self.tools.mirror(request.about.as_deref().unwrap_or(""), text);
        }
        let _watch = options.watched.as_ref().map(|watched| self.watch(id, watched));
        let mut cancel = Cancel { live, id, answered: false };
        let waited = self.wait(live, options, live.link.exchange(out)).await;
        // The wire said that there will be no answer, or there was one: nothing is left to cancel.
        cancel.answered = waited.is_ok();
        let answer = waited??;
        self.response(answer, live.agreed.wire)
    }

    /// Takes an answer apart.
    pub(crate) fn response(&self, answer: Answer, wire: &Wire) -> Result<Response> {
        let result = match answer.message.kind {
            Kind::Response { outcome: Ok(result), .. } => result,
            Kind::Response { outcome: Err(error), .. } => {
                return Err(Error::Refused(Refused::read(answer.message.text(error))));
            }
            _ => return Err(Error::Unexpected("the wire gave something as an answer that is none".to_owned())),
        };
        let stated = if wire.result_types { result_type(answer.message.text(result))? } else { ResultType::Complete };
        // Extensions that the host declares may have types of their own; the host looks at them.
        if let ResultType::Other(name) = &stated
            && self.recipe.extensions.is_empty()
        {
            let name: String = name.chars().take(80).collect();
            return Err(unknown_type(&format!("{name:?}")));
        }
        Ok(Response { message: answer.message, result, result_type: stated })
    }

    /// Waits with the call's deadline, which progress and people put off.
    async fn wait<F: Future>(&self, live: &Live, options: &Options, work: F) -> Result<F::Output> {
        let Some(limit) = options.timeout else { return Ok(work.await) };
        let mut work = std::pin::pin!(work);
        let end = Instant::now() + Duration::from_millis(self.recipe.limits.call_with_progress_ms_max).max(limit);
        loop {
            let touched = async {
                match &options.watched {
                    Some(watched) => watched.touched.notified().await,
                    None => std::future::pending().await,
                }
            };
            let limit_now = limit.min(end.saturating_duration_since(Instant::now()));
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = touched => {}
                () = tokio::time::sleep(limit_now) => {
                    if !live.link.waits_for_person() {
                        return Err(Error::Timeout(limit));
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn watch<'a>(&'a self, id: u64, watched: &Arc<Watched>) -> impl Drop + 'a {
        lock(&self.progress).insert(id, watched.clone());
        Watch { core: self, id }
    }

    /// Who hears of the progress with this token.
    pub(crate) fn watched(&self, token: u64) -> Option<Arc<Watched>> {
        lock(&self.progress).get(&token).cloned()
    }
}

struct Watch<'a> {
    core: &'a Core,
    id: u64,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        lock(&self.core.progress).remove(&self.id);
    }
}

/// Tells the server, when it is dropped early, that nobody waits any more.
pub(crate) struct Cancel<'a> {
    pub(crate) live: &'a Live,
    pub(crate) id: u64,
    pub(crate) answered: bool,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if self.answered || self.live.link.cancels_by_dropping() || self.live.lost.get().is_some() {
            return;
        }
        let id = self.id.to_string();
        self.live.link.tell_later(self.live.writer.notification("notifications/cancelled", |members| {
            members.raw("requestId", &id);
            members.text("reason", "the caller no longer waits");
        }));
    }
}

/// What a result says that it is. One that does not say is complete.
fn result_type(json: &str) -> Result<ResultType> {
    let mut found = None;
    // Frames were read as JSON already, so that this fails only for what is no object. That is for the decoding to tell.
    let _ = Scanner::new(json, 127).object(&mut |s, key| {
        let value = s.value()?;
        if key.name() == "resultType" {
            found = Some(value.of(json));
        }
        Ok(())
    });
    match found {
        None | Some("null") => Ok(ResultType::Complete),
        Some(value) => read_str(value)
            .map(|name| ResultType::from(name.into_owned()))
            .ok_or_else(|| unknown_type(&value.chars().take(80).collect::<String>())),
    }
}

fn unknown_type(value: &str) -> Error {
    Error::Unexpected(format!(
        "the server answered with a result whose `resultType` is {value}, so it is not used: this client knows \"complete\" \
         and \"input_required\""
    ))
}
