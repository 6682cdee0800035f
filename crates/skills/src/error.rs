//! Errors of a host that uses skills.

use std::fmt;

/// The error of listing, loading and verifying skills. It never contains content of a rejected file.
///
/// # Example
///
/// ```
/// use linchpin::skills::{Error, LoadedSkill, RemoteSkill};
///
/// async fn load(skill: &RemoteSkill) -> Option<LoadedSkill> {
///     match skill.load().await {
///         Ok(loaded) => Some(loaded),
///         Err(Error::Unverified { uri, differs }) => {
///             eprintln!("{uri} has been changed: {differs} differs");
///             None
///         }
///         Err(error) => {
///             eprintln!("cannot load the skill: {error}");
///             None
///         }
///     }
/// }
/// # let error = Error::Unlisted("skill://refunds/more.md".to_owned());
/// # assert!(error.to_string().starts_with("skill://refunds/more.md is not a file of the skill"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server does not announce skills, or has no skill with this URI.
    NotOffered(String),
    /// The request failed.
    Request(linchpin_client::Error),
    /// An entry, a list or a file violates the specification, or is too large.
    Invalid(String),
    /// A file does not match the entry of its skill.
    Unverified {
        /// The URI of the file.
        uri: String,
        /// What differs: the digest, the size, or the name of a front matter member.
        differs: String,
    },
    /// The file is not part of the loaded skill. If it is new, the skill has changed and must be loaded and approved
    /// again.
    Unlisted(String),
}

/// The result of listing, loading and verifying skills.
///
/// # Example
///
/// ```
/// use linchpin::skills::{LoadedSkill, Result};
///
/// async fn read_all(skill: &LoadedSkill) -> Result<usize> {
///     let mut bytes = 0;
///     for path in skill.files() {
///         bytes += skill.file(&path).await?.len();
///     }
///     Ok(bytes)
/// }
/// ```
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
