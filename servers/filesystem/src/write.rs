//! Tools that write: each acts on an open directory and a single name in it.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check_new_name;
use crate::dir::{self, Kind, Stop, Temp};
use crate::read::open_failed;
use crate::resolve::{Last, Place};
use crate::{Answer, Inner, NoMore, io_fault};
use linchpin_kit::ToolError;

/// Arguments of `write_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct WriteFile {
    /// The file to create or replace.
    pub path: String,
    /// The complete new content.
    pub content: String,
}

/// Arguments of `create_directory`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CreateDirectory {
    /// The directory to create.
    pub path: String,
}

/// Arguments of `move_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct MoveFile {
    /// The file or directory to move.
    pub source: String,
    /// The new path; must not exist.
    pub destination: String,
}

/// Arguments of `fs_append`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct FsAppend {
    /// The file to append to; created if missing.
    pub path: String,
    /// The text to append, unchanged.
    pub content: String,
}

/// Arguments of `fs_copy`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct FsCopy {
    /// The file or directory to copy.
    pub source: String,
    /// The destination; its directory must exist.
    pub destination: String,
    /// Replace an existing file (never a directory)
    #[serde(default)]
    pub overwrite: bool,
    /// Copy a directory and everything in it
    #[serde(default)]
    pub recursive: bool,
}

/// Arguments of `fs_delete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct FsDelete {
    /// The file, symlink or directory to delete; for a symlink, the link itself, not its target.
    pub path: String,
    /// Delete a directory and everything in it
    #[serde(default)]
    pub recursive: bool,
}

/// Additional structured content of `fs_copy`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CopyMore {
    /// Files copied.
    pub files: u64,
    /// Entries skipped: symlinks, special files and denied paths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Serializes changes to the same file, so that concurrent calls do not undo each other's work. Files may share a lock
/// by hash; no call waits for anything else while it holds one.
#[derive(Debug, Default)]
pub(crate) struct Turns([Mutex<()>; 32]);

