//! What can go wrong when a host uses skills.

use std::fmt;

/// The error of a host's use of skills. Nothing of a file that was refused is returned.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server does not announce skills, or none at this URI.
    NotOffered(String),
    /// The request failed.
    Request(linchpin_client::Error),
    /// An entry, a list or a file breaks a rule of the specification, or is larger than it may be.
    Invalid(String),
    /// A file is not what the entry says: the URI of the file, and what differs.
    Unverified {
        /// The URI of the file.
        uri: String,
        /// Its digest, its size, or the member of its front matter.
        differs: String,
    },
    /// The file is not one of the skill's. It may be new: then the skill has changed and must be loaded and approved again.
    Unlisted(String),
}

/// The result of a host's use of skills.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotOffered(why) | Error::Invalid(why) => f.write_str(why),
            Error::Request(error) => error.fmt(f),
            Error::Unverified { uri, differs } => {
                write!(f, "{uri} is not what the server's entry says: {differs} differs; it was not loaded")
            }
            Error::Unlisted(uri) => write!(f, "{uri} is not a file of the skill as it was loaded"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Request(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl From<linchpin_client::Error> for Error {
    fn from(error: linchpin_client::Error) -> Error {
        Error::Request(error)
    }
}
