//! A directory that is watched: its newest whole snapshot, and what happens when it changes.

use crate::files::Walked;
use crate::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often a directory is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// How long a directory must stay as it is before it is read.
const SETTLE: Duration = Duration::from_millis(200);
/// How long it may keep changing before the log says so.
const RESTLESS: Duration = Duration::from_secs(1);

/// How long the first request waits for a look at a directory that may have changed.
const WAIT: Duration = Duration::from_secs(2);

/// Is told of the snapshot before and the one after.
pub(crate) type OnChange = dyn Fn(&Snapshot, &Snapshot) + Send + Sync;

/// See the module's documentation.
pub(crate) struct Watched {
    root: PathBuf,
    current: RwLock<Arc<Snapshot>>,
    /// The directory as it was when the snapshot was made.
    walked: Mutex<Arc<Walked>>,
    /// Kept by the server: it holds the server's resources, whose handlers hold this.
    changed: Mutex<Option<Weak<OnChange>>>,
    watching: AtomicBool,
    made: Instant,
}

impl Watched {
    /// Reads a directory.
    pub(crate) fn new(root: &Path) -> io::Result<Watched> {
        let mut walked = Walked::new(root)?;
        let snapshot = read(&mut walked)?;
        report(&snapshot, &BTreeSet::new());
        Ok(Watched {
            root: root.to_owned(),
            current: RwLock::new(Arc::new(snapshot)),
            walked: Mutex::new(Arc::new(walked)),
            changed: Mutex::default(),
            watching: AtomicBool::new(false),
            made: Instant::now(),
        })
    }

    /// Sets who is told of changes, as long as somebody keeps it.
    pub(crate) fn on_change(&self, changed: &Arc<OnChange>) {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(changed));
    }

    pub(crate) fn latest(&self) -> Arc<Snapshot> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The newest snapshot. The first request begins to watch, and waits if the snapshot may be out of date by then.
    pub(crate) async fn current(self: &Arc<Self>) -> Arc<Snapshot> {
        if !self.watching.swap(true, Ordering::AcqRel) {
            let (looked, look) = oneshot::channel();
            let stale = self.made.elapsed() > LOOK;
            // Whether or not this request stays; it alone looks, so that no snapshot replaces a newer one.
            tokio::spawn(watch(Arc::downgrade(self), stale.then_some(looked)));
            if stale {
                let _ = tokio::time::timeout(WAIT, look).await;
            }
        }
        self.latest()
    }

    /// Looks at the directory, and reads it if it changed and has settled. Returns how long a look took.
    async fn look(self: &Arc<Self>) -> Duration {
        let begun = Instant::now();
        let (mut before, mut first) = (self.walk().await, begun);
        let took = begun.elapsed();
        let known = self.walked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if before.as_ref().is_ok_and(|walked| *walked == *known) {
            return took;
        }
        loop {
            tokio::time::sleep(SETTLE).await;
            let after = self.walk().await;
            let still = matches!((&before, &after), (Ok(before), Ok(after)) if before == after);
            if still && let Ok(walked) = after {
                match self.take(walked).await {
                    Ok(()) => return took,
                    Err(why) => before = Err(why),
                }
            } else {
                before = after;
            }
            if first.elapsed() > RESTLESS {
                let why =
                    before.as_ref().err().map(ToString::to_string).unwrap_or_else(|| "it keeps changing".to_owned());
                tracing::warn!(directory = %self.root.display(), why, "cannot read the skills; keeping the previous ones");
                // Nobody waits for a directory that never settles.
                first = Instant::now() + LOOK * 30;
                if before.is_err() {
                    return took;
                }
            }
        }
    }

    async fn walk(&self) -> io::Result<Walked> {
        let root = self.root.clone();
        tokio::task::spawn_blocking(move || Walked::new(&root)).await.map_err(io::Error::other)?
    }

    /// Makes a snapshot of a directory that has settled, unless it changes while it is read.
    async fn take(self: &Arc<Self>, walked: Walked) -> io::Result<()> {
        let root = self.root.clone();
        let made = tokio::task::spawn_blocking(move || {
            let mut walked = walked;
            let snapshot = read(&mut walked)?;
            match Walked::new(&root)? == walked {
                true => Ok((walked, snapshot)),
                false => Err(io::Error::new(io::ErrorKind::InvalidData, "it changed while it was read")),
            }
        });
        let (walked, snapshot) = made.await.map_err(io::Error::other)??;
        let (new, old) = (Arc::new(snapshot), self.latest());
        report(&new, &old.problems.iter().chain(&old.warnings).cloned().collect());
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new.clone();
        *self.walked.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(walked);
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(changed) = changed.and_then(|changed| changed.upgrade()) {
            changed(&old, &new);
        }
        Ok(())
    }
}

fn read(walked: &mut Walked) -> io::Result<Snapshot> {
    let mut snapshot = Snapshot::of(walked, true)?;
    snapshot.problems.extend(walked.problems.iter().cloned());
    Ok(snapshot)
}

/// Logs what was left out, unless it was known.
fn report(snapshot: &Snapshot, known: &BTreeSet<String>) {
    for problem in snapshot.problems.iter().filter(|problem| !known.contains(*problem)) {
        tracing::warn!("{}", left_out(problem));
    }
    for warning in snapshot.warnings.iter().filter(|warning| !known.contains(*warning)) {
        tracing::warn!("{warning}");
    }
}

/// What is logged of a problem, which begins with the name of what has it.
pub(crate) fn left_out(problem: &str) -> String {
    match problem.split_once(": ") {
        // A file in a skill, or a skill further down.
        Some((name, why)) if name.contains('/') => format!("`{name}` is left out: {why}"),
        Some((name, why)) => format!("skill `{name}` is left out: {why}"),
        None => format!("left out: {problem}"),
    }
}

/// Looks at a directory as long as it is served, at once if somebody waits for it.
async fn watch(watched: Weak<Watched>, waits: Option<oneshot::Sender<()>>) {
    let mut pause = LOOK;
    if let Some(waits) = waits {
        let Some(watched) = watched.upgrade() else { return };
        pause = LOOK.max(watched.look().await * 20);
        let _ = waits.send(());
    }
    loop {
        tokio::time::sleep(pause).await;
        let Some(watched) = watched.upgrade() else { return };
        // A large directory is looked at less often, so that looking takes at most a twentieth of the time.
        pause = LOOK.max(watched.look().await * 20);
    }
}
