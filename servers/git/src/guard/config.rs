//! Reads configuration without running anything: file by file, following includes itself.

use crate::exec::output::{Done, Keep, lossy};
use crate::exec::program::{Job, args};
use crate::guard::{Reader, Settings, names_a_file, shown_key};
use crate::place::Place;
use crate::place::bounds::escape;

use linchpin_kit::{ToolError, resolve_symlinks};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

impl Reader<'_> {
    /// The entries of these files and of the files that they include.
    pub(crate) async fn entries(
        self,
        place: &Place,
        files: Vec<PathBuf>,
        worktree: bool,
    ) -> Result<Settings, ToolError> {
        let mut queue: VecDeque<(PathBuf, usize)> = files.into_iter().map(|file| (file, 0)).collect();
        let mut found = Vec::new();
        let mut read = BTreeSet::new();
        while let Some((file, depth)) = queue.pop_front() {
            if depth > INCLUDE_DEPTH_MAX || read.len() > FILES_MAX {
                return Err(ToolError::new("The repository's configuration includes too many files (include.path)"));
            }
            if !read.insert(file.clone()) {
                continue;
            }
            for (name, value) in self.file(&file).await? {
                if name == "include.path" || name.starts_with("includeif.") && name.ends_with(".path") {
                    let (named, included) = self.included(&file, &name, &value)?;
                    // What git checks out may replace a file of the work tree while git runs.
                    let inner = included.starts_with(&place.git_dir) || included.starts_with(&place.common);
                    if worktree && included.starts_with(&place.top) && !inner && !self.trust {
                        return Err(escape(&format!("{} includes a file in the work tree", shown_key(&name))));
                    }
                    queue.push_back((named, depth + 1));
                }
                found.push((name, value));
            }
        }
        Ok(found)
    }

    /// The path of a file that `from` includes: as git names it, which is where its own includes are resolved from, and
    /// with symlinks resolved.
    pub(crate) fn included(self, from: &Path, name: &str, value: &str) -> Result<(PathBuf, PathBuf), ToolError> {
        // `~/…`, `~user/…` and `%(prefix)/…` are resolved by git's rules and never name a place inside.
        let path = match value {
            special if special.starts_with(['~', '%']) && !self.bounds.any => return Err(escape(&shown_key(name))),
            special if special.starts_with("~/") => {
                PathBuf::from(self.program.home().unwrap_or_default()).join(&special[2..])
            }
            special if special.starts_with(['~', '%']) => return Err(escape(&shown_key(name))),
            plain => from.parent().unwrap_or(from).join(plain),
        };
        let resolved = resolve_symlinks(&path);
        if self.bounds.hold(&resolved) { Ok((path, resolved)) } else { Err(escape(&shown_key(name))) }
    }

    /// Refuses a file outside, because its content can appear in git's messages. If every repository is allowed, that
    /// does not mean every file, so the file must be in this repository.
    pub(crate) fn read_file(self, place: &Place, name: &str, value: &str) -> Result<(), ToolError> {
        let path = resolve_symlinks(&place.top.join(value));
        let inside = match self.bounds.any {
            true => path.starts_with(&place.top) || path.starts_with(&place.common),
            false => self.bounds.hold(&path),
        };
        // Git has special forms for a home directory, its installation directory and optional files.
        if inside && !value.starts_with(['~', '%', ':']) {
            return Ok(());
        }
        Err(escape(&shown_key(name))
            .hint("Nothing was run. Remove it from the repository's configuration, or use a file inside."))
    }

    /// The entries of one file, without its includes. None if the file does not exist.
    pub(crate) async fn file(self, path: &Path) -> Result<Settings, ToolError> {
        let at = path.to_owned();
        let content = tokio::task::spawn_blocking(move || content(&at)).await;
        let listing = match content.map_err(|_| unreadable(""))?? {
            Content::None => return Ok(Vec::new()),
            Content::Small(content) => match self.listings.of(&content) {
                Some(known) => known,
                None => {
                    // Git gets exactly the bytes that are the cache key: the file may change in the meantime.
                    let listing = self.list("-".into(), content.clone(), path).await?;
                    self.listings.keep(content, &listing);
                    listing
                }
            },
            Content::Large => self.list(path.as_os_str().to_owned(), Vec::new(), path).await?,
        };
        let records = listing.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        let entry = |record: &[u8]| {
            let mut parts = record.splitn(2, |byte| *byte == b'\n');
            let name = parts.next().unwrap_or_default();
            // A name that is not text could not be overridden.
            let name = std::str::from_utf8(name).map_err(|_| {
                ToolError::new("The repository's configuration contains a name that is not valid UTF-8")
                    .hint("Nothing was run.")
            })?;
            let value = parts.next().unwrap_or_default();
            // The checked path would not be the one that git reads.
            let path = name == "core.worktree" || name.starts_with("include") || names_a_file(name);
            if path && std::str::from_utf8(value).is_err() {
                return Err(ToolError::new(format!(
                    "The repository's configuration contains a path that is not valid UTF-8: {}",
                    shown_key(name)
                ))
                .hint("Nothing was run."));
            }
            Ok((name.to_owned(), lossy(value)))
        };
        records.map(entry).collect()
    }

    /// Runs git to list the configuration file `from`; `-` stands for `input`, the content of `path`.
    pub(crate) async fn list(self, from: OsString, input: Vec<u8>, path: &Path) -> Result<Vec<u8>, ToolError> {
        let mut list = args(&["config", "--no-includes", "--list", "-z", "--file"]);
        list.push(from);
        let done = self.outside(list, input).await?;
        if !done.good() || done.cut {
            // The repository chooses the name of an included file.
            let plain = path.file_name().is_some_and(|name| name == "config" || name == "config.worktree");
            let shown = if plain { format!("file {}", path.display()) } else { "an included file".to_owned() };
            let fault = unreadable(&shown);
            return Err(if done.good() { fault } else { fault.detail(done.message()) });
        }
        Ok(done.out)
    }

    /// Runs git outside of any repository.
    pub(crate) async fn outside(self, list: Vec<OsString>, input: Vec<u8>) -> Result<Done, ToolError> {
        let job = Job {
            dir: Path::new(if cfg!(windows) { "C:\\" } else { "/" }),
            args: list,
            settings: &[],
            vars: vec![("GIT_DIR", OsString::from("/dev/null"))],
            input,
            keep: Keep::Upto(CONFIG_MAX),
            network: false,
            repo_runs: None,
            limit: self.limit,
        };
        self.program.run(job).await
    }
}

