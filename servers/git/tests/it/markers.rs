//! Nothing that a repository's configuration or hooks name ever runs. Every case puts a script into a repository that leaves
//! a mark, shows that the real git alone would run it, and then calls every tool: no mark, except with
//! `--trust-repo-config`. Cases that surely do not get in each other's way share one repository.
#![cfg(unix)]

use crate::common;

use common::{Heard, Session, WHO_ARE_YOU, World, http, on};
use serde_json::json;

/// Traps that are armed together, each with a script of its own: they set different names, and switched off they leave what
/// every tool answers as it is without them. So none of them keeps git from coming to another.
const QUIET: &[&[&str]] = &[
    &[
        "core.fsmonitor",
        "core.hooksPath",
        "diff.external",
        "core.pager",
        "gpg.program",
        "credential.helper",
        "remote.*.uploadpack",
        "hook.*.command",
    ],
    &[
        "diff.*.textconv",
        "core.editor",
        "sequence.editor",
        "gpg.ssh.program",
        "core.askPass",
        "core.gitProxy",
        "remote.*.receivepack",
        "alias",
    ],
    &[
        "diff.*.command",
        "diff.a=b.textconv",
        "gpg.ssh.defaultKeyCommand",
        "core.sshCommand",
        "trailer.*.command",
        "interactive.diffFilter",
        "uploadpack.packObjectsHook",
        "gc.recentObjectsHook",
    ],
    &["merge.verifySignatures", "submodule.*.update", "core.alternateRefsCommand"],
    &["branch.*.mergeOptions", "include inside .git"],
];

/// Traps that, switched off, make some tools fail.
const LOUD: &[&[&str]] = &[
    &["filter.*.clean", "filter.a=b.clean", "filter.x.y.clean"],
    &["filter.*.smudge"],
    &["filter.*.process"],
    &["merge.*.driver"],
    &["pull.twohead"],
    &["remote.*.vcs"],
    &["promisor remote"],
];

/// One way to make git run something.
struct Trap {
    name: &'static str,
    /// Configuration of the repository: name and value, where `EVIL` is the script.
    config: &'static [(&'static str, &'static str)],
    /// What a user would type for it to run; `;` between commands.
    control: &'static str,
}

const fn trap(name: &'static str, config: &'static [(&'static str, &'static str)], control: &'static str) -> Trap {
    Trap { name, config, control }
}

