//! Resolves a path argument to an open directory and one name in it.
//!
//! A path is first normalized as text (quotes, `~`, relative, `..`), which selects an allowed directory; from there it
//! is walked by handles. Symlinks are read and expanded here, never by the kernel, so a link that leads outside is
//! detected; `..` in a link goes back along the handles and cannot go above the first. Handles stay valid if names are
//! replaced meanwhile.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization;

use crate::config::FollowSymlinks;
use crate::config::windows_name_problem;
use crate::error::io_fault;
use crate::inner::Inner;
use crate::os::{self, Kind, Meta};
use crate::paths::{expand_home, normalize};
use crate::roots::{Root, Roots};
use linchpin_kit::{ToolError, resolve_symlinks};

/// Maximum symlinks of one path.
const LINKS_MAX: usize = 40;
/// Maximum retries of a walk because a name changed.
const RETRIES_MAX: usize = 64;

/// Whether a symlink as the last name of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// Use its target.
    Follow,
    /// Use the link itself.
    Keep,
}

/// A resolved path: an open directory and one name in it.
#[derive(Debug)]
pub(crate) struct Place {
    root: Arc<Root>,
    /// The directory that contains (or would contain) the name.
    dir: Arc<OwnedFd>,
    /// The name; `.` for an allowed directory itself.
    name: OsString,
    /// The path below the allowed directory, symlinks resolved, without the missing part.
    below: PathBuf,
    /// The names that do not exist, outermost first; empty if the path exists.
    missing: Vec<OsString>,
    meta: Option<Meta>,
}

impl Place {
    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The path below the allowed directory, for deny patterns and display.
    pub(crate) fn below(&self) -> PathBuf {
        self.missing.iter().fold(self.below.clone(), |path, name| path.join(name))
    }

    /// The absolute path with symlinks resolved.
    pub(crate) fn path(&self) -> PathBuf {
        let below = self.below();
        if below.as_os_str().is_empty() { self.root.real.clone() } else { self.root.real.join(below) }
    }

    /// [`Self::path`] as text.
    pub(crate) fn shown(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }

    /// The metadata, if the path exists.
    pub(crate) fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// The metadata, or the error of `call`.
    pub(crate) fn existing(&self, call: &str) -> Result<&Meta, ToolError> {
        self.meta.as_ref().ok_or_else(|| io_fault(Errno::NOENT, call, &self.shown()))
    }

    /// Names that must be created; empty if the path exists.
    pub(crate) fn missing(&self) -> &[OsString] {
        &self.missing
    }

    /// Whether this is an allowed directory itself.
    pub(crate) fn is_root(&self) -> bool {
        self.name == "."
    }
}

impl Inner {
    /// Resolves `asked` to a place inside the allowed directories that is not denied.
    pub(crate) fn resolve(&self, asked: &str, last: Last) -> Result<Place, ToolError> {
        self.resolve_in(&self.roots, asked, last)
    }

    fn resolve_in(&self, roots: &Roots, asked: &str, last: Last) -> Result<Place, ToolError> {
        if roots.is_empty() && !self.ceiling.is_empty() {
            return Err(ToolError::new("Access denied - no root of this client is in an allowed directory")
                .hint("The server was started with --roots narrow: only paths in both a root and an allowed directory are accessible."));
        }
        if roots.is_empty() {
            return Err(ToolError::new("Access denied - no allowed directories are configured").hint(
                "The operator must name at least one: mcp-server-filesystem DIR…, the variable \
                 MCP_FS_DIRS, or, with --roots use, a client that declares roots.",
            ));
        }
        let text = spoken_path(asked, self.config.windows_names)?;
        if text.is_absolute() {
            return self.resolve_absolute(roots, &normalize(&text), last);
        }
        let mut first = None;
        for root in &roots.list {
            let candidate = normalize(&root.real.join(&text));
            match self.resolve_absolute(roots, &candidate, last) {
                Ok(place) if place.meta.is_some() => return Ok(place),
                other if first.is_none() => first = Some(other),
                _ => {}
            }
        }
        first.unwrap_or_else(|| Err(roots.outside("path", &text)))
    }