/// Cache of git's listings of configuration files, keyed by their whole content, which determines the listing.
#[derive(Default)]
pub(crate) struct Listings(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

/// Configuration can contain passwords, so `Debug` omits it.
impl std::fmt::Debug for Listings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listings").finish_non_exhaustive()
    }
}

impl Listings {
    pub(crate) fn of(&self, content: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(content).cloned()
    }

    pub(crate) fn keep(&self, content: Vec<u8>, listing: &[u8]) {
        if listing.len() > LISTING_MAX {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= LISTINGS_MAX {
            kept.clear();
        }
        kept.insert(content, listing.to_owned());
    }
}

/// The content of a configuration file.
enum Content {
    /// The file does not exist.
    None,
    Small(Vec<u8>),
    /// Too large to be cached.
    Large,
}

fn content(path: &Path) -> Result<Content, ToolError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Content::None),
        _ => {
            return Err(ToolError::new("The repository's configuration is not a regular file").hint("Nothing was run."));
        }
    }
    let file = std::fs::File::open(path).map_err(|error| unreadable(&error.kind().to_string()))?;
    let mut content = Vec::new();
    let read = file.take(CONTENT_MAX + 1).read_to_end(&mut content);
    let read = read.map_err(|error| unreadable(&error.kind().to_string()))?;
    Ok(if read as u64 > CONTENT_MAX { Content::Large } else { Content::Small(content) })
}

fn unreadable(why: &str) -> ToolError {
    ToolError::new(format!("The repository's configuration cannot be read: {why}"))
        .hint("Nothing was run. Check the file .git/config.")
}

const INCLUDE_DEPTH_MAX: usize = 10;

const FILES_MAX: usize = 256;

pub(crate) const CONFIG_MAX: usize = 4 * 1024 * 1024;

const CONTENT_MAX: u64 = 64 * 1024;

const LISTING_MAX: usize = 128 * 1024;

const LISTINGS_MAX: usize = 32;
