//! Walks for reading: in byte order of the names, without following symlinks. They can stop anywhere; the cursor is the
//! path of the last entry, byte for byte, so a continued walk needs no server state and survives changes in between.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use linchpin_kit::ToolError;
use rustix::io::Errno;

use crate::error::io_fault;
use crate::inner::Inner;
use crate::os::{Kind, entries, open_file};
use crate::page::{ListMore, cursor_after};
use crate::resolve::{Last, Place};
use crate::walk::{DEPTH_MAX, NAMES_MAX};

/// An entry of a walk.
pub(crate) struct Entry<'a> {
    pub(crate) at: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    /// The path relative to the start.
    pub(crate) rest: &'a Path,
    pub(crate) kind: Kind,
    pub(crate) depth: usize,
    /// Whether an earlier page contained it; repeated because following entries may be inside it.
    pub(crate) seen: bool,
}

/// What to do after an entry.
pub(crate) enum Flow {
    /// Continue, and descend if it is a directory.
    Into,
    /// Continue without descending.
    Over,
    /// Stop before it; the cursor points to the previous entry.
    Stop,
}

/// A walk that can stop and continue at a cursor.
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

type Visitor<'a> = dyn FnMut(&Entry<'_>) -> Flow + 'a;

impl<'a> Scan<'a> {
    /// A walk that starts after the entry `after`, a path below `place` that need not exist any more.
    pub(crate) fn new(inner: &'a Inner, place: &Place, after: Option<PathBuf>, gitignore: bool) -> Self {
        let base = place.path();
        let mut scan = Scan {
            inner,
            belows: inner.belows(place),
            after: after.iter().flatten().map(OsStr::to_owned).collect(),
            last: after,
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
        let read = open_file(at, name).is_ok_and(|(file, _)| file.take(1 << 20).read_to_string(&mut text).is_ok());
        let mut builder = GitignoreBuilder::new(directory);
        for line in text.lines() {
            // Git skips invalid lines too.
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
    pub(crate) fn run(&mut self, place: &Place, visit: &mut Visitor<'_>) -> Result<(), ToolError> {
        let on_path = !self.after.is_empty();
        self.directory(place.dir(), place.name(), Path::new(""), 0, on_path, visit)
            .map_err(|error| io_fault(error, "scandir", &place.shown()))
    }

    fn directory(
        &mut self,
        at: BorrowedFd<'_>,
        name: &OsStr,
        rest: &Path,
        depth: usize,
        on_path: bool,
        visit: &mut Visitor<'_>,
    ) -> Result<(), Errno> {
        let (fd, entries, more) = entries(at, name, NAMES_MAX)?;
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
        let last = self.last.as_deref().filter(|_| self.stopped);
        ListMore::cut(last.map(cursor_after), self.skipped)
    }
}
