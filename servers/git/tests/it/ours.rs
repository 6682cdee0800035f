//! The tools of our own, on real repositories.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use serde_json::{Value, json};

/// `main` and `feat` both changed the last line of `f.txt`; `side` adds a file.
fn parted() -> World {
    let w = World::new();
    for (branch, file, text) in [("feat", "f.txt", "1\n2\nfeat\n"), ("side", "side.txt", "s\n")] {
        w.git("r", &["checkout", "-q", "-B", branch, "v1"]);
        w.put(&format!("r/{file}"), text);
        w.git("r", &["add", "."]);
        w.git("r", &["commit", "-qm", branch]);
    }
    w.git("r", &["checkout", "-q", "main"]);
    w.put("r/f.txt", "1\n2\nmain\n");
    w.git("r", &["commit", "-qam", "main"]);
    w
}

#[tokio::test]
async fn blame_names_the_commit_of_each_line() {
    let w = World::new();
    w.put("r/f.txt", "1\nnew\n3\n");
    let s = w.open().await;
    let hash = |n: usize| w.git("r", &["rev-parse", &format!("HEAD~{}", 3 - n)]);
    let (text, value) = s.good("git_blame", on(&w.at("r"), json!({"path": "f.txt", "revision": "v1"}))).await;
    let line = |n: usize| format!("{} (U 2026-01-0{n} {n}) {n}", &hash(n)[..8]);
    assert_eq!(text.trim_end(), [line(1), line(2), line(3)].join("\n"));
    assert_eq!(
        value["hunks"][1],
        json!({"start_line": 2, "hash": hash(2), "author": "U", "date": "2026-01-02", "summary": "c2", "lines": ["2"]})
    );
    let (_, value) =
        s.good("git_blame", on(&w.at("r"), json!({"path": "f.txt", "start_line": 2, "end_line": 2}))).await;
    assert_eq!(value["hunks"][0]["hash"], "0".repeat(40), "not committed yet");
    assert_eq!(value["hunks"].as_array().unwrap().len(), 1);
    for args in [
        json!({"path": "nope"}),
        json!({"path": "f.txt", "start_line": 0}),
        json!({"path": "f.txt", "start_line": 3, "end_line": 2}),
        json!({"path": "f.txt", "start_line": 99}),
        json!({"path": "f.txt", "revision": "nope"}),
    ] {
        s.bad("git_blame", on(&w.at("r"), args)).await;
    }
}

