//! What the commands that read and change a store share.

use crate::fail::Failure;
use linchpin::issuer::{Admin, AdminError, Store};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Does something in a store.
pub(super) fn with_store<T>(
    store: &Store,
    does: impl AsyncFnOnce(Admin) -> Result<T, AdminError>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::new)?;
    runtime.block_on(does(Admin::new(store))).map_err(|error| {
        Failure::new(error).hint("is --key-file the one of the authorization server? -v shows the cause")
    })
}

/// How long ago a time in seconds since 1970 was, in words.
pub(super) fn ago(at: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    match now.saturating_sub(at) {
        secs @ 0..=119 => format!("{secs} s ago"),
        secs @ 120..=7_199 => format!("{} min ago", secs / 60),
        secs @ 7_200..=172_799 => format!("{} h ago", secs / 3_600),
        secs => format!("{} days ago", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_largest_unit_that_says_something() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        for (back, text) in [(150, "2 min ago"), (7_300, "2 h ago"), (200_000, "2 days ago")] {
            assert_eq!(ago(now - back), text);
        }
    }
}
