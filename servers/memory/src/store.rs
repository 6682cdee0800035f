//! The file and the graph read from it. The file is read only when it changed, and changed atomically.
//!
//! A change takes the lock file, reads the file again if another process changed it, makes the next graph, writes it to
//! a temporary file, flushes that, renames it over the old one and flushes the directory. Only then is it acknowledged.
//! A process killed at any moment leaves either the old or the new file, and no lock.
//!
//! The published format has entities before relations and no final line feed, so every change rewrites the whole file;
//! appending could also leave an incomplete line, which the published server cannot read at all.

use crate::config::{Config, may_become_memory};
use crate::files::{self, Patience, Stamp, io_fault};
use crate::graph::{Edit, Graph};
use crate::journal::{Journal, fingerprint};
use linchpin_kit::{ErrorKind, ToolError};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Minimum age of the newest backup before another one is made.
const BACKUP_AGE: Duration = Duration::from_secs(24 * 3_600);

#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    max_entities: usize,
    max_file_bytes: u64,
    backup: u32,
    journal: RwLock<Journal>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    graph: Arc<Graph>,
    /// The state of the file when it was read; `None` if it did not exist.
    seen: Option<Seen>,
    /// Whether it was ever read.
    looked: bool,
    /// Whether another process changed the file since the last query.
    news: bool,
}

#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    /// Kept open, so that its inode number is not reused. Not on Windows, where that would prevent replacing it.
    _held: Option<File>,
}

/// The outcome of a change.
#[derive(Debug)]
pub(crate) struct Done<T> {
    pub(crate) value: T,
    /// The current graph.
    pub(crate) graph: Arc<Graph>,
    /// Whether anything changed.
    pub(crate) changed: bool,
    /// Problems after the change was saved.
    pub(crate) warnings: Vec<String>,
}

impl Store {
    /// Inspects the file, which need not exist. Nothing is created or written.
    pub(crate) fn open(config: &Config) -> Result<(Self, Vec<String>), ToolError> {
        let (path, ours) = config.path()?;
        let mut warnings = Vec::new();
        if config.file_of_published && config.file.as_ref().is_some_and(|file| file.is_relative()) {
            warnings.push(format!(
                "MEMORY_FILE_PATH is relative: the file is {}. The published server resolves it in its own package \
                 directory, which is lost when the package is updated; copy it from there if you need it, or pass it to \
                 --import.",
                path.display()
            ));
        }
        let store = Self {
            journal: RwLock::new(Journal::new(files::beside(&path, "history"), config.history, config.timestamps)),
            path,
            max_entities: config.max_entities,
            max_file_bytes: config.max_file_bytes,
            backup: config.backup,
            state: Mutex::default(),
        };
        let graph = store.graph()?;
        let empty = graph.census() == Graph::default().census();
        if empty && !ours {
            may_become_memory(&store.path)?;
        }
        warnings.extend(graph.warnings());
        let entities = graph.entities().len();
        if entities > store.max_entities {
            warnings.push(format!(
                "The memory file contains {entities} entities, more than the {} of --max-entities: no more can be added.",
                store.max_entities
            ));
        }
        if (config.history > 0 || config.timestamps)
            && let Err(fault) = store.journal_to_change().refresh()
        {
            warnings.push(format!("History and timestamps are disabled: {}", fault.message()));
        }
        if !config.tools.read_only {
            files::sweep_if_free(&store.path);
        }
        Ok((store, warnings))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is replaced as a whole, so a panic elsewhere cannot leave it inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current graph; the file is read only if it changed.
    pub(crate) fn graph(&self) -> Result<Arc<Graph>, ToolError> {
        let mut state = self.state();
        self.refresh(&mut state)?;
        Ok(state.graph.clone())
    }

    fn journal_to_change(&self) -> RwLockWriteGuard<'_, Journal> {
        // After a panic the history is read again if it is incomplete.
        self.journal.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current history and times. Take them before the graph, which must not be older. If they cannot be read,
    /// nothing is known.
    pub(crate) fn journal(&self) -> RwLockReadGuard<'_, Journal> {
        let read = || self.journal.read().unwrap_or_else(PoisonError::into_inner);
        if !read().is_fresh() {
            // It is reported at start and by every change.
            let _ = self.journal_to_change().refresh();
        }
        read()
    }

    /// Whether another process changed the file since the last query.
    pub(crate) fn news(&self) -> bool {
        std::mem::take(&mut self.state().news)
    }

