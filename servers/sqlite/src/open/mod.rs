//! Opens the database with everything that confines a connection: the authorizer, limits and settings, and the VFS.

pub(crate) mod authorizer;
mod limits;
pub(crate) mod place;
pub(crate) mod vfs;

use authorizer::{Authorizer, Policy};
use linchpin_kit::{ErrorKind, ToolError};
use place::{Place, check_kind};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Opens connections.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    pub(crate) place: Place,
    /// The database path as given by the operator; empty for an in-memory database.
    pub(crate) named: String,
    /// The whole server is read-only, so the file is opened read-only.
    pub(crate) read_only: bool,
    /// This connection is read-only (`query_only`), even if others write.
    pub(crate) only_reads: bool,
    /// Whether a missing file is created.
    pub(crate) create: bool,
    /// Whether it was created; shared by all connections.
    pub(crate) made: Arc<AtomicBool>,
    /// Whether its creation is logged: it comes later than the warnings at start.
    pub(crate) logs: bool,
    pub(crate) foreign_keys: bool,
}

/// A connection with its authorizer. Stays on one thread.
#[derive(Debug)]
pub(crate) struct GuardedConnection {
    pub(crate) conn: Connection,
    pub(crate) authorizer: Arc<Authorizer>,
    /// The file name that `PRAGMA database_list` shows.
    pub(crate) named: String,
    /// The identity of the open file, to notice when it is replaced.
    pub(crate) identity: Option<(u64, u64)>,
}

impl Opener {
    /// Opens a connection that can do only what [`Authorizer::set`] allows.
    pub(crate) fn open(&self) -> Result<GuardedConnection, ToolError> {
        let access = match (self.read_only, self.create && !self.only_reads) {
            (true, _) => OpenFlags::SQLITE_OPEN_READ_ONLY,
            (false, true) => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            (false, false) => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        self.make()?;
        let conn = match &self.place {
            Place::Memory => Connection::open_in_memory_with_flags(
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )
            .map_err(|_| unopened())?,
            Place::File(path) => connect(path, access)?,
        };
        let authorizer = Arc::new(Authorizer::new());
        self.secure(&conn, &authorizer)
            .map_err(|error| ToolError::new(format!("Database error: the connection could not be secured: {error}")))?;
        Ok(GuardedConnection { conn, authorizer, named: self.named.clone(), identity: self.identity() })
    }

    /// Creates a missing file and its directories if configured, once, whichever connection comes first.
    fn make(&self) -> Result<(), ToolError> {
        let Place::File(path) = &self.place else { return Ok(()) };
        if check_kind(path)? || !self.create || self.read_only || self.made.load(Ordering::Acquire) {
            self.made.store(true, Ordering::Release);
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| ToolError::new(format!("{} cannot be created: {}", parent.display(), error.kind())))?;
        }
        connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        if !self.made.swap(true, Ordering::AcqRel) && self.logs {
            tracing::warn!("{}", created(path));
        }
        Ok(())
    }

    /// Whether the path now leads to another file than the open one.
    pub(crate) fn has_moved(&self, conn: &GuardedConnection) -> bool {
        conn.identity.is_some() && self.identity() != conn.identity
    }

    #[cfg(unix)]
    fn identity(&self) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let Place::File(path) = &self.place else { return None };
        std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
    }

    #[cfg(not(unix))]
    fn identity(&self) -> Option<(u64, u64)> {
        None
    }
}

/// Says that the file was missing, for the operator, who may have mistyped its name.
pub(crate) fn created(path: &Path) -> String {
    format!("{} did not exist and was created, empty", path.display())
}

/// A connection to a file through [`vfs`].
fn connect(path: &Path, access: OpenFlags) -> Result<Connection, ToolError> {
    if path.as_os_str().len() > vfs::PATH_BYTES_MAX {
        return Err(ToolError::new(format!("The path of the database is longer than {} bytes", vfs::PATH_BYTES_MAX))
            .hint("Move it, or use a symlink to it."));
    }
    let vfs = vfs::name().ok_or_else(unopened)?;
    // Only one thread uses the connection, so SQLite need not lock it.
    Connection::open_with_flags_and_vfs(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX, vfs).map_err(|_| unopened())
}

fn unopened() -> ToolError {
    ToolError::new("Database error: unable to open database file")
        .kind(ErrorKind::Upstream { status: None })
        .hint("The file is missing, or the server lacks the permission to open it. The operator must check it.")
}

impl GuardedConnection {
    /// Resets the connection for the next call.
    pub(crate) fn clear(&self) {
        if !self.conn.is_autocommit() {
            self.authorizer.set(Policy::Transaction);
            // Fails only if SQLite has rolled back already.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        self.authorizer.set(Policy::Nothing);
    }
}