const CONFIG: &[Trap] = &[
    trap("core.fsmonitor", &[("core.fsmonitor", "EVIL")], "status"),
    trap("core.hooksPath", &[("core.hooksPath", "HOOKS")], "commit -q --allow-empty -m x"),
    trap("diff.external", &[("diff.external", "EVIL")], "diff"),
    trap("diff.*.textconv", &[("diff.evil.textconv", "EVIL")], "diff; blame f.txt; show"),
    trap("diff.*.command", &[("diff.evil.command", "EVIL")], "diff"),
    trap("diff.a=b.textconv", &[("diff.a=b.textconv", "EVIL")], "diff -- eq.eq"),
    trap("filter.*.clean", &[("filter.evil.clean", "EVIL")], "add a.bin"),
    trap("filter.*.smudge", &[("filter.evil.smudge", "EVIL")], "checkout -q HEAD -- a.bin"),
    trap("filter.*.process", &[("filter.evil.process", "EVIL")], "!add a.bin"),
    trap("filter.a=b.clean", &[("filter.a=b.clean", "EVIL")], "add eq.eq"),
    trap("filter.x.y.clean", &[("filter.x.y.clean", "EVIL")], "add dot.dot"),
    // Git pages on a terminal only, but for this.
    trap("core.pager", &[("core.pager", "EVIL"), ("pager.log", "EVIL")], "grep -O 1"),
    trap("core.editor", &[("core.editor", "EVIL")], "!commit --allow-empty"),
    trap("sequence.editor", &[("sequence.editor", "EVIL")], "stash -q -u; rebase -q -i HEAD~1"),
    trap(
        "gpg.program",
        &[("gpg.program", "EVIL"), ("commit.gpgSign", "true"), ("tag.gpgSign", "true")],
        "!commit -q --allow-empty -m x",
    ),
    trap(
        "gpg.ssh.program",
        &[
            ("gpg.ssh.program", "EVIL"),
            ("gpg.format", "ssh"),
            ("user.signingKey", "key::ssh-ed25519 AAAA"),
            ("commit.gpgSign", "true"),
        ],
        "!commit -q --allow-empty -m x",
    ),
    trap(
        "gpg.ssh.defaultKeyCommand",
        &[("gpg.ssh.defaultKeyCommand", "EVIL"), ("gpg.format", "ssh"), ("commit.gpgSign", "true")],
        "!commit -q --allow-empty -m x",
    ),
    trap("merge.*.driver", &[("merge.evil.driver", "EVIL")], "merge -q feat"),
    trap(
        "merge.verifySignatures",
        &[("merge.verifySignatures", "true"), ("gpg.program", "EVIL"), ("log.showSignature", "true")],
        "!log -1 signed",
    ),
    trap(
        "branch.*.mergeOptions",
        &[("branch.main.mergeOptions", "-S --no-ff"), ("gpg.program", "EVIL")],
        "!merge -m m side",
    ),
    trap(
        "pull.twohead",
        &[("pull.twohead", "evil"), ("alias.merge-evil", "!EVIL")],
        "stash -q -u; cherry-pick side; cherry-pick --abort; rebase feat",
    ),
    trap("trailer.*.command", &[("trailer.x.command", "EVIL")], "interpret-trailers f.txt"),
    trap("credential.helper", &[("credential.helper", "EVIL")], "!fetch http"),
    trap("core.askPass", &[("core.askPass", "EVIL")], "!fetch http"),
    trap("core.sshCommand", &[("core.sshCommand", "EVIL")], "!fetch ssh"),
    trap("core.gitProxy", &[("core.gitProxy", "EVIL")], "!fetch gitproto"),
    trap("remote.*.uploadpack", &[("remote.origin.uploadpack", "EVIL")], "!fetch origin"),
    trap("remote.*.receivepack", &[("remote.origin.receivepack", "EVIL")], "!push origin main"),
    trap(
        "remote.*.vcs",
        &[("remote.origin.vcs", "ext"), ("remote.origin.url", "EVIL x"), ("protocol.ext.allow", "always")],
        "!fetch origin",
    ),
    trap("core.alternateRefsCommand", &[("core.alternateRefsCommand", "EVIL")], "!fetch origin"),
    trap("alias", &[("alias.evil", "!EVIL"), ("alias.status", "!EVIL")], "evil"),
    trap("interactive.diffFilter", &[("interactive.diffFilter", "EVIL"), ("color.ui", "always")], "add -p"),
    trap("uploadpack.packObjectsHook", &[("uploadpack.packObjectsHook", "EVIL")], ""),
    trap(
        "gc.recentObjectsHook",
        &[("gc.recentObjectsHook", "EVIL"), ("gc.auto", "1"), ("gc.autoDetach", "false")],
        "hash-object -w n.txt; prune --expire=now",
    ),
    // Git knows it since 2.54.
    trap(
        "hook.*.command",
        &[("hook.x.command", "EVIL"), ("hook.x.event", "pre-commit")],
        "commit -q --allow-empty -m x",
    ),
    trap("submodule.*.update", &[("submodule.x.update", "!EVIL"), ("submodule.recurse", "true")], ""),
    trap(
        "promisor remote",
        &[
            ("extensions.partialClone", "evil"),
            ("remote.evil.promisor", "true"),
            ("remote.evil.url", "ext::EVIL"),
            ("protocol.ext.allow", "always"),
        ],
        "!cat-file -p 1234567890123456789012345678901234567890",
    ),
    trap("include inside .git", &[("include.path", "more")], "status"),
];