#[tokio::test]
async fn a_long_blame_goes_on_where_it_was_cut() {
    let w = World::new();
    let lines: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    w.put("r/long.txt", lines);
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "long"]);
    let mut config = w.config();
    config.max_output_bytes = 4_000;
    let s = Session::of(config).await;
    let (mut seen, mut from) = (Vec::new(), 1);
    loop {
        let (_, value) = s.good("git_blame", on(&w.at("r"), json!({"path": "long.txt", "start_line": from}))).await;
        for hunk in value["hunks"].as_array().unwrap() {
            seen.extend(hunk["lines"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()));
        }
        match value["next_line"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(seen, (1..=500).map(|n| format!("line {n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn grep_finds_lines_now_and_then() {
    let w = World::new();
    w.put("r/d/a b:1.txt", "Needle one\nhay\nneedle two\n");
    w.put("r/bin", b"needle\0");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "grep"]);
    w.put("r/new.txt", "needle new\n");
    let s = w.open().await;
    let grep = async |args: Value| s.text("git_grep", on(&w.at("r"), args)).await;
    assert_eq!(grep(json!({"pattern": "needle"})).await, "d/a b:1.txt:3:needle two");
    assert_eq!(
        grep(json!({"pattern": "NEEDLE", "ignore_case": true})).await,
        "d/a b:1.txt:1:Needle one\nd/a b:1.txt:3:needle two"
    );
    assert_eq!(
        grep(json!({"pattern": "^needle (two|new)$", "untracked": true})).await,
        "d/a b:1.txt:3:needle two\nnew.txt:1:needle new"
    );
    assert_eq!(grep(json!({"pattern": "ne+dle", "revision": "HEAD"})).await, "d/a b:1.txt:3:needle two");
    assert_eq!(grep(json!({"pattern": "needle", "revision": "HEAD:d"})).await, "a b:1.txt:3:needle two");
    assert_eq!(grep(json!({"pattern": "ne+dle", "fixed": true})).await, "No matches");
    assert_eq!(grep(json!({"pattern": "needle", "revision": "v1"})).await, "No matches");
    assert_eq!(grep(json!({"pattern": "1|2", "paths": ["f.txt"]})).await, "f.txt:1:1\nf.txt:2:2");
    let (_, value) = s.good("git_grep", on(&w.at("r"), json!({"pattern": "two"}))).await;
    assert_eq!(value, json!({"matches": [{"path": "d/a b:1.txt", "line": 3, "column": 8, "text": "needle two"}]}));
    for pattern in ["", "(", "a\nb"] {
        s.bad("git_grep", on(&w.at("r"), json!({"pattern": pattern}))).await;
    }
    s.bad("git_grep", on(&w.at("r"), json!({"pattern": "x", "revision": "nope"}))).await;
}

#[tokio::test]
async fn grep_goes_on_with_a_cursor() {
    let w = World::new();
    w.put("r/many.txt", (0..50).map(|n| format!("hit {n}\n")).collect::<String>());
    w.git("r", &["add", "."]);
    let s = w.open().await;
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let (_, value) =
            s.good("git_grep", on(&w.at("r"), json!({"pattern": "hit", "max_count": 20, "cursor": cursor}))).await;
        seen.extend(value["matches"].as_array().unwrap().iter().map(|m| m["line"].as_u64().unwrap()));
        cursor = value["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, (1..=50).collect::<Vec<u64>>());
}

#[tokio::test]
async fn tags_are_listed_made_and_deleted() {
    let w = World::new();
    let s = w.open().await;
    let r = w.at("r");
    let head = w.git("r", &["rev-parse", "HEAD"]);
    assert_eq!(s.text("git_tag", on(&r, json!({}))).await, "v1");
    let text = s.text("git_tag", on(&r, json!({"action": "create", "name": "v2", "message": "Second\n\nmore"}))).await;
    assert_eq!(text, format!("Created tag 'v2' at {head}"));
    assert_eq!(w.git("r", &["cat-file", "-t", "v2"]), "tag");
    s.text("git_tag", on(&r, json!({"action": "create", "name": "sub/v0", "revision": "v1~2"}))).await;
    assert_eq!(w.git("r", &["cat-file", "-t", "sub/v0"]), "commit");
    let (text, value) = s.good("git_tag", on(&r, json!({"action": "list"}))).await;
    assert_eq!(text, "sub/v0\nv1\nv2");
    let v2 = &value["tags"][2];
    assert_eq!((&v2["hash"], &v2["annotated"], &v2["subject"]), (&json!(head), &json!(true), &json!("Second")));
    for (args, words) in [
        (json!({"action": "create", "name": "v1"}), "Tag 'v1' already exists"),
        (json!({"action": "create", "name": "a b"}), "Invalid tag name: 'a b'"),
        (json!({"action": "create"}), "Invalid tag name: ''"),
        (json!({"action": "create", "name": "v3", "revision": "nope"}), "Ref 'nope' did not resolve"),
        (json!({"action": "delete", "name": "nope"}), "Tag 'nope' does not exist"),
    ] {
        let text = s.bad("git_tag", on(&r, args.clone())).await;
        assert!(text.starts_with(words), "{args}: {text}");
    }
    let text = s.text("git_tag", on(&r, json!({"action": "delete", "name": "v2"}))).await;
    assert_eq!(text, format!("Deleted tag 'v2', which pointed to {head}"), "so that it can be made again");
    assert_eq!(w.git("r", &["tag"]), "sub/v0\nv1");
}

#[tokio::test]
async fn changes_are_put_aside_and_brought_back() {
    let w = World::new();
    let s = w.open().await;
    let stash = async |args: Value| s.good("git_stash", on(&w.at("r"), args)).await;
    assert_eq!(stash(json!({"action": "push"})).await.0, "No local changes to save");
    assert_eq!(stash(json!({"action": "list"})).await.0, "No stashes");
    w.put("r/f.txt", "one\n");
    w.put("r/new.txt", "new\n");
    stash(json!({"action": "push", "message": "-m first"})).await;
    assert!(w.has("r/new.txt") && w.read("r/f.txt") == "1\n2\n3\n");
    let (_, value) = stash(json!({"action": "push", "include_untracked": true})).await;
    assert!(!w.has("r/new.txt"));
    assert_eq!(value["stashes"].as_array().unwrap().len(), 2);
    let (text, _) = stash(json!({"action": "list"})).await;
    assert!(text.ends_with("stash@{1}: On main: -m first"), "{text}");
    let (text, value) = stash(json!({"action": "show", "index": 1})).await;
    assert!(
        text.starts_with("stash@{1}:\ndiff --git a/f.txt") && value["changes"]["files"][0]["path"] == "f.txt",
        "{text}"
    );
    stash(json!({"action": "pop"})).await;
    assert_eq!(w.read("r/new.txt"), "new\n");
    stash(json!({"action": "apply"})).await;
    assert_eq!(w.read("r/f.txt"), "one\n");
    let text = s.bad("git_stash", on(&w.at("r"), json!({"action": "pop", "index": 7}))).await;
    assert!(text.starts_with("stash@{7} does not exist"), "{text}");
    w.git("r", &["commit", "-qam", "changed"]);
    w.put("r/f.txt", "two\n");
    w.git("r", &["commit", "-qam", "changed again"]);
    let (text, value) = stash(json!({"action": "pop"})).await;
    assert!(text.contains("conflicts in: f.txt") && value["conflicts"] == json!(["f.txt"]), "{text}");
    assert_eq!(value["stashes"].as_array().unwrap().len(), 1, "kept");
    w.git("r", &["reset", "-q", "--hard"]);
    let (text, value) = stash(json!({"action": "drop"})).await;
    assert!(text.starts_with("Dropped stash@{0} (") && value["stashes"] == json!([]), "{text}");
}

#[tokio::test]
async fn merges_end_or_stop_at_conflicts() {
    let w = parted();
    let s = w.open().await;
    let merge = async |args: Value| s.good("git_merge", on(&w.at("r"), args)).await;
    let (text, value) = merge(json!({"branch": "side"})).await;
    assert!(text.starts_with("Merged; HEAD is now ") && value["status"] == "done", "{text}");
    assert_eq!(w.git("r", &["log", "-1", "--format=%s|%an"]), "Merge branch 'side'|U");
    assert_eq!(merge(json!({"branch": "side"})).await.1["status"], "up_to_date");
    let (text, value) = merge(json!({"branch": "feat"})).await;
    assert!(text.starts_with("Stopped at conflicts in: f.txt."), "{text}");
    assert_eq!((&value["status"], &value["conflicts"]), (&json!("conflicts"), &json!(["f.txt"])));
    let text = s.bad("git_merge", on(&w.at("r"), json!({"branch": "v1~1", "no_ff": true}))).await;
    assert!(!text.is_empty(), "not while one is in progress");
    assert_eq!(merge(json!({"abort": true})).await.1["status"], "aborted");
    assert_eq!(w.read("r/f.txt"), "1\n2\nmain\n");
    merge(json!({"branch": "feat", "message": "Both"})).await;
    w.put("r/f.txt", "1\n2\nboth\n");
    s.text("git_add", on(&w.at("r"), json!({"files": ["f.txt"]}))).await;
    s.text("git_commit", on(&w.at("r"), json!({"message": "Both"}))).await;
    assert_eq!(w.git("r", &["log", "-1", "--format=%p"]).split(' ').count(), 2);
    for args in [
        json!({}),
        json!({"branch": "nope"}),
        json!({"abort": true}),
        json!({"branch": "feat", "no_ff": true, "ff_only": true}),
    ] {
        s.bad("git_merge", on(&w.at("r"), args)).await;
    }
}

#[tokio::test]
async fn merges_move_forward_squash_or_refuse_as_asked() {
    for (args, parents, subject) in [
        (json!({"branch": "side"}), 1, "side"),
        (json!({"branch": "side", "no_ff": true}), 2, "Merge branch 'side' into at"),
        (json!({"branch": "side", "ff_only": true}), 1, "side"),
        (json!({"branch": "side", "no_ff": true, "message": "-m odd"}), 2, "-m odd"),
    ] {
        let w = parted();
        w.git("r", &["checkout", "-q", "-b", "at", "v1"]);
        w.open().await.text("git_merge", on(&w.at("r"), args.clone())).await;
        assert_eq!(w.git("r", &["log", "-1", "--format=%p"]).split(' ').count(), parents, "{args}");
        assert_eq!(w.git("r", &["log", "-1", "--format=%s"]), subject, "{args}");
    }
    let w = parted();
    let s = w.open().await;
    let text = s.bad("git_merge", on(&w.at("r"), json!({"branch": "side", "ff_only": true}))).await;
    assert!(text.to_lowercase().contains("fast-forward"), "{text}");
    let head = w.git("r", &["rev-parse", "HEAD"]);
    let text = s.text("git_merge", on(&w.at("r"), json!({"branch": "side", "squash": true}))).await;
    assert!(text.starts_with("Staged, not committed"), "{text}");
    assert_eq!(w.git("r", &["rev-parse", "HEAD"]), head);
    assert_eq!(w.git("r", &["diff", "--cached", "--name-only"]), "side.txt");
}

#[tokio::test]
async fn a_rebase_needs_to_be_confirmed() {
    let w = parted();
    let s = w.open().await;
    let r = w.at("r");
    let head = w.git("r", &["rev-parse", "HEAD"]);
    let text = s.bad("git_rebase", on(&r, json!({"upstream": "side"}))).await;
    assert!(text.starts_with("Not confirmed: 1 commits of main would be replaced by new ones on side"), "{text}");
    assert_eq!(w.git("r", &["rev-parse", "HEAD"]), head);
    s.text("git_rebase", on(&r, json!({"upstream": "side", "confirm": true}))).await;
    assert_eq!(w.git("r", &["log", "-2", "--format=%s"]), "main\nside");
    let (text, value) = s.good("git_rebase", on(&r, json!({"upstream": "feat", "confirm": true}))).await;
    assert_eq!((&value["status"], &value["conflicts"]), (&json!("conflicts"), &json!(["f.txt"])), "{text}");
    assert!(s.text("git_status", on(&r, json!({}))).await.contains("rebase in progress"));
    let (_, value) = s.good("git_rebase", on(&r, json!({"action": "abort"}))).await;
    assert_eq!(value["status"], "aborted");
    s.text("git_rebase", on(&r, json!({"upstream": "feat", "confirm": true}))).await;
    w.put("r/f.txt", "1\n2\nresolved\n");
    s.text("git_add", on(&r, json!({"files": ["f.txt"]}))).await;
    let (_, value) = s.good("git_rebase", on(&r, json!({"action": "continue"}))).await;
    assert_eq!(value["status"], "done");
    assert_eq!(w.git("r", &["log", "-3", "--format=%s"]), "main\nside\nfeat");
    assert_eq!(w.git("r", &["symbolic-ref", "--short", "HEAD"]), "main");
    for args in [json!({"confirm": true}), json!({"upstream": "nope", "confirm": true}), json!({"action": "continue"})]
    {
        s.bad("git_rebase", on(&r, args)).await;
    }
    let w = parted();
    let s = w.open().await;
    s.text("git_rebase", on(&w.at("r"), json!({"upstream": "v1", "onto": "side", "confirm": true}))).await;
    assert_eq!(w.git("r", &["log", "-2", "--format=%s"]), "main\nside");
}

#[tokio::test]
async fn commits_are_picked() {
    let w = parted();
    let s = w.open().await;
    let r = w.at("r");
    let pick = async |args: Value| s.good("git_cherry_pick", on(&r, args)).await;
    pick(json!({"revisions": ["side"], "record_origin": true})).await;
    let message = w.git("r", &["log", "-1", "--format=%B"]);
    assert!(message.starts_with("side\n\n(cherry picked from commit "), "{message}");
    let (_, value) = pick(json!({"revisions": ["feat"]})).await;
    assert_eq!(value["status"], "conflicts");
    w.put("r/f.txt", "resolved\n");
    s.text("git_add", on(&r, json!({"files": ["f.txt"]}))).await;
    assert_eq!(pick(json!({"action": "continue"})).await.1["status"], "done");
    assert_eq!(w.git("r", &["log", "-1", "--format=%s"]), "feat");
    w.git("r", &["reset", "-q", "--hard", "v1"]);
    pick(json!({"revisions": ["v1..side"]})).await;
    assert_eq!(w.git("r", &["log", "-1", "--format=%s"]), "side");
    w.git("r", &["reset", "-q", "--hard", "v1"]);
    let (text, _) = pick(json!({"revisions": ["side"], "no_commit": true})).await;
    assert!(text.starts_with("Staged, not committed"), "{text}");
    w.git("r", &["reset", "-q", "--hard", "main~1"]);
    for args in
        [json!({}), json!({"revisions": ["nope"]}), json!({"revisions": ["side..side"]}), json!({"action": "abort"})]
    {
        s.bad("git_cherry_pick", on(&r, args)).await;
    }
}

#[tokio::test]
async fn work_trees_are_added_and_removed() {
    let w = parted();
    let s = w.open().await;
    let r = w.at("r");
    let tree = async |args: Value| s.good("git_worktree", on(&r, args)).await;
    tree(json!({"action": "add", "path": "wt/feat", "revision": "feat"})).await;
    assert_eq!(w.read("r/wt/feat/f.txt"), "1\n2\nfeat\n");
    let (_, value) = tree(json!({"action": "add", "path": "wt/new", "new_branch": "nb", "revision": "v1"})).await;
    assert_eq!(w.git("r", &["rev-parse", "nb"]), w.git("r", &["rev-parse", "v1"]));
    let paths: Vec<&str> = value["worktrees"].as_array().unwrap().iter().filter_map(|t| t["branch"].as_str()).collect();
    assert_eq!(paths, ["main", "feat", "nb"]);
    assert!(s.text("git_status", on(&w.at("r/wt/feat"), json!({}))).await.contains("On branch feat"));
    w.put("r/wt/feat/dirty", "d");
    s.bad("git_worktree", on(&r, json!({"action": "remove", "path": "wt/feat"}))).await;
    tree(json!({"action": "remove", "path": "wt/feat", "force": true})).await;
    assert!(!w.has("r/wt/feat"));
    std::fs::remove_dir_all(w.path("r/wt/new")).unwrap();
    assert_eq!(tree(json!({})).await.1["worktrees"][1]["prunable"], true);
    assert_eq!(tree(json!({"action": "prune"})).await.1["worktrees"].as_array().unwrap().len(), 1);
    for args in [
        json!({"action": "add"}),
        json!({"action": "add", "path": "f.txt"}),
        json!({"action": "add", "path": "wt/x", "revision": "main"}),
        json!({"action": "add", "path": "wt/x", "new_branch": "a b"}),
        json!({"action": "remove", "path": "."}),
        json!({"action": "remove", "path": "wt"}),
    ] {
        s.bad("git_worktree", on(&r, args)).await;
    }
}

#[tokio::test]
async fn commits_and_tags_are_signed_when_the_operator_says_so() {
    let w = World::new();
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", &w.at("home/key")])
        .status();
    assert!(made.is_ok_and(|status| status.success()), "this test needs ssh-keygen");
    for (name, value) in [("gpg.format", "ssh"), ("user.signingKey", w.at("home/key.pub").as_str())] {
        w.git("r", &["config", "--global", name, value]);
    }
    w.git("r", &["config", "--global", "commit.gpgSign", "true"]);
    w.git("r", &["config", "--global", "tag.gpgSign", "true"]);
    for sign in [false, true] {
        let mut config = w.config();
        config.sign = sign;
        let s = Session::of(config).await;
        w.put("r/f.txt", format!("{sign}\n"));
        s.text("git_add", on(&w.at("r"), json!({"files": ["f.txt"]}))).await;
        s.text("git_commit", on(&w.at("r"), json!({"message": "x"}))).await;
        assert_eq!(w.git("r", &["cat-file", "commit", "HEAD"]).contains("gpgsig"), sign);
        let name = format!("t{sign}");
        s.text("git_tag", on(&w.at("r"), json!({"action": "create", "name": name, "message": "m"}))).await;
        assert_eq!(w.git("r", &["cat-file", "tag", &name]).contains("SSH SIGNATURE"), sign);
    }
}

/// Makes a state of `r`, with `other` as a clone of it.
type Making = fn(&World);

const STATES: &[(&str, Making)] = &[
    ("plain", |_| {}),
    ("detached", |w| drop(w.git("r", &["checkout", "-q", "--detach", "feat"]))),
    ("unborn", |w| drop(w.git("r", &["checkout", "-q", "--orphan", "new"]))),
    ("a work tree elsewhere", |w| drop(w.git("r", &["worktree", "add", "-q", &w.at("elsewhere"), "side"]))),
    ("a branch that points at another", |w| drop(w.git("r", &["symbolic-ref", "refs/heads/alias", "refs/heads/main"]))),
    ("names like notes", |w| {
        for name in ["(HEAD", "*", "+x", "remotes/x", "refs/heads/y", "heads/main"] {
            w.try_git("r", &["branch", name]);
        }
        w.git("r", &["checkout", "-q", "(HEAD"]);
    }),
    ("a rebase that stopped", |w| {
        let (good, _) = w.try_git("r", &["rebase", "feat"]);
        assert!(!good, "it conflicts");
    }),
    ("another order", |w| drop(w.git("r", &["config", "branch.sort", "-refname"]))),
    ("remotes", |w| {
        w.git("r", &["clone", "-q", ".", &w.at("other")]);
        w.git("r", &["remote", "add", "origin", &w.at("other")]);
        w.git("r", &["fetch", "-q", "origin"]);
        w.git("r", &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
        w.git("r", &["branch", "-q", "--set-upstream-to=origin/main", "main"]);
        w.git("r", &["tag", "origin/main", "v1"]);
    }),
];

#[tokio::test]
async fn branches_are_listed_as_git_lists_them_in_every_state() {
    for (state, make) in STATES {
        let w = parted();
        make(&w);
        let s = w.open().await;
        for (kind, flags) in [("local", vec![]), ("remote", vec!["-r"]), ("all", vec!["-a"])] {
            for contains in [None, Some("v1"), Some("feat")] {
                let mut args = vec!["branch", "--no-color", "--no-column"];
                args.extend(&flags);
                let mut asked = json!({"branch_type": kind});
                if let Some(commit) = contains {
                    args.extend(["--contains", commit]);
                    asked["contains"] = json!(commit);
                }
                let (text, value) = s.good("git_branch", on(&w.at("r"), asked)).await;
                assert_eq!(text, w.git("r", &args), "{state}: {args:?}");
                let named = |branch: &Value| {
                    let space = if branch["remote"] == true { "refs/remotes" } else { "refs/heads" };
                    format!("{space}/{} {} {}", text_of(branch, "name"), text_of(branch, "hash"), branch["current"])
                };
                let mut ours: Vec<String> = value["branches"].as_array().unwrap().iter().map(named).collect();
                let spaces: &[&str] = match kind {
                    "local" => &["refs/heads"],
                    "remote" => &["refs/remotes"],
                    _ => &["refs/heads", "refs/remotes"],
                };
                let mut refs =
                    vec!["for-each-ref", "--format=%(refname) %(objectname) %(if)%(HEAD)%(then)true%(else)false%(end)"];
                if let Some(commit) = contains {
                    refs.extend(["--contains", commit]);
                }
                refs.extend(spaces);
                let theirs = w.git("r", &refs);
                let mut theirs: Vec<&str> = theirs.lines().collect();
                ours.sort();
                theirs.sort_unstable();
                assert_eq!(ours, theirs, "{state}: {kind} {contains:?}");
            }
        }
    }
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[tokio::test]
async fn errors_say_what_to_do_and_only_what_has_to_do_with_them() {
    let w = parted();
    // A repository that names programs which have nothing to do with what fails below.
    w.git("r", &["config", "gc.recentObjectsHook", "x"]);
    w.git("r", &["config", "filter.x.clean", "x"]);
    w.git("r", &["config", "core.sshCommand", "x"]);
    let s = w.open().await;
    let r = w.at("r");
    s.text("git_merge", on(&r, json!({"branch": "side"}))).await;
    let merge = w.git("r", &["rev-parse", "HEAD"]);
    w.git("r", &["checkout", "-q", "-b", "picks", "v1"]);
    w.git("r", &["cherry-pick", "side"]);
    let side = w.git("r", &["rev-parse", "side"]);
    let bad: &[(&str, Value, &str, &str)] = &[
        ("git_merge", json!({"abort": true}), "There is no merge to abort", ""),
        ("git_cherry_pick", json!({"revisions": [merge]}), "is a merge but no -m option was given", "Pass mainline"),
        ("git_cherry_pick", json!({"revisions": [side]}), "The previous cherry-pick is now empty", "action skip"),
    ];
    for (tool, args, expected, hint) in bad {
        let (text, theirs) = s.refused(tool, on(&r, args.clone())).await;
        assert!(theirs.contains(expected) && text.contains(hint), "{tool} {args}: {text} {theirs}");
        assert!(!text.contains("trust-repo-config"), "{tool} {args}: {text}");
    }
    s.text("git_cherry_pick", on(&r, json!({"action": "skip"}))).await;
    w.git("r", &["checkout", "-q", "main"]);
    w.put("r/f.txt", "dirty\n");
    let (text, theirs) = s.refused("git_checkout", on(&r, json!({"branch_name": "feat"}))).await;
    assert_eq!(text, "git checkout failed with exit code 1\nHint: Commit the changes of these files first.");
    assert!(theirs.contains("would be overwritten by checkout:\n\tf.txt\n"), "{theirs}");
    w.git("r", &["checkout", "-q", "feat", "--force"]);
    w.put("r/side.txt", "in the way\n");
    let (text, theirs) = s.refused("git_checkout", on(&r, json!({"branch_name": "side"}))).await;
    assert!(text.contains("\nHint: Move these files away") && theirs.contains("\n\tside.txt\n"), "{text} {theirs}");
    for target in ["HEAD:f.txt", ":f.txt"] {
        let text = s.bad("git_diff", on(&r, json!({"target": target}))).await;
        assert!(text.starts_with(&format!("'{target}' is not a commit")) && text.contains("in paths"), "{text}");
    }
}

#[tokio::test]
async fn errors_tell_their_kind_to_programs() {
    let w = World::new();
    w.init("out");
    w.put("r/f.txt", "changed\n");
    w.git("r", &["checkout", "-q", "-b", "other", "v1~1", "--force"]);
    w.put("r/f.txt", "dirty\n");
    let s = w.open().await;
    for (tool, args, kind) in [
        ("git_status", on(&w.at("out"), json!({})), "denied"),
        ("git_status", on(&w.at("r/nowhere"), json!({})), "not_found"),
        ("git_show", on(&w.at("r"), json!({"revision": "nope"})), "not_found"),
        ("git_show", on(&w.at("r"), json!({"revision": "-x"})), "invalid"),
        ("git_create_branch", on(&w.at("r"), json!({"branch_name": "feat"})), "conflict"),
        ("git_checkout", on(&w.at("r"), json!({"branch_name": "main"})), "conflict"),
        ("git_merge", on(&w.at("r"), json!({"abort": true})), "upstream"),
    ] {
        let result = s.call(tool, args.clone()).await;
        assert!(result.is_error(), "{tool} {args}");
        let meta = serde_json::to_value(&result.result().unwrap().meta).unwrap();
        assert_eq!(meta[linchpin_kit::ERROR_META]["kind"], kind, "{tool} {args}: {}", result.text());
    }
}

#[tokio::test]
async fn files_and_locks_that_are_in_the_way_are_named_for_what_they_are() {
    // Git's own words, for those who may do everything and so never see them.
    for (said, hint, not) in [
        (
            "error: open(\"x\"): Permission denied\nerror: unable to index file 'x'\nfatal: adding files failed",
            "owner or mode",
            "ssh",
        ),
        ("fatal: Unable to create '/x/.git/index.lock': Permission denied", "owner or mode", "Another git"),
        (
            "fatal: Unable to create '/x/.git/index.lock': Read-only file system",
            "on a read-only file system",
            "Another git",
        ),
        (
            "error: insufficient permission for adding an object to repository database .git/objects",
            "owner or mode",
            "ssh",
        ),
        ("fatal: write error: No space left on device", "disk space", "ssh"),
        ("git@example.com: Permission denied (publickey).", "an ssh agent must provide an authorized key", "owner"),
    ] {
        let w = World::new();
        w.script("git", "unused");
        w.put("said", format!("{said}\n"));
        let (real, words) = (common::program(), w.at("said"));
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *\" add \"*) cat '{words}' >&2; exit 128;; esac\nexec '{}' \"$@\"\n",
            real.display()
        );
        w.put("git", script);
        let mut config = w.config();
        config.program = Some(w.path("git"));
        let text = Session::of(config).await.bad("git_add", on(&w.at("r"), json!({"files": ["f.txt"]}))).await;
        let (_, advice) = text.split_once("\nHint: ").unwrap_or_else(|| panic!("no hint: {text}"));
        let advice = advice.split_once('\n').map_or(advice, |(advice, _)| advice);
        assert!(advice.contains(hint) && !advice.contains(not), "{said}: {advice}");
    }
    // Locks that a git left behind.
    let w = World::new();
    let s = w.open().await;
    w.put("r/f.txt", "changed\n");
    for (lock, tool, args) in [
        ("r/.git/index.lock", "git_add", json!({"files": ["f.txt"]})),
        ("r/.git/refs/heads/new.lock", "git_create_branch", json!({"branch_name": "new"})),
        ("r/.git/HEAD.lock", "git_checkout", json!({"branch_name": "feat"})),
    ] {
        w.put(lock, "");
        let (text, theirs) = s.refused(tool, on(&w.at("r"), args.clone())).await;
        assert!(text.contains("left its lock file behind") && theirs.contains(&w.at(lock)), "{tool}: {text} {theirs}");
        std::fs::remove_file(w.path(lock)).unwrap();
        w.git("r", &["checkout", "-q", "--", "f.txt"]);
        s.text(tool, on(&w.at("r"), args)).await;
    }
}
