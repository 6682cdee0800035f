//! Log messages that a server sends to its client.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::Meta;
use crate::read::eq_by_json;
use crate::setters::setters;

/// The severity of a log message, as in RFC 5424. Levels are ordered: the most severe is the greatest.
///
/// # Example
///
/// ```
/// use linchpin_types::logging::LoggingLevel;
///
/// assert!(LoggingLevel::Error > LoggingLevel::Info);
/// assert_eq!("warning".parse(), Ok(LoggingLevel::Warning));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggingLevel {
    /// Information for debugging.
    Debug,
    /// Ordinary events.
    Info,
    /// Ordinary but notable events.
    Notice,
    /// A condition that may lead to an error.
    Warning,
    /// An error.
    Error,
    /// A component has failed.
    Critical,
    /// Action must be taken immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// All levels, from the least to the most severe.
    pub const ALL: [LoggingLevel; 8] = [
        LoggingLevel::Debug,
        LoggingLevel::Info,
        LoggingLevel::Notice,
        LoggingLevel::Warning,
        LoggingLevel::Error,
        LoggingLevel::Critical,
        LoggingLevel::Alert,
        LoggingLevel::Emergency,
    ];

    /// The name of the level, as it is serialized.
    pub const fn as_str(self) -> &'static str {
        match self {
            LoggingLevel::Debug => "debug",
            LoggingLevel::Info => "info",
            LoggingLevel::Notice => "notice",
            LoggingLevel::Warning => "warning",
            LoggingLevel::Error => "error",
            LoggingLevel::Critical => "critical",
            LoggingLevel::Alert => "alert",
            LoggingLevel::Emergency => "emergency",
        }
    }

    /// Returns the level with exactly this name.
    pub fn parse(text: &str) -> Option<LoggingLevel> {
        LoggingLevel::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LoggingLevel {
    type Err = UnknownLoggingLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        LoggingLevel::parse(text).ok_or(UnknownLoggingLevel { _private: () })
    }
}

/// The error when a text is not the name of a [`LoggingLevel`].
///
/// # Example
///
/// ```
/// use linchpin_types::logging::{LoggingLevel, UnknownLoggingLevel};
///
/// let error: UnknownLoggingLevel = "verbose".parse::<LoggingLevel>().unwrap_err();
/// assert!(error.to_string().starts_with("unknown logging level"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownLoggingLevel {
    _private: (),
}

impl fmt::Display for UnknownLoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown logging level; known are debug, info, notice, warning, error, critical, alert, emergency")
    }
}

impl std::error::Error for UnknownLoggingLevel {}

/// The parameters of `logging/setLevel` (2024-11-05 to 2025-11-25).
///
/// # Example
///
/// ```
/// use linchpin_types::logging::{LoggingLevel, SetLevelRequestParams};
///
/// let params = SetLevelRequestParams::new(LoggingLevel::Warning);
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"level":"warning"}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelRequestParams {
    /// The least severe level that the client wants to receive.
    pub level: LoggingLevel,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SetLevelRequestParams {
    /// Creates the parameters that ask for messages of this level and of more severe ones.
    pub fn new(level: LoggingLevel) -> Self {
        SetLevelRequestParams { level, meta: None }
    }
}

setters!(SetLevelRequestParams {
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// The parameters of `notifications/message`.
///
/// # Example
///
/// ```
/// use linchpin_types::logging::{LoggingLevel, LoggingMessageNotificationParams};
///
/// let data = serde_json::value::to_raw_value("disk nearly full")?;
/// let params = LoggingMessageNotificationParams::new(LoggingLevel::Warning, data).with_logger("storage");
/// assert_eq!(
///     serde_json::to_string(&params)?,
///     r#"{"level":"warning","logger":"storage","data":"disk nearly full"}"#,
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggingMessageNotificationParams {
    /// The severity.
    pub level: LoggingLevel,
    /// The name of the logger, such as a component of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The message: a string or any other JSON value.
    pub data: Box<RawValue>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LoggingMessageNotificationParams {
    /// Creates the parameters of a message at this level. `data` is a string or any other JSON value.
    pub fn new(level: LoggingLevel, data: Box<RawValue>) -> Self {
        LoggingMessageNotificationParams { level, logger: None, data, meta: None }
    }
}

setters!(LoggingMessageNotificationParams {
    /// Sets the name of the logger.
    with_logger = some logger: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

eq_by_json!(LoggingMessageNotificationParams);
