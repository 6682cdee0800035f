//! Changes, as the entries of a log for each process. The others read them when a topic says that there are some, and know by
//! the numbers whether they missed any.

use linchpin_core::ServerChange;
use linchpin_store::{Append, Error, Expect, Fence, Read, Store};
use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// How long changes are kept, and how many.
const KEPT: Duration = Duration::from_secs(3_600);
const KEPT_MAX: u64 = 4_096;
/// How long it is remembered which number a process has reached.
const KNOWN: Duration = Duration::from_secs(86_400);
/// The most different updates of resources that wait for the store.
const WAITING_MAX: usize = 65_536;
/// The longest URI that can be subscribed to, in bytes.
const URI_BYTES_MAX: usize = 8 << 10;
/// How many changes are written at once.
const BATCH: usize = 64;
/// How many processes, and how many bytes of changes, are read at once.
const PAGE: usize = 256;
const READ_BYTES: usize = 256 << 10;
/// The pause between two looks at what others have written, and the time after which it is looked in any case.
const PAUSE: Duration = Duration::from_millis(20);
const LOOK: Duration = Duration::from_secs(60);
/// The pauses between two attempts to reach the store.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

type Deliver = Arc<dyn Fn(ServerChange) -> bool + Send + Sync>;

/// See the module's documentation. When it is dropped, what waits is still written.
pub(crate) struct Changes {
    node: Arc<Node>,
    reader: Mutex<Option<AbortHandle>>,
}

/// This process, among those of the server.
struct Node {
    store: Store,
    id: String,
    /// A digest of the server's name.
    server: String,
    waiting: Mutex<Waiting>,
    published: Notify,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    /// In the order in which they were published, each once.
    texts: VecDeque<String>,
    known: HashSet<String>,
}

impl Changes {
    pub(crate) fn new(store: Store, server: &str, id: String) -> Changes {
        let node = Node {
            store,
            id,
            server: server.to_owned(),
            waiting: Mutex::default(),
            published: Notify::new(),
            is_closed: AtomicBool::new(false),
        };
        Changes { node: Arc::new(node), reader: Mutex::default() }
    }

    pub(crate) fn publish(&self, change: &ServerChange) {
        let Some(text) = written(change) else { return };
        let mut waiting = self.node.lock();
        if waiting.known.contains(&text) {
            return;
        }
        if waiting.texts.len() >= WAITING_MAX && matches!(change, ServerChange::Updated(_)) {
            return tracing::debug!("too many updates are waiting for the store; one was not sent to other processes");
        }
        waiting.known.insert(text.clone());
        waiting.texts.push_back(text);
        drop(waiting);
        self.node.published.notify_one();
    }

    pub(crate) fn start(&self, deliver: Deliver) {
        let (writes, reads) = (self.node.clone().write(), self.node.clone().read(deliver));
        let reader = match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(writes);
                runtime.spawn(reads).abort_handle()
            }
            // Started outside of a runtime: they get one of their own.
            Err(_) => match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    let (writes, reads) = (runtime.spawn(writes), runtime.spawn(reads));
                    let reader = reads.abort_handle();
                    std::thread::spawn(move || runtime.block_on(async { (reads.await.is_ok(), writes.await.is_ok()) }));
                    reader
                }
                Err(error) => return tracing::warn!(%error, "changes do not reach other processes"),
            },
        };
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        reader.iter().for_each(AbortHandle::abort);
        self.node.is_closed.store(true, Ordering::Release);
        self.node.published.notify_one();
    }
}

impl Node {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn topic(&self) -> String {
        format!("changes/{}", self.server)
    }

    fn log_of(&self, node: &str) -> String {
        format!("changes/{}/{node}", self.server)
    }

    /// The space of records of the last numbers of all processes.
    fn nodes(&self) -> String {
        format!("node/{}/", self.server)
    }

    /// Writes what is published, until the server has ended.
    async fn write(self: Arc<Self>) {
        let mut first = 1;
        loop {
            self.published.notified().await;
            while let Some(texts) = self.take() {
                let mut pause = RETRY[0];
                while let Err(error) = self.write_batch(first, &texts).await {
                    tracing::warn!(%error, "changes cannot be told to other processes at the moment");
                    if self.is_closed() {
                        return;
                    }
                    // New ones, and the end, cut the pause short.
                    let _ = timeout(pause, self.published.notified()).await;
                    pause = (pause * 2).min(RETRY[1]);
                }
                first += texts.len() as u64;
            }
            if self.is_closed() {
                return;
            }
        }
    }

    /// Takes some of the changes that wait. `None` if there are none.
    fn take(&self) -> Option<Vec<String>> {
        let mut waiting = self.lock();
        let count = waiting.texts.len().min(BATCH);
        let texts: Vec<_> = waiting.texts.drain(..count).collect();
        for text in &texts {
            waiting.known.remove(text);
        }
        (!texts.is_empty()).then_some(texts)
    }

