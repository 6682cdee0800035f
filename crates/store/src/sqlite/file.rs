//! The file: opening it, its tables, and what its errors mean.

use crate::error::{Error, ErrorKind};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an operation waits for another process that writes.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// The version of the tables below.
const SCHEMA: i64 = 1;

/// What marks a file as ours: `Lncp`.
const APPLICATION: i64 = 0x4c6e_6370;

/// Larger files are not checked as a whole when they are opened.
const CHECKED_BYTES_MAX: u64 = 64 << 20;

/// Times are microseconds since 1970.
const TABLES: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE kv (key TEXT NOT NULL UNIQUE, rev INTEGER NOT NULL, until INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX kv_until ON kv (until);
CREATE TABLE log (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, fence INTEGER NOT NULL, first INTEGER NOT NULL,
    next INTEGER NOT NULL, until INTEGER NOT NULL);
CREATE INDEX log_until ON log (until);
CREATE TABLE log_entry (log INTEGER NOT NULL REFERENCES log ON DELETE CASCADE, seq INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (log, seq)) WITHOUT ROWID;
CREATE TABLE lease (name TEXT PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE bucket (key TEXT PRIMARY KEY, full_at REAL NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX bucket_until ON bucket (until);
CREATE TABLE topic (name TEXT PRIMARY KEY, version INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
";

/// What makes an operation fail, for every operation of a group.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    kind: ErrorKind,
    text: String,
}

impl Failure {
    pub(super) fn is_busy(&self) -> bool {
        self.kind == ErrorKind::Unavailable
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        let (kind, what) = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (ErrorKind::Unavailable, "another process has locked the database for 5 s")
            }
            Some(ErrorCode::DiskFull) => (ErrorKind::Full, "the disk is full"),
            Some(ErrorCode::ReadOnly) => (ErrorKind::Full, "the database is read-only"),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                (ErrorKind::Corrupt, "the database is damaged; restore a backup, or move it away to start anew")
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                (ErrorKind::Config, "the database cannot be opened")
            }
            _ => (ErrorKind::Unavailable, "the database failed"),
        };
        Failure { kind, text: format!("{what} ({error})") }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::new(failure.kind, failure.text)
    }
}

/// Opens the file, makes it and its tables where there are none, and returns a connection that may write.
pub(super) fn open(path: &Path) -> Result<Connection, Error> {
    let failed = |error: Error| Error::new(error.kind(), format!("the store {}", path.display())).caused_by(error);
    create(path)?;
    let mut writer = connect(path).map_err(|error| failed(Failure::from(error).into()))?;
    prepare(&mut writer, path).map_err(failed)?;
    Ok(writer)
}

/// Makes an empty file that only its owner can read, if there is none.
fn create(path: &Path) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let failed = |error: std::io::Error| {
        let text = format!("the store {} cannot be opened for writing", path.display());
        Error::new(ErrorKind::Config, text).caused_by(error)
    };
    options.open(path).map(drop).map_err(failed)
}

/// One more connection to the file.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

fn prepare(writer: &mut Connection, path: &Path) -> Result<(), Error> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    if bytes > 0 && bytes <= CHECKED_BYTES_MAX {
        let said: String = writer
            .query_row("PRAGMA quick_check(1)", (), |row| row.get(0))
            .map_err(|error| Error::from(Failure::from(error)))?;
        if said != "ok" {
            let text = format!("it is damaged ({said}); restore a backup, or move it away to start anew");
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
    }
    let mode = write_ahead(writer).map_err(Failure::from)?;
    if mode != "wal" {
        let text =
            format!("its file system cannot share it between processes (journal mode `{mode}`); use a local disk");
        return Err(Error::new(ErrorKind::Config, text));
    }
    let set = |name: &str, value: i64| writer.pragma_update(None, name, value).map_err(Failure::from);
    set("journal_size_limit", 64 << 20)?;
    tables(writer)
}

/// Turns the write-ahead log on. This lock is not waited for by SQLite itself.
fn write_ahead(writer: &Connection) -> rusqlite::Result<String> {
    let started = Instant::now();
    loop {
        match writer.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && started.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

fn tables(writer: &mut Connection) -> Result<(), Error> {
    let schema = writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Failure::from)?;
    let number = |sql: &str| schema.query_row(sql, (), |row| row.get::<_, i64>(0)).map_err(Failure::from);
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    match (application, version) {
        (APPLICATION, SCHEMA) => return Ok(()),
        (APPLICATION, newer) if newer > SCHEMA => {
            let text = format!("it was written by a newer version (schema {newer}, this one knows {SCHEMA})");
            return Err(Error::new(ErrorKind::Config, text));
        }
        (0, 0) if number("SELECT count(*) FROM sqlite_master")? == 0 => {}
        _ => return Err(Error::new(ErrorKind::Config, "it is a database of another program")),
    }
    schema.execute_batch(TABLES).map_err(Failure::from)?;
    schema.pragma_update(None, "application_id", APPLICATION).map_err(Failure::from)?;
    schema.pragma_update(None, "user_version", SCHEMA).map_err(Failure::from)?;
    Ok(schema.commit().map_err(Failure::from)?)
}
