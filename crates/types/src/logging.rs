//! Log messages that a server sends to its client.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::Meta;
use crate::read::eq_by_json;
use crate::setters::setters;

/// How grave a log message is: the severities of RFC 5424. Ordered, the gravest is the greatest.
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
    /// For those who look for a bug.
    Debug,
    /// Ordinary events.
    Info,
    /// Ordinary but notable events.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part failed.
    Critical,
    /// Someone must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LoggingLevel {
    /// Every level, least grave first.
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

    /// The word on the wire.
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

    /// The level of this exact word.
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

/// The text is not the name of a level.
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
/// ```
/// use linchpin_types::logging::{LoggingLevel, SetLevelRequestParams};
///
/// let params = SetLevelRequestParams::new(LoggingLevel::Warning);
/// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"level":"warning"}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelRequestParams {
    /// From which level on the client wants messages.
    pub level: LoggingLevel,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SetLevelRequestParams {
    /// Messages from this level on.
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
    /// How grave it is.
    pub level: LoggingLevel,
    /// Which part of the server speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What it says: a string or any other JSON.
    pub data: Box<RawValue>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LoggingMessageNotificationParams {
    /// This text, or any other JSON, at this level.
    pub fn new(level: LoggingLevel, data: Box<RawValue>) -> Self {
        LoggingMessageNotificationParams { level, logger: None, data, meta: None }
    }
}

setters!(LoggingMessageNotificationParams {
    /// Sets the logger.
    with_logger = some logger: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

eq_by_json!(LoggingMessageNotificationParams);
