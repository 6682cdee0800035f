//! Tables of settings: those set for every run, and the overrides for settings in a repository's own configuration.
//!
//! Each row that keeps a program from running has a test of its own (`tests/it/markers.rs`).

/// Whether a name has a middle part (a subsection).
pub(crate) enum Sub {
    Any,
    None,
    Either,
}

/// Set for every run unless the repository's configuration is trusted: nothing runs on its own.
pub(crate) const FIXED: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("diff.external", ""),
    ("core.alternateRefsCommand", "true"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"),
    ("protocol.file.allow", "never"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    // With more threads, git trusts the index about where its parts are.
    ("index.threads", "1"),
    // Larger files are compared by id only, and not read into memory for packing.
    ("core.bigFileThreshold", "32m"),
];

/// Set for every run: the format of git's output, and of our input.
pub(crate) const SHAPES: &[(&str, &str)] = &[
    ("color.ui", "never"),
    ("color.status", "never"),
    ("color.branch", "never"),
    ("color.diff", "never"),
    ("color.grep", "never"),
    ("column.ui", "never"),
    ("column.status", "never"),
    ("column.branch", "never"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("rebase.backend", "merge"),
    ("rebase.updateRefs", "false"),
];

/// Set unless signing is requested.
pub(crate) const UNSIGNED: &[(&str, &str)] = &[
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("tag.forceSignAnnotated", "false"),
    ("push.gpgSign", "false"),
];

/// Overrides for settings in a repository's own configuration. Names are as listed by git: section and key in lower
/// case. A merge driver is replaced by one that reports a conflict; with an empty one, git would take "ours" as merged.
pub(crate) const ANSWERS: &[(&str, Sub, &str, &str)] = &[
    ("core", Sub::None, "fsmonitor", "false"),
    ("core", Sub::None, "hookspath", "/dev/null"),
    ("core", Sub::None, "sshcommand", "ssh"),
    ("core", Sub::None, "gitproxy", "none"),
    ("core", Sub::None, "askpass", ""),
    ("core", Sub::None, "editor", ":"),
    ("core", Sub::None, "pager", "cat"),
    ("core", Sub::None, "alternaterefscommand", "true"),
    ("commit", Sub::None, "template", ""),
    ("core", Sub::None, "protecthfs", "true"),
    ("core", Sub::None, "protectntfs", "true"),
    ("sequence", Sub::None, "editor", ":"),
    ("diff", Sub::None, "external", ""),
    ("diff", Sub::Any, "textconv", ""),
    ("diff", Sub::Any, "command", ""),
    ("filter", Sub::Any, "clean", ""),
    ("filter", Sub::Any, "smudge", ""),
    ("filter", Sub::Any, "process", ""),
    ("merge", Sub::Any, "driver", "false"),
    ("gpg", Sub::None, "program", "gpg"),
    ("gpg", Sub::Any, "program", "gpg"),
    ("gpg", Sub::Any, "defaultkeycommand", ""),
    ("credential", Sub::Either, "helper", ""),
    ("trailer", Sub::Any, "command", "true"),
    ("trailer", Sub::Any, "cmd", "true"),
    ("hook", Sub::Any, "command", "true"),
    ("gc", Sub::None, "recentobjectshook", ""),
    ("interactive", Sub::None, "difffilter", "cat"),
    // For these two git uses the first value, which is the repository's. The flags of fetch and push, and
    // `GIT_NO_LAZY_FETCH`, take precedence; they are listed here for the hints.
    ("remote", Sub::Any, "uploadpack", "git-upload-pack"),
    ("remote", Sub::Any, "receivepack", "git-receive-pack"),
    ("remote", Sub::Any, "vcs", ""),
    ("remote", Sub::Any, "mirror", "false"),
    ("branch", Sub::Any, "mergeoptions", ""),
    ("pull", Sub::None, "twohead", "ort"),
    ("pull", Sub::None, "octopus", "octopus"),
    ("submodule", Sub::Any, "update", "checkout"),
    ("push", Sub::None, "pushoption", ""),
    ("lfs", Sub::Any, "clean", ""),
    ("lfs", Sub::Any, "smudge", ""),
    ("lfs", Sub::Any, "path", ""),
    ("lfs", Sub::Either, "standalonetransferagent", ""),
    ("lfs", Sub::None, "storage", "lfs"),
];

/// Settings that a repository's own configuration may not raise: processes and threads (the memory limit applies to
/// each process), memory, and the effort of comparisons. The values are git's defaults or smaller; the user's
/// configuration applies if the repository does not set them. The last lines keep a file's timestamps from being
/// confused with those of a file outside.
pub(crate) const KNOBS: &[(&str, &str, &str)] = &[
    ("checkout", "workers", "1"),
    ("grep", "threads", "4"),
    ("pack", "threads", "2"),
    ("submodule", "fetchjobs", "1"),
    ("fetch", "parallel", "1"),
    ("http", "maxrequests", "5"),
    ("http", "postbuffer", "1m"),
    ("pack", "window", "10"),
    ("pack", "depth", "50"),
    ("pack", "windowmemory", "256m"),
    ("pack", "deltacachesize", "256m"),
    ("pack", "packsizelimit", "0"),
    ("core", "deltabasecachelimit", "96m"),
    ("core", "maxtreedepth", "2048"),
    ("diff", "renamelimit", "1000"),
    ("merge", "renamelimit", "7000"),
    ("status", "renamelimit", "1000"),
    ("core", "checkstat", "default"),
    ("core", "trustctime", "true"),
];

/// Sections whose overridden settings can cause a failure, and parts of git's message in that case, in lower case.
pub(crate) const CAUSES: &[(&str, &[&str])] = &[
    ("filter", &["filter"]),
    ("lfs", &["filter", "lfs"]),
    ("merge", &["merge driver"]),
    ("gpg", &["gpg", "sign"]),
    ("core", &["askpass", "could not read username", "could not read password", "permission denied", "ssh"]),
    ("credential", &["authentication failed", "could not read username", "could not read password"]),
    ("submodule", &["submodule"]),
];

/// Settings that decide where traffic goes and which hosts are trusted.
pub(crate) const NETWORK: &[(&str, &str)] = &[
    ("http", "proxy"),
    ("http", "sslverify"),
    ("http", "sslcainfo"),
    ("http", "sslcapath"),
    ("http", "sslcert"),
    ("http", "sslkey"),
    ("http", "proxysslcainfo"),
    ("http", "proxysslcert"),
    ("http", "proxysslkey"),
    ("http", "cookiefile"),
    ("http", "savecookies"),
    ("http", "curloptresolve"),
    ("http", "delegation"),
    ("http", "followredirects"),
    ("http", "proactiveauth"),
    ("remote", "proxy"),
    ("fetch", "bundleuri"),
    ("transfer", "bundleuri"),
];

/// Strategies that are part of git. Any other name would be looked up as a program.
pub(crate) const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Sections that the tools' git commands use, and the endings of their keys that name files: `blame.ignoreRevsFile`,
/// `core.attributesFile`, `core.excludesFile`, `diff.orderFile`, `fsck.skipList`, `fetch.fsck.skipList`,
/// `receive.fsck.skipList`, `gpg.ssh.allowedSignersFile`, `gpg.ssh.revocationFile`, `mailmap.file`. Those of `http` are
/// in `NETWORK`; `commit.template` is not read, because every commit has a message.
pub(crate) const FILE_SECTIONS: &str = "am apply attr blame branch checkout cherry commit core diff fetch fsck gc gpg grep index log \
     mailmap merge notes pack pull push rebase receive rerere show stash status submodule tag transfer uploadpack user \
     worktree";

pub(crate) const FILE_ENDS: &[&str] = &["file", "skiplist"];

/// Sections that have no effect in a repository that serves as a remote.
pub(crate) const CLIENT_ONLY: &[&str] =
    &["remote", "branch", "pull", "push", "credential", "submodule", "lfs", "sequence"];
