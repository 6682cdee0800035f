//! The tools, one per file.

pub(crate) mod add;
pub(crate) mod blame;
pub(crate) mod branch;
pub(crate) mod checkout;
pub(crate) mod cherry_pick;
pub(crate) mod commit;
pub(crate) mod create_branch;
pub(crate) mod diff;
pub(crate) mod fetch;
pub(crate) mod grep;
pub(crate) mod log;
pub(crate) mod merge;
pub(crate) mod pull;
pub(crate) mod push;
pub(crate) mod rebase;
pub(crate) mod reset;
pub(crate) mod show;
pub(crate) mod stash;
pub(crate) mod status;
pub(crate) mod tag;
pub(crate) mod worktree;
