//! The error of `Server::serve`.

use linchpin_core::service::ConfigError;
use std::error::Error as StdError;
use std::fmt;
use std::io;

/// The error of [`Server::serve`]. For errors of calls see [`Error`](crate::Error).
///
/// Its `Debug` output is its message, so that `fn main() -> Result<(), ServeError>` prints readable text.
///
/// ```
/// # use linchpin_server::{ServeError, Server};
/// # async fn run(server: Server, place: impl linchpin_core::service::Bind) {
/// match server.serve(place).await {
///     Ok(()) => {}
///     Err(ServeError::Config(wrong)) => wrong.problems().for_each(|problem| eprintln!("- {problem}")),
///     Err(e) => eprintln!("cannot serve: {e}"),
/// }
/// # }
/// ```
///
/// [`Server::serve`]: crate::Server::serve
#[non_exhaustive]
pub enum ServeError {
    /// The configuration of the server is invalid. Nothing was served.
    Config(ConfigError),
    /// The transport failed, for example because the address is in use.
    Io(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Config(error) => error.fmt(f),
            ServeError::Io(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for ServeError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The message is that of the inner error, so the source is the inner error's source.
        match self {
            ServeError::Config(error) => error.source(),
            ServeError::Io(error) => error.source(),
        }
    }
}

impl From<ConfigError> for ServeError {
    fn from(error: ConfigError) -> ServeError {
        ServeError::Config(error)
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> ServeError {
        ServeError::Io(error)
    }
}
