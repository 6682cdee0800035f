//! The revisions of the protocol, by date.
//!
//! Only the names live here. Questions such as "does this revision have sessions?" belong to `linchpin-core`, so that
//! every such decision is made in one place.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// A published revision of the protocol. Revisions are ordered from the oldest to the newest.
///
/// # Example
///
/// ```
/// use linchpin_types::version::Revision;
///
/// assert_eq!("2026-07-28".parse(), Ok(Revision::V2026_07_28));
/// assert!(Revision::V2024_11_05 < Revision::V2025_11_25);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(non_camel_case_types, reason = "the names are dates, as the specification writes them")]
#[non_exhaustive]
pub enum Revision {
    /// `2024-11-05`, the first one.
    V2024_11_05,
    /// `2025-03-26`: Streamable HTTP, audio, tool annotations, batches.
    V2025_03_26,
    /// `2025-06-18`: elicitation, structured content, resource links, titles; batches are gone.
    V2025_06_18,
    /// `2025-11-25`: icons, URL elicitation, tools in sampling, tasks.
    V2025_11_25,
    /// `2026-07-28`: stateless requests, `server/discover`, input requests inside results.
    V2026_07_28,
}

impl Revision {
    /// All revisions, from the oldest to the newest.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    /// The newest revision that this crate supports.
    pub const LATEST: Revision = Revision::V2026_07_28;

    /// The date of the revision, as it is serialized.
    pub const fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision with exactly this date, or `None` for any other text. Surrounding white space is not
    /// ignored.
    pub fn parse(text: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Revision::parse(text).ok_or(UnknownRevision { _private: () })
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The error when a text is not the date of a known [`Revision`].
///
/// # Example
///
/// ```
/// use linchpin_types::version::{Revision, UnknownRevision};
///
/// let error: UnknownRevision = "2023-01-01".parse::<Revision>().unwrap_err();
/// assert!(error.to_string().starts_with("unknown protocol version; known are 2024-11-05,"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownRevision {
    _private: (),
}

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol version; known are")?;
        for (at, revision) in Revision::ALL.into_iter().enumerate() {
            write!(f, "{} {revision}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownRevision {}
