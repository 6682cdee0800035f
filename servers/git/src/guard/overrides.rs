//! The tables: what is set for every run, and what answers a name that a repository's own configuration holds.
//!
//! Each row that keeps a program from running has a test of its own (`tests/it/markers.rs`).

/// Whether a name has a middle part.
pub(crate) enum Sub {
    Any,
    None,
    Either,
}

/// Set for every run unless the repository's configuration is trusted: nothing runs by itself.
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
    // With more than one, git reads parts of the index from where the index says they are.
    ("index.threads", "1"),
    // Larger files are compared by their ids only, and never held whole to be packed.
    ("core.bigFileThreshold", "32m"),
];

/// Set for every run: the shape of what is read, and what we write.
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

/// Set unless signing was asked for.
pub(crate) const UNSIGNED: &[(&str, &str)] = &[
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("tag.forceSignAnnotated", "false"),
    ("push.gpgSign", "false"),
];

/// What answers a name that a repository's own configuration holds. Names are as git lists them: section and key in
/// lower case. A merge driver becomes one that reports a conflict; with an empty one, git would take "ours" for merged.
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
    // Of these two git heeds the first value, which is the repository's: the flags of fetch and push decide, and that
    // nothing is fetched by the way (`GIT_NO_LAZY_FETCH`). Here they are named, for advice.
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

/// What a repository's own configuration may not raise: processes and threads (the limit on memory is one for each
/// process), memory, and what is compared with what.
/// The values are git's own or smaller; the user's configuration keeps its say where the repository has none. The last
/// lines are for a file whose times the repository could otherwise have taken for those of one outside.
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

/// Sections whose keys can be why something failed when they are not heeded, and what git says then, in lower case.
pub(crate) const CAUSES: &[(&str, &[&str])] = &[
    ("filter", &["filter"]),
    ("lfs", &["filter", "lfs"]),
    ("merge", &["merge driver"]),
    ("gpg", &["gpg", "sign"]),
    ("core", &["askpass", "could not read username", "could not read password", "permission denied", "ssh"]),
    ("credential", &["authentication failed", "could not read username", "could not read password"]),
    ("submodule", &["submodule"]),
];

/// What decides where traffic goes and what is believed there.
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

/// Strategies that are part of git. Another name would be looked up as a program.
pub(crate) const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Sections of what the tools use of git, and how the keys in them end that name files: `blame.ignoreRevsFile`,
/// `core.attributesFile`, `core.excludesFile`, `diff.orderFile`, `fsck.skipList`, `fetch.fsck.skipList`,
/// `receive.fsck.skipList`, `gpg.ssh.allowedSignersFile`, `gpg.ssh.revocationFile`, `mailmap.file`. Those of `http` are
/// below `NETWORK`; `commit.template` is not read, because every commit brings its message.
pub(crate) const FILE_SECTIONS: &str = "am apply attr blame branch checkout cherry commit core diff fetch fsck gc gpg grep index log \
     mailmap merge notes pack pull push rebase receive rerere show stash status submodule tag transfer uploadpack user \
     worktree";

pub(crate) const FILE_ENDS: &[&str] = &["file", "skiplist"];

/// Sections that a repository does not heed while it serves as a remote.
pub(crate) const CLIENT_ONLY: &[&str] =
    &["remote", "branch", "pull", "push", "credential", "submodule", "lfs", "sequence"];
