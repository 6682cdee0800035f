//! A file system MCP server confined to the directories it was given.
//!
//! Drop-in for the published `server-filesystem`: the same fourteen tools with the same arguments, texts, structured
//! content and annotations, plus additional tools that all start with `fs_`. The confinement is different: each allowed
//! directory is held open as a handle from the start, every path is walked from that handle one component at a time
//! without letting the kernel follow a symlink, and every operation then acts on a handle and a single name. There is no
//! time between check and use in which a replaced symlink could lead outside.
//!
//! This crate contains the path rules, the confinement and the tools. It must not depend on transports, protocol
//! revisions or command lines. [`Filesystem`] is the state; its methods are the tools. Blocking work runs on the
//! runtime's blocking pool, so a slow disk delays only one call.
//!
//! Unix only for now: on other systems the crate is empty, because the handle operations in `dir.rs` exist only for
//! Unix.
#![cfg(unix)]

mod config;
mod dir;
mod edit;
mod list;
mod read;
mod resolve;
mod text;
mod tools;
mod write;

use std::sync::Arc;

use linchpin_kit::{ErrorKind, ToolError, root_path};
use schemars::JsonSchema;
use serde::Serialize;

pub use config::{Config, FollowSymlinks, ROOTS};
pub use edit::{Edit, EditFile, EditMore, EditReport};
pub use linchpin_kit::RootsPolicy;
pub use list::{
    DirectoryTree, FsGlob, FsSearchContent, ListDirectory, ListDirectoryWithSizes, ListMore, SearchFiles, SortBy,
};
pub use read::{
    FsReadRange, GetFileInfo, ListAllowedDirectories, MediaAnswer, MediaBlock, MediaResource, RangeMore, ReadFile,
    ReadMediaFile, ReadMore, ReadMultipleFiles, ResourceBody, ResourceData,
};
pub use tools::SERVICE;
pub use write::{CopyMore, CreateDirectory, FsAppend, FsCopy, FsDelete, MoveFile, WriteFile};

use resolve::Roots;

/// The state of the server: the open directories and the configuration. Cloning shares both.
#[derive(Clone, Debug)]
pub struct Filesystem {
    pub(crate) inner: Arc<Inner>,
}

/// The state of a call, for the blocking part of the tools.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    pub(crate) config: Arc<Config>,
    pub(crate) deny: Arc<config::Deny>,
    /// The configured directories; never changes.
    pub(crate) ceiling: Arc<Roots>,
    /// The allowed directories; differs from `ceiling` only if a client's roots apply.
    pub(crate) roots: Arc<Roots>,
    pub(crate) turns: Arc<write::Turns>,
}

impl Filesystem {
    /// Opens the configured directories.
    ///
    /// Directories that cannot be opened are skipped, with one warning line each in the returned list (print them to
    /// stderr). Without any directory, every tool returns an error that says how to configure one.
    ///
    /// # Errors
    /// When directories were given and none of them can be opened, or a deny pattern is invalid.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), ToolError> {
        let deny = config::Deny::new(&config.deny)?;
        let mut warnings = Vec::new();
        let mut roots = Roots::default();
        for given in &config.directories {
            match roots.add_ambient(&resolve::expand_home(given)) {
                Ok(()) => {}
                Err(why) => warnings.push(format!("Warning: Cannot access directory {given}, skipping: {why}")),
            }
        }
        if roots.is_empty() && !config.directories.is_empty() {
            return Err(ToolError::new("Error: None of the specified directories are accessible")
                .hint(format!("Name at least one existing, readable directory. {}", warnings.join("; "))));
        }
        let ceiling = Arc::new(roots);
        let inner = Inner {
            config: Arc::new(config),
            deny: Arc::new(deny),
            roots: Arc::clone(&ceiling),
            ceiling,
            turns: Arc::default(),
        };
        Ok((Self { inner: Arc::new(inner) }, warnings))
    }

    /// The configuration this server was opened with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Whether any directory is allowed.
    #[must_use]
    pub fn has_directories(&self) -> bool {
        !self.inner.roots.is_empty()
    }

    /// The roots policy: the configured one, or the default.
    #[must_use]
    pub fn roots_policy(&self) -> RootsPolicy {
        self.inner.config.roots.unwrap_or(RootsPolicy::Ignore)
    }

    /// This server as restricted to a client with these roots (`file://` URIs or plain paths), by the configured
    /// [`RootsPolicy`], see [`Config::roots`]. Other clients are not affected.
    ///
    /// # Errors
    /// When opening the roots fails unexpectedly: the access of this client is unknown then.
    pub async fn for_roots(&self, roots: Vec<String>) -> Result<Self, ToolError> {
        let policy = self.roots_policy();
        if policy == RootsPolicy::Ignore || policy == RootsPolicy::Use && !self.inner.ceiling.is_empty() {
            return Ok(self.clone());
        }
        let roots = self.run(move |inner| Ok(inner.take_roots(policy, &roots))).await?;
        // `Narrow` applies even if nothing is left; `Replace` does not, as in the published server.
        if policy != RootsPolicy::Narrow && roots.is_empty() {
            return Ok(self.clone());
        }
        Ok(Self { inner: Arc::new(Inner { roots: Arc::new(roots), ..Inner::clone(&self.inner) }) })
    }

    /// Runs a tool's work on the runtime's blocking pool.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Inner) -> Result<T, ToolError> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(answer) => answer,
            Err(_) => Err(ToolError::new("The operation stopped unexpectedly.")
                .hint("The result is unknown; check the file's state with get_file_info before trying again.")),
        }
    }
}