const HOOKS: &[(&str, &str)] = &[
    ("pre-commit", "commit -q --allow-empty -m x"),
    ("prepare-commit-msg", "commit -q --allow-empty -m x"),
    ("commit-msg", "commit -q --allow-empty -m x"),
    ("post-commit", "commit -q --allow-empty -m x"),
    ("post-checkout", "checkout -q feat"),
    ("post-index-change", "add n.txt"),
    ("reference-transaction", "branch x"),
    ("pre-merge-commit", "merge -q --no-ff -m m side"),
    ("post-merge", "merge -q --no-ff -m m side"),
    ("pre-rebase", "rebase -q side"),
    ("post-rewrite", "rebase -q side"),
    ("pre-push", "push -q origin main"),
    ("pre-auto-gc", "gc -q --auto"),
    ("fsmonitor-watchman", ""),
    ("push-to-checkout", ""),
    ("pre-receive", ""),
    ("update", ""),
    ("post-receive", ""),
];

/// A repository with everything that traps need: attributes, branches `feat` (conflicts) and `side` (does not), changes that
/// are staged and not, and a remote. Made once for each test and copied.
fn world() -> World {
    thread_local! {
        static FIRST: World = made();
    }
    FIRST.with(|first| {
        let w = first.copied();
        let evil = w.script("evil", "mark");
        w.script("hooks/pre-commit", "mark");
        w.put("r/.git/more", format!("[core]\n\tfsmonitor = {evil}\n"));
        w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
        w
    })
}

