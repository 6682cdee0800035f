//! Git repositories as an MCP server, with hooks, filters and other repository-supplied programs disabled.
//!
//! Drop-in for the published `mcp-server-git`: the same twelve tools with the same arguments and texts, and more. The
//! installed git program does the work, because users compare with its behaviour. Before every call the parts of the
//! repository are resolved and must be inside the allowed directories (`place`), its configuration is read without
//! running anything and every program it names is disabled (`guard`), and git runs with a fixed environment, a
//! deadline and limits (`exec`).
//!
//! Revisions are checked by a few rules here and then resolved by `git rev-parse --verify`; after that only object ids
//! are passed as arguments. A library such as gix was considered and rejected: it would add some eighty crates for what
//! one more short process does with git's own rules.

// This crate must not depend on transports, protocol revisions or command lines.
//
// Files import downwards, in this order:
//
// ```text
// tools
// joined  remote
// compare  sequence
// repo
// config  guard
// error  place
// exec  page  parse
// ```

mod compare;
mod config;
mod error;
mod exec;
mod guard;
mod joined;
mod page;
mod parse;
mod place;
mod remote;
mod repo;
mod sequence;
mod tools;

pub use config::{Config, ROOTS};
pub use linchpin_kit::RootsPolicy;
pub use repo::Git;

use linchpin::Server;
use linchpin_kit::{Service, ToolError, ToolSet};
use tools::{
    add, blame, branch, checkout, cherry_pick, commit, create_branch, diff, fetch, grep, log, merge, pull, push,
    rebase, reset, show, stash, status, tag, worktree,
};

/// The tools, the published twelve first.
pub const SERVICE: Service = Service {
    name: "git",
    tools: &[
        status::STATUS,
        diff::DIFF_UNSTAGED,
        diff::DIFF_STAGED,
        diff::DIFF,
        commit::COMMIT,
        add::ADD,
        reset::RESET,
        log::LOG,
        create_branch::CREATE_BRANCH,
        checkout::CHECKOUT,
        show::SHOW,
        branch::BRANCH,
        blame::BLAME,
        grep::GREP,
        tag::TAG,
        stash::STASH,
        merge::MERGE,
        rebase::REBASE,
        cherry_pick::CHERRY_PICK,
        worktree::WORKTREE,
        fetch::FETCH,
        pull::PULL,
        push::PUSH,
    ],
};

impl Git {
    /// Registers the enabled tools on a server.
    ///
    /// # Errors
    /// When the configuration names unknown tools or tool sets.
    pub fn add_to<S: Send + Sync + 'static>(self, server: Server<S>) -> Result<Server<Self>, ToolError> {
        let choice = self.config().tools.clone();
        let instructions = self.instructions();
        Ok(ToolSet::open(server.state(self), &SERVICE, &choice)?
            .instructions(instructions)
            .tool(&status::STATUS, status::status)
            .tool(&diff::DIFF_UNSTAGED, diff::diff_unstaged)
            .tool(&diff::DIFF_STAGED, diff::diff_staged)
            .tool(&diff::DIFF, diff::diff)
            .tool(&commit::COMMIT, commit::commit)
            .tool(&add::ADD, add::add)
            .tool(&reset::RESET, reset::reset)
            .tool(&log::LOG, log::log)
            .tool(&create_branch::CREATE_BRANCH, create_branch::create_branch)
            .tool(&checkout::CHECKOUT, checkout::checkout)
            .tool(&show::SHOW, show::show)
            .tool(&branch::BRANCH, branch::branch)
            .tool(&blame::BLAME, blame::blame)
            .tool(&grep::GREP, grep::grep)
            .tool(&tag::TAG, tag::tag)
            .tool(&stash::STASH, stash::stash)
            .tool(&merge::MERGE, merge::merge)
            .tool(&rebase::REBASE, rebase::rebase)
            .tool(&cherry_pick::CHERRY_PICK, cherry_pick::cherry_pick)
            .tool(&worktree::WORKTREE, worktree::worktree)
            .tool(&fetch::FETCH, fetch::fetch)
            .tool(&pull::PULL, pull::pull)
            .tool(&push::PUSH, push::push)
            .close())
    }
}
