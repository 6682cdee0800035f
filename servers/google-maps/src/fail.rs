//! How failures are told: the published server's first words, then what the operator can do.

use linchpin_kit::ErrorKind;
use linchpin_rest::Problems;
use serde_json::Value;

/// Of no row.
pub(crate) const PLAIN: Problems = Problems::PLAIN.message(&["error_message", "error.message"]).failed(failed);

/// The first words of the errors of a row, which uses this API of Google's.
macro_rules! failing {
    ($what:literal, $api:literal) => {
        crate::fail::PLAIN.words(&[
            (400, concat!($what, " failed: Google does not accept the request")),
            (
                403,
                concat!(
                    $what,
                    " failed: the key must be allowed to use the ",
                    $api,
                    ", and its project must have enabled it"
                ),
            ),
            (404, concat!($what, " failed: there is no such place")),
            (429, concat!($what, " failed: the quota is used up")),
            (0, concat!($what, " failed")),
        ])
    };
}
pub(crate) use failing;

/// The old APIs tell failures with a status of success.
fn failed(answer: &Value) -> Option<ErrorKind> {
    match answer["status"].as_str()? {
        "OK" | "ZERO_RESULTS" => None,
        "OVER_QUERY_LIMIT" | "OVER_DAILY_LIMIT" => Some(ErrorKind::Limited { retry_after: None }),
        "REQUEST_DENIED" => Some(ErrorKind::Denied),
        "NOT_FOUND" => Some(ErrorKind::NotFound),
        "INVALID_REQUEST"
        | "MAX_ELEMENTS_EXCEEDED"
        | "MAX_DIMENSIONS_EXCEEDED"
        | "MAX_WAYPOINTS_EXCEEDED"
        | "MAX_ROUTE_LENGTH_EXCEEDED"
        | "DATA_NOT_AVAILABLE" => Some(ErrorKind::Invalid),
        _ => Some(ErrorKind::Upstream { status: None }),
    }
}