    /// Writes changes of which the first has this number. The same ones again change nothing.
    async fn write_batch(&self, first: u64, texts: &[String]) -> Result<(), Error> {
        let (key, seal) = (self.log_of(&self.id), self.store.seal());
        let numbered = (first..).zip(texts);
        let entries =
            numbered.map(|(number, text)| seal.seal("changes", place(&key, number).as_bytes(), text.as_bytes()));
        let entries: Vec<_> = entries.collect();
        let last = first + entries.len() as u64 - 1;
        let log = self.store.log();
        if let Append::Gap { .. } = log.append(&key, first, entries.clone(), Fence::NONE, KEPT).await? {
            // The store has lost some. The readers see that from the numbers.
            log.delete(&key).await?;
            let _ = log.append(&key, first, entries, Fence::NONE, KEPT).await?;
        }
        log.trim(&key, last.saturating_sub(KEPT_MAX)).await?;
        let record = format!("{}{}", self.nodes(), self.id);
        let _ = self.store.kv().put(&record, last.to_string().into(), Expect::Any, KNOWN).await?;
        self.store.topic().publish(&self.topic()).await
    }

    /// Reads what others have written.
    async fn read(self: Arc<Self>, deliver: Deliver) {
        let topic = self.topic();
        let topics = [topic.as_str()];
        let mut watch = until_done(|| self.store.topic().watch(&topics)).await;
        let deliver = |change| {
            // A panic of the server's own code must not make this process deaf.
            catch_unwind(AssertUnwindSafe(|| deliver(change))).unwrap_or(true)
        };
        // The number of the last change that was read of each process.
        let mut seen: Option<HashMap<String, u64>> = None;
        loop {
            let nodes = until_done(|| self.others()).await;
            let mut now = HashMap::with_capacity(nodes.len());
            let mut has_missed = false;
            for (node, last) in nodes {
                let known = seen.as_ref().map(|seen| seen.get(&node).copied().unwrap_or(0));
                let after = known.unwrap_or(0);
                if last > after {
                    let (changes, is_whole) = until_done(|| self.read_log(&node, after)).await;
                    // What was written before this process began is not a loss.
                    has_missed |= !is_whole && known.is_some();
                    if !changes.into_iter().all(deliver) {
                        return;
                    }
                }
                now.insert(node, last.max(after));
            }
            seen = Some(now);
            let lists = [ServerChange::Tools, ServerChange::Prompts, ServerChange::Resources];
            if has_missed && !lists.into_iter().all(deliver) {
                return;
            }
            sleep(PAUSE).await;
            let _ = timeout(LOOK, watch.next()).await;
        }
    }

    /// The other processes, with the numbers of their last changes.
    async fn others(&self) -> Result<Vec<(String, u64)>, Error> {
        let prefix = self.nodes();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.kv().scan(&prefix, after.as_deref(), PAGE).await?;
            for (key, record) in &page {
                let node = key.strip_prefix(&prefix).filter(|node| *node != self.id);
                let last = std::str::from_utf8(&record.value).ok().and_then(|last| last.parse().ok());
                found.extend(node.map(str::to_owned).zip(last));
            }
            if page.len() < PAGE {
                return Ok(found);
            }
            after = page.last().map(|(key, _)| key.clone());
        }
    }

    /// The changes of a process after this number, and whether they are all.
    async fn read_log(&self, node: &str, mut after: u64) -> Result<(Vec<ServerChange>, bool), Error> {
        let (key, seal) = (self.log_of(node), self.store.seal());
        let (mut changes, mut is_whole) = (Vec::new(), true);
        loop {
            let (entries, next) = match self.store.log().read(&key, after, READ_BYTES).await? {
                Read::Entries { entries, next } => (entries, next),
                Read::Trimmed { through } => {
                    (after, is_whole) = (through, false);
                    continue;
                }
                Read::Unknown => return Ok((changes, false)),
            };
            for (number, entry) in &entries {
                let opened = seal.open("changes", place(&key, *number).as_bytes(), entry);
                let text = opened.ok().and_then(|text| String::from_utf8(text.to_vec()).ok());
                match text.as_deref().map(read) {
                    Some(change) => changes.extend(change),
                    None => {
                        tracing::warn!(
                            "cannot read a change of another process; do all processes have the same secrets?"
                        );
                        is_whole = false;
                    }
                }
            }
            match entries.last() {
                Some((number, _)) if number + 1 < next => after = *number,
                _ => return Ok((changes, is_whole)),
            }
        }
    }
}

/// Where a sealed change is, so that it opens nowhere else.
fn place(log: &str, number: u64) -> String {
    format!("{log}/{number}")
}

/// Repeats an operation of the store until it succeeds.
async fn until_done<T, F: Future<Output = Result<T, Error>>>(operation: impl Fn() -> F) -> T {
    let mut pause = RETRY[0];
    loop {
        match operation().await {
            Ok(done) => return done,
            Err(error) => tracing::warn!(%error, "changes cannot be told to other processes at the moment"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(RETRY[1]);
    }
}

/// A change as text. `None` for what concerns one session only, and for resources that cannot be subscribed to.
fn written(change: &ServerChange) -> Option<String> {
    Some(match change {
        ServerChange::Tools => "tools".to_owned(),
        ServerChange::Prompts => "prompts".to_owned(),
        ServerChange::Resources => "resources".to_owned(),
        ServerChange::Updated(uri) if uri.len() <= URI_BYTES_MAX => format!("updated {uri}"),
        _ => return None,
    })
}

/// The change that [`written`] wrote. `None` for one of a newer version.
fn read(text: &str) -> Option<ServerChange> {
    Some(match text {
        "tools" => ServerChange::Tools,
        "prompts" => ServerChange::Prompts,
        "resources" => ServerChange::Resources,
        text => ServerChange::Updated(text.strip_prefix("updated ")?.into()),
    })
}
