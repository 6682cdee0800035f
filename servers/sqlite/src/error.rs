//! SQLite's errors as tool errors: this server's description, then SQLite's message as a detail.
//!
//! The message may quote anything in the database: the text of a trigger, an expression, a name, a value.

use linchpin_kit::{ErrorKind, ToolError};
use rusqlite::{ErrorCode, ffi};

use crate::call;
use crate::open::authorizer::Policy;
use crate::open::{GuardedConnection, vfs};
use crate::statement::several_statements;

const LIMITED: ErrorKind = ErrorKind::Limited { retry_after: None };
const UPSTREAM: ErrorKind = ErrorKind::Upstream { status: None };

impl GuardedConnection {
    /// The tool error for an error of the statement that runs on this connection.
    pub(crate) fn error(&self, error: rusqlite::Error) -> ToolError {
        let (code, message) = match error {
            rusqlite::Error::SqliteFailure(error, message) => (error, message),
            rusqlite::Error::SqlInputError { error, msg, .. } => (error, Some(msg)),
            rusqlite::Error::MultipleStatement => return several_statements(),
            _ => {
                return ToolError::new("Database error: a value or name in the database cannot be decoded")
                    .kind(UPSTREAM);
            }
        };
        if let Some(refused) = vfs::error(code.extended_code) {
            return refused;
        }
        let known = ffi::code_to_str(code.extended_code);
        let detail = message.filter(|message| message != known).unwrap_or_default();
        let refused = self.authorizer.refused().filter(|_| self.authorizer.policy() != Policy::Nothing);
        if let Some(refusal) = refused {
            return ToolError::denied("Database error: not authorized").hint(refusal.advice()).detail(detail);
        }
        explained(code, known).detail(detail)
    }
}

/// Describes an error code of SQLite and how to fix its cause.
fn explained(code: ffi::Error, known: &str) -> ToolError {
    let (what, kind, hint) = match code.code {
        ErrorCode::OperationInterrupted => return call::interrupted(),
        ErrorCode::ConstraintViolation => return constraint(code.extended_code),
        ErrorCode::AuthorizationForStatementDenied => {
            ("not authorized", ErrorKind::Denied, "This kind of statement is not allowed.")
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (
            "database is locked",
            ErrorKind::Conflict,
            "Another program has locked the database. Nothing was changed; try again later.",
        ),
        ErrorCode::TooBig => (
            "string or blob too big",
            LIMITED,
            "A value, a row or the query exceeds the limits of this server: a value has at most 1 MiB where functions are \
             called, otherwise 64 MiB. Process parts: substr(column, 1, 1000).",
        ),
        ErrorCode::OutOfMemory => {
            ("out of memory", LIMITED, "The statement exceeds the memory limit. Sort or group fewer rows.")
        }
        ErrorCode::ReadOnly => {
            ("the database is read-only", ErrorKind::Denied, "It cannot be written to. Nothing was changed.")
        }
        ErrorCode::NotADatabase => {
            ("file is not a database", UPSTREAM, "The file is not a SQLite database, or it is encrypted.")
        }
        ErrorCode::DatabaseCorrupt => {
            ("database disk image is malformed", UPSTREAM, "The file is damaged; PRAGMA integrity_check tells more.")
        }
        ErrorCode::DiskFull => ("database or disk is full", LIMITED, "Nothing was changed."),
        ErrorCode::Unknown => (
            "the statement failed",
            ErrorKind::Invalid,
            "sqlite_schema lists tables and columns, PRAGMA function_list the functions; extensions cannot be loaded. \
             String literals need single quotes; preferably pass them in params.",
        ),
        _ => return ToolError::new(format!("Database error: {known}")).kind(UPSTREAM),
    };
    ToolError::new(format!("Database error: {what}")).kind(kind).hint(hint)
}

/// The kind of constraint that failed.
fn constraint(extended: i32) -> ToolError {
    let (what, kind, hint) = match extended {
        // The commit hook refused, because the call was over.
        ffi::SQLITE_CONSTRAINT_COMMITHOOK => return call::interrupted(),
        ffi::SQLITE_CONSTRAINT_CHECK => {
            ("CHECK constraint failed", ErrorKind::Invalid, "sqlite_schema shows the constraints of the table.")
        }
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => (
            "UNIQUE constraint failed",
            ErrorKind::Conflict,
            "Such a row already exists; sqlite_schema shows what must be unique.",
        ),
        ffi::SQLITE_CONSTRAINT_NOTNULL => {
            ("NOT NULL constraint failed", ErrorKind::Invalid, "Provide a value for the column.")
        }
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => (
            "FOREIGN KEY constraint failed",
            ErrorKind::Conflict,
            "The referenced row is missing, or other rows reference this one.",
        ),
        ffi::SQLITE_CONSTRAINT_DATATYPE => (
            "a value does not have the type of its column",
            ErrorKind::Invalid,
            "The table is STRICT; describe_table lists the types.",
        ),
        ffi::SQLITE_CONSTRAINT_TRIGGER => {
            ("a trigger aborted the statement", ErrorKind::Invalid, "sqlite_schema lists the triggers.")
        }
        _ => ("constraint failed", ErrorKind::Invalid, "sqlite_schema shows the constraints of the table."),
    };
    ToolError::new(format!("Database error: {what}")).kind(kind).hint(format!("Nothing was changed. {hint}"))
}
