//! Locates a repository, and checks that all of it is inside the allowed directories.
//!
//! Git finds the parts of a repository by references: a `.git` file, `commondir`, `core.worktree`, alternates, symlinks.
//! Each of these is resolved here first, and refused by name if it leads outside.

use linchpin_kit::{ToolError, clip, resolve_symlinks};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The directories that may be used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    /// Everything may be used.
    pub(crate) any: bool,
    /// Canonical; a path is inside when it is one of these or below.
    pub(crate) dirs: Vec<PathBuf>,
    /// What was found in directories before, whatever the bounds.
    pub(crate) walks: Arc<Walks>,
}

impl Bounds {
    pub(crate) fn hold(&self, path: &Path) -> bool {
        self.any || self.dirs.iter().any(|dir| path.starts_with(dir))
    }

    /// What lies in both. Of two directories one inside the other, the inner one is left.
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

    /// In words, as the published server says it.
    fn shown(&self) -> String {
        let dirs: Vec<String> = self.dirs.iter().map(|dir| format!("'{}'", dir.display())).collect();
        dirs.join(", ")
    }

    /// The path with every link followed, if it is inside; `what` names where it comes from.
    fn inside(&self, path: &Path, what: &str) -> Result<PathBuf, ToolError> {
        let settled = resolve_symlinks(path);
        if self.hold(&settled) {
            return Ok(settled);
        }
        Err(escape(what))
    }
}

/// Where git's parts are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The top of the work tree; of a bare repository, the repository. Git runs here.
    pub(crate) top: PathBuf,
    pub(crate) bare: bool,
    pub(crate) git_dir: PathBuf,
    /// Where refs, objects and configuration are; differs from `git_dir` in linked work trees.
    pub(crate) common: PathBuf,
    /// Whether all of it belongs to this process's user, as git asks before it believes a repository.
    own: bool,
}

impl Place {
    /// Variables that keep git to the repository that was looked at: left to itself it would search, and where it
    /// judges a directory otherwise than we do, it would end up in another one. Repositories of other users are left to
    /// its search, because only there does it ask whether they are trusted (`safe.directory`).
    pub(crate) fn pins(&self) -> Vec<(&'static str, OsString)> {
        let mut vars = Vec::new();
        if self.own {
            vars.push(("GIT_DIR", self.git_dir.clone().into_os_string()));
            if self.bare {
                vars.push(("GIT_IMPLICIT_WORK_TREE", OsString::from("0")));
            }
        }
        vars
    }

    /// The configuration files it brings along that exist.
    pub(crate) fn configs(&self) -> Vec<PathBuf> {
        let all =
            [self.common.join("config"), self.git_dir.join("config.worktree"), self.common.join("config.worktree")];
        let mut found: Vec<PathBuf> = all.into_iter().filter(|path| path.symlink_metadata().is_ok()).collect();
        found.dedup();
        found
    }

    /// Finds the repository that `given` is in, as far as `bounds` reach.
    pub(crate) fn find(bounds: &Bounds, given: &str) -> Result<Self, ToolError> {
        if given.contains('\0') || given.is_empty() {
            return Err(ToolError::new("Invalid path: repo_path").hint("Pass the absolute path of a repository."));
        }
        let shown = clip(given, ECHO_MAX).text;
        let path = absolute(Path::new(given))?;
        let path = resolve_symlinks(&path);
        if !bounds.hold(&path) {
            return Err(match bounds.dirs.as_slice() {
                [] => ToolError::new("No repository is allowed on this server")
                    .hint("The operator can allow repositories with --repository DIR, or all with --allow-any."),
                _ => ToolError::new(format!(
                    "Repository path '{shown}' is outside the allowed repository {}",
                    bounds.shown()
                ))
                .hint("Use a path inside it. The operator can add others with --repository."),
            });
        }
        if !path.exists() {
            return Err(ToolError::not_found(format!("'{shown}' does not exist"))
                .hint("Pass the absolute path of a repository."));
        }
        let Some(place) = Self::above(bounds, &path)? else {
            return Err(ToolError::not_found(format!("'{shown}' is not in a git repository"))
                .hint("Pass the top level of a repository, or a directory below it."));
        };
        place.inspect(bounds)?;
        Ok(place)
    }

