//! Walking through directories by handle.
//!
//! Two walks: [`Scan`] for looking, which can be cut anywhere and continued by a cursor, and [`each_entry`] for acting on a
//! whole directory, which is all or nothing. Neither follows links.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::io::Errno;

use crate::dir::{self, Kind};
use crate::list::ListMore;
use crate::resolve::{Last, Place};
use crate::{FsError, Inner};

/// Names one directory may hold before the rest of them is left out.
pub(crate) const NAMES_MAX: usize = 2_000_000;
/// Directories a walk goes down into each other.
const DEPTH_MAX: usize = 256;
/// An entry met on a walk.
pub(crate) struct Entry<'a> {
    pub(crate) at: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    /// The path below the start.
    pub(crate) rest: &'a Path,
    pub(crate) kind: Kind,
    pub(crate) depth: usize,
    /// Whether an earlier page already had it; it is shown again because what comes next may be inside.
    pub(crate) seen: bool,
}

/// What to do after an entry.
pub(crate) enum Flow {
    /// Go on, into it if it is a directory.
    Into,
    /// Go on, but not into it.
    Over,
    /// Stop before it; the cursor will point to the entry before.
    Stop,
}

/// A walk that can be cut and continued.
pub(crate) struct Scan<'a> {
    inner: &'a Inner,
    base: PathBuf,
    belows: Vec<PathBuf>,
    after: Vec<OsString>,
    left: usize,
    last: Option<PathBuf>,
    stopped: bool,
    skipped: usize,
    ignore: Option<Vec<Gitignore>>,
}

type Look<'a> = dyn FnMut(&Entry<'_>) -> Flow + 'a;

impl<'a> Scan<'a> {
    pub(crate) fn new(inner: &'a Inner, place: &Place, cursor: Option<&str>, gitignore: bool) -> Self {
        let after: Vec<OsString> =
            cursor.unwrap_or("").split('/').filter(|n| !n.is_empty()).map(OsString::from).collect();
        let base = place.path();
        let mut scan = Scan {
            inner,
            belows: inner.belows(place),
            last: (!after.is_empty()).then(|| after.iter().collect()),
            after,
            left: inner.config.max_scan.max(1),
            stopped: false,
            skipped: 0,
            ignore: gitignore.then(Vec::new),
            base,
        };
        if gitignore {
            scan.ignore_above(place);
        }
        scan
    }

    /// Reads the `.gitignore` files between the allowed directory and the start.
    fn ignore_above(&mut self, place: &Place) {
        let steps = place.below().components().count();
        let above: Vec<PathBuf> = self.base.ancestors().skip(1).take(steps).map(Path::to_owned).collect();
        for directory in above.into_iter().rev() {
            let path = directory.join(".gitignore");
            if let Some(Ok(file)) = path.to_str().map(|path| self.inner.resolve(path, Last::Follow)) {
                self.read_ignore(file.dir(), file.name(), &directory);
            }
        }
    }

    fn read_ignore(&mut self, at: BorrowedFd<'_>, name: &OsStr, directory: &Path) -> bool {
        let Some(stack) = &mut self.ignore else {
            return false;
        };
        let mut text = String::new();
        let read = dir::open_file(at, name).is_ok_and(|(file, _)| file.take(1 << 20).read_to_string(&mut text).is_ok());
        let mut builder = GitignoreBuilder::new(directory);
        for line in text.lines() {
            // A line git would not understand is a line git would skip.
            let _ = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(rules) if read => {
                stack.push(rules);
                true
            }
            _ => false,
        }
    }

    fn ignored(&self, rest: &Path, kind: Kind) -> bool {
        let Some(stack) = &self.ignore else {
            return false;
        };
        if rest.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        let path = self.base.join(rest);
        let verdicts = stack.iter().rev().map(|rules| rules.matched(&path, kind == Kind::Dir));
        verdicts.into_iter().find(|verdict| !verdict.is_none()).is_some_and(|verdict| verdict.is_ignore())
    }

