//! A repository that is not allowed, or leads to places that are not, is not used; and no argument is taken for an
//! option.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use linchpin::prelude::*;
use linchpin_git::Git;
use serde_json::{Value, json};

/// A call of every kind: reading, writing the index, writing refs.
const PROBES: &[(&str, &str)] = &[
    ("git_status", "{}"),
    ("git_log", "{}"),
    ("git_diff_unstaged", "{}"),
    ("git_add", r#"{"files":["."]}"#),
    ("git_commit", r#"{"message":"m"}"#),
    ("git_create_branch", r#"{"branch_name":"nb"}"#),
    ("git_stash", r#"{"action":"push"}"#),
    ("git_grep", r#"{"pattern":"1"}"#),
];

async fn refused(w: &World, s: &Session, path: &str, expected: &str) {
    for (tool, args) in PROBES {
        let text = s.bad(tool, on(path, serde_json::from_str(args).unwrap())).await;
        assert!(text.contains(expected), "{tool} {}: {}", w.shown(path), w.shown(&text));
    }
}

#[tokio::test]
async fn other_repositories_are_refused_however_they_are_named() {
    // CVE-2025-68145.
    let w = World::new();
    w.init("r2");
    w.init("r-evil");
    w.link(w.path("r2"), "r/l");
    let s = w.open().await;
    for path in ["r2", "r/../r2", "r/l", "r/l/.git", "r-evil", "r2/.git", "r/./../r2/../r2", "", "home"] {
        refused(&w, &s, &w.at(path), "is outside the allowed repository").await;
    }
    refused(&w, &s, "/", "is outside the allowed repository").await;
    refused(&w, &s, "", "Invalid path").await;
    refused(&w, &s, "a\0b", "Invalid path").await;
    assert_eq!(w.git("r2", &["status", "--porcelain"]), "", "nothing was done there");
}

#[tokio::test]
async fn every_part_of_a_repository_must_be_inside() {
    type Arrange = fn(&World);
    let cases: &[(&str, Arrange, &str)] = &[
        ("core.worktree", |w| drop(w.git("r", &["config", "core.worktree", &w.at("out")])), "core.worktree"),
        ("core.worktree relative", |w| drop(w.git("r", &["config", "core.worktree", "../../out"])), "core.worktree"),
        (
            "core.worktree in config.worktree",
            |w| {
                w.git("r", &["config", "extensions.worktreeConfig", "true"]);
                w.put("r/.git/config.worktree", format!("[core]\n\tworktree = {}\n", w.at("out")));
            },
            "core.worktree",
        ),
        (
            ".git file",
            |w| {
                std::fs::rename(w.path("r/.git"), w.path("moved")).unwrap();
                w.put("r/.git", format!("gitdir: {}\n", w.at("moved")));
            },
            ".git file (gitdir)",
        ),
        (
            ".git link",
            |w| {
                std::fs::rename(w.path("r/.git"), w.path("moved")).unwrap();
                w.link("../moved", "r/.git");
            },
            ".git",
        ),
        ("commondir", |w| w.put("r/.git/commondir", format!("{}\n", w.at("out/.git"))), "commondir"),
        (
            "alternates",
            |w| w.put("r/.git/objects/info/alternates", format!("{}\n", w.at("out/.git/objects"))),
            "alternates",
        ),
        (
            "alternates of alternates",
            |w| {
                w.git("r", &["init", "-q", "in"]);
                w.put("r/.git/objects/info/alternates", "../../in/.git/objects\n");
                w.put("r/in/.git/objects/info/alternates", format!("{}\n", w.at("out/.git/objects")));
            },
            "alternates",
        ),
        ("quoted alternates", |w| w.put("r/.git/objects/info/alternates", "\"/x\"\n"), "alternates"),
        ("include.path", |w| drop(w.git("r", &["config", "include.path", &w.at("out/cfg")])), "include.path"),
        ("include of the home", |w| drop(w.git("r", &["config", "include.path", "~/x"])), "include.path"),
        (
            "includeIf.path",
            |w| drop(w.git("r", &["config", "includeIf.gitdir:/nowhere/.path", "../../out/cfg"])),
            "includeif.gitdir:/nowhere/.path",
        ),
        (
            "include in an include",
            |w| {
                w.git("r", &["config", "include.path", "more"]);
                w.put("r/.git/more", "[include]\n\tpath = ../../out/cfg\n");
            },
            "include.path",
        ),
        ("include of a tracked file", |w| drop(w.git("r", &["config", "include.path", "../f.txt"])), "include.path"),
        (
            "attributes",
            |w| drop(w.git("r", &["config", "core.attributesFile", &w.at("out/f.txt")])),
            "core.attributesfile",
        ),
        ("mailmap", |w| drop(w.git("r", &["config", "mailmap.file", "~/x"])), "mailmap.file"),
        ("objects link", |w| replace(w, "objects"), ".git/objects"),
        ("logs link", |w| replace(w, "logs"), ".git/logs"),
        ("refs link", |w| w.link(w.path("out/f.txt"), "r/.git/refs/heads/linked"), ".git/refs/heads/linked"),
        (
            "log link",
            |w| {
                std::fs::remove_file(w.path("r/.git/logs/HEAD")).unwrap();
                w.link(w.path("out/f.txt"), "r/.git/logs/HEAD");
            },
            ".git/logs/HEAD",
        ),
        (
            "config link",
            |w| {
                std::fs::rename(w.path("r/.git/config"), w.path("out/cfg2")).unwrap();
                w.link(w.path("out/cfg2"), "r/.git/config");
            },
            ".git/config",
        ),
        ("dangling link", |w| w.link(w.path("out/new"), "r/.git/COMMIT_EDITMSG2"), ".git/COMMIT_EDITMSG2"),
    ];
    fn replace(w: &World, name: &str) {
        std::fs::rename(w.path(&format!("r/.git/{name}")), w.path(&format!("out/{name}"))).unwrap();
        w.link(w.path(&format!("out/{name}")), &format!("r/.git/{name}"));
    }
    for (name, arrange, key) in cases {
        let w = World::new();
        w.init("out");
        w.put("out/f.txt", "OUT\n");
        w.put("out/cfg", "[user]\n\tname = Evil\n");
        let s = w.open().await;
        s.text("git_status", on(&w.at("r"), json!({}))).await;
        arrange(&w);
        let before = w.read("out/f.txt");
        for (tool, args) in PROBES {
            let text = s.bad(tool, on(&w.at("r"), serde_json::from_str(args).unwrap())).await;
            assert!(
                text.contains("refers to a location outside the allowed directories") && text.contains(key),
                "{name}: {tool}: {text}"
            );
        }
        assert_eq!(w.read("out/f.txt"), before, "{name}: nothing was written there");
        assert!(!w.has("out/new"));
    }
}

#[tokio::test]
async fn hooks_may_lie_elsewhere_because_they_do_not_run() {
    let w = World::new();
    let hook = w.script("shared/pre-commit", "mark");
    w.link(w.path("shared"), "r/.git/hooks");
    w.put("r/x", "x");
    let s = w.open().await;
    s.text("git_add", on(&w.at("r"), json!({"files": ["x"]}))).await;
    s.text("git_commit", on(&w.at("r"), json!({"message": "x"}))).await;
    assert!(!w.has("mark"), "{hook}");
}

#[tokio::test]
async fn a_bare_repository_among_tracked_files_is_refused() {
    let w = World::new();
    w.git("r", &["init", "-q", "--bare", "evil"]);
    let evil = w.script("mark.sh", "mark");
    w.git("r/evil", &["config", "core.fsmonitor", &evil]);
    w.git("r/evil", &["config", "core.bare", "false"]);
    w.git("r/evil", &["config", "core.worktree", "."]);
    let s = w.open().await;
    for path in ["r/evil", "r/evil/refs", "r/evil/objects/info"] {
        refused(&w, &s, &w.at(path), "safe.bareRepository").await;
    }
    assert!(!w.has("mark"));
    w.git("r/evil", &["status"]);
    assert!(w.has("mark"), "the trap of this test does not work");
    // A bare repository that was named by the operator is fine.
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("b.git")]);
    let s = Session::of(w.config_of(&["b.git"])).await;
    assert!(s.text("git_log", on(&w.at("b.git"), json!({"max_count": 1}))).await.contains("c3"));
    assert!(s.text("git_diff", on(&w.at("b.git"), json!({"target": "v1~1..v1"}))).await.contains("+3"));
    let text = s.bad("git_status", on(&w.at("b.git"), json!({}))).await;
    assert!(text.contains("work tree"), "{text}");
}

#[tokio::test]
async fn linked_work_trees_need_their_repository_to_be_allowed() {
    let w = World::new();
    w.git("r", &["worktree", "add", "-q", &w.at("wt"), "feat"]);
    let fault = Git::open(w.config_of(&["wt"])).expect_err("its repository is elsewhere");
    assert!(fault.to_string().contains("gitdir"), "{fault}");
    let s = Session::of(w.config_of(&["r", "wt"])).await;
    assert!(s.text("git_status", on(&w.at("wt"), json!({}))).await.contains("On branch feat"));
    w.put("wt/x", "x");
    s.text("git_add", on(&w.at("wt"), json!({"files": ["x"]}))).await;
    s.text("git_commit", on(&w.at("wt"), json!({"message": "x"}))).await;
    assert_eq!(w.git("r", &["log", "-1", "--format=%s", "feat"]), "x");
}

#[tokio::test]
async fn no_tool_makes_a_repository_elsewhere() {
    // CVE-2025-68143.
    let w = World::new();
    let mut config = w.config_of(&[]);
    config.allow_any = true;
    let s = Session::of(config).await;
    let r = w.at("r");
    let error = s.client.call("git_init", json!({"repo_path": w.at("home/.ssh")})).await.expect_err("no such tool");
    assert!(error.to_string().contains("git_init"), "{error}");
    for path in ["home/.ssh", "r/../.ssh", "r/.git/x", "home/x", ".hidden", "r/.git/worktrees/y"] {
        let args = on(&r, json!({"action": "add", "path": w.at(path), "revision": "feat"}));
        let text = s.bad("git_worktree", args).await;
        assert!(text.contains("A work tree is not allowed at"), "{path}: {text}");
        assert!(!w.has(path), "{path}");
    }
    w.link(w.path("home"), "r/link");
    s.bad("git_worktree", on(&r, json!({"action": "add", "path": "link/new", "revision": "feat"}))).await;
    assert!(!w.has("home/new"));
    s.text("git_worktree", on(&r, json!({"action": "add", "path": "../beside", "revision": "feat"}))).await;
    assert!(w.has("beside/f.txt"), "beside the repository is fine where everything is allowed");
    let s = w.open().await;
    s.bad("git_worktree", on(&r, json!({"action": "add", "path": "../beside2", "revision": "v1"}))).await;
    s.text("git_worktree", on(&r, json!({"action": "add", "path": "in/side", "revision": "v1"}))).await;
    assert!(w.has("r/in/side/f.txt"));
}

#[tokio::test]
async fn only_files_of_the_work_tree_are_staged() {
    // CVE-2026-27735.
    let w = World::new();
    w.put("home/.kube/config", "SECRET TOKEN\n");
    w.put("r/d/x.txt", "x\n");
    w.link(w.path("home/.kube/config"), "r/secret");
    w.link("../home/.kube", "r/kube");
    w.link("/nonexistent/x", "r/dangling");
    w.link("f.txt", "r/fine");
    let secret = w.git("r", &["hash-object", "../home/.kube/config"]);
    let s = w.open().await;
    let r = w.at("r");
    for path in [
        "../home/.kube/config",
        "d/../../home/.kube/config",
        &w.at("home/.kube/config"),
        "secret",
        "kube/config",
        "kube",
        "dangling",
        "/etc/passwd",
        ".git/config",
        ".git",
    ] {
        let text = s.bad("git_add", on(&r, json!({"files": ["f.txt", path]}))).await;
        assert!(text.starts_with(&format!("Path '{path}' is outside the repository '{r}'")), "{path}: {text}");
    }
    for path in ["", "a\0b"] {
        s.bad("git_add", on(&r, json!({"files": [path]}))).await;
    }
    assert!(!w.try_git("r", &["cat-file", "-e", &secret]).0, "no such object was stored");
    assert_eq!(w.git("r", &["diff", "--cached", "--name-only"]), "");
    s.text("git_add", on(&r, json!({"files": ["fine", "./d/../d", w.at("r/d/x.txt")]}))).await;
    assert_eq!(w.git("r", &["diff", "--cached", "--name-only"]), "d/x.txt\nfine");
    // Everything is what git says it is: links are stored as links.
    s.text("git_add", on(&r, json!({"files": ["."]}))).await;
    assert!(!w.try_git("r", &["cat-file", "-e", &secret]).0, "nor through a link");
    // Other tools that take paths.
    for (tool, args) in [
        ("git_blame", json!({"path": "../home/.kube/config"})),
        ("git_blame", json!({"path": "secret"})),
        ("git_grep", json!({"pattern": "SECRET", "paths": ["../home"]})),
        ("git_grep", json!({"pattern": "SECRET", "paths": ["kube"], "untracked": true})),
        ("git_diff_unstaged", json!({"paths": [w.at("home")]})),
        ("git_log", json!({"paths": ["../home"]})),
    ] {
        let text = s.bad(tool, on(&r, args.clone())).await;
        assert!(text.contains("is outside the repository"), "{tool} {args}: {text}");
    }
    let text = s.text("git_grep", on(&r, json!({"pattern": "SECRET", "untracked": true}))).await;
    assert_eq!(text, "No matches");
}

/// Every argument of every tool that names something to git.
const NAMED: &[(&str, &str, &str)] = &[
    ("git_diff", "target", "{}"),
    ("git_show", "revision", "{}"),
    ("git_log", "start_timestamp", "{}"),
    ("git_log", "end_timestamp", "{}"),
    ("git_log", "revision", "{}"),
    ("git_create_branch", "branch_name", "{}"),
    ("git_create_branch", "base_branch", r#"{"branch_name":"x"}"#),
    ("git_checkout", "branch_name", "{}"),
    ("git_branch", "contains", r#"{"branch_type":"local"}"#),
    ("git_branch", "not_contains", r#"{"branch_type":"local"}"#),
    ("git_branch", "branch_type", "{}"),
    ("git_blame", "path", "{}"),
    ("git_blame", "revision", r#"{"path":"f.txt"}"#),
    ("git_grep", "revision", r#"{"pattern":"1"}"#),
    ("git_tag", "name", "{}"),
    ("git_tag", "name", r#"{"action":"create"}"#),
    ("git_tag", "name", r#"{"action":"delete"}"#),
    ("git_tag", "revision", r#"{"action":"create","name":"x"}"#),
    ("git_stash", "action", "{}"),
    ("git_merge", "branch", "{}"),
    ("git_rebase", "upstream", r#"{"confirm":true}"#),
    ("git_rebase", "onto", r#"{"upstream":"feat","confirm":true}"#),
    ("git_cherry_pick", "revisions", "{}"),
    ("git_worktree", "path", r#"{"action":"add"}"#),
    ("git_worktree", "path", r#"{"action":"remove"}"#),
    ("git_worktree", "revision", r#"{"action":"add","path":"w"}"#),
    ("git_worktree", "new_branch", r#"{"action":"add","path":"w"}"#),
    ("git_fetch", "remote", "{}"),
    ("git_fetch", "branch", "{}"),
    ("git_pull", "remote", "{}"),
    ("git_pull", "branch", "{}"),
    ("git_push", "remote", "{}"),
    ("git_push", "branch", "{}"),
    ("git_push", "tag", "{}"),
    ("git_status", "cursor", "{}"),
    ("git_stash", "cursor", r#"{"action":"list"}"#),
    ("git_worktree", "cursor", "{}"),
    ("git_log", "cursor", "{}"),
    ("git_grep", "cursor", r#"{"pattern":"1"}"#),
    ("git_tag", "cursor", "{}"),
    ("git_branch", "cursor", r#"{"branch_type":"local"}"#),
    ("git_diff", "cursor", r#"{"target":"HEAD"}"#),
    ("git_diff_staged", "cursor", "{}"),
    ("git_diff_unstaged", "cursor", "{}"),
    ("git_show", "cursor", r#"{"revision":"HEAD:f.txt"}"#),
    ("git_add", "files", "{}"),
    ("git_log", "paths", r#"{"max_count":1}"#),
    ("git_status", "repo_path", "{}"),
];

/// What may begin with `-`, because it never reaches git's command line, or only where git takes no options.
const INERT: &[(&str, &str, &str)] = &[
    ("git_commit", "message", "{}"),
    ("git_tag", "message", r#"{"action":"create","name":"annotated"}"#),
    ("git_stash", "message", r#"{"action":"push"}"#),
    ("git_merge", "message", r#"{"branch":"side","no_ff":true}"#),
    ("git_grep", "pattern", "{}"),
    // Paths come after `--`, where a file may well be called `-f`.
    ("git_add", "files", "{}"),
    ("git_log", "paths", r#"{"max_count":1}"#),
    ("git_grep", "paths", r#"{"pattern":"1"}"#),
    ("git_diff", "paths", r#"{"target":"HEAD"}"#),
    ("git_diff_staged", "paths", "{}"),
    ("git_diff_unstaged", "paths", "{}"),
];

#[tokio::test]
async fn values_that_look_like_options_are_refused_by_every_argument() {
    // CVE-2025-68144.
    let w = World::new();
    w.git("r", &["remote", "add", "origin", &w.at("r")]);
    w.git("r", &["branch", "side"]);
    let id = w.git("r", &["rev-parse", "HEAD"]);
    let mut config = w.config();
    config.allow_remote = true;
    config.allow_force = true;
    let s = Session::of(config).await;
    let r = w.at("r");
    let output = format!("--output={}", w.at("mark"));
    let values =
        [output.as_str(), "-f", "-", "--", "--exec=touch mark", "--upload-pack=touch mark", "-O/tmp/x", "--help"];
    let full: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    // Real refs of these names: resolving them is not enough.
    for space in ["heads", "tags"] {
        for name in ["-f", "--help", "--output=x"] {
            w.put(&format!("r/.git/refs/{space}/{name}"), format!("{id}\n"));
        }
        w.put(&format!("r/.git/refs/{space}/--output={}", w.at("mark")), format!("{id}\n"));
    }
    for (tool, argument, others) in NAMED {
        for value in &full {
            let mut args = on(&r, serde_json::from_str::<Value>(others).unwrap());
            let list = ["files", "paths", "revisions"].contains(argument);
            args[*argument] = if list { json!([value]) } else { json!(value) };
            let result = s.call(tool, args.clone()).await;
            // A log of no such path is an empty log.
            let empty = *argument == "paths" && result.text() == "Commit history:\n";
            assert!(result.is_error() || empty, "{tool} {argument}={value}: {}", result.text());
        }
    }
    for name in ["mark", "r/mark", "r/x", "r/w", "r/touch mark"] {
        assert!(!w.has(name), "{name}");
    }
    assert_eq!(w.git("r", &["status", "--porcelain"]), "");
    for (tool, argument, others) in INERT {
        for value in &full {
            let mut args = on(&r, serde_json::from_str::<Value>(others).unwrap());
            args[*argument] = if ["files", "paths"].contains(argument) { json!([value]) } else { json!(value) };
            let _ = s.call(tool, args).await;
            assert!(!w.has("mark") && !w.has("r/mark"), "{tool} {argument}={value}");
        }
    }
    w.put("r/-f", "dashes\n");
    s.text("git_add", on(&r, json!({"files": ["-f"]}))).await;
    assert_eq!(w.git("r", &["diff", "--cached", "--name-only"]), "-f", "a file of such a name is a file");
    let text = s.text("git_grep", on(&r, json!({"pattern": "-f|dashes"}))).await;
    assert_eq!(text, "-f:1:dashes");
}

#[tokio::test]
async fn paths_are_taken_literally() {
    let w = World::new();
    w.put("r/a*", "star\n");
    w.put("r/ab", "b\n");
    w.put("r/:(top)", "magic\n");
    let s = w.open().await;
    s.text("git_add", on(&w.at("r"), json!({"files": ["a*", ":(top)"]}))).await;
    assert_eq!(w.git("r", &["-c", "core.quotePath=false", "diff", "--cached", "--name-only"]), ":(top)\na*");
}

#[tokio::test]
async fn without_a_repository_nothing_is_allowed_unless_said() {
    let w = World::new();
    let (git, warnings) = Git::open(w.config_of(&[])).unwrap();
    assert_eq!(warnings, ["Warning: no repository is allowed; add one with --repository"]);
    let server = git.add_to(Server::new("git", "1")).unwrap();
    let s = Session { client: Client::new("t", "1").connect(in_process(server)).await.unwrap() };
    let text = s.bad("git_status", on(&w.at("r"), json!({}))).await;
    assert!(
        text.starts_with("No repository is allowed on this server\nHint: ") && text.contains("--allow-any"),
        "{text}"
    );
    let mut config = w.config_of(&[]);
    config.allow_any = true;
    let s = Session::of(config).await;
    s.text("git_status", on(&w.at("r"), json!({}))).await;
    let text = s.bad("git_status", on(&w.at("home"), json!({}))).await;
    assert!(text.contains("is not in a git repository"), "{text}");
    let mut config = w.config_of(&["r"]);
    config.allow_any = true;
    let (_, warnings) = Git::open(config).unwrap();
    assert_eq!(warnings.len(), 1, "beside --repository it does nothing, and that is said");
    w.init("r2");
    let mut config = w.config_of(&["r"]);
    config.allow_any = true;
    let (git, _) = Git::open(config).unwrap();
    let server = git.add_to(Server::new("git", "1")).unwrap();
    let client = Client::new("t", "1").connect(in_process(server)).await.unwrap();
    assert!(client.call("git_status", json!({"repo_path": w.at("r2")})).await.unwrap().is_error());
}

#[tokio::test]
async fn a_start_without_a_usable_repository_fails() {
    let w = World::new();
    std::fs::create_dir(w.path("plain")).unwrap();
    for (name, words) in [("nope", "does not exist"), ("plain", "is not a valid Git repository")] {
        let fault = Git::open(w.config_of(&[name])).expect_err(name);
        assert!(fault.message().ends_with(words), "{fault}");
    }
    let mut config = w.config();
    config.program = Some("git".into());
    assert!(Git::open(config).is_err(), "only an absolute path");
    let mut config = w.config();
    config.program = None;
    config.environment = vec![("PATH".into(), ".:bin".into())];
    assert!(Git::open(config).is_err(), "nor one from a relative PATH");
}

#[tokio::test]
async fn a_directory_inside_stands_for_its_repository() {
    let w = World::new();
    std::fs::create_dir(w.path("r/deep")).unwrap();
    let s = Session::of(w.config_of(&["r/deep"])).await;
    s.text("git_status", on(&w.at("r"), json!({}))).await;
}

#[tokio::test]
async fn roots_allow_where_nothing_is_configured_and_only_narrow_otherwise() {
    use linchpin::types::root::Root;
    use linchpin::types::version::Revision;
    use linchpin_git::RootsPolicy;
    let w = World::new();
    w.init("r2");
    let root =
        |name: &str| -> Root { serde_json::from_value(json!({"uri": format!("file://{}", w.at(name))})).unwrap() };
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        type Case = (&'static [&'static str], Option<RootsPolicy>, &'static [&'static str], &'static str);
        let cases: &[Case] = &[
            (&[], None, &["r"], ""),
            (&[], Some(RootsPolicy::Use), &["r"], "r"),
            (&[], Some(RootsPolicy::Use), &["r", "r2"], "r r2"),
            (&[], Some(RootsPolicy::Use), &[], ""),
            (&[], Some(RootsPolicy::Ignore), &["r"], ""),
            (&[], Some(RootsPolicy::Narrow), &["r"], ""),
            (&["r"], None, &["r2"], "r"),
            (&["r", "r2"], Some(RootsPolicy::Narrow), &["r2"], "r2"),
            (&["r"], Some(RootsPolicy::Narrow), &["r2"], ""),
            (&["r"], Some(RootsPolicy::Use), &["r2", "r"], "r"),
        ];
        for (configured, policy, roots, allowed) in cases {
            let mut config = w.config_of(configured);
            config.roots = *policy;
            let (git, _) = Git::open(config).unwrap();
            let server = git.add_to(Server::new("git", "1")).unwrap();
            let client =
                Client::new("t", "1").revisions(&[revision]).roots(roots.iter().map(|name| root(name)).collect());
            let client = client.connect(in_process(server)).await.unwrap();
            for name in ["r", "r2"] {
                let result = client.call("git_status", json!({"repo_path": w.at(name)})).await.unwrap();
                let expected = allowed.split(' ').any(|allowed| allowed == name);
                assert_eq!(
                    !result.is_error(),
                    expected,
                    "{configured:?} {policy:?} {roots:?} {name}: {}",
                    result.text()
                );
            }
        }
    }
}

/// The clock stands still: it moves on where everything waits for it.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_roots_and_does_not_tell_them_may_use_no_repository() {
    use linchpin::types::version::Revision;
    use linchpin_git::RootsPolicy;
    let w = World::new();
    for (configured, policy) in
        [(&["r"][..], Some(RootsPolicy::Narrow)), (&["r"], Some(RootsPolicy::Use)), (&[], Some(RootsPolicy::Use))]
    {
        let mut config = w.config_of(configured);
        config.roots = policy;
        let (git, _) = Git::open(config).unwrap();
        let server = git.add_to(Server::new("git", "1")).unwrap();
        let silent = Client::new("t", "1").revisions(&[Revision::V2025_11_25]).on_roots(std::future::pending);
        let client = silent.connect(in_process(server)).await.unwrap();
        for (tool, args) in PROBES {
            let args = on(&w.at("r"), serde_json::from_str(args).unwrap());
            let result = client.call(tool, args).await.unwrap();
            let why = "roots of this client are unknown: the client did not answer roots/list within 10 s";
            assert!(result.is_error() && result.text().contains(why), "{policy:?} {tool}: {}", result.text());
        }
    }
}

/// Writes `to` for `from` in a file and gives it its old times back.
fn swapped(w: &World, name: &str, from: &str, to: &str) {
    let path = w.path(name);
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let text = w.read(name);
    assert!(text.contains(from) && from.len() == to.len());
    w.put(name, text.replace(from, to));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_times(std::fs::FileTimes::new().set_modified(modified)).unwrap();
}

#[tokio::test]
async fn configuration_that_changes_right_after_a_call_is_heeded_by_the_next() {
    let w = World::new();
    w.put("out/x", "x");
    let evil = w.script("evil", "mark");
    w.put("r/.gitattributes", "*.txt filter=evil\n");
    w.put("r/f.txt", "1\n2\n4\n");
    let harmless =
        w.read("r/.git/config") + &format!("[filter \"evil\"]\n\tcleax = {evil}\n[core]\n\tworktrex = ../../out\n");
    w.put("r/.git/config", &harmless);
    let s = w.open().await;
    let path = w.at("r");
    for round in 0..3 {
        s.text("git_diff_unstaged", on(&path, json!({}))).await;
        swapped(&w, "r/.git/config", "cleax", "clean");
        s.text("git_diff_unstaged", on(&path, json!({}))).await;
        assert!(!w.has("mark"), "round {round}");
        swapped(&w, "r/.git/config", "clean", "cleax");
        swapped(&w, "r/.git/config", "worktrex", "worktree");
        let text = s.bad("git_status", on(&path, json!({}))).await;
        assert!(text.contains("core.worktree"), "{text}");
        swapped(&w, "r/.git/config", "worktree", "worktrex");
    }
    // What is included is looked at like the rest.
    w.put("r/.git/more", format!("[filter \"evil\"]\n\tcleax = {evil}\n"));
    w.put("r/.git/config", harmless + "[include]\n\tpath = more\n");
    s.text("git_diff_unstaged", on(&path, json!({}))).await;
    swapped(&w, "r/.git/more", "cleax", "clean");
    s.text("git_diff_unstaged", on(&path, json!({}))).await;
    assert!(!w.has("mark"));
    w.git("r", &["diff"]);
    assert!(w.has("mark"), "git alone runs it");
}

#[tokio::test]
async fn configuration_that_cannot_be_read_is_named() {
    let w = World::new();
    let s = w.open().await;
    w.put("r/.git/config", "[core\n");
    let (text, theirs) = s.refused("git_status", on(&w.at("r"), json!({}))).await;
    let expected = "The repository's configuration cannot be read: file BASE/r/.git/config\nHint: ";
    assert!(w.shown(&text).starts_with(expected), "{text}");
    assert_eq!(theirs, "fatal: bad config line 1 in standard input");
    // Too long to be remembered, and heeded all the same.
    let long = format!("[core]\n\trepositoryformatversion = 0\n#{}\n\tworktree = ../../out\n", "x".repeat(100_000));
    w.put("r/.git/config", long);
    assert!(s.bad("git_status", on(&w.at("r"), json!({}))).await.contains("core.worktree"));
}

/// Waits until everything below is old enough to be remembered.
async fn settled(dir: &std::path::Path) {
    use std::os::unix::fs::MetadataExt;
    let mut open = vec![dir.to_owned()];
    let mut newest = 0;
    while let Some(dir) = open.pop() {
        newest = newest.max(std::fs::metadata(&dir).unwrap().ctime());
        let entries = std::fs::read_dir(&dir).unwrap().flatten();
        open.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    let age = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() - newest as f64;
    while age() <= 3.1 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_link_that_appears_between_two_calls_is_noticed() {
    let (w, other) = (World::new(), World::new());
    w.put("out/x", "x");
    // A link that stays, to a place that is then elsewhere.
    other.put("out/x", "x");
    other.put("r/in/x", "x");
    other.link(other.path("r/in"), "r/.git/l");
    let (s, of_other) = (w.open().await, other.open().await);
    // Directories are remembered when they were left alone for a while.
    settled(&w.path("r/.git")).await;
    settled(&other.path("r/.git")).await;
    for _ in 0..2 {
        s.text("git_status", on(&w.at("r"), json!({}))).await;
        of_other.text("git_status", on(&other.at("r"), json!({}))).await;
    }
    std::fs::remove_dir_all(other.path("r/in")).unwrap();
    other.link(other.path("out"), "r/in");
    refused(&other, &of_other, &other.at("r"), "refers to a location outside").await;
    for name in ["r/.git/refs/heads/l", "r/.git/objects/pack/l", "r/.git/l"] {
        w.link(w.path("out"), name);
        refused(&w, &s, &w.at("r"), "refers to a location outside").await;
        std::fs::remove_file(w.path(name)).unwrap();
        s.text("git_status", on(&w.at("r"), json!({}))).await;
    }
}

#[tokio::test]
async fn an_unchanged_repository_costs_no_process_but_those_that_answer() {
    let w = World::new();
    let real = common::program();
    w.script("git", "log");
    w.put("git", format!("#!/bin/sh\necho \"$3\" >> '{}'\nexec '{}' \"$@\"\n", w.at("log"), real.display()));
    let mut config = w.config();
    config.program = Some(w.path("git"));
    let s = Session::of(config).await;
    let r = w.at("r");
    w.put("log", "");
    s.text("git_status", on(&r, json!({}))).await;
    assert_eq!(w.read("log").lines().filter(|line| *line == "config").count(), 1, "{}", w.read("log"));
    w.put("r/f.txt", "changed\n");
    for (tool, args, runs) in [
        ("git_status", json!({}), "status status"),
        ("git_diff_unstaged", json!({}), "diff"),
        ("git_diff_staged", json!({}), "diff"),
        ("git_diff", json!({"target": "v1"}), "rev-parse diff"),
        ("git_log", json!({}), "log"),
        ("git_log", json!({"revision": "v1"}), "rev-parse log"),
        ("git_show", json!({"revision": "v1"}), "rev-parse log diff"),
        // Before anything is changed, what submodules bring along is looked at.
        ("git_add", json!({"files": ["f.txt"]}), "ls-files add"),
        ("git_commit", json!({"message": "m"}), "ls-files diff commit"),
        ("git_status", json!({}), "status status"),
    ] {
        w.put("log", "");
        s.text(tool, on(&r, args.clone())).await;
        assert_eq!(w.read("log").lines().collect::<Vec<_>>().join(" "), runs, "{tool} {args}");
    }
}

#[tokio::test]
async fn a_pipe_in_place_of_a_file_is_refused_and_not_waited_for() {
    for name in ["r/.git/commondir", "r/.git/objects/info/alternates", "r/.git/config.worktree"] {
        let w = World::new();
        let made = std::process::Command::new("mkfifo").arg(w.path(name)).status().unwrap();
        assert!(made.success());
        let mut config = w.config();
        config.repositories.clear();
        config.allow_any = true;
        let s = Session::of(config).await;
        let confined = Git::open(w.config()).map(|_| ()).is_err();
        assert_eq!(confined, !name.ends_with("worktree"), "{name}");
        if !name.ends_with("alternates") {
            let text = s.bad("git_status", on(&w.at("r"), json!({}))).await;
            assert!(text.contains("cannot be parsed") || text.contains("is not a regular file"), "{name}: {text}");
        }
    }
}

#[tokio::test]
async fn every_text_that_a_tool_takes_is_in_these_lists() {
    let w = World::new();
    let mut config = w.config();
    config.allow_remote = true;
    config.allow_force = true;
    let listing = Session::of(config).await.client.tools().await.unwrap();
    let tools: Vec<Value> = listing.iter().map(|tool| serde_json::to_value(tool).unwrap()).collect();
    let mut seen = 0;
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            // Whatever could hold a text: written here, in a list, as one of several types, or described elsewhere.
            let shown = schema.to_string();
            if !shown.contains("\"string\"") && !shown.contains("$ref") && !shown.contains("enum") {
                assert!(shown.contains("\"integer\"") || shown.contains("\"boolean\""), "{name} {argument}: {shown}");
                continue;
            }
            seen += 1;
            let listed = NAMED.iter().chain(INERT).any(|(of, what, _)| *of == name && what == argument);
            // A choice from a list holds nothing else, and where a repository is has tests of its own.
            let fixed = argument == "action" || argument == "repo_path";
            assert!(listed || fixed, "{name} {argument} is in neither list");
        }
    }
    assert!(seen > 60, "{seen}");
    for (tool, argument, _) in NAMED.iter().chain(INERT) {
        let has = |of: &Value| of["name"] == *tool && of["inputSchema"]["properties"][*argument].is_object();
        assert!(tools.iter().any(has), "{tool} has no {argument}");
    }
}