fn made() -> World {
    let w = World::new();
    w.put(
        "r/.gitattributes",
        "*.txt diff=evil merge=evil\n*.bin filter=evil\n*.eq filter=a=b diff=a=b\n*.dot filter=x.y\n",
    );
    w.put("r/a.bin", "bin\n");
    w.put("r/eq.eq", "eq\n");
    w.put("r/dot.dot", "dot\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "attributes"]);
    for (branch, file, text) in [("feat", "f.txt", "1\n2\nfeat\n"), ("side", "side.txt", "s\n")] {
        w.git("r", &["checkout", "-q", "-B", branch, "main"]);
        w.put(&format!("r/{file}"), text);
        w.put("r/b.bin", branch);
        w.git("r", &["add", "."]);
        w.git("r", &["commit", "-qm", branch]);
    }
    w.git("r", &["checkout", "-q", "main"]);
    w.put("r/f.txt", "1\n2\nmain\n");
    w.git("r", &["commit", "-qam", "main"]);
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
    let http = format!("http://127.0.0.1:{}/x", who_are_you());
    for (name, url) in [("http", http.as_str()), ("ssh", "ssh://127.0.0.1:9/x"), ("gitproto", "git://127.0.0.1:9/x")] {
        w.git("r", &["remote", "add", name, url]);
    }
    // A signed commit, so that verifying has something to do.
    let commit = w.git("r", &["cat-file", "commit", "main"]);
    let signed =
        commit.replacen("\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1);
    w.put("signed", signed);
    let id = w.git("r", &["hash-object", "-t", "commit", "-w", &w.at("signed")]);
    w.git("r", &["branch", "signed", &id]);
    dirty(&w);
    w
}

/// A web server that asks everybody for a password; the port.
fn who_are_you() -> u16 {
    static PORT: std::sync::OnceLock<u16> = std::sync::OnceLock::new();
    *PORT.get_or_init(|| Heard::with(|_| http("401 Unauthorized", WHO_ARE_YOU)).port)
}

fn dirty(w: &World) {
    w.put("r/f.txt", "1\n2\nmain\ndirty\n");
    w.put("r/a.bin", "changed\n");
    w.put("r/eq.eq", "changed\n");
    w.put("r/dot.dot", "changed\n");
    w.put("r/n.txt", "new\n");
}

fn arm(w: &World, trap: &Trap) {
    let evil = w.script(&format!("evil-{}", trap.name.replace(['*', '=', ' '], "_")), "mark");
    for (name, value) in trap.config {
        let value = value.replace("EVIL", &evil).replace("HOOKS", &w.at("hooks"));
        w.git("r", &["config", name, &value]);
    }
    if trap.name.contains("alternateRefs") {
        w.put("r/.git/objects/info/alternates", format!("{}\n", w.at("remote.git/objects")));
    }
}

/// Every tool, with arguments that make it work where it can.
async fn parade(s: &Session, w: &World) -> Vec<String> {
    let r = w.at("r");
    let id = w.git("r", &["rev-parse", "side"]);
    let steps = [
        ("git_status", json!({})),
        ("git_diff_unstaged", json!({})),
        ("git_diff_staged", json!({})),
        ("git_diff", json!({"target": "feat"})),
        ("git_diff", json!({"target": "side...feat", "stat_only": true})),
        ("git_log", json!({"max_count": -1})),
        ("git_log", json!({"revision": "signed", "paths": ["f.txt"]})),
        ("git_show", json!({"revision": "HEAD"})),
        ("git_show", json!({"revision": "signed"})),
        ("git_show", json!({"revision": "HEAD:f.txt"})),
        ("git_show", json!({"revision": "HEAD:"})),
        ("git_branch", json!({"branch_type": "all"})),
        ("git_blame", json!({"path": "f.txt"})),
        ("git_blame", json!({"path": "a.bin"})),
        ("git_grep", json!({"pattern": "1", "untracked": true})),
        ("git_grep", json!({"pattern": "1", "revision": "HEAD"})),
        ("git_tag", json!({})),
        ("git_stash", json!({"action": "push", "include_untracked": true})),
        ("git_stash", json!({"action": "list"})),
        ("git_stash", json!({"action": "show"})),
        ("git_stash", json!({"action": "apply"})),
        ("git_stash", json!({"action": "pop"})),
        ("git_add", json!({"files": ["n.txt"]})),
        ("git_add", json!({"files": ["f.txt"]})),
        ("git_add", json!({"files": ["a.bin"]})),
        ("git_add", json!({"files": ["eq.eq"]})),
        ("git_add", json!({"files": ["dot.dot"]})),
        ("git_add", json!({"files": ["."]})),
        ("git_reset", json!({})),
        ("git_add", json!({"files": ["f.txt", "n.txt"]})),
        ("git_commit", json!({"message": "x"})),
        ("git_create_branch", json!({"branch_name": "nb"})),
        ("git_checkout", json!({"branch_name": "nb"})),
        ("git_checkout", json!({"branch_name": "main"})),
        ("git_tag", json!({"action": "create", "name": "t", "message": "m"})),
        ("git_tag", json!({"action": "create", "name": "t2"})),
        ("git_tag", json!({"action": "delete", "name": "t"})),
        ("git_stash", json!({"action": "push"})),
        ("git_stash", json!({"action": "drop"})),
        ("git_merge", json!({"branch": "feat"})),
        ("git_merge", json!({"abort": true})),
        ("git_merge", json!({"branch": "side", "no_ff": true})),
        ("git_merge", json!({"branch": "side", "squash": true})),
        ("git_cherry_pick", json!({"revisions": [id]})),
        ("git_cherry_pick", json!({"revisions": ["feat"]})),
        ("git_cherry_pick", json!({"action": "continue"})),
        ("git_cherry_pick", json!({"action": "skip"})),
        ("git_cherry_pick", json!({"action": "abort"})),
        ("git_rebase", json!({"upstream": "feat"})),
        ("git_rebase", json!({"upstream": "feat", "confirm": true})),
        ("git_rebase", json!({"action": "continue"})),
        ("git_rebase", json!({"action": "skip"})),
        ("git_rebase", json!({"action": "abort"})),
        ("git_worktree", json!({"action": "add", "path": "wt", "revision": "side"})),
        ("git_worktree", json!({})),
        ("git_worktree", json!({"action": "remove", "path": "wt", "force": true})),
        ("git_worktree", json!({"action": "prune"})),
        ("git_fetch", json!({})),
        ("git_fetch", json!({"remote": "http"})),
        ("git_fetch", json!({"remote": "ssh"})),
        ("git_fetch", json!({"remote": "gitproto"})),
        ("git_pull", json!({"branch": "main"})),
        ("git_push", json!({})),
        ("git_push", json!({"remote": "ssh"})),
        ("git_push", json!({"remote": "http"})),
        ("git_show", json!({"revision": "1234567890123456789012345678901234567890"})),
    ];
    let mut failed = Vec::new();
    for (tool, args) in steps {
        let result = s.call(tool, on(&r, args.clone())).await;
        if result.is_error() {
            failed.push(format!("{tool} {args}: {}", result.text()));
        }
        assert!(!w.has("mark") || is_trusting(s), "{tool} {args} ran: {}", w.read("mark"));
    }
    failed
}

fn is_trusting(s: &Session) -> bool {
    s.client.server().is_some_and(|server| server.version == "trusting")
}

async fn session(w: &World, trust: bool) -> Session {
    let mut config = w.config_of(&["r", "remote.git"]);
    config.allow_remote = true;
    config.trust_repo_config = trust;
    Session::of(config).await
}

/// What a user's git does with the trap: whether it leaves the mark.
fn goes_off(w: &World, control: &str) -> bool {
    for line in control.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let args: Vec<&str> = line.trim_start_matches('!').split(' ').collect();
        // Many traps break the command they are in; the mark is what counts.
        let _ = w.try_git("r", &args);
    }
    w.has("mark")
}

fn git_is_at_least(major: u32, minor: u32) -> bool {
    let text = std::process::Command::new("git").arg("version").output().expect("git").stdout;
    let text = String::from_utf8(text).expect("text");
    let version = text.trim().strip_prefix("git version ").expect("a version");
    let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
    (parts.next().expect("major"), parts.next().unwrap_or(0)) >= (major, minor)
}

/// What fails in a parade, by tool and arguments.
fn outcome(failed: &[String]) -> Vec<&str> {
    failed.iter().map(|text| text.split_once("}: ").map_or(text.as_str(), |(call, _)| call)).collect()
}

async fn spring(groups: &[&[&str]], quiet: bool) {
    let plain = if quiet {
        let w = world();
        parade(&session(&w, false).await, &w).await
    } else {
        Vec::new()
    };
    for group in groups {
        let traps: Vec<&Trap> = group.iter().map(|name| named(name)).collect();
        let w = world();
        for trap in &traps {
            arm(&w, trap);
        }
        let failed = parade(&session(&w, false).await, &w).await;
        assert!(!w.has("mark"), "{}", w.read("mark"));
        if quiet {
            assert_eq!(outcome(&failed), outcome(&plain), "{group:?}: {failed:#?}");
        }
        for trap in traps.iter().filter(|trap| !trap.control.is_empty()) {
            if trap.name == "hook.*.command" && !git_is_at_least(2, 54) {
                continue;
            }
            let control = world();
            arm(&control, trap);
            assert!(goes_off(&control, trap.control), "{}: the trap of this test does not work", trap.name);
        }
    }
}

fn named(name: &str) -> &'static Trap {
    CONFIG.iter().find(|trap| trap.name == name).unwrap_or_else(|| panic!("there is no trap {name}"))
}

