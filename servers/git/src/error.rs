//! Errors of failed git commands: what failed, how to fix it, and git's own message.

use crate::exec::output::Done;

use linchpin_kit::{ErrorKind, ToolError};

/// The error of a failed command.
pub(crate) fn failure(done: &Done) -> ToolError {
    let what = done.what.display();
    let fault = ToolError::new(match done.code {
        Some(code) => format!("git {what} failed with exit code {code}"),
        None => format!("git {what} was terminated by a signal"),
    });
    let complaint = done.complaint();
    let fault = match HINTS.iter().find(|(words, ..)| complaint.contains(words)) {
        Some((_, kind, hint)) => fault.kind(*kind).hint(*hint),
        None => fault.kind(UPSTREAM),
    };
    fault.detail(done.message())
}

/// The error for a repository with missing or corrupt objects. `words` is git's message.
pub(crate) fn damaged(words: &str) -> ToolError {
    ToolError::new("The repository is damaged: the commit of HEAD cannot be read")
        .kind(UPSTREAM)
        .hint(DAMAGED)
        .detail(words)
}

/// Whether git's message means that a revision does not exist.
pub(crate) fn is_absent(said: &str) -> bool {
    let ways = ["only has", "log for", "upstream", "no such branch", "ambiguous", "previous checkouts", "bad revision"];
    ways.iter().any(|words| said.contains(words))
}

/// Git itself failed.
pub(crate) const UPSTREAM: ErrorKind = ErrorKind::Upstream { status: None };

const DAMAGED: &str = "Objects or refs are missing or corrupt: git fsck lists them. Do not commit; restore it from a copy or a \
     remote first.";

const OTHERS_REPOSITORY: &str = "The repository belongs to another user. The operator can trust it with \
     git config --global --add safe.directory DIR.";

/// The hint if a file cannot be read or written.
pub(crate) const NO_RIGHTS: &str =
    "The user that the server runs as lacks the permission. The operator can change the owner or mode.";

const LOCKED: &str = "Another git process is running there, or a killed one left its lock file behind. Try again in a moment. If it \
     stays and no git is running, the operator can remove that file.";

const NO_LOGIN: &str = "The user that the server runs as has no valid credentials there. GIT_ASKPASS, an ssh agent or a \
     credential helper of the user's configuration can provide them.";

const UNRESOLVED: &str = "Resolve the conflicts, git_add the files, then continue.";

/// Common error messages of git, and how to fix the cause.
const HINTS: &[(&str, ErrorKind, &str)] = &[
    (
        "tell me who you are",
        ErrorKind::Invalid,
        "Set user.name and user.email in the user's git configuration, or the GIT_AUTHOR_* and GIT_COMMITTER_* variables.",
    ),
    (
        "unable to auto-detect email",
        ErrorKind::Invalid,
        "Set user.name and user.email in the user's git configuration.",
    ),
    (
        "untracked working tree files would be overwritten",
        ErrorKind::Conflict,
        "Move these files away, or git_add and git_commit them.",
    ),
    ("would be overwritten", ErrorKind::Conflict, "Commit the changes of these files first."),
    (
        "is now empty",
        ErrorKind::Conflict,
        "git_cherry_pick with action skip continues without it, with abort ends the cherry-pick.",
    ),
    (
        "no -m option was given",
        ErrorKind::Invalid,
        "Pass mainline: 1 picks the changes that the merge made to its first parent.",
    ),
    (
        "did not match any file",
        ErrorKind::NotFound,
        "git_status lists changed files; paths are relative to the top level.",
    ),
    ("ignored by one of your .gitignore", ErrorKind::Invalid, "Ignored files are not staged."),
    ("dubious ownership", ErrorKind::Denied, OTHERS_REPOSITORY),
    // The message of git 2.36.
    ("unsafe repository", ErrorKind::Denied, OTHERS_REPOSITORY),
    (".lock': File exists", ErrorKind::Conflict, LOCKED),
    ("could not lock config file", ErrorKind::Conflict, LOCKED),
    ("unmerged files", ErrorKind::Conflict, UNRESOLVED),
    ("is not possible because you have unmerged", ErrorKind::Conflict, UNRESOLVED),
    ("Authentication failed", ErrorKind::Denied, NO_LOGIN),
    ("could not read Username", ErrorKind::Denied, NO_LOGIN),
    (
        "Permission denied (",
        ErrorKind::Denied,
        "The remote denied access; an ssh agent must provide an authorized key.",
    ),
    ("insufficient permission", ErrorKind::Denied, NO_RIGHTS),
    ("Permission denied", ErrorKind::Denied, NO_RIGHTS),
    ("Read-only file system", ErrorKind::Denied, "The repository is on a read-only file system."),
    ("No space left", ErrorKind::Limited { retry_after: None }, "Free disk space first."),
    (
        "transport 'file' not allowed",
        ErrorKind::Denied,
        "A remote on this machine must be inside the allowed repositories.",
    ),
    ("bad object HEAD", UPSTREAM, DAMAGED),
    ("appears to be broken", UPSTREAM, DAMAGED),
    ("is corrupt", UPSTREAM, DAMAGED),
];
