//! Why an operation failed.

use std::borrow::Cow;
use std::fmt;

/// Why a store failed. A lost race, a stale fence or an empty bucket is no error: the operation's result says so.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store cannot be reached, or did not answer in time. Whether a write took effect is unknown; it may be repeated.
    Unavailable,
    /// The disk or the memory of the store is full, or it may not be written. Nothing was written.
    Full,
    /// The caller's mistake: a key, a value or a limit that no store accepts.
    Invalid,
    /// What is stored cannot be read: the file is damaged, or a value does not open with any of the secrets.
    Corrupt,
    /// The store cannot be used as it is configured: a newer schema, a missing secret, an eviction policy.
    Config,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, message: message.into(), source: None }
    }

    /// The error of a store that cannot be reached ([`ErrorKind::Unavailable`]).
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Unavailable, message)
    }

    pub(crate) fn caused_by(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error { source: Some(source.into()), ..self }
    }

    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Full)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().and_then(|source| source.source())
    }
}
