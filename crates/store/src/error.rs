//! Why an operation failed.

use std::borrow::Cow;
use std::fmt;

/// The error of a store operation.
///
/// A lost race, a stale fence or an empty bucket is not an error, but part of the operation's result.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), linchpin_store::Error> {
/// use linchpin_store::{ErrorKind, Store};
///
/// let store = Store::memory();
/// let error = store.kv().get("a key without a space").await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Invalid);
/// assert!(!error.is_transient());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kind of an [`Error`].
///
/// # Example
///
/// ```
/// use linchpin_store::{ErrorKind, Secrets};
///
/// let error = Secrets::parse("not a secret").unwrap_err();
/// match error.kind() {
///     ErrorKind::Unavailable | ErrorKind::Full => println!("try again later: {error}"),
///     ErrorKind::Config => println!("check the configuration: {error}"),
///     kind => println!("{kind:?}: {error}"),
/// }
/// # assert_eq!(error.kind(), ErrorKind::Config);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store cannot be reached, or did not respond in time. It is unknown whether a write took effect; it may be
    /// retried.
    Unavailable,
    /// The disk or the memory of the store is full, or it is read-only. Nothing was written.
    Full,
    /// An argument is invalid: a key, a value or a limit that no store accepts.
    Invalid,
    /// The stored data cannot be read: the file is damaged, or none of the secrets opens a sealed value.
    Corrupt,
    /// The configuration of the store is not usable: for example a newer schema, a missing secret, or an eviction
    /// policy.
    Config,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, message: message.into(), source: None }
    }

    /// Creates an error of the kind [`ErrorKind::Unavailable`], for stores of your own.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Unavailable, message)
    }

    pub(crate) fn caused_by(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error { source: Some(source.into()), ..self }
    }

    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether the same operation may succeed later.
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