impl Turns {
    /// Locks this place.
    pub(crate) fn take(&self, place: &Place) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        place.path().hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % 32).unwrap_or(0);
        // The lock guards no data, so it cannot be poisoned in a harmful way.
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    pub(crate) fn write_file(&self, args: &WriteFile) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let failed = |error| io_fault(error, "open", &place.shown());
        let _turn = self.turns.take(&place);
        if let Some(meta) = place.meta() {
            self.replaceable(&place, meta.kind)?;
            replace_with(&place, args.content.as_bytes())?;
        } else {
            let [name] = place.missing() else {
                return Err(failed(Errno::NOENT));
            };
            check_new_name(name, self.config.allow_odd_names)?;
            let mut temp = Temp::create(place.dir(), name, false).map_err(failed)?;
            temp.write(args.content.as_bytes()).map_err(failed)?;
            match temp.place_new() {
                // The file was created meanwhile: replace it.
                Err(Errno::EXIST) => replace_with(&place, args.content.as_bytes())?,
                result => result.map_err(failed)?,
            }
        }
        Ok(Answer::new(format!("Successfully wrote to {}", args.path), NoMore {}))
    }

    /// Refuses to replace anything but a regular file.
    fn replaceable(&self, place: &Place, kind: Kind) -> Result<(), ToolError> {
        match kind {
            Kind::File => Ok(()),
            Kind::Dir => Err(io_fault(Errno::ISDIR, "open", &place.shown())),
            Kind::Link | Kind::Other => Err(open_failed(&dir::OpenError::Special, place, "open")),
        }
    }

    pub(crate) fn create_directory(&self, args: &CreateDirectory) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let failed = |error| io_fault(error, "mkdir", &place.shown());
        if place.meta().is_some_and(|meta| meta.kind != Kind::Dir) {
            return Err(failed(Errno::EXIST));
        }
        for name in place.missing() {
            check_new_name(name, self.config.allow_odd_names)?;
        }
        let mut made: Option<OwnedFd> = None;
        for name in place.missing() {
            let at = made.as_ref().map_or(place.dir(), |fd| fd.as_fd());
            match dir::make_dir(at, name) {
                // Another process may create the same directories concurrently.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            made = Some(dir::open_dir(at, name).map_err(|error| match error {
                Errno::NOTDIR | Errno::LOOP => failed(Errno::EXIST),
                other => failed(other),
            })?);
        }
        Ok(Answer::new(format!("Successfully created directory {}", args.path), NoMore {}))
    }

    pub(crate) fn move_file(&self, args: &MoveFile) -> Result<Answer<NoMore>, ToolError> {
        let source = self.resolve(&args.source, Last::Follow)?;
        let Some(meta) = source.meta().copied() else {
            let both = format!("{}' -> '{}", source.shown(), self.resolve(&args.destination, Last::Follow)?.shown());
            return Err(io_fault(Errno::NOENT, "rename", &both));
        };
        if source.is_root() {
            return Err(ToolError::new(format!("An allowed directory itself cannot be moved: {}", args.source)));
        }
        if meta.kind == Kind::Dir {
            self.refuse_hidden_content(&source, "move")?;
        }
        let target = self.new_place(&args.destination)?;
        let shown = (source.shown(), target.shown());
        let failed = |error| {
            let words = io_fault(error, "rename", &format!("{}' -> '{}", shown.0, shown.1));
            match error {
                Errno::EXIST => already_exists(&args.destination),
                Errno::XDEV => words.hint("Copy the directory with fs_copy, then delete the source with fs_delete."),
                _ => words,
            }
        };
        match dir::rename_new(source.dir(), source.name(), target.dir(), target.name()) {
            Err(Errno::XDEV) if meta.kind == Kind::File => {
                copy_file(&source, target.dir(), target.name(), false)
                    .map_err(|error| open_failed(&error, &source, "rename"))?;
                dir::remove(source.dir(), source.name(), Kind::File).map_err(failed)?;
            }
            result => result.map_err(failed)?,
        }
        Ok(Answer::new(format!("Successfully moved {} to {}", args.source, args.destination), NoMore {}))
    }

    /// Resolves a destination: it must not exist, its directory must.
    fn new_place(&self, destination: &str) -> Result<Place, ToolError> {
        let target = self.resolve(destination, Last::Follow)?;
        if target.meta().is_some() {
            return Err(already_exists(destination));
        }
        let [name] = target.missing() else {
            return Err(io_fault(Errno::NOENT, "open", &target.shown()));
        };
        check_new_name(name, self.config.allow_odd_names)?;
        Ok(target)
    }

    /// Refuses to move or delete a directory that contains a denied entry: after a move the pattern might no longer
    /// match, and deleting it would delete the entry.
    fn refuse_hidden_content(&self, place: &Place, what: &str) -> Result<(), ToolError> {
        if self.deny.is_empty() {
            return Ok(());
        }
        let (base, belows) = (place.path(), self.belows(place));
        let mut visit = |_: BorrowedFd<'_>, _: &OsStr, rest: &Path, _: Kind| {
            if self.deny.covers(&base, &belows, rest) { Err(Stop::Denied) } else { Ok(()) }
        };
        match dir::each_entry(place, self.config.max_scan, &mut visit) {
            Ok(()) => Ok(()),
            Err(Stop::Denied) => Err(ToolError::new(format!(
                "Access denied - cannot {what} a directory that contains something excluded by a deny pattern: {}",
                place.shown()
            ))
            .hint("Handle the other entries one by one.")),
            Err(stop) => Err(stop.words(place)),
        }
    }

    pub(crate) fn append(&self, args: &FsAppend) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        if place.missing().len() > 1 {
            return Err(io_fault(Errno::NOENT, "open", &place.shown()));
        }
        if let [name] = place.missing() {
            check_new_name(name, self.config.allow_odd_names)?;
        }
        let _turn = self.turns.take(&place);
        let (mut file, meta) =
            dir::open_append(place.dir(), place.name(), true).map_err(|error| open_failed(&error, &place, "open"))?;
        if meta.links > 1 {
            return Err(ToolError::new(format!("The file has {} names (hard links): {}", meta.links, place.shown()))
                .hint("Appending would change the file under its other names too, which may be outside. Use write_file or edit_file, which replace only this name."));
        }
        let failed = |error: std::io::Error| {
            io_fault(Errno::from_io_error(&error).unwrap_or(Errno::IO), "write", &place.shown())
        };
        file.write_all(args.content.as_bytes()).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        Ok(Answer::new(format!("Successfully appended to {}", args.path), NoMore {}))
    }

    pub(crate) fn copy(&self, args: &FsCopy) -> Result<Answer<CopyMore>, ToolError> {
        let source = self.resolve(&args.source, Last::Follow)?;
        let kind = source.existing("open")?.kind;
        let mut more = CopyMore::default();
        if kind == Kind::Dir {
            if !args.recursive {
                return Err(ToolError::new(format!("{} is a directory", args.source))
                    .hint("Pass recursive to copy a directory and everything in it."));
            }
            let target = self.new_place(&args.destination)?;
            if target.path().starts_with(source.path()) {
                return Err(
                    ToolError::new("A directory cannot be copied into itself").hint("Choose another destination.")
                );
            }
            self.copy_tree(&source, &target, &mut more)?;
        } else {
            let target = if args.overwrite {
                let target = self.resolve(&args.destination, Last::Follow)?;
                match target.meta() {
                    Some(meta) => {
                        self.replaceable(&target, meta.kind)?;
                        target
                    }
                    None => self.new_place(&args.destination)?,
                }
            } else {
                self.new_place(&args.destination)?
            };
            copy_file(&source, target.dir(), target.name(), target.meta().is_some()).map_err(|error| match error {
                dir::OpenError::System(Errno::EXIST) => already_exists(&args.destination),
                error => open_failed(&error, &source, "copy"),
            })?;
            more.files = 1;
        }
        Ok(Answer::new(format!("Successfully copied {} to {}", args.source, args.destination), more))
    }

    fn copy_tree(&self, source: &Place, target: &Place, more: &mut CopyMore) -> Result<(), ToolError> {
        let (base, belows) = (source.path(), self.belows(source));
        let (target_base, target_belows) = (target.path(), self.belows(target));
        // The created parent directories of the current entry, outermost first.
        let mut made: Vec<(PathBuf, Arc<OwnedFd>)> = Vec::new();
        let new_dir = |at: BorrowedFd<'_>, name: &OsStr| dir::make_dir(at, name).and_then(|()| dir::open_dir(at, name));
        let top = new_dir(target.dir(), target.name()).map_err(|error| io_fault(error, "mkdir", &target.shown()))?;
        made.push((PathBuf::new(), Arc::new(top)));
        let mut visit = |at: BorrowedFd<'_>, name: &OsStr, rest: &Path, kind: Kind| -> Result<(), Stop> {
            let denied = self.deny.covers(&base, &belows, rest) || self.deny.covers(&target_base, &target_belows, rest);
            if denied || matches!(kind, Kind::Link | Kind::Other) {
                more.skipped += 1;
                return if kind == Kind::Dir { Err(Stop::Prune) } else { Ok(()) };
            }
            let parent = rest.parent().unwrap_or(Path::new(""));
            while made.len() > 1 && made.last().is_some_and(|(path, _)| path != parent) {
                made.pop();
            }
            let into = made.last().map_or_else(|| target.dir(), |(_, fd)| fd.as_fd());
            if kind == Kind::Dir {
                let fd = new_dir(into, name)?;
                made.push((rest.to_owned(), Arc::new(fd)));
            } else {
                copy_between(at, name, into, name, false).map_err(|error| match error {
                    dir::OpenError::System(error) => Stop::System(error),
                    dir::OpenError::Special => Stop::System(Errno::INVAL),
                })?;
                more.files += 1;
            }
            Ok(())
        };
        let done = dir::each_entry(source, self.config.max_scan, &mut visit);
        done.map_err(|stop| {
            let words = stop.words(source);
            let text = format!("{} (after {} files)", words.message(), more.files);
            ToolError::new(text)
                .hint(format!("The copied files are in {}; choose a new destination to try again.", target.shown()))
        })
    }

    pub(crate) fn delete(&self, args: &FsDelete) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Keep)?;
        let kind = place.existing("unlink")?.kind;
        if place.is_root() {
            return Err(ToolError::new(format!("An allowed directory itself cannot be deleted: {}", args.path)));
        }
        if kind == Kind::Dir && args.recursive {
            self.refuse_hidden_content(&place, "delete")?;
            self.delete_content(&place)?;
        }
        let call = if kind == Kind::Dir { "rmdir" } else { "unlink" };
        dir::remove(place.dir(), place.name(), kind).map_err(|error| io_fault(error, call, &place.shown()))?;
        Ok(Answer::new(format!("Successfully deleted {}", args.path), NoMore {}))
    }

    /// Deletes the content of a directory, deepest first.
    fn delete_content(&self, place: &Place) -> Result<(), ToolError> {
        let mut left = self.config.max_scan;
        let shown = place.shown();
        dir::empty(place.dir(), place.name(), 0, &mut left).map_err(|error| {
            io_fault(error, "unlink", &shown)
                .hint("Part of the directory may already be deleted; list it before trying again.")
        })
    }
}