impl Inner {
    fn take_roots(&self, policy: RootsPolicy, offered: &[String]) -> Roots {
        let mut roots = Roots::default();
        for root in offered {
            // The published server expands `~` too.
            let home = || Some(resolve::expand_home(root)).filter(|path| path.is_absolute());
            let Some(path) = root_path(root).or_else(home) else { continue };
            // Roots come from the client: those that cannot be opened are skipped, as in the published server.
            let _ = match policy {
                RootsPolicy::Narrow => self.narrow(&mut roots, &path),
                _ => roots.add_ambient(&path),
            };
        }
        roots
    }
}

/// The result of a text tool: `content` is both the text block and `structuredContent.content`; `more` adds fields that
/// the published server does not have, and may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer<M> {
    /// The text, exactly as in the text block.
    pub content: String,
    /// Additional structured content.
    #[serde(flatten)]
    pub more: M,
    /// A second text block for clients that only read text: what was omitted and how to get it.
    #[serde(skip)]
    pub notice: Option<String>,
}

impl<M> Answer<M> {
    pub(crate) fn new(content: impl Into<String>, more: M) -> Self {
        Self { content: content.into(), more, notice: None }
    }
}

/// No additional structured content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoMore {}

/// The error of a failed system call in the format of the published server: `CODE: text, call 'path'`.
pub(crate) fn io_fault(error: rustix::io::Errno, call: &str, path: &str) -> ToolError {
    use rustix::io::Errno;
    let (code, text, hint) = errno_words(error);
    let fault = ToolError::new(format!("{code}: {text}, {call} '{path}'"));
    let kind = match error {
        Errno::NOENT | Errno::NOTDIR => Some(ErrorKind::NotFound),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Some(ErrorKind::Denied),
        Errno::EXIST | Errno::NOTEMPTY => Some(ErrorKind::Conflict),
        Errno::ISDIR | Errno::NAMETOOLONG | Errno::INVAL => Some(ErrorKind::Invalid),
        Errno::NOSPC | Errno::DQUOT => Some(ErrorKind::Limited { retry_after: None }),
        _ => None,
    };
    let fault = match kind {
        Some(kind) => fault.kind(kind),
        None => fault,
    };
    hint.map_or(fault.clone(), |hint| fault.hint(hint))
}

/// The symbolic name, message and hint for an error number.
fn errno_words(error: rustix::io::Errno) -> (String, String, Option<&'static str>) {
    use rustix::io::Errno;
    let known = match error {
        Errno::NOENT => (
            "ENOENT",
            "no such file or directory",
            Some("Check the spelling with list_directory on the parent, or create the parent with create_directory."),
        ),
        Errno::EXIST => ("EEXIST", "file already exists", Some("Choose another name, or move the existing file.")),
        Errno::ISDIR => ("EISDIR", "illegal operation on a directory", Some("Use list_directory to list its content.")),
        Errno::NOTDIR => ("ENOTDIR", "not a directory", Some("A parent in this path is a file, not a directory.")),
        Errno::ACCESS => {
            ("EACCES", "permission denied", Some("The user that the server runs as lacks the permission."))
        }
        Errno::PERM => {
            ("EPERM", "operation not permitted", Some("The operating system or the file system does not permit this."))
        }
        Errno::ROFS => ("EROFS", "read-only file system", Some("This directory is mounted read-only.")),
        Errno::NOSPC => ("ENOSPC", "no space left on device", Some("Free some space first; nothing was changed.")),
        Errno::LOOP => ("ELOOP", "too many symbolic links encountered", Some("The symlinks form a cycle.")),
        Errno::NAMETOOLONG => ("ENAMETOOLONG", "name too long", Some("Use a shorter name.")),
        Errno::NOTEMPTY => ("ENOTEMPTY", "directory not empty", Some("Pass recursive to delete its content too.")),
        Errno::XDEV => ("EXDEV", "cross-device link not permitted", Some("Copy with fs_copy instead.")),
        Errno::MFILE | Errno::NFILE => ("EMFILE", "too many open files", Some("Try again in a moment.")),
        Errno::INVAL => ("EINVAL", "invalid argument", None),
        Errno::BUSY => {
            ("EBUSY", "resource busy or locked", Some("It is a mount point or in use; nothing was changed."))
        }
        other => {
            let text = std::io::Error::from(other).to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
            return (format!("E{}", other.raw_os_error()), text, None);
        }
    };
    (known.0.to_owned(), known.1.to_owned(), known.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also while a client's roots are looked at: it is refused then, and does not get what is configured.
    #[tokio::test]
    async fn work_that_panics_is_a_refusal() {
        let (fs, _) = Filesystem::open(Config::default()).expect("no directory is fine");
        let refused = fs.run(|_| -> Result<Roots, ToolError> { panic!("on purpose") }).await;
        assert!(refused.is_err_and(|fault| fault.message().contains("stopped unexpectedly")));
    }
}
