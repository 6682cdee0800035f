//! A record of the tasks that were started and have not ended, so that another process can continue to wait for them.
//!
//! It is a directory with one small file for each task, so that processes that share it need no lock.

use crate::Result;
use crate::error::{Error, ErrorKind};
use crate::lock::lock;
use linchpin_core::service::boxed;
use linchpin_types::task::Task;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum number of tasks in a book; beyond it the oldest go.
const TASKS_MAX: usize = 1_000;

/// The maximum size of one entry, and of an identifier that is written down.
const ENTRY_BYTES_MAX: u64 = 16 << 10;
const ID_BYTES_MAX: usize = 4 << 10;

/// How long an entry outlives its time to live, and how long it stays without one.
const GRACE: Duration = Duration::from_secs(600);
const WITHOUT_TTL: Duration = Duration::from_secs(30 * 86_400);

/// A recorded task, with the data needed to find it again on its server. Arguments and results are not recorded.
///
/// ```
/// # async fn list(client: linchpin_client::Client) -> linchpin_client::Result<()> {
/// for task in client.book("tasks").booked().await? {
///     println!("{} of {} at {}", task.id, task.tool.unwrap_or_default(), task.target);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BookedTask {
    /// The identifier of the task.
    pub id: String,
    /// The server: the key of its connector, or its name if it has no key.
    pub target: String,
    /// The tool that was called, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// When it was created, as reported by the server.
    #[serde(default)]
    pub created_at: String,
    /// How long after its creation the server keeps it, in milliseconds; `None` if it does not expire.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    /// When it was recorded, in milliseconds since 1970.
    #[serde(default)]
    pub booked_at_ms: u64,
}

impl BookedTask {
    pub(crate) fn new(task: &Task, target: String, tool: Option<&str>) -> BookedTask {
        BookedTask {
            id: task.task_id.clone(),
            target,
            tool: tool.map(str::to_owned),
            created_at: task.created_at.clone(),
            ttl_ms: task.ttl_ms,
            booked_at_ms: now(),
        }
    }

    fn is_over(&self, now: u64) -> bool {
        let kept = self.ttl_ms.map_or(WITHOUT_TTL, |ms| Duration::from_millis(ms).saturating_add(GRACE));
        u128::from(now) > u128::from(self.booked_at_ms) + kept.as_millis()
    }
}

/// Where open tasks are written down: in memory, or in a directory.
#[derive(Clone, Default)]
pub(crate) struct Book {
    folder: Option<Arc<Path>>,
    memory: Arc<Mutex<Vec<BookedTask>>>,
}

impl Book {
    pub(crate) fn at(folder: PathBuf) -> Book {
        Book { folder: Some(folder.into()), memory: Arc::default() }
    }

    /// Makes the directory, so that one that cannot be used is found before a task depends on it.
    pub(crate) async fn prepare(&self) -> Result<()> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        blocking(move || make(&folder).map_err(|e| unusable(&folder, e))).await
    }

    /// Writes a task down.
    pub(crate) async fn add(&self, mut task: BookedTask) {
        task.booked_at_ms = now();
        if task.id.len() > ID_BYTES_MAX {
            tracing::warn!("the identifier of a task is too long for the book of open tasks");
            return;
        }
        let Some(folder) = self.folder.clone() else {
            let mut tasks = lock(&self.memory);
            tasks.retain(|old| (&old.target, &old.id) != (&task.target, &task.id));
            if tasks.len() >= TASKS_MAX {
                tasks.remove(0);
            }
            tasks.push(task);
            return;
        };
        let written = blocking(move || write(&folder, &task).map_err(|e| unusable(&folder, e))).await;
        if let Err(why) = written {
            tracing::warn!(%why, "a task could not be written down");
        }
    }

    /// Strikes a task out.
    pub(crate) async fn remove(&self, target: &str, id: &str) {
        lock(&self.memory).retain(|task| (task.target.as_str(), task.id.as_str()) != (target, id));
        let Some(folder) = self.folder.clone() else { return };
        let (target, id) = (target.to_owned(), id.to_owned());
        let _ = blocking(move || {
            for (path, _) in read(&folder)?.into_iter().filter(|(_, task)| task.target == target && task.id == id) {
                let _ = std::fs::remove_file(path);
            }
            Ok(())
        })
        .await;
    }

    /// Strikes a task out, without waiting for it.
    pub(crate) fn forget(&self, target: &str, id: &str) {
        lock(&self.memory).retain(|task| (task.target.as_str(), task.id.as_str()) != (target, id));
        if self.folder.is_none() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (book, target, id) = (self.clone(), target.to_owned(), id.to_owned());
            runtime.spawn(boxed(async move { book.remove(&target, &id).await }));
        }
    }

    /// Returns the open tasks, oldest first.
    pub(crate) async fn tasks(&self) -> Result<Vec<BookedTask>> {
        let Some(folder) = self.folder.clone() else { return Ok(lock(&self.memory).clone()) };
        blocking(move || {
            let mut tasks: Vec<BookedTask> = read(&folder)?.into_iter().map(|(_, task)| task).collect();
            tasks.sort_unstable_by(|a, b| (a.booked_at_ms, &a.id).cmp(&(b.booked_at_ms, &b.id)));
            Ok(tasks)
        })
        .await
    }

    /// Returns the entry of a task, if there is one.
    pub(crate) async fn find(&self, target: &str, id: &str) -> Option<BookedTask> {
        let tasks = self.tasks().await.unwrap_or_default();
        tasks.into_iter().find(|task| task.target == target && task.id == id)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|e| Err(Error::with_source(ErrorKind::Book, "the book of open tasks cannot be read", e)))
}

