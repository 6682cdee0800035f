//! Why a command failed.

use std::fmt;

/// Why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CdpError {
    /// The browser is gone.
    Closed,
    /// The target is gone: a tab was closed, or it crashed.
    Detached,
    /// The browser did not answer in time.
    Timeout(&'static str),
    /// The answer is longer than what is read.
    TooLarge,
    /// The browser refused it, in its own words.
    Refused(String),
    /// The command cannot be written.
    Invalid(String),
}

impl fmt::Display for CdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CdpError::Closed => f.write_str("the browser has ended"),
            CdpError::Detached => f.write_str("the page was closed"),
            CdpError::Timeout(method) => write!(f, "the browser did not answer {method} in time"),
            CdpError::TooLarge => f.write_str("the browser's answer is too large"),
            CdpError::Refused(why) => f.write_str(why),
            CdpError::Invalid(why) => write!(f, "the command cannot be written: {why}"),
        }
    }
}

impl std::error::Error for CdpError {}