    /// The repository that the settled `path` is in.
    fn above(bounds: &Bounds, path: &Path) -> Result<Option<Self>, ToolError> {
        for dir in path.ancestors() {
            if !bounds.hold(dir) {
                break;
            }
            let dot = dir.join(".git");
            if dot.symlink_metadata().is_ok() {
                return Self::at(bounds, dir, &dot);
            }
            if is_repository(dir, dir) {
                if dir.file_name().is_some_and(|name| name == ".git")
                    && let Some(top) = dir.parent()
                    && bounds.hold(top)
                {
                    return Self::at(bounds, top, dir);
                }
                let outer = dir.ancestors().skip(1).find(|outer| outer.join(".git").symlink_metadata().is_ok());
                if let Some(outer) = outer {
                    return Err(ToolError::new(format!(
                        "'{}' is a bare repository inside the repository '{}', which is not safe (safe.bareRepository)",
                        dir.display(),
                        outer.display()
                    ))
                    .hint("Pass the work tree of the intended repository."));
                }
                // Git would take the configuration from there.
                if dir.join("commondir").symlink_metadata().is_ok() {
                    return Err(ToolError::new(format!("'{}' is a bare repository with a commondir", dir.display()))
                        .hint("Nothing was run. Pass the intended repository."));
                }
                let (top, own) = (dir.to_owned(), is_own(&[dir]));
                return Ok(Some(Self { git_dir: top.clone(), common: top.clone(), top, bare: true, own }));
            }
        }
        Ok(None)
    }

    /// The repository whose work tree is `top` and whose `.git` is `dot`.
    fn at(bounds: &Bounds, top: &Path, dot: &Path) -> Result<Option<Self>, ToolError> {
        let at = bounds.inside(dot, ".git")?;
        let git_dir = if at.is_dir() {
            at
        } else {
            let text = small_file(&at, ".git")?;
            let Some(target) = text.strip_prefix("gitdir: ") else {
                return Err(ToolError::new(format!("'{}' is neither a directory nor a gitdir file", dot.display())));
            };
            bounds.inside(&top.join(one_path(target, ".git")?), ".git file (gitdir)")?
        };
        let common = match small_file(&git_dir.join("commondir"), "commondir") {
            Ok(text) => bounds.inside(&git_dir.join(one_path(&text, "commondir")?), "commondir")?,
            Err(fault) if fault.is_not_found() => git_dir.clone(),
            Err(fault) => return Err(fault),
        };
        if !is_repository(&git_dir, &common) {
            return Ok(None);
        }
        let own = is_own(&[top, dot, &git_dir]);
        Ok(Some(Self { top: top.to_owned(), bare: false, git_dir, common, own }))
    }