    fn resolve_absolute(&self, roots: &Roots, path: &Path, last: Last) -> Result<Place, ToolError> {
        let Some((root, below)) = roots.holding(path) else {
            return Err(roots.outside("path", path));
        };
        self.deny.check(path, &self.belows_in(roots, path), path)?;
        let place = self.walk(roots, root, &below, path, last)?;
        let real = place.path();
        self.deny.check(&real, &self.belows_in(roots, &real), path)?;
        Ok(place)
    }

    /// The path of `place` relative to each allowed directory that contains it, to match deny patterns.
    pub(crate) fn belows(&self, place: &Place) -> Vec<PathBuf> {
        self.belows_in(&self.roots, &place.path())
    }

    /// Also relative to the configured directories: their deny patterns apply to clients with other roots too.
    fn belows_in(&self, roots: &Roots, path: &Path) -> Vec<PathBuf> {
        let mut belows = roots.belows(path);
        if !std::ptr::eq(roots, Arc::as_ptr(&self.ceiling)) {
            belows.extend(self.ceiling.belows(path));
            belows.dedup();
        }
        belows
    }

    /// Walks `below` from the handle of `root`.
    fn walk(&self, roots: &Roots, root: Arc<Root>, below: &Path, asked: &Path, last: Last) -> Result<Place, ToolError> {
        let mut walk =
            Walk { root, trail: Vec::new(), todo: VecDeque::new(), from_link: 0, links: 0, retries: 0, jumped: false };
        walk.start(below);
        while let Some(name) = walk.todo.pop_front() {
            let in_link = walk.from_link > 0;
            walk.from_link = walk.from_link.saturating_sub(1);
            if name == "." {
                continue;
            }
            if name == ".." {
                if walk.trail.pop().is_none() {
                    return Err(roots.outside("symlink target", &walk.root.real.join("..").join(join(&walk.todo))));
                }
                continue;
            }
            let here = walk.here();
            let name = self.exact_name(here.as_fd(), name, asked)?;
            let meta = match os::meta(here.as_fd(), &name) {
                Ok(meta) => meta,
                Err(Errno::NOENT) => return walk.missing(name, in_link, asked),
                Err(error) => return Err(io_fault(error, "open", &asked.to_string_lossy())),
            };
            match meta.kind {
                Kind::Link if last == Last::Keep && walk.todo.is_empty() => {
                    return Ok(walk.place(here, name, meta));
                }
                Kind::Link if walk.jumped => walk.restart(below),
                Kind::Link => self.follow(roots, &mut walk, &here, &name, asked)?,
                Kind::Dir => match os::open_dir(here.as_fd(), &name) {
                    Ok(handle) => walk.trail.push((Arc::new(handle), name)),
                    // It was a directory before: retry.
                    Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => walk.retry(name, asked)?,
                    Err(error) => return Err(io_fault(error, "open", &asked.to_string_lossy())),
                },
                _ if walk.todo.iter().all(|name| name == ".") => {
                    return Ok(walk.place(here, name, meta));
                }
                _ => return Err(io_fault(Errno::NOTDIR, "open", &asked.to_string_lossy())),
            }
        }
        walk.directory(asked)
    }