#[test]
fn every_trap_is_set_once() {
    let mut set: Vec<&str> = [QUIET, LOUD].concat().concat();
    let mut all: Vec<&str> = CONFIG.iter().map(|trap| trap.name).collect();
    set.sort_unstable();
    all.sort_unstable();
    assert_eq!(set, all);
    for group in QUIET {
        let mut keys: Vec<&str> = group.iter().flat_map(|name| named(name).config).map(|(key, _)| *key).collect();
        keys.sort_unstable();
        assert!(keys.windows(2).all(|two| two[0] != two[1]), "{group:?} set a name twice");
    }
}

#[tokio::test]
async fn no_program_of_the_configuration_runs_1() {
    spring(&QUIET[..2], true).await;
}

#[tokio::test]
async fn no_program_of_the_configuration_runs_2() {
    spring(&QUIET[2..], true).await;
}

#[tokio::test]
async fn no_program_of_the_configuration_runs_3() {
    spring(&LOUD[..3], false).await;
}

#[tokio::test]
async fn no_program_of_the_configuration_runs_4() {
    spring(&LOUD[3..], false).await;
}

#[tokio::test]
async fn no_hook_runs() {
    let w = world();
    for (hook, _) in HOOKS {
        w.script(&format!("r/.git/hooks/{hook}"), "mark");
        w.script(&format!("remote.git/hooks/{hook}"), "mark");
    }
    let failed = parade(&session(&w, false).await, &w).await;
    assert!(!w.has("mark"));
    // With nothing but hooks in the way, everything but the traps of the parade itself works.
    let unexpected: Vec<&String> = failed
        .iter()
        .filter(|text| {
            ![
                "rebase",
                "cherry_pick",
                "\"http\"",
                "\"ssh\"",
                "gitproto",
                "1234567890",
                "abort",
                "git_push",
                "git_pull",
                "git_merge",
                "stash",
            ]
            .iter()
            .any(|known| text.contains(known))
        })
        .collect();
    assert_eq!(unexpected, Vec::<&String>::new());
    for (hook, control) in HOOKS.iter().filter(|(_, control)| !control.is_empty()) {
        let w = world();
        w.git("r", &["stash", "-q", "-u"]);
        dirty(&w);
        w.git("r", &["stash", "-q", "-u"]);
        w.put("r/n.txt", "n");
        // Git judges by this one folder whether there are too many loose objects.
        w.git("r", &["config", "gc.auto", "1"]);
        for end in ["0", "1"] {
            w.put(&format!("r/.git/objects/17/{}{end}", "a".repeat(37)), "");
        }
        w.script(&format!("r/.git/hooks/{hook}"), "mark");
        assert!(goes_off(&w, control), "{hook}: the trap of this test does not work");
    }
}