    /// Walks everything below `place`.
    pub(crate) fn run(&mut self, place: &Place, visit: &mut Look<'_>) -> Result<(), FsError> {
        let on_path = !self.after.is_empty();
        self.directory(place.dir(), place.name(), Path::new(""), 0, on_path, visit)
            .map_err(|error| FsError::io(error, "scandir", &place.shown()))
    }

    fn directory(
        &mut self,
        at: BorrowedFd<'_>,
        name: &OsStr,
        rest: &Path,
        depth: usize,
        on_path: bool,
        visit: &mut Look<'_>,
    ) -> Result<(), Errno> {
        let (fd, entries, more) = dir::entries(at, name, NAMES_MAX)?;
        self.skipped += usize::from(more);
        let ignoring =
            self.ignore.is_some() && self.read_ignore(fd.as_fd(), OsStr::new(".gitignore"), &self.base.join(rest));
        for (name, kind) in &entries {
            let mark = if on_path { self.after.get(depth) } else { None };
            let order = mark.map_or(Ordering::Greater, |mark| name.as_bytes().cmp(mark.as_bytes()));
            if order == Ordering::Less {
                continue;
            }
            let path = rest.join(name);
            if self.inner.deny.covers(&self.base, &self.belows, &path) || self.ignored(&path, *kind) {
                continue;
            }
            let seen = order == Ordering::Equal;
            if !seen {
                if self.left == 0 {
                    self.stopped = true;
                    break;
                }
                self.left -= 1;
            }
            let flow = visit(&Entry { at: fd.as_fd(), name, rest: &path, kind: *kind, depth, seen });
            if let Flow::Stop = flow {
                self.stopped = true;
                break;
            }
            if !seen {
                self.last = Some(path.clone());
            }
            if *kind == Kind::Dir && matches!(flow, Flow::Into) {
                let still = seen && self.after.len() > depth + 1;
                let gone =
                    depth + 1 >= DEPTH_MAX || self.directory(fd.as_fd(), name, &path, depth + 1, still, visit).is_err();
                self.skipped += usize::from(gone);
            }
            if self.stopped {
                break;
            }
        }
        if ignoring && let Some(stack) = &mut self.ignore {
            stack.pop();
        }
        Ok(())
    }

    pub(crate) fn more(&self) -> ListMore {
        let last = self.last.as_ref().map(|path| path.to_string_lossy().into_owned());
        ListMore::cut(self.stopped.then_some(last).flatten(), self.skipped)
    }
}

/// Globs in the published dialect: `*` and `?` stay within a name, `**` does not, `{a,b}` and `[a-z]` work, names that
/// begin with a dot are like any other, `!` in front turns the pattern round.
#[derive(Default)]
pub(crate) struct Patterns {
    list: Vec<(GlobMatcher, bool)>,
}

impl Patterns {
    pub(crate) fn of<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, FsError> {
        let mut this = Self::default();
        for pattern in patterns {
            this.add(pattern)?;
        }
        Ok(this)
    }

    pub(crate) fn add(&mut self, pattern: &str) -> Result<(), FsError> {
        if ["!(", "+(", "@(", "?(", "*("].iter().any(|group| pattern.contains(group)) {
            return Err(FsError::new(format!("Pattern groups such as !(…) or +(…) are not supported: {pattern}"))
                .hint("Use {a,b} for alternatives, and excludePatterns for what should be left out."));
        }
        let body = pattern.trim_start_matches('!');
        let negated = (pattern.len() - body.len()) % 2 == 1;
        let body = body.strip_prefix("./").unwrap_or(body);
        let glob = GlobBuilder::new(body).literal_separator(true).build().map_err(|error| {
            FsError::new(format!("Cannot read the pattern {pattern}: {}", error.kind()))
                .hint("Use *, **, ?, [a-z] and {a,b}.")
        })?;
        self.list.push((glob.compile_matcher(), negated));
        Ok(())
    }

