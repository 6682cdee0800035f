//! The branch of HEAD, read from its files.

use crate::place::Place;
use crate::place::files::{bounded_file, small_file};

/// The branch that is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BranchHead {
    /// Its short name.
    pub(crate) branch: String,
    /// Its commit; `None` before the first one.
    pub(crate) commit: Option<String>,
}

/// The text, if it is a full object id in git's notation.
pub(crate) fn object_id(text: &str) -> Option<&str> {
    let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (matches!(text.len(), 40 | 64) && hex).then_some(text)
}

const PACKED_MAX: u64 = 1024 * 1024;

impl Place {
    /// The branch of HEAD and its commit, in the plain case. `None` leaves the answer to git: a detached HEAD, another
    /// ref storage, anything unusual.
    pub(crate) fn branch_head(&self) -> Option<BranchHead> {
        let head = small_file(&self.git_dir.join("HEAD"), "HEAD").ok()?;
        let full = head.strip_prefix("ref: ")?.strip_suffix('\n')?;
        let branch = full.strip_prefix("refs/heads/")?;
        let plain = |part: &str| !part.is_empty() && !part.starts_with('.');
        if !branch.split('/').all(plain) || branch.contains(char::is_whitespace) {
            return None;
        }
        let commit = match small_file(&self.common.join(full), "branch") {
            Ok(text) => Some(object_id(text.strip_suffix('\n')?)?.to_owned()),
            Err(fault) if fault.is_not_found() => {
                match bounded_file(&self.common.join("packed-refs"), "packed-refs", PACKED_MAX) {
                    Ok(text) => {
                        let packed = |line: &'_ str| line.split_once(' ').is_some_and(|(_, name)| name == full);
                        match text.lines().find(|line| packed(line)) {
                            Some(line) => Some(object_id(line.split(' ').next()?)?.to_owned()),
                            None => None,
                        }
                    }
                    Err(fault) if fault.is_not_found() => None,
                    Err(_) => return None,
                }
            }
            Err(_) => return None,
        };
        Some(BranchHead { branch: branch.to_owned(), commit })
    }
}