    /// Follows everything that may lead elsewhere.
    fn inspect(&self, bounds: &Bounds) -> Result<(), ToolError> {
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
                    // Only a line feed ends a line for git; quotes, and what could be taken for an end, are not needed.
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

    /// Refuses an index that names files elsewhere: git checks names when it puts them there, never when it reads them,
    /// and then shows and compares whatever is at that place. `id` is how many bytes an object id has.
    pub(crate) fn check_index(&self, bounds: &Bounds, id: usize) -> Result<(), ToolError> {
        let part = |name: &OsString| name.as_encoded_bytes().starts_with(b"sharedindex.");
        let names = fs::read_dir(&self.git_dir).ok().into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut left = INDEX_BYTES_MAX;
        for name in names.filter(part).chain([OsString::from("index")]) {
            let path = self.git_dir.join(name);
            let stamp = Stamp::of(&path);
            let known = || bounds.walks.0.lock().unwrap_or_else(PoisonError::into_inner);
            if stamp.is_some() && known().indexes.get(&path) == stamp.as_ref().map(|stamp| (*stamp, id)).as_ref() {
                continue;
            }
            let unclear =
                |_| ToolError::new("The index cannot be parsed").hint("Nothing was run. Inspect it with git.");
            let size = match fs::metadata(&path) {
                // A file with holes costs nobody any room, and reading it takes minutes.
                Ok(meta) if meta.is_file() && meta.len() <= left => meta.len(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                _ => return Err(unclear(std::io::ErrorKind::Other.into())),
            };
            left -= size;
            let mut file = BufReader::new(fs::File::open(&path).map_err(unclear)?.take(size));
            if !index_stays_inside(&mut file, id).map_err(unclear)? {
                return Err(ToolError::new("The index contains paths outside the work tree")
                    .hint("Nothing was run. git read-tree HEAD creates a new one."));
            }
            if let Some(stamp) = stamp {
                let indexes = &mut known().indexes;
                if indexes.len() >= INDEXES_MAX {
                    indexes.clear();
                }
                indexes.insert(path, (stamp, id));
            }
        }
        Ok(())
    }

    /// Whether the way to this path of the work tree leads over a link. Such a path is not tracked, whatever the index
    /// says.
    pub(crate) fn beyond_link(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
        above.map(|dir| self.top.join(dir)).any(|dir| dir.is_symlink())
    }

    /// The branch that HEAD stands on and its commit, where that is written down plainly. `None` stands for everything
    /// that only git itself should answer: a detached HEAD, other kinds of storage, anything odd.
    pub(crate) fn branch_head(&self) -> Option<BranchHead> {
        let head = small_file(&self.git_dir.join("HEAD"), "HEAD").ok()?;
        let full = head.strip_prefix("ref: ")?.strip_suffix('\n')?;
        let branch = full.strip_prefix("refs/heads/")?;
        let plain = |part: &str| !part.is_empty() && !part.starts_with('.');
        if !branch.split('/').all(plain) || branch.contains(char::is_whitespace) {
            return None;
        }
        let commit = match small_file(&self.common.join(full), "branch") {
            Ok(text) => Some(object_id(text.strip_suffix('\n')?)?.to_owned()),
            Err(fault) if fault.is_not_found() => {
                match bounded_file(&self.common.join("packed-refs"), "packed-refs", PACKED_MAX) {
                    Ok(text) => {
                        let packed = |line: &'_ str| line.split_once(' ').is_some_and(|(_, name)| name == full);
                        match text.lines().find(|line| packed(line)) {
                            Some(line) => Some(object_id(line.split(' ').next()?)?.to_owned()),
                            None => None,
                        }
                    }
                    Err(fault) if fault.is_not_found() => None,
                    Err(_) => return None,
                }
            }
            Err(_) => return None,
        };
        Some(BranchHead { branch: branch.to_owned(), commit })
    }

    /// What `core.worktree` says must be what was found.
    pub(crate) fn check_worktree(&self, bounds: &Bounds, value: &str) -> Result<(), ToolError> {
        let path = bounds.inside(&self.git_dir.join(value), "core.worktree")?;
        if self.bare || path != self.top {
            return Err(ToolError::new("The repository's configuration sets another work tree (core.worktree)")
                .hint("Use the path of that work tree if it has a .git of its own."));
        }
        Ok(())
    }

    /// A path that an argument names, relative to the top level, checked to be in the work tree when every link is
    /// followed. The answer is what git may be given after `--`.
    pub(crate) fn inner(&self, given: &str) -> Result<String, ToolError> {
        let shown = clip(given, ECHO_MAX).text;
        let outside = || {
            ToolError::new(format!("Path '{shown}' is outside the repository '{}'", self.top.display()))
                .hint("Paths are relative to the top level of the repository.")
        };
        if given.contains('\0') || given.is_empty() || given.len() > PATH_MAX {
            return Err(ToolError::new(format!("Invalid path: '{}'", shown)));
        }
        let path = self.top.join(given);
        let settled = resolve_symlinks(&path);
        if !settled.starts_with(&self.top) || !self.bare && settled.starts_with(self.top.join(".git")) {
            return Err(outside());
        }
        if Path::new(given).is_relative() {
            return Ok(given.to_owned());
        }
        // Absolute: the directory by its true name, the last name as it is, because it may be a link that is meant.
        let true_name = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => resolve_symlinks(parent).join(name),
            _ => settled,
        };
        let relative = true_name.strip_prefix(&self.top).map_err(|_| outside())?;
        Ok(match relative.to_string_lossy() {
            text if text.is_empty() => ".".to_owned(),
            text => text.into_owned(),
        })
    }
}

/// The branch that is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BranchHead {
    /// Its short name.
    pub(crate) branch: String,
    /// Its commit; `None` before the first.
    pub(crate) commit: Option<String>,
}

/// The text, if it is a full object id as git writes it.
fn object_id(text: &str) -> Option<&str> {
    let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (matches!(text.len(), 40 | 64) && hex).then_some(text)
}