    /// Prepends the target of a symlink to the remaining path.
    fn follow(
        &self,
        roots: &Roots,
        walk: &mut Walk,
        here: &Arc<OwnedFd>,
        name: &OsStr,
        asked: &Path,
    ) -> Result<(), ToolError> {
        if self.config.follow_symlinks == FollowSymlinks::Never {
            return Err(ToolError::new(format!("Access denied - path passes through a symlink: {}", asked.display()))
                .hint("This server was started with --follow-symlinks=never; use the path of the target itself."));
        }
        walk.links += 1;
        if walk.links > LINKS_MAX {
            return Err(io_fault(Errno::LOOP, "open", &asked.to_string_lossy()));
        }
        let target = match os::read_link(here.as_fd(), name) {
            Ok(target) => PathBuf::from(target),
            // It was a symlink before: retry.
            Err(Errno::INVAL | Errno::NOENT) => return walk.retry(name.to_owned(), asked),
            Err(error) => return Err(io_fault(error, "readlink", &asked.to_string_lossy())),
        };
        let rest = if target.is_absolute() {
            let direct = roots.holding(&target);
            let Some((root, rest)) = direct.or_else(|| roots.holding(&normalize(&target))) else {
                return Err(roots.outside("symlink target", &target));
            };
            walk.root = root;
            walk.trail.clear();
            rest
        } else {
            target
        };
        let names: Vec<OsString> = rest
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some("..".into()),
                _ => None,
            })
            .collect();
        walk.from_link += names.len();
        for name in names.into_iter().rev() {
            walk.todo.push_front(name);
        }
        Ok(())
    }

    /// The name as stored in the directory: the same bytes, or the one name that differs only in Unicode composition.
    /// Two such names are an error, because the path is ambiguous.
    fn exact_name(&self, at: BorrowedFd<'_>, name: OsString, asked: &Path) -> Result<OsString, ToolError> {
        let Some(text) = name.to_str().filter(|text| !text.is_ascii()) else {
            return Ok(name);
        };
        let composed: String = text.nfc().collect();
        if composed.chars().eq(text.nfd()) {
            return Ok(name);
        }
        // In a directory without read permission only the exact spelling works.
        let Ok((_, entries, _)) = os::entries(at, OsStr::new("."), self.config.max_scan) else {
            return Ok(name);
        };
        let same = |entry: &OsStr| entry.to_str().is_some_and(|entry| entry.nfc().eq(composed.chars()));
        let mut found: Vec<OsString> =
            entries.into_iter().map(|(entry, _)| entry).filter(|entry| same(entry)).collect();
        if self.config.allow_odd_names && found.contains(&name) {
            return Ok(name);
        }
        match found.len() {
            0 => Ok(name),
            1 => Ok(found.remove(0)),
            count => Err(ToolError::new(format!(
                "Ambiguous path - {count} names differ only in Unicode composition: {}",
                asked.display()
            ))
            .hint("Rename one of them outside this server, or start it with --allow-odd-names to take names byte for byte.")),
        }
    }

    /// Adds the intersection of `path` and the ceiling to `roots`: the allowed directories in it, or the path itself if
    /// it is in one of them.
    pub(crate) fn narrow(&self, roots: &mut Roots, path: &Path) -> Result<(), String> {
        let given = normalize(path);
        let whole = resolve_symlinks(&given);
        roots.list.extend(self.ceiling.list.iter().filter(|root| root.real.starts_with(&whole)).cloned());
        let place = self.resolve_absolute(&self.ceiling, &given, Last::Follow).map_err(|error| error.to_string())?;
        let real = place.path();
        let handle = match place.meta() {
            Some(Meta { kind: Kind::Dir, .. }) => os::open_dir(place.dir(), place.name()),
            _ => Err(Errno::NOTDIR),
        };
        let handle = handle.map_err(|error| std::io::Error::from(error).to_string())?;
        roots.add(Root { given, real, handle: Arc::new(handle) });
        Ok(())
    }
}

/// A walk in progress.
struct Walk {
    root: Arc<Root>,
    /// The directories entered below the root: handle and name.
    trail: Vec<(Arc<OwnedFd>, OsString)>,
    todo: VecDeque<OsString>,
    /// How many names at the front of `todo` come from a symlink.
    from_link: usize,
    links: usize,
    retries: usize,
    /// Whether the first entry of `trail` stands for several names.
    jumped: bool,
}

impl Walk {
    /// Fills `todo`, or opens the target in one system call if the kernel can guarantee the whole path.
    fn start(&mut self, below: &Path) {
        self.todo = below.components().map(|part| part.as_os_str().to_owned()).collect();
        let plain = below.as_os_str().as_bytes().is_ascii() && self.todo.len() > 2;
        let Some(parent) = below.parent().filter(|_| plain) else {
            return;
        };
        if let Some(handle) = os::open_dir_beneath(self.root.handle.as_fd(), parent) {
            // Only the last handle is needed; the others matter for a symlink with `..`, and then the walk starts again
            // name by name.
            self.trail.push((Arc::new(handle), parent.as_os_str().to_owned()));
            self.todo.drain(..self.todo.len() - 1);
            self.jumped = true;
        }
    }

    /// Restarts the walk, name by name.
    fn restart(&mut self, below: &Path) {
        self.trail.clear();
        self.todo = below.components().map(|part| part.as_os_str().to_owned()).collect();
        self.jumped = false;
    }

