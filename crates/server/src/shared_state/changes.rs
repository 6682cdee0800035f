//! Changes, as records that the other processes read when a topic says that there are some.

use crate::digest::digest;
use linchpin_core::ServerChange;
use linchpin_store::{Error, Expect, Rev, Store};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// How long a change is kept for those who cannot reach the store.
const KEPT: Duration = Duration::from_secs(120);
/// The most different changes that wait for the store.
const WAITING_MAX: usize = 65_536;
/// How many changes are read at once.
const PAGE: usize = 256;
/// The pauses between two attempts to reach the store.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

type Deliver = Arc<dyn Fn(ServerChange) -> bool + Send + Sync>;

/// See the module's documentation. The tasks end when it is dropped.
pub(crate) struct Changes {
    node: Arc<Node>,
    tasks: Mutex<Vec<AbortHandle>>,
}

struct Node {
    store: Store,
    topic: String,
    /// What the keys of changes begin with: those of all processes, and those of this one.
    prefixes: [String; 2],
    waiting: Mutex<Waiting>,
    published: Notify,
}

#[derive(Default)]
struct Waiting {
    /// In the order in which they were published, each once.
    texts: VecDeque<String>,
    known: HashSet<String>,
    /// How many were written.
    written: u64,
}

impl Changes {
    pub(crate) fn new(store: Store, server: &str, node: String) -> Changes {
        let all = format!("change/{server}/");
        let own = format!("{all}{node}/");
        let node = Node {
            store,
            topic: format!("change/{server}"),
            prefixes: [all, own],
            waiting: Mutex::default(),
            published: Notify::new(),
        };
        Changes { node: Arc::new(node), tasks: Mutex::default() }
    }

    pub(crate) fn publish(&self, change: &ServerChange) {
        let Some(text) = written(change) else { return };
        let mut waiting = self.node.lock();
        if waiting.texts.len() >= WAITING_MAX {
            return tracing::warn!("the store cannot be reached: a change is not told to other processes");
        }
        if waiting.known.insert(text.clone()) {
            waiting.texts.push_back(text);
        }
        drop(waiting);
        self.node.published.notify_one();
    }

    pub(crate) fn start(&self, deliver: Deliver) {
        let (writes, reads) = (self.node.clone().write(), self.node.clone().read(deliver));
        let tasks = match Handle::try_current() {
            Ok(runtime) => vec![runtime.spawn(writes).abort_handle(), runtime.spawn(reads).abort_handle()],
            // Started outside of a runtime: they get one of their own.
            Err(_) => match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    let (writes, reads) = (runtime.spawn(writes), runtime.spawn(reads));
                    let tasks = vec![writes.abort_handle(), reads.abort_handle()];
                    std::thread::spawn(move || runtime.block_on(async { (writes.await.is_ok(), reads.await.is_ok()) }));
                    tasks
                }
                Err(error) => return tracing::warn!(%error, "changes are not told to other processes"),
            },
        };
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Node {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is published.
    async fn write(self: Arc<Self>) {
        loop {
            let mut wrote = false;
            while let Some((number, text)) = self.take() {
                let key = format!("{}{}", self.prefixes[1], digest(&text));
                let value = format!("{number}\n{text}");
                let put = || async { self.store.sealed().put(&key, value.clone().into(), Expect::Any, KEPT).await };
                let _ = until_done(put).await;
                wrote = true;
            }
            if wrote {
                until_done(|| self.store.topic().publish(&self.topic)).await;
            }
            self.published.notified().await;
        }
    }

    fn take(&self) -> Option<(u64, String)> {
        let mut waiting = self.lock();
        let text = waiting.texts.pop_front()?;
        waiting.known.remove(&text);
        waiting.written += 1;
        Some((waiting.written, text))
    }

    /// Reads what others have written.
    async fn read(self: Arc<Self>, deliver: Deliver) {
        let topics = [self.topic.as_str()];
        let mut watch = until_done(|| self.store.topic().watch(&topics)).await;
        // What is there already is delivered too: it may be newer than this process.
        let mut seen = HashMap::new();
        loop {
            let asked = Instant::now();
            let found = until_done(|| self.others()).await;
            if asked.elapsed() > KEPT {
                // Some may have come and gone meanwhile.
                for change in [ServerChange::Tools, ServerChange::Prompts, ServerChange::Resources] {
                    deliver(change);
                }
            }
            let news = |change: &&Change| seen.get(&change.key) != Some(&change.rev);
            if !found.iter().filter(news).filter_map(|change| read(&change.text)).all(|change| deliver(change)) {
                return;
            }
            seen = found.into_iter().map(|change| (change.key, change.rev)).collect();
            watch.next().await;
        }
    }

    /// The changes of other processes, those of each in order.
    async fn others(&self) -> Result<Vec<Change>, Error> {
        let [all, own] = &self.prefixes;
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.sealed().scan(all, after.as_deref(), PAGE).await?;
            after = page.last().map(|(key, _)| key.clone());
            let is_last = page.len() < PAGE;
            for (key, record) in page.into_iter().filter(|(key, _)| !key.starts_with(own)) {
                let value = String::from_utf8_lossy(&record.value).into_owned();
                if let Some((number, text)) = value.split_once('\n') {
                    let (number, text) = (number.parse().unwrap_or(0), text.to_owned());
                    found.push(Change { key, rev: record.rev, number, text });
                }
            }
            if is_last {
                break;
            }
        }
        found.sort_by_key(|change| change.number);
        Ok(found)
    }
}

/// A change of another process.
struct Change {
    key: String,
    rev: Rev,
    number: u64,
    text: String,
}

/// Repeats an operation of the store until it succeeds.
async fn until_done<T, F: Future<Output = Result<T, Error>>>(operation: impl Fn() -> F) -> T {
    let mut pause = PAUSES[0];
    loop {
        match operation().await {
            Ok(done) => return done,
            Err(error) => tracing::warn!(%error, "changes cannot be told to other processes at the moment"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES[1]);
    }
}

/// A change as text. `None` for what concerns one session only.
fn written(change: &ServerChange) -> Option<String> {
    Some(match change {
        ServerChange::Tools => "tools".to_owned(),
        ServerChange::Prompts => "prompts".to_owned(),
        ServerChange::Resources => "resources".to_owned(),
        ServerChange::Updated(uri) => format!("updated {uri}"),
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