    fn refresh(&self, state: &mut State) -> Result<(), ToolError> {
        let meta = match fs::symlink_metadata(&self.path) {
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_fault("read the memory file", &self.path, &error)),
        };
        if let Some(meta) = &meta {
            self.must_be_a_file(meta)?;
        }
        let stamp = meta.as_ref().map(Stamp::of);
        if state.looked && stamp.as_ref() == state.seen.as_ref().map(|seen| &seen.stamp) {
            return Ok(());
        }
        let (graph, seen) = match meta {
            Some(_) => {
                let (graph, seen) = self.read()?;
                (graph, Some(seen))
            }
            None => (Graph::default(), None),
        };
        state.news |= state.looked;
        (state.graph, state.seen, state.looked) = (Arc::new(graph), seen, true);
        Ok(())
    }

    fn must_be_a_file(&self, meta: &fs::Metadata) -> Result<(), ToolError> {
        let shown = self.path.display();
        if meta.is_symlink() {
            return Err(ToolError::denied(format!("The memory file is a symlink: {shown}")).hint(
                "Symlinks are refused, because a change could modify any other file. Use the path of the target.",
            ));
        }
        if !meta.is_file() {
            return Err(ToolError::new(format!("The memory file is not a regular file: {shown}")));
        }
        Ok(())
    }

    fn read(&self) -> Result<(Graph, Seen), ToolError> {
        let fail = |error: std::io::Error| io_fault("read the memory file", &self.path, &error);
        let mut file = files::options().read(true).open(&self.path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        self.must_be_a_file(&meta)?;
        let mut bytes = Vec::new();
        (&mut file).take(self.max_file_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
        if bytes.len() as u64 > self.max_file_bytes {
            return Err(ToolError::new(format!("The memory file is larger than {} bytes", self.max_file_bytes))
                .hint("The operator can raise the limit with --max-file-bytes."));
        }
        let graph = Graph::read(&bytes);
        self.must_be_a_memory(&graph, &bytes)?;
        Ok((graph, Seen { stamp: Stamp::of(&meta), _held: cfg!(unix).then_some(file) }))
    }

    /// Never write to settings, scripts, keys or other programs' logs, whatever the path says.
    fn must_be_a_memory(&self, graph: &Graph, bytes: &[u8]) -> Result<(), ToolError> {
        let census = graph.census();
        let nothing = census.records + census.others + census.unreadable == 0;
        let records = census.records > 0 && census.unreadable <= census.records + census.others;
        // If only foreign lines are left, the lock file identifies the file.
        let left = |note: String| note == left_over(bytes) || note == left_over_before(bytes);
        if nothing || records || files::lock_note(&self.path).is_some_and(left) {
            return Ok(());
        }
        Err(ToolError::new(format!("Not a memory file: {}", self.path.display())).hint(
            "It exists with other content and is not changed. A memory file has one JSON object per line, with \"type\" \
             \"entity\" or \"relation\". Use another file, or move this one away.",
        ))
    }

    /// Changes the graph and the file; `tool` is named in the history. Nothing is written if `work` fails or changes
    /// nothing, or if the caller is gone before the file is replaced; after that the change is completed.
    pub(crate) fn change<T>(
        &self,
        tool: &str,
        patience: &Patience,
        work: impl FnOnce(&mut Edit) -> Result<T, ToolError>,
    ) -> Result<Done<T>, ToolError> {
        if let Some(parent) = self.path.parent() {
            make_folder(parent).map_err(|error| io_fault("make the directory", parent, &error))?;
        }
        let mut locked = files::lock(&self.path, patience)?;
        files::sweep(&self.path);
        let before = self.graph()?;
        let mut edit = before.edit();
        let value = work(&mut edit)?;
        let Edit { mut graph, changes, undoes } = edit;
        if changes.is_empty() {
            return Ok(Done { value, graph: before, changed: false, warnings: Vec::new() });
        }
        let mut warnings = Vec::new();
        let bytes = graph.write();
        graph.written_as(&bytes);
        self.within_limits(&before, &graph, bytes.len())?;
        patience.lasts()?;
        let old = fs::symlink_metadata(&self.path).ok().filter(|meta| meta.is_file());
        if self.backup > 0
            && old.as_ref().is_some_and(|meta| meta.len() > 0)
            && let Err(error) = files::back_up(&self.path, self.backup, BACKUP_AGE)
        {
            warnings.push(format!("The change was saved, but the backup failed: {error}"));
        }
        if graph.census().records == 0 && !bytes.is_empty() {
            files::note_in_lock(&mut locked, &left_over(&bytes)).map_err(|e| io_fault("write", &self.path, &e))?;
        }
        // Held until the times are written too, so no reader in this process sees the change without its time.
        let mut journal = self.journal_to_change();
        patience.lasts()?;
        let (file, flushed) = files::replace(&self.path, &bytes, old.as_ref())?;
        if !flushed {
            warnings.push(
                "The change was saved, but may not survive a power failure: the directory cannot be synced.".into(),
            );
        }
        let (graph, meta) = (Arc::new(graph), file.metadata().ok());
        {
            let mut state = self.state();
            state.graph = graph.clone();
            // Without its metadata the file counts as unread, and is read again.
            let seen = |meta| Seen { stamp: Stamp::of(&meta), _held: cfg!(unix).then_some(file) };
            state.seen = meta.map(seen);
        }
        if let Err(fault) = journal.record(&graph, tool, undoes, changes) {
            warnings.push(format!("The change was saved, but not added to the history: {}", fault.message()));
        }
        Ok(Done { value, graph, changed: true, warnings })
    }

    fn within_limits(&self, before: &Graph, after: &Graph, bytes: usize) -> Result<(), ToolError> {
        let (had, has) = (before.entities().len(), after.entities().len());
        if has > self.max_entities && has > had {
            return Err(limited(format!(
                "Too many entities: there are {had}, this would make {has}, the limit is {}",
                self.max_entities
            ))
            .hint("Nothing was saved. Delete or merge unneeded entities, or ask the user to raise --max-entities."));
        }
        // A change that makes the file smaller is always allowed.
        if bytes as u64 > self.max_file_bytes && bytes > before.write().len() {
            return Err(limited(format!(
                "The memory file would be too large: {bytes} bytes, the limit is {}",
                self.max_file_bytes
            ))
            .hint("Nothing was saved. Store shorter observations, delete unneeded ones, or ask the user to raise --max-file-bytes."));
        }
        Ok(())
    }
}

fn limited(message: String) -> ToolError {
    ToolError::new(message).kind(ErrorKind::Limited { retry_after: None })
}

/// The note in the lock file for a file with only foreign lines: it no longer looks like a memory file, but this server
/// left it.
fn left_over(bytes: &[u8]) -> String {
    format!("left {} fnv1a {:016x}", bytes.len(), fingerprint(bytes))
}

/// The note of earlier builds, with the hash of Rust's standard library, which may change between versions; files with
/// it still open.
fn left_over_before(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("left {} {:016x}", bytes.len(), hasher.finish())
}

/// Creates a directory and its parents, private to this user.
fn make_folder(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.recursive(true).create(path)
}

/// Reads a memory file for `--import`. Symlinks are followed, because nothing is written to it.
pub(crate) fn read_foreign(path: &Path, bytes_max: u64) -> Result<Graph, ToolError> {
    let fail = |error: std::io::Error| io_fault("read the file to import,", path, &error);
    let meta = fs::metadata(path).map_err(fail)?;
    if !meta.is_file() {
        return Err(ToolError::new(format!("The file to import is not a regular file: {}", path.display())));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(fail)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > bytes_max {
        return Err(ToolError::new(format!("The file to import is larger than {bytes_max} bytes")));
    }
    let graph = Graph::read(&bytes);
    let census = graph.census();
    if census.records == 0 && census.others + census.unreadable > 0 {
        return Err(ToolError::new(format!("Not a memory file: {}", path.display()))
            .hint("The file to import must have one JSON object per line, with \"type\" \"entity\" or \"relation\"."));
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes;
    use std::time::Instant;

    fn store(file: PathBuf) -> Store {
        Store::open(&Config { file: Some(file), ..Config::default() }).unwrap().0
    }

    fn patience() -> Patience {
        Patience::until(Instant::now() + Duration::from_secs(20))
    }

    fn create(store: &Store, name: &str) -> Arc<Graph> {
        let entity = crate::format::Entity { name: name.into(), entity_type: "t".into(), observations: Vec::new() };
        let work = |edit: &mut Edit| Ok(changes::create_entities(edit, vec![entity]));
        store.change("test", &patience(), work).unwrap().graph
    }

    #[test]
    fn the_file_is_read_again_only_when_somebody_else_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let (ours, theirs) = (store(path.clone()), store(path));
        let made = create(&ours, "a");
        // The very graph that was written, and not one that was read.
        assert!(Arc::ptr_eq(&made, &ours.graph().unwrap()) && Arc::ptr_eq(&made, &ours.graph().unwrap()));
        assert!(!ours.news());
        create(&theirs, "b");
        let seen = ours.graph().unwrap();
        assert!(seen.has("b") && ours.news() && !ours.news());
        assert!(Arc::ptr_eq(&seen, &ours.graph().unwrap()));
    }

    #[test]
    fn a_change_that_fails_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path().join("m.jsonl"));
        let before = create(&store, "a");
        let failed = store.change("test", &patience(), |edit| {
            edit.remove_entities(|_| true);
            Err::<(), _>(ToolError::new("no"))
        });
        assert!(failed.is_err() && Arc::ptr_eq(&before, &store.graph().unwrap()));
        assert_eq!(store.journal().entries().unwrap().len(), 1);
    }

    #[test]
    fn a_change_that_nobody_waits_for_any_more_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path().join("m.jsonl"));
        let before = create(&store, "a");
        let patience = patience();
        let waiting = patience.waiting();
        // Whoever asked leaves while the next graph is being made.
        let failed = store.change("test", &patience, |edit| {
            drop(waiting);
            Ok(edit.remove_entities(|_| true))
        });
        assert!(failed.unwrap_err().message().contains("cancelled"));
        assert!(Arc::ptr_eq(&before, &store.graph().unwrap()));
        assert_eq!(store.journal().entries().unwrap().len(), 1);
    }
}