#[tokio::test]
async fn what_is_trusted_runs() {
    let cases = [
        ("hooks", "git_commit", json!({"message": "x"})),
        ("filter.evil.clean", "git_add", json!({"files": ["a.bin"]})),
        ("core.fsmonitor", "git_status", json!({})),
        ("diff.evil.textconv", "git_diff_unstaged", json!({})),
        ("diff.external", "git_diff_unstaged", json!({})),
    ];
    for (key, tool, args) in cases {
        let w = world();
        w.git("r", &["add", "n.txt"]);
        match key {
            "hooks" => drop(w.script("r/.git/hooks/pre-commit", "mark")),
            key => drop(w.git("r", &["config", key, &w.at("evil")])),
        }
        session(&w, true).await.call(tool, on(&w.at("r"), args)).await;
        assert!(w.has("mark"), "{key}");
    }
}

#[tokio::test]
async fn a_file_is_never_stored_or_checked_out_unfiltered_by_accident() {
    let w = world();
    w.git("r", &["config", "filter.evil.clean", "tr a-z A-Z"]);
    w.git("r", &["config", "filter.evil.smudge", "tr A-Z a-z"]);
    let s = session(&w, false).await;
    let before = w.git("r", &["rev-parse", ":a.bin"]);
    let text = s.bad("git_add", on(&w.at("r"), json!({"files": ["a.bin"]}))).await;
    assert!(text.contains("filter.evil.clean") && text.contains("--trust-repo-config"), "{text}");
    assert_eq!(w.git("r", &["rev-parse", ":a.bin"]), before);
    s.text("git_add", on(&w.at("r"), json!({"files": ["n.txt"]}))).await;
    s.text("git_diff_unstaged", on(&w.at("r"), json!({}))).await;
    s.text("git_status", on(&w.at("r"), json!({}))).await;
    let s = session(&w, true).await;
    s.text("git_add", on(&w.at("r"), json!({"files": ["a.bin"]}))).await;
    assert_eq!(w.git("r", &["cat-file", "blob", ":a.bin"]), "CHANGED");
}

#[tokio::test]
async fn a_merge_driver_that_does_not_run_is_a_conflict_and_not_ours() {
    let w = world();
    w.git("r", &["config", "merge.evil.driver", &w.at("evil")]);
    w.git("r", &["checkout", "-q", "f.txt"]);
    w.git("r", &["stash", "-q", "-u"]);
    let s = session(&w, false).await;
    let (_, value) = s.good("git_merge", on(&w.at("r"), json!({"branch": "feat"}))).await;
    assert_eq!((&value["status"], &value["conflicts"]), (&json!("conflicts"), &json!(["f.txt"])));
}

