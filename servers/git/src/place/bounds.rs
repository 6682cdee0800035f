//! The allowed directories, and links in a repository that lead outside them.

use crate::place::Place;
use crate::place::files::small_file;
use linchpin_kit::{ToolError, resolve_symlinks};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The allowed directories.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    /// Everything is allowed.
    pub(crate) any: bool,
    /// Canonical; a path is inside if it is one of these or below one.
    pub(crate) dirs: Vec<PathBuf>,
    /// Cached findings about directories, whatever the bounds.
    pub(crate) walks: Arc<Walks>,
}

impl Bounds {
    pub(crate) fn hold(&self, path: &Path) -> bool {
        self.any || self.dirs.iter().any(|dir| path.starts_with(dir))
    }

    /// The intersection. Of two nested directories the inner one remains.
    pub(crate) fn narrowed(&self, other: &[PathBuf]) -> Self {
        if self.any {
            return Self { any: false, dirs: other.to_vec(), walks: Arc::clone(&self.walks) };
        }
        let inner = other
            .iter()
            .filter(|dir| self.hold(dir))
            .chain(self.dirs.iter().filter(|dir| other.iter().any(|outer| dir.starts_with(outer))));
        let dirs: BTreeSet<PathBuf> = inner.cloned().collect();
        Self { any: false, dirs: dirs.into_iter().collect(), walks: Arc::clone(&self.walks) }
    }

    /// Lists them as the published server does.
    pub(crate) fn shown(&self) -> String {
        let dirs: Vec<String> = self.dirs.iter().map(|dir| format!("'{}'", dir.display())).collect();
        dirs.join(", ")
    }

    /// The path with symlinks resolved, if it is inside; `what` describes it for the error.
    pub(crate) fn inside(&self, path: &Path, what: &str) -> Result<PathBuf, ToolError> {
        let resolved = resolve_symlinks(path);
        if self.hold(&resolved) {
            return Ok(resolved);
        }
        Err(escape(what))
    }
}

/// The state of a walk through a repository.
#[derive(Default)]
struct Seen {
    pub(crate) entries: usize,
    /// Directories that links lead to.
    pub(crate) followed: BTreeSet<PathBuf>,
}

/// Refuses links below `dir` that lead outside: git reads and writes through them.
fn links(bounds: &Bounds, top: &Path, dir: &Path, depth: usize, seen: &mut Seen) -> Result<(), ToolError> {
    let Some(walk) = bounds.walks.walk(dir, ENTRIES_MAX.saturating_sub(seen.entries)) else { return Ok(()) };
    seen.entries += walk.entries;
    if seen.entries > ENTRIES_MAX {
        return Err(ToolError::new("The .git directory contains too many files to check for links that lead outside")
            .hint("Run git gc in it."));
    }
    for link in &walk.links {
        if depth == 0 && link == "hooks" {
            continue;
        }
        let path = dir.join(link);
        let name = path.strip_prefix(top).unwrap_or(&path).display().to_string();
        let plain = name.len() <= 120 && name.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
        let real = bounds.inside(&path, &format!(".git/{}", if plain { &name } else { "…" }))?;
        // The target may contain more links.
        if depth < DEPTH_MAX && real.is_dir() && seen.followed.insert(real.clone()) {
            links(bounds, top, &real, depth + 1, seen)?;
        }
    }
    for inner in &walk.dirs {
        if depth >= DEPTH_MAX {
            return Err(ToolError::new("The .git directory is nested too deeply to check for links that lead outside"));
        }
        // Submodules' repositories are checked when they are used; hooks do not run, wherever they are.
        if depth > 0 || inner != "modules" && inner != "hooks" {
            links(bounds, top, &dir.join(inner), depth + 1, seen)?;
        }
    }
    Ok(())
}

/// Cached findings about directories, valid while they do not change: creating, removing or renaming an entry changes a
/// directory's times.
#[derive(Debug, Default)]
pub(crate) struct Walks(pub(crate) Mutex<Known>);

#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) walks: BTreeMap<PathBuf, (Stamp, Arc<Walk>)>,
    /// Indexes whose names are all inside, and the length of object ids assumed.
    pub(crate) indexes: BTreeMap<PathBuf, (Stamp, usize)>,
    /// Number of cached names since the cache was last cleared.
    pub(crate) names: usize,
}

/// The relevant entries of a directory; link targets are resolved anew each time.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) entries: usize,
    pub(crate) links: Vec<OsString>,
    pub(crate) dirs: Vec<OsString>,
}

impl Walks {
    /// The entries of `dir`, up to one more than `most`; `None` if it cannot be read.
    pub(crate) fn walk(&self, dir: &Path, most: usize) -> Option<Arc<Walk>> {
        // Taken before the directory is read, so that a later change gives another stamp next time.
        let stamp = Stamp::of(dir);
        if let Some(stamp) = &stamp {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, walk)) = known.walks.get(dir).filter(|(old, _)| old == stamp) {
                return Some(Arc::clone(walk));
            }
        }
        let mut walk = Walk::default();
        for entry in fs::read_dir(dir).ok()?.flatten() {
            walk.entries += 1;
            if walk.entries > most {
                return Some(Arc::new(walk));
            }
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => walk.links.push(entry.file_name()),
                Ok(kind) if kind.is_dir() => walk.dirs.push(entry.file_name()),
                _ => {}
            }
        }
        let walk = Arc::new(walk);
        if let Some(stamp) = stamp {
            let names = 1 + walk.links.len() + walk.dirs.len();
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.names + names > WALK_NAMES_MAX {
                *known = Known::default();
            }
            if names <= WALK_NAMES_MAX {
                known.names += names;
                known.walks.insert(dir.to_owned(), (stamp, Arc::clone(&walk)));
            }
        }
        Some(walk)
    }
}