/// Whether every name in an index is one of a file below the work tree. What git would not read like this is an error.
fn index_stays_inside(from: &mut impl BufRead, id: usize) -> std::io::Result<bool> {
    let odd = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut number = [0; 4];
    let mut header = [0_u32; 3];
    for value in &mut header {
        from.read_exact(&mut number)?;
        *value = u32::from_be_bytes(number);
    }
    let [signature, version, count] = header;
    if signature != u32::from_be_bytes(*b"DIRC") || !(2..=4).contains(&version) {
        return Err(odd());
    }
    let mut name: Vec<u8> = Vec::new();
    let mut fixed = vec![0; INDEX_STAT + id + 2];
    for _ in 0..count {
        from.read_exact(&mut fixed)?;
        let flags = u16::from_be_bytes([fixed[fixed.len() - 2], fixed[fixed.len() - 1]]);
        let extended = usize::from(flags & INDEX_EXTENDED != 0) * 2;
        from.read_exact(&mut number[..extended])?;
        // Since version 4 a name says only how it differs from the one before.
        let shared = if version == 4 { name.len().checked_sub(distance(from)?).ok_or_else(odd)? } else { 0 };
        name.truncate(shared);
        let length = usize::from(flags & INDEX_NAME);
        let most = if length == usize::from(INDEX_NAME) { INDEX_NAME_MAX } else { length + 1 };
        let rest = most.checked_sub(shared).ok_or_else(odd)?;
        let read = from.by_ref().take(rest as u64).read_until(0, &mut name)?;
        // A shorter or longer name than was said: git would go on elsewhere.
        if name.pop() != Some(0) || most == length + 1 && name.len() != length {
            return Err(odd());
        }
        if version < 4 {
            let filler = 8 - (fixed.len() + extended + read - 1) % 8 - 1;
            from.read_exact(&mut [0; 8][..filler])?;
        }
        if !is_inner(&name) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A number as git's index holds it.
fn distance(from: &mut impl BufRead) -> std::io::Result<usize> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    let mut value = usize::from(byte[0] & 0x7f);
    while byte[0] & 0x80 != 0 {
        from.read_exact(&mut byte)?;
        value = (value + 1).checked_mul(128).ok_or(std::io::ErrorKind::InvalidData)? + usize::from(byte[0] & 0x7f);
    }
    Ok(value)
}

/// Whether a name of an index is one of something below the work tree and not below `.git`. One that ends with a slash
/// is a directory of which nothing is checked out; an empty one stands in another file.
fn is_inner(name: &[u8]) -> bool {
    let path = name.strip_suffix(b"/").unwrap_or(name);
    let leads = |part: &[u8]| {
        matches!(part, b"" | b"." | b"..")
            || part.eq_ignore_ascii_case(b".git")
            || cfg!(windows) && part.iter().any(|byte| b"\\:".contains(byte))
    };
    name.is_empty() || !path.split(|byte| *byte == b'/').any(leads)
}

/// The top level of the repository that `given` is in, for the operator's own paths.
pub(crate) fn top_of(given: &Path) -> Result<PathBuf, ToolError> {
    let shown = given.display();
    let path = fs::canonicalize(given).map_err(|_| {
        ToolError::new(format!("{shown} does not exist")).hint("Pass an existing repository with --repository.")
    })?;
    let everything = Bounds { any: true, ..Bounds::default() };
    let found = Place::above(&everything, &path)?;
    found.map(|place| place.top).ok_or_else(|| {
        ToolError::new(format!("{shown} is not a valid Git repository"))
            .hint("Pass a repository, or a directory inside one, with --repository.")
    })
}

/// The path a root names, when there is something.
pub(crate) fn root_path(root: &str) -> Option<PathBuf> {
    fs::canonicalize(linchpin_kit::root_path(root)?).ok()
}

fn absolute(path: &Path) -> Result<PathBuf, ToolError> {
    std::path::absolute(path).map_err(|_| ToolError::new(format!("Invalid path: {}", path.display())))
}

/// Whether git would take `git_dir` for a repository, by its own rules. Of a directory that it would not, it goes on to
/// another one, whose configuration nobody looked at.
fn is_repository(git_dir: &Path, common: &Path) -> bool {
    // The dot asks for the right to enter, as git does.
    is_head(&git_dir.join("HEAD")) && common.join("objects/.").is_dir() && common.join("refs/.").is_dir()
}

/// Whether git would take this for a HEAD: a link to a ref, the name of one, or an object id.
fn is_head(path: &Path) -> bool {
    let Ok(meta) = path.symlink_metadata() else { return false };
    if meta.is_symlink() {
        return fs::read_link(path).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"refs/"));
    }
    let mut head = Vec::new();
    let read = |head: &mut Vec<u8>| fs::File::open(path)?.take(HEAD_READ).read_to_end(head);
    if !meta.is_file() || read(&mut head).is_err() {
        return false;
    }
    if let Some(name) = head.strip_prefix(b"ref:") {
        let blanks = name.iter().take_while(|byte| b" \t\n\r".contains(byte)).count();
        if name[blanks..].starts_with(b"refs/") {
            return true;
        }
    }
    head.get(..40).is_some_and(|id| id.iter().all(u8::is_ascii_hexdigit))
}