#[tokio::test]
async fn a_merge_strategy_that_is_a_program_is_refused() {
    for (value, fine) in
        [("../evil", false), ("evil", false), ("ort ../evil", false), ("ort", true), ("recursive", true)]
    {
        let w = world();
        w.git("r", &["stash", "-q", "-u"]);
        w.git("r", &["config", "pull.twohead", value]);
        // Looked up in the work tree, by a name that holds a slash.
        w.script("r/git-merge-../evil", "mark");
        let s = session(&w, false).await;
        let r = w.at("r");
        for (tool, args) in [
            ("git_cherry_pick", json!({"revisions": ["side"]})),
            ("git_rebase", json!({"upstream": "side", "confirm": true})),
        ] {
            let result = s.call(tool, on(&r, args)).await;
            assert_eq!(result.is_error(), !fine, "{tool} {value}: {}", result.text());
            assert!(fine || result.text().contains("pull.twohead"), "{}", result.text());
        }
        s.text("git_merge", on(&r, json!({"branch": "side"}))).await;
        assert!(!w.has("mark"), "{value}: {}", w.read("mark"));
    }
    let w = world();
    w.git("r", &["stash", "-q", "-u"]);
    w.git("r", &["config", "pull.twohead", "../evil"]);
    w.script("r/git-merge-../evil", "mark");
    assert!(goes_off(&w, "cherry-pick side"), "the trap of this test does not work");
}

#[tokio::test]
async fn a_name_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let w = world();
    let mut config = std::fs::read(w.path("r/.git/config")).unwrap();
    config.extend_from_slice(b"[filter \"caf\xe9\"]\n\tclean = EVIL\n");
    let text: Vec<u8> = String::from_utf8_lossy(&config).replace("EVIL", &w.at("evil")).into_bytes();
    // Back to the one byte that is not UTF-8.
    let at = text.windows(3).position(|bytes| bytes == "\u{fffd}".as_bytes()).unwrap();
    let bytes = [&text[..at], b"\xe9", &text[at + 3..]].concat();
    std::fs::write(w.path("r/.git/config"), &bytes).unwrap();
    std::fs::write(w.path("r/.gitattributes"), b"*.bin filter=caf\xe9\n").unwrap();
    assert!(std::ffi::OsStr::from_bytes(&bytes).len() > 10);
    let s = session(&w, false).await;
    let text = s.bad("git_add", on(&w.at("r"), json!({"files": ["a.bin"]}))).await;
    assert!(text.contains("not valid UTF-8"), "{text}");
    assert!(!w.has("mark"));
    assert!(goes_off(&w, "add a.bin"), "the trap of this test does not work");
}

#[tokio::test]
async fn submodules_run_nothing_either() {
    let w = world();
    w.git("r", &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &w.at("remote.git"), "sub"]);
    w.git("r", &["commit", "-qm", "sub"]);
    w.put("r/sub/.gitattributes", "* filter=inner\n");
    let evil = w.at("evil");
    for name in ["core.fsmonitor", "filter.inner.clean", "filter.inner.process", "diff.external"] {
        w.git("r/sub", &["config", name, &evil]);
    }
    w.git("r", &["config", "-f", ".gitmodules", "submodule.sub.ignore", "none"]);
    w.git("r", &["config", "submodule.recurse", "true"]);
    w.git("r", &["config", "status.submoduleSummary", "true"]);
    w.git("r", &["config", "diff.submodule", "diff"]);
    w.put("r/sub/f.txt", "changed in sub\n");
    let _ = std::fs::remove_file(w.path("mark"));
    parade(&session(&w, false).await, &w).await;
    assert!(!w.has("mark"), "{}", w.read("mark"));
    assert!(goes_off(&w, "status; diff"), "the trap of this test does not work");
}