    fn here(&self) -> Arc<OwnedFd> {
        Arc::clone(self.trail.last().map_or(&self.root.handle, |(handle, _)| handle))
    }

    fn below(&self) -> PathBuf {
        self.trail.iter().map(|(_, name)| name).collect()
    }

    fn retry(&mut self, name: OsString, asked: &Path) -> Result<(), ToolError> {
        self.retries += 1;
        if self.retries > RETRIES_MAX {
            return Err(ToolError::new(format!(
                "The path keeps changing while it is being opened: {}",
                asked.display()
            ))
            .hint("Another program is replacing a part of it; try again later."));
        }
        self.todo.push_front(name);
        Ok(())
    }

    fn place(self, dir: Arc<OwnedFd>, name: OsString, meta: Meta) -> Place {
        let below = self.below().join(&name);
        Place { root: self.root, dir, name, below, missing: Vec::new(), meta: Some(meta) }
    }

    /// The walk ended at the last directory entered.
    fn directory(mut self, asked: &Path) -> Result<Place, ToolError> {
        let below = self.below();
        let (handle, name) = match self.trail.pop() {
            Some((handle, _)) => (handle, below.file_name().map(OsStr::to_owned)),
            None => (Arc::clone(&self.root.handle), None),
        };
        let meta = os::meta_of(handle.as_fd()).map_err(|error| io_fault(error, "stat", &asked.to_string_lossy()))?;
        // The parent contains the name; for an allowed directory itself, the name is `.`.
        let (dir, name) = match name {
            Some(name) => (self.here(), name),
            None => (handle, OsString::from(".")),
        };
        Ok(Place { root: self.root, dir, name, below, missing: Vec::new(), meta: Some(meta) })
    }

    fn missing(self, name: OsString, in_link: bool, asked: &Path) -> Result<Place, ToolError> {
        if in_link {
            return Err(ToolError::not_found(format!("symlink target missing: {}", asked.display()))
                .hint("The path is a symlink to something that does not exist; use the path of the target itself."));
        }
        let dir = self.here();
        if self.trail.is_empty() && os::meta_of(dir.as_fd()).is_ok_and(|meta| meta.links == 0) {
            return Err(ToolError::not_found(format!(
                "The allowed directory was deleted or replaced since the server started: {}",
                self.root.given.display()
            ))
            .hint("Restart the server to open the current directory."));
        }
        let below = self.below();
        let missing: Vec<OsString> = std::iter::once(name).chain(self.todo.into_iter().filter(|n| n != ".")).collect();
        if missing.iter().any(|name| name == "..") {
            return Err(io_fault(Errno::NOENT, "open", &asked.to_string_lossy()));
        }
        let name = missing.first().cloned().unwrap_or_default();
        Ok(Place { root: self.root, dir, name, below, missing, meta: None })
    }
}

fn join(names: &VecDeque<OsString>) -> PathBuf {
    names.iter().collect()
}

/// Parses a path argument: surrounding quotes and whitespace stripped, `~` expanded.
fn spoken_path(asked: &str, windows_names: bool) -> Result<PathBuf, ToolError> {
    let text = asked.trim();
    let text = text.strip_prefix(['"', '\'']).unwrap_or(text);
    let text = text.strip_suffix(['"', '\'']).unwrap_or(text);
    if text.is_empty() {
        return Err(
            ToolError::new("The path is empty").hint("Pass a file or directory; \".\" is the first allowed directory.")
        );
    }
    if text.contains('\0') {
        return Err(ToolError::new("Access denied - the path contains a NUL character").hint("Remove it."));
    }
    let bytes = text.as_bytes();
    let drive =
        bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'\\' | b'/');
    if !cfg!(windows) && (drive || text.starts_with("\\\\")) {
        return Err(ToolError::new(format!("Access denied - a Windows path on a system that is not Windows: {text}"))
            .hint("Use / between names and a path below a directory that list_allowed_directories lists."));
    }
    if windows_names && let Some(problem) = text.split(['/', '\\']).find_map(windows_name_problem) {
        return Err(ToolError::new(format!("Access denied - {problem}: {text}"))
            .hint("The name has a special meaning on Windows; use another one."));
    }
    Ok(expand_home(text))
}
