//! What of a server's lists was rejected.

use crate::show::out::note;
use linchpin::client::Refusal;

/// Says what of a list was rejected.
pub(super) fn refused(kind: &str, refused: &[Refusal]) {
    for Refusal { name, why, .. } in refused {
        note(format!("warning: {kind} `{name}` was rejected: {why}"));
    }
}