#[tokio::test]
async fn a_planted_plan_is_not_executed() {
    for (file, text, action, tool) in [
        ("rebase-merge/git-rebase-todo", "exec EVIL\n", "continue", "git_rebase"),
        ("rebase-merge/git-rebase-todo", "noop\n  x EVIL\n", "skip", "git_rebase"),
        ("rebase-merge/strategy", "../evil\n", "continue", "git_rebase"),
        ("rebase-apply/x", "", "continue", "git_rebase"),
        ("sequencer/opts", "[options]\n\tstrategy = ../evil\n", "continue", "git_cherry_pick"),
        ("sequencer/todo", "exec EVIL\n", "continue", "git_cherry_pick"),
    ] {
        let w = world();
        w.git("r", &["stash", "-q", "-u"]);
        assert!(!w.try_git("r", &["rebase", "feat"]).0, "it stops at a conflict");
        w.put("r/f.txt", "resolved\n");
        w.git("r", &["add", "f.txt"]);
        w.put(&format!("r/.git/{file}"), text.replace("EVIL", &w.at("evil")));
        let s = session(&w, false).await;
        let text = s.bad(tool, on(&w.at("r"), json!({"action": action}))).await;
        assert!(text.contains("run programs"), "{file}: {text}");
        assert!(!w.has("mark"));
        if file.ends_with("rebase-todo") {
            let _ = w.try_git("r", &["-c", "core.editor=true", "rebase", &format!("--{action}")]);
            assert!(w.has("mark"), "the trap of this test does not work");
        }
    }
}

#[tokio::test]
async fn the_servers_own_environment_does_not_reach_git() {
    use linchpin_kit::Vars;
    let w = world();
    let evil = w.at("evil");
    let path = std::env::var("PATH").unwrap();
    let get = |name: &str| match name {
        "PATH" => Some(format!(".:relative:{path}")),
        "HOME" => Some(w.at("home")),
        "GIT_EXTERNAL_DIFF" | "GIT_PAGER" | "GIT_EDITOR" | "GIT_SSH_COMMAND" | "GIT_ASKPASS" => Some(evil.clone()),
        "GIT_DIR" | "GIT_WORK_TREE" | "GIT_OBJECT_DIRECTORY" | "GIT_CONFIG" => Some("/nonexistent".to_owned()),
        "GIT_CONFIG_COUNT" => Some("1".to_owned()),
        "GIT_CONFIG_KEY_0" => Some("core.fsmonitor".to_owned()),
        "GIT_CONFIG_VALUE_0" => Some(evil.clone()),
        _ => None,
    };
    let mut config = linchpin_git::Config::from_env(Vars::new(&get)).unwrap();
    config.repositories = vec![w.path("r")];
    // Programs named like git in the work tree are not found through a relative PATH.
    w.script("r/git", "mark");
    let s = Session::of(config).await;
    for tool in ["git_status", "git_diff_unstaged", "git_log"] {
        s.text(tool, on(&w.at("r"), json!({}))).await;
    }
    assert!(!w.has("mark"));
}

#[tokio::test]
async fn the_update_command_of_a_submodule_does_not_run() {
    let w = world();
    let url = w.at("remote.git");
    w.git("r", &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "x", &url, "sub"]);
    w.git("r", &["commit", "-qm", "sub"]);
    w.git("r/sub", &["checkout", "-q", "HEAD~1"]);
    w.git("r", &["config", "submodule.x.update", &format!("!{}", w.at("evil"))]);
    w.git("r", &["config", "submodule.recurse", "true"]);
    parade(&session(&w, false).await, &w).await;
    assert!(!w.has("mark"), "{}", w.read("mark"));
    w.git("r", &["reset", "-q", "--hard", "--no-recurse-submodules"]);
    w.git("r/sub", &["checkout", "-q", "HEAD~1"]);
    assert!(goes_off(&w, "submodule update"), "the trap of this test does not work");
}

#[tokio::test]
async fn what_packs_for_a_fetch_is_not_the_remotes_choice() {
    let w = world();
    w.git("remote.git", &["config", "uploadpack.packObjectsHook", &w.at("evil")]);
    w.git("r", &["clone", "-q", "../remote.git", &w.at("other")]);
    let theirs = || {
        w.git("other", &["commit", "-q", "--allow-empty", "-m", "theirs"]);
        w.git("other", &["push", "-q", "origin", "HEAD:theirs"]);
    };
    theirs();
    let s = session(&w, false).await;
    let text = s.text("git_fetch", on(&w.at("r"), json!({}))).await;
    assert!(text.contains("refs/remotes/origin/theirs") && !w.has("mark"), "{text}");
    // Git heeds it only where a user has set it, and then it does run.
    theirs();
    w.git("r", &["config", "--global", "uploadpack.packObjectsHook", &w.at("evil")]);
    assert!(goes_off(&w, "fetch origin"), "the trap of this test does not work");
}