/// Whether these belong to this process's user.
#[cfg(unix)]
fn is_own(paths: &[&Path]) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    paths.iter().all(|path| path.symlink_metadata().is_ok_and(|meta| meta.uid() == user))
}

#[cfg(not(unix))]
fn is_own(_: &[&Path]) -> bool {
    false
}

/// The path that a file of git's consists of, as git reads it: only line ends are dropped, blanks belong to the name.
/// Where git would stop reading in the middle, it is refused.
fn one_path<'a>(text: &'a str, what: &str) -> Result<&'a str, ToolError> {
    let path = text.trim_end_matches(['\n', '\r']);
    if path.is_empty() || path.contains(char::is_control) {
        return Err(ToolError::new(format!("{what} cannot be parsed")).hint("Nothing was run."));
    }
    Ok(path)
}

fn small_file(path: &Path, what: &str) -> Result<String, ToolError> {
    bounded_file(path, what, SMALL_MAX)
}

fn bounded_file(path: &Path, what: &str, max: u64) -> Result<String, ToolError> {
    // Opening a pipe would wait for its other end.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Err(ToolError::new(format!("{what} cannot be parsed")));
    }
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Err(ToolError::not_found(format!("{what} does not exist")));
        }
        Err(error) => return Err(ToolError::new(format!("{what} cannot be read: {}", error.kind()))),
    };
    let regular = file.metadata().is_ok_and(|meta| meta.is_file());
    let mut text = String::new();
    let read = file.take(max).read_to_string(&mut text);
    match read {
        Ok(read) if regular && (read as u64) < max => Ok(text),
        _ => Err(ToolError::new(format!("{what} cannot be parsed"))),
    }
}

/// What was met on the way through a repository.
#[derive(Default)]
struct Seen {
    entries: usize,
    /// Directories that links led to.
    followed: BTreeSet<PathBuf>,
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
        // There may be more links where it leads.
        if depth < DEPTH_MAX && real.is_dir() && seen.followed.insert(real.clone()) {
            links(bounds, top, &real, depth + 1, seen)?;
        }
    }
    for inner in &walk.dirs {
        if depth >= DEPTH_MAX {
            return Err(ToolError::new("The .git directory is nested too deeply to check for links that lead outside"));
        }
        // Submodules' repositories are looked at when they are used; hooks do not run, wherever they are.
        if depth > 0 || inner != "modules" && inner != "hooks" {
            links(bounds, top, &dir.join(inner), depth + 1, seen)?;
        }
    }
    Ok(())
}

/// What was found in directories, for as long as they do not change: making, removing or renaming anything in a
/// directory changes its times.
#[derive(Debug, Default)]
pub(crate) struct Walks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    walks: BTreeMap<PathBuf, (Stamp, Arc<Walk>)>,
    /// Indexes that name nothing outside, and how long an object id was taken to be.
    indexes: BTreeMap<PathBuf, (Stamp, usize)>,
    /// Names that were kept since it was last emptied.
    names: usize,
}

/// What is in one directory, as far as it matters: where a link leads is looked up anew each time.
#[derive(Debug, Default)]
struct Walk {
    entries: usize,
    links: Vec<OsString>,
    dirs: Vec<OsString>,
}