/// Identifies a directory and its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp([i64; 6]);

impl Stamp {
    /// `None` if it could not tell two states apart: the last change is so recent that another could have the same
    /// time, or the file system's clock is coarse.
    #[cfg(unix)]
    pub(crate) fn of(dir: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        use std::time::{Duration, SystemTime};
        // Whole seconds are compared, so this must be at least two.
        const STABLE_AFTER: Duration = Duration::from_secs(3);
        let meta = fs::metadata(dir).ok()?;
        let changed = SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(meta.ctime()).ok()?, 0);
        let stable = SystemTime::now().duration_since(changed).is_ok_and(|age| age > STABLE_AFTER);
        let fine = meta.ctime_nsec() != 0;
        let (dev, ino) = (meta.dev().cast_signed(), meta.ino().cast_signed());
        let stamp = [dev, ino, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        (stable && fine).then_some(Self(stamp))
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &Path) -> Option<Self> {
        None
    }
}

/// The error if something in the repository leads outside.
pub(crate) fn escape(what: &str) -> ToolError {
    ToolError::denied(format!("The repository refers to a location outside the allowed directories: {what}"))
        .hint("Nothing was run. The operator can allow that location with another --repository.")
}

const ALTERNATES_MAX: usize = 32;

const ENTRIES_MAX: usize = 500_000;

const DEPTH_MAX: usize = 64;

const WALK_NAMES_MAX: usize = 20_000;

impl Place {
    /// Follows all references that may lead elsewhere.
    pub(crate) fn inspect(&self, bounds: &Bounds) -> Result<(), ToolError> {
        if bounds.any {
            return Ok(());
        }
        let mut seen = Seen::default();
        for dir in BTreeSet::from([&self.git_dir, &self.common]) {
            links(bounds, dir, dir, 0, &mut seen)?;
        }
        let mut stores = vec![self.common.join("objects")];
        let mut at = 0;
        while let Some(store) = stores.get(at).cloned() {
            at += 1;
            match small_file(&store.join("info/alternates"), "objects/info/alternates") {
                Ok(text) => {
                    // Git ends a line only at a line feed; quoted paths and other line ends are refused.
                    for line in text.split('\n').filter(|line| !line.is_empty() && !line.starts_with('#')) {
                        if line.starts_with('"') || line.contains(char::is_control) {
                            return Err(escape("objects/info/alternates"));
                        }
                        let other = bounds.inside(&store.join(line), "objects/info/alternates")?;
                        links(bounds, &other, &other, 1, &mut seen)?;
                        stores.push(other);
                    }
                }
                Err(fault) if fault.is_not_found() => {}
                Err(fault) => return Err(fault),
            }
            if stores.len() > ALTERNATES_MAX {
                return Err(ToolError::new("The repository has too many alternates"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_directory_is_read_again_when_it_changed() {
        use std::time::{Duration, SystemTime};
        let base = tempfile::tempdir().unwrap();
        let dir = base.path();
        fs::create_dir(dir.join("d")).unwrap();
        let walks = Walks::default();
        let walk = || walks.walk(dir, 100).unwrap();
        assert!(!Arc::ptr_eq(&walk(), &walk()), "too young to be told from its next state");
        // Within the time that the clock of the file system needs.
        for _ in 0..1_000 {
            if Stamp::of(dir).is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let known = walk();
        assert!(Arc::ptr_eq(&known, &walk()), "unchanged");
        std::os::unix::fs::symlink("/", dir.join("l")).unwrap();
        let times = fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::new(1_000, 5));
        fs::File::open(dir).unwrap().set_times(times).unwrap();
        let changed = walk();
        assert_eq!((known.links.len(), changed.links.len(), changed.dirs.len()), (0, 1, 1));
        fs::remove_file(dir.join("l")).unwrap();
        assert_eq!(walk().links.len(), 0);
        assert_eq!(walks.walk(dir, 0).unwrap().entries, 1, "counted no further than asked");
    }

    #[test]
    fn bounds_only_narrow() {
        let of = |dirs: &[&str]| Bounds { dirs: dirs.iter().map(PathBuf::from).collect(), ..Bounds::default() };
        let roots = |dirs: &[&str]| dirs.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of(&["/a"]).narrowed(&roots(&["/a/b", "/c"])).dirs, roots(&["/a/b"]));
        assert_eq!(of(&["/a/b"]).narrowed(&roots(&["/a"])).dirs, roots(&["/a/b"]));
        assert!(of(&["/a"]).narrowed(&roots(&["/ab"])).dirs.is_empty());
        assert!(!of(&["/a"]).hold(Path::new("/ab")));
    }
}