fn unusable(folder: &Path, why: std::io::Error) -> Error {
    let text = format!("the book of open tasks at {} cannot be used: {why}", folder.display());
    Error::with_source(ErrorKind::Book, text, why)
}

fn make(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes beside the entry and renames, so that nobody reads half of one.
fn write(folder: &Path, task: &BookedTask) -> std::io::Result<()> {
    make(folder)?;
    let kept = read(folder).map_err(std::io::Error::other)?;
    if kept.iter().any(|(_, old)| old.id == task.id && old.target == task.target) {
        return Ok(());
    }
    if kept.len() >= TASKS_MAX
        && let Some((path, _)) = kept.iter().min_by_key(|(_, task)| task.booked_at_ms)
    {
        let _ = std::fs::remove_file(path);
    }
    let name = unique();
    let (draft, path) = (folder.join(format!("{name}.tmp")), folder.join(format!("{name}.json")));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    let written = serde_json::to_vec(task)
        .map_err(std::io::Error::from)
        .and_then(|json| file.write_all(&json))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(draft);
    }
    written
}

/// Reads all entries; those that are over are removed, those that cannot be read are passed by.
fn read(folder: &Path) -> Result<Vec<(PathBuf, BookedTask)>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(unusable(folder, e)),
    };
    let (now, mut tasks) = (now(), Vec::new());
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    for path in paths.filter(|path| path.extension().is_some_and(|e| e == "json")).take(2 * TASKS_MAX) {
        let small = std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= ENTRY_BYTES_MAX);
        let text = if small { std::fs::read(&path).unwrap_or_default() } else { continue };
        match serde_json::from_slice::<BookedTask>(&text) {
            Ok(task) if task.is_over(now) => drop(std::fs::remove_file(&path)),
            Ok(task) => tasks.push((path, task)),
            Err(_) => tracing::debug!("an entry of the book of open tasks cannot be read"),
        }
    }
    Ok(tasks)
}

/// A name that no other process has made.
fn unique() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, ttl_ms: Option<u64>) -> BookedTask {
        let (target, tool) = ("here".to_owned(), Some("slow".to_owned()));
        BookedTask { id: id.to_owned(), target, tool, created_at: String::new(), ttl_ms, booked_at_ms: 0 }
    }

    #[tokio::test]
    async fn what_is_written_down_is_found_by_another_book_until_it_is_struck_out() {
        let folder = std::env::temp_dir().join(format!("linchpin-book-{}", unique()));
        let _ = std::fs::remove_dir_all(&folder);
        let (one, other) = (Book::at(folder.clone()), Book::at(folder.clone()));
        one.prepare().await.unwrap();
        one.add(task("../../etc/passwd", Some(60_000))).await;
        one.add(task("b", None)).await;
        one.add(task("b", None)).await;
        std::fs::write(folder.join("broken.json"), "{").unwrap();
        std::fs::write(folder.join("large.json"), vec![b' '; 20 << 10]).unwrap();
        let ids = |tasks: Vec<BookedTask>| tasks.into_iter().map(|task| task.id).collect::<Vec<_>>();
        assert_eq!(ids(other.tasks().await.unwrap()), ["../../etc/passwd", "b"]);
        assert_eq!(other.find("here", "b").await.unwrap().tool.as_deref(), Some("slow"));
        assert!(other.find("there", "b").await.is_none());
        #[cfg(unix)]
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()) {
            use std::os::unix::fs::PermissionsExt;
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert!(!text.contains("target") || mode == 0o600, "{mode:o}");
        }
        other.remove("here", "../../etc/passwd").await;
        assert_eq!(ids(one.tasks().await.unwrap()), ["b"]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn entries_end_with_their_time_to_live() {
        let folder = std::env::temp_dir().join(format!("linchpin-book-{}", unique()));
        let _ = std::fs::remove_dir_all(&folder);
        let mut old = task("old", Some(1_000));
        old.booked_at_ms = now() - 3_600_000;
        make(&folder).unwrap();
        write(&folder, &old).unwrap();
        write(&folder, &BookedTask { booked_at_ms: now(), ..task("new", Some(1_000)) }).unwrap();
        let tasks = Book::at(folder.clone()).tasks().await.unwrap();
        assert_eq!(tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["new"]);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_book_in_memory_keeps_the_newest_thousand() {
        let book = Book::default();
        for number in 0..1_003 {
            book.add(task(&number.to_string(), None)).await;
        }
        let tasks = book.tasks().await.unwrap();
        assert_eq!((tasks.len(), tasks[0].id.as_str()), (1_000, "3"));
    }

    #[tokio::test]
    async fn a_place_that_is_no_directory_is_an_error_that_names_it() {
        let file = std::env::temp_dir().join(format!("linchpin-book-{}", unique()));
        std::fs::write(&file, "").unwrap();
        let why = Book::at(file.clone()).prepare().await.unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Book);
        assert!(why.to_string().contains(&*file.to_string_lossy()), "{why}");
        std::fs::remove_file(file).unwrap();
    }
}