impl Walks {
    /// What is in `dir`, counting to one more than `most`; `None` when it cannot be read.
    fn walk(&self, dir: &Path, most: usize) -> Option<Arc<Walk>> {
        // Before the directory is read: what changes it from here on changes its stamp for the next time.
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

/// Which directory it is and when it changed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp([i64; 6]);

impl Stamp {
    /// `None` where it would not tell two states apart: when the last change is so young that another could bear the
    /// same time, and where the file system's clock is coarse.
    #[cfg(unix)]
    fn of(dir: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let meta = fs::metadata(dir).ok()?;
        let changed = SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(meta.ctime()).ok()?, 0);
        let settled = SystemTime::now().duration_since(changed).is_ok_and(|age| age > SETTLED);
        let fine = meta.ctime_nsec() != 0;
        let (dev, ino) = (meta.dev().cast_signed(), meta.ino().cast_signed());
        let stamp = [dev, ino, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        (settled && fine).then_some(Self(stamp))
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> Option<Self> {
        None
    }
}

/// Something in the repository leads outside.
pub(crate) fn escape(what: &str) -> ToolError {
    ToolError::new(format!("The repository refers to a location outside the allowed directories: {what}"))
        .hint("Nothing was run. The operator can allow that location with another --repository.")
}

const SMALL_MAX: u64 = 64 * 1024;
const PACKED_MAX: u64 = 1024 * 1024;
/// As much of a HEAD as git looks at to tell whether it is one.
const HEAD_READ: u64 = 255;
const ALTERNATES_MAX: usize = 32;
const ENTRIES_MAX: usize = 500_000;
const DEPTH_MAX: usize = 64;
const WALK_NAMES_MAX: usize = 20_000;
/// Whole seconds are compared, so that this is at least two.
const SETTLED: Duration = Duration::from_secs(3);
pub(crate) const PATH_MAX: usize = 4_096;
/// As much of an argument as an error repeats, in bytes.
const ECHO_MAX: usize = 500;
const INDEXES_MAX: usize = 64;
/// Bytes of the parts of an index that are read anew; ten million files have about as many.
const INDEX_BYTES_MAX: u64 = 1 << 30;
/// Bytes before the object id of an entry of an index.
const INDEX_STAT: usize = 40;
const INDEX_EXTENDED: u16 = 0x4000;
/// How long a name is; with all of these bits set, up to its NUL.
const INDEX_NAME: u16 = 0x0fff;
const INDEX_NAME_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_directory_is_read_again_when_it_changed() {
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
    fn an_index_is_read_as_git_reads_it() {
        let entry = |version: u32, flags: u16, head: &[u8], name: &[u8], filler: usize| {
            let mut all = b"DIRC".to_vec();
            all.extend([version.to_be_bytes(), 1_u32.to_be_bytes()].concat());
            all.extend(
                [vec![0; 60], flags.to_be_bytes().to_vec(), head.to_vec(), name.to_vec(), vec![0; filler]].concat(),
            );
            all
        };
        let read = |bytes: &[u8]| index_stays_inside(&mut &bytes[..], 20).ok();
        for (bytes, expected) in [
            (entry(2, 3, b"", b"a/b", 7), Some(true)),
            (entry(2, 4, b"", b"../a", 6), Some(false)),
            (entry(2, 2, b"", b"/a", 8), Some(false)),
            (entry(2, 6, b"", b".GIT/x", 4), Some(false)),
            (entry(2, 2, b"", b"d/", 8), Some(true)),
            (entry(2, 1, b"", b"/", 1), Some(false)),
            (entry(2, 0, b"", b"", 2), Some(true)),
            (entry(3, 0x4002, b"\0\0", b"..", 6), Some(false)),
            (entry(3, 0x4001, b"\0\0", b"a", 7), Some(true)),
            (entry(4, 3, b"\0", b"a/b", 1), Some(true)),
            // What git would read on with is not where it was said to be.
            (entry(2, 3, b"", b"a", 9), None),
            (entry(2, 1, b"", b"a/../b", 4), None),
            (entry(4, 3, b"\x01", b"a/b", 1), None),
            (entry(5, 3, b"", b"a/b", 7), None),
            (entry(2, 3, b"", b"a/b", 1), None),
        ] {
            assert_eq!(read(&bytes), expected, "{}", String::from_utf8_lossy(&bytes[72..]));
        }
        // Version 4: the second name is the first without its last byte, and a dot.
        let mut pieces = entry(4, 2, b"\0", b".-", 1);
        pieces[11] = 2;
        pieces.extend([vec![0; 60], 4_u16.to_be_bytes().to_vec(), b"\x01./a\0".to_vec()].concat());
        assert_eq!(read(&pieces), Some(false));
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

    #[test]
    fn roots_are_uris_or_absolute_paths() {
        let base = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(base.path()).unwrap().join("a b");
        fs::create_dir(&dir).unwrap();
        let uri = format!("file://{}", dir.display()).replace(' ', "%20");
        assert_eq!(root_path(&uri), Some(dir.clone()));
        assert_eq!(root_path(&dir.display().to_string()), Some(dir));
        for bad in ["file:///%zz", "file:///%2", "relative", "https://h/x", ""] {
            assert_eq!(root_path(bad), None, "{bad}");
        }
    }
}
