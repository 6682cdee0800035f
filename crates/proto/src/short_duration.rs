//! Durations in logs.

use std::fmt;
use std::time::Duration;

/// A duration as logs show it: whole milliseconds, or microseconds of one shorter than ten milliseconds.
///
/// ```
/// use linchpin_proto::short_duration::ShortDuration;
/// use std::time::Duration;
///
/// assert_eq!(ShortDuration(Duration::from_micros(9_999)).to_string(), "9999µs");
/// assert_eq!(ShortDuration(Duration::from_micros(10_999)).to_string(), "10ms");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ShortDuration(pub Duration);

impl fmt::Display for ShortDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_micros() {
            us @ ..10_000 => write!(f, "{us}µs"),
            us => write!(f, "{}ms", us / 1_000),
        }
    }
}