/// Replaces an existing file with these bytes; sets the mode as a write would leave it.
fn replace_with(place: &Place, bytes: &[u8]) -> Result<(), ToolError> {
    let failed = |error| io_fault(error, "open", &place.shown());
    let mut temp = Temp::create(place.dir(), place.name(), true).map_err(failed)?;
    temp.write(bytes).map_err(failed)?;
    match dir::open_file(place.dir(), place.name()) {
        Ok((old, meta)) => temp.dress_as(&old, &meta).map_err(failed)?,
        // Writable but not readable: only the mode can be kept.
        Err(dir::OpenError::System(Errno::ACCESS)) => {
            let meta = dir::meta(place.dir(), place.name()).map_err(failed)?;
            temp.set_mode(dir::mode_after_write(meta.mode)).map_err(failed)?;
        }
        Err(error) => return Err(open_failed(&error, place, "open")),
    }
    temp.replace().map_err(failed)
}

fn copy_file(source: &Place, at: BorrowedFd<'_>, name: &OsStr, replace: bool) -> Result<(), dir::OpenError> {
    copy_between(source.dir(), source.name(), at, name, replace)
}

/// Copies the content and mode of one regular file.
fn copy_between(
    from: BorrowedFd<'_>,
    old: &OsStr,
    to: BorrowedFd<'_>,
    new: &OsStr,
    replace: bool,
) -> Result<(), dir::OpenError> {
    let (mut file, meta) = dir::open_file(from, old)?;
    let mut temp = Temp::create(to, new, true)?;
    std::io::copy(&mut file, temp.file()).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    // Set-ID bits apply to this file only, not to copies.
    temp.set_mode(meta.mode & 0o777)?;
    if replace {
        temp.replace()?
    } else {
        temp.place_new()?
    }
    Ok(())
}

fn already_exists(destination: &str) -> ToolError {
    ToolError::new(format!("Destination already exists: {destination}"))
        .hint("Choose another destination, or move the existing file first.")
}
