//! Progress notifications of a running request.

use serde::{Deserialize, Serialize};

use crate::jsonrpc::ProgressToken;
use crate::meta::Meta;
use crate::setters::setters;

/// The parameters of `notifications/progress`.
///
/// # Example
///
/// ```
/// use linchpin_types::progress::ProgressNotificationParams;
///
/// let params = ProgressNotificationParams::new("upload-1", 3.0).with_total(10.0).with_message("3 of 10 files");
/// assert_eq!(
///     serde_json::to_string(&params).unwrap(),
///     r#"{"progressToken":"upload-1","progress":3,"total":10,"message":"3 of 10 files"}"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressNotificationParams {
    /// The token from the request.
    pub progress_token: ProgressToken,
    /// The progress so far, which must increase with each notification. Whole numbers are serialized as integers.
    #[serde(serialize_with = "write_number")]
    pub progress: f64,
    /// The total, if it is known. Whole numbers are serialized as integers.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "write_number_if_any")]
    pub total: Option<f64>,
    /// A description of the progress for users (2025-03-26 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressNotificationParams {
    /// Creates the parameters for the request with this token and its progress so far.
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        let progress_token = progress_token.into();
        ProgressNotificationParams { progress_token, progress, total: None, message: None, meta: None }
    }
}

setters!(ProgressNotificationParams {
    /// Sets the total.
    with_total = some total: f64;
    /// Sets the description of the progress for users (2025-03-26 and later).
    with_message = some message: String;
    /// Sets `_meta`.
    with_meta = meta meta;
});

/// Counting in whole steps is the common case, and `3` is what every peer reads as three.
fn write_number<S: serde::Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // Up to 2^53 every whole float is exactly one integer.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

fn write_number_if_any<S: serde::Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => write_number(number, serializer),
        None => serializer.serialize_none(),
    }
}