    pub(crate) fn matches(&self, rest: &Path) -> bool {
        self.list.iter().any(|(glob, negated)| glob.is_match(rest) != *negated)
    }
}

/// Called with the directory, the name, the path below the start and the kind.
pub(crate) type Visit<'a> = dyn FnMut(BorrowedFd<'_>, &OsStr, &Path, Kind) -> Result<(), Stop> + 'a;

/// Why a recursive operation ended early.
pub(crate) enum Stop {
    /// Do not go into this directory.
    Prune,
    /// A deny pattern covers an entry.
    Denied,
    /// More entries or levels than one operation handles.
    TooMuch,
    /// The system refused.
    System(Errno),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl Stop {
    pub(crate) fn words(self, place: &Place) -> FsError {
        match self {
            Self::System(error) => FsError::io(error, "open", &place.shown()),
            _ => FsError::new(format!("Too many entries or levels for one operation: {}", place.shown()))
                .hint("Act on its subdirectories one by one."),
        }
    }
}

/// Visits everything below a directory, parents before children, without following links, at most `most` entries.
/// [`Stop::Prune`] from the visitor leaves out what is in that directory.
pub(crate) fn each_entry(place: &Place, most: usize, visit: &mut Visit<'_>) -> Result<(), Stop> {
    let mut left = most;
    each_below(place.dir(), place.name(), Path::new(""), 0, &mut left, visit)
}

fn each_below(
    at: BorrowedFd<'_>,
    name: &OsStr,
    rest: &Path,
    depth: usize,
    left: &mut usize,
    visit: &mut Visit<'_>,
) -> Result<(), Stop> {
    if depth > DEPTH_MAX {
        return Err(Stop::TooMuch);
    }
    let (fd, entries, more) = dir::entries(at, name, *left)?;
    if more {
        return Err(Stop::TooMuch);
    }
    *left -= entries.len();
    for (name, kind) in entries {
        let path = rest.join(&name);
        match visit(fd.as_fd(), &name, &path, kind) {
            Err(Stop::Prune) => continue,
            result => result?,
        }
        if kind == Kind::Dir {
            each_below(fd.as_fd(), &name, &path, depth + 1, left, visit)?;
        }
    }
    Ok(())
}

/// Removes everything in a directory, deepest first, while `left` entries last.
pub(crate) fn empty(at: BorrowedFd<'_>, name: &OsStr, depth: usize, left: &mut usize) -> Result<(), Errno> {
    let (fd, entries, more) = dir::entries(at, name, *left)?;
    if more || depth > DEPTH_MAX {
        return Err(Errno::OVERFLOW);
    }
    *left -= entries.len();
    for (name, kind) in entries {
        if kind == Kind::Dir {
            empty(fd.as_fd(), &name, depth + 1, left)?;
        }
        dir::remove(fd.as_fd(), &name, kind)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_follow_the_published_dialect() {
        for (pattern, path, expected) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "d/a.txt", false),
            ("**/*.txt", "a.txt", true),
            ("**/*.txt", "d/e/a.txt", true),
            ("d/**", "d", false),
            ("d/**", "d/e/f", true),
            ("*", ".hid", true),
            ("{a,b}.rs", "b.rs", true),
            ("[ab].rs", "c.rs", false),
            ("!*.rs", "a.txt", true),
            ("!*.rs", "a.rs", false),
            ("./a.rs", "a.rs", true),
            ("?.rs", "a.rs", true),
        ] {
            let patterns = Patterns::of([pattern]).expect("a readable pattern");
            assert_eq!(patterns.matches(Path::new(path)), expected, "{pattern} on {path}");
        }
        assert!(Patterns::of(["!(a)"]).is_err_and(|error| error.to_string().contains("{a,b}")));
    }
}
