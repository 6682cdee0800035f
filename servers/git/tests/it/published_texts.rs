//! The twelve published tools answer what the published server answers: texts measured on it.
#![cfg(unix)]

use crate::common;

use common::{World, on};
use serde_json::{Value, json};

#[tokio::test]
async fn status_says_what_git_says() {
    let w = World::new();
    w.put("r/f.txt", "1\n2\n3\nz\n");
    w.put("r/un.txt", "u\n");
    let s = w.open().await;
    let (text, value) = s.good("git_status", on(&w.at("r"), json!({}))).await;
    assert_eq!(
        text,
        "Repository status:\nOn branch main\nChanges not staged for commit:\n  (use \"git add <file>...\" to update what \
         will be committed)\n  (use \"git restore <file>...\" to discard changes in working directory)\n\tmodified:   \
         f.txt\n\nUntracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n\tun.txt\n\nno \
         changes added to commit (use \"git add\" and/or \"git commit -a\")"
    );
    let head = w.git("r", &["rev-parse", "HEAD"]);
    assert_eq!(
        value,
        json!({"branch": "main", "head": head, "clean": false, "entries": [
            {"path": "f.txt", "staged": ".", "unstaged": "M"},
            {"path": "un.txt", "staged": "?", "unstaged": "?"},
        ]})
    );
}

#[tokio::test]
async fn every_letter_of_the_status_is_understood() {
    let w = World::new();
    w.put("r/two words.txt", "a\nb\nc\nd\n");
    w.put("r/gone.txt", "g\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "more"]);
    w.git("r", &["mv", "two words.txt", "new name.txt"]);
    w.put("r/added\tx", "n");
    w.git("r", &["add", "added\tx"]);
    std::fs::remove_file(w.path("r/gone.txt")).unwrap();
    let (_, value) = w.open().await.good("git_status", on(&w.at("r"), json!({}))).await;
    let mut entries: Vec<String> = value["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            let text = |name: &str| e[name].as_str().unwrap_or("-").to_owned();
            format!("{}{} {} {}", text("staged"), text("unstaged"), text("path"), text("from"))
        })
        .collect();
    entries.sort();
    assert_eq!(entries, [".D gone.txt -", "A. added\tx -", "R. new name.txt two words.txt"]);
}

#[tokio::test]
async fn diffs_have_the_published_headings() {
    let w = World::new();
    w.put("r/f.txt", "1\n2\n3\nz\n");
    let s = w.open().await;
    let r = w.at("r");
    let patch = "diff --git a/f.txt b/f.txt\nindex 01e79c3..eae2d46 100644\n--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,4 @@\n 1\n 2\n 3\n+z";
    let (text, value) = s.good("git_diff_unstaged", on(&r, json!({}))).await;
    assert_eq!(text, format!("Unstaged changes:\n{patch}"));
    assert_eq!(value, json!({"diff": patch, "files": [{"path": "f.txt", "added": 1, "removed": 0}]}));
    assert_eq!(s.text("git_diff_staged", on(&r, json!({}))).await, "Staged changes:\n");
    let text = s.text("git_diff_unstaged", on(&r, json!({"context_lines": 0}))).await;
    assert!(text.contains("@@ -3,0 +4 @@\n+z"), "{text}");
    assert_eq!(s.text("git_diff", on(&r, json!({"target": "feat"}))).await, format!("Diff with feat:\n{patch}"));
    let stat = s.text("git_diff", on(&r, json!({"target": "feat", "stat_only": true}))).await;
    assert!(stat.starts_with("Diff with feat:\n f.txt | 1 +\n"), "{stat}");
    w.git("r", &["add", "."]);
    assert_eq!(
        s.text("git_diff_staged", on(&r, json!({"context_lines": 3.0}))).await,
        format!("Staged changes:\n{patch}")
    );
    for wrong in [json!(-1), json!(1.5), json!("x"), json!(10_000_000_000_i64)] {
        s.bad("git_diff_staged", on(&r, json!({"context_lines": wrong}))).await;
    }
}

#[tokio::test]
async fn a_diff_takes_ranges_and_paths() {
    let w = World::new();
    w.git("r", &["checkout", "-q", "feat"]);
    w.put("r/new.txt", "n\n");
    w.put("r/d/e.txt", "e\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "on feat"]);
    w.git("r", &["checkout", "-q", "main"]);
    w.put("r/m.txt", "m\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "on main"]);
    let s = w.open().await;
    let files = async |args: Value| -> String {
        let (_, value) = s.good("git_diff", on(&w.at("r"), args)).await;
        value["files"].as_array().unwrap().iter().filter_map(|f| f["path"].as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(files(json!({"target": "main..feat"})).await, "d/e.txt m.txt new.txt");
    assert_eq!(files(json!({"target": "main...feat"})).await, "d/e.txt new.txt");
    assert_eq!(files(json!({"target": "feat.."})).await, "d/e.txt m.txt new.txt");
    assert_eq!(files(json!({"target": "main..feat", "paths": ["d"]})).await, "d/e.txt");
    assert_eq!(files(json!({"target": "feat", "paths": [w.at("r/new.txt"), "m.txt"]})).await, "m.txt new.txt");
    for target in ["nosuch", "main..nosuch", "nosuch...main", "", "..--output=x"] {
        let text = s.bad("git_diff", on(&w.at("r"), json!({"target": target}))).await;
        assert!(
            text.contains("did not resolve to an object") || text.contains("cannot start with"),
            "{target}: {text}"
        );
    }
}

#[tokio::test]
async fn the_log_has_the_published_blocks() {
    let w = World::new();
    let s = w.open().await;
    let hash = |n: usize| w.git("r", &["rev-parse", &format!("HEAD~{}", 3 - n)]);
    let block = |n: usize| {
        format!("Commit: {}\nAuthor: U\nDate: 2026-01-0{n} 10:00:00+01:00\nMessage: c{n}\n\nbody line\n\n", hash(n))
    };
    let log = async |args: Value| s.text("git_log", on(&w.at("r"), args)).await;
    let of = |ns: &[usize]| format!("Commit history:\n{}", ns.iter().map(|n| block(*n)).collect::<Vec<_>>().join("\n"));
    for (args, ns) in [
        (json!({}), &[3, 2, 1][..]),
        (json!({"max_count": 2}), &[3, 2]),
        (json!({"max_count": 0}), &[]),
        (json!({"max_count": -1}), &[3, 2, 1]),
        (json!({"start_timestamp": "2026-01-02T00:00:00", "end_timestamp": "2026-01-03T23:00:00"}), &[3, 2]),
        (json!({"end_timestamp": "Jan 2 2026 09:30 +0000"}), &[2, 1]),
        (json!({"start_timestamp": null, "end_timestamp": ""}), &[3, 2, 1]),
        (json!({"revision": "v1~1"}), &[2, 1]),
        (json!({"revision": "v1~2..v1"}), &[3, 2]),
        (json!({"paths": ["nosuch"]}), &[]),
    ] {
        assert_eq!(log(args.clone()).await, of(ns), "{args}");
    }
    assert_eq!(
        log(json!({"start_timestamp": "yesterday", "max_count": 5})).await,
        "Commit history:\n",
        "relative dates"
    );
    let (_, value) = s.good("git_log", on(&w.at("r"), json!({"max_count": 1}))).await;
    let commit = json!({"hash": hash(3), "author": "U", "email": "u@x", "date": "2026-01-03T10:00:00+01:00",
        "parents": [hash(2)], "message": "c3\n\nbody line\n"});
    assert_eq!(value, json!({"commits": [commit]}));
}

#[tokio::test]
async fn the_log_goes_on_with_a_cursor() {
    let w = World::new();
    for n in 0..30 {
        w.git("r", &["commit", "-q", "--allow-empty", "-m", &format!("{n} {}", "x".repeat(200))]);
    }
    let mut config = w.config();
    config.max_output_bytes = 3_000;
    let s = common::Session::of(config).await;
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..40 {
        let (text, value) = s.good("git_log", on(&w.at("r"), json!({"max_count": 25, "cursor": cursor}))).await;
        assert!(text.len() < 4_000);
        seen.extend(value["commits"].as_array().unwrap().iter().map(|c| c["message"].as_str().unwrap().to_owned()));
        cursor = value["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let expected: Vec<String> = (5..30).rev().map(|n| format!("{n} {}\n", "x".repeat(200))).collect();
    assert_eq!(seen, expected, "all that was asked for, once, in order");
    s.bad("git_log", on(&w.at("r"), json!({"cursor": "x"}))).await;
}

#[tokio::test]
async fn show_has_the_published_form() {
    let w = World::new();
    let s = w.open().await;
    let r = w.at("r");
    let hash = w.git("r", &["rev-parse", "HEAD"]);
    let show = async |revision: &str| s.text("git_show", on(&r, json!({"revision": revision}))).await;
    let commit = format!(
        "commit {hash}\nAuthor: U <u@x>\nDate:   2026-01-03 10:00:00 +0100\n\n    c3\n    \n    body line\n\n--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,3 @@\n 1\n 2\n+3\n"
    );
    assert_eq!(show("HEAD").await, commit);
    assert_eq!(show("v1").await, commit);
    w.git("r", &["tag", "-a", "-m", "annotated", "v2"]);
    assert_eq!(show("v2").await, commit, "a tag stands for its commit");
    assert_eq!(show("HEAD:f.txt").await, "1\n2\n3\n");
    assert_eq!(show("HEAD:").await, "f.txt");
    assert_eq!(show("HEAD^{tree}").await, "f.txt");
    let root = show("HEAD~2").await;
    assert!(root.ends_with("    body line\n\n--- /dev/null\n+++ b/f.txt\n@@ -0,0 +1 @@\n+1\n"), "{root}");
    let text = s.bad("git_show", on(&r, json!({"revision": "HEAD:nope"}))).await;
    assert!(text.starts_with("Blob or Tree named 'nope' not found"), "{text}");
    let text = s.bad("git_show", on(&r, json!({"revision": "nope"}))).await;
    assert!(text.starts_with("Ref 'nope' did not resolve to an object"), "{text}");
}

#[tokio::test]
async fn show_names_odd_files_as_the_published_server_does() {
    let w = World::new();
    w.put("r/d/deep file.txt", "d\n");
    w.put("r/é.txt", "e\n");
    w.put("r/empty", "");
    w.put("r/bin", b"\0\x01\x02");
    w.put("r/old name", "1\n2\n3\n4\n5\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "odd"]);
    w.git("r", &["mv", "old name", "new name"]);
    w.git("r", &["rm", "-q", "empty"]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(w.path("r/f.txt"), mode).unwrap();
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "moved"]);
    let s = w.open().await;
    let show = async |revision: &str| s.text("git_show", on(&w.at("r"), json!({"revision": revision}))).await;
    let odd = show("HEAD~1").await;
    let tail = odd.split_once("    odd\n").unwrap().1;
    assert_eq!(
        tail,
        "\n--- /dev/null\n+++ b/bin\nBinary files /dev/null and b/bin differ\n\n--- /dev/null\n+++ b/d/deep file.txt\n@@ -0,0 +1 @@\n+d\n\n--- /dev/null\n+++ b/empty\n\n--- /dev/null\n+++ b/old name\n@@ -0,0 +1,5 @@\n+1\n+2\n+3\n+4\n+5\n\n--- /dev/null\n+++ b/é.txt\n@@ -0,0 +1 @@\n+e\n"
    );
    let moved = show("HEAD").await;
    let tail = moved.split_once("    moved\n").unwrap().1;
    assert_eq!(tail, "\n--- a/empty\n+++ /dev/null\n\n--- a/f.txt\n+++ b/f.txt\n\n--- a/old name\n+++ b/new name\n");
    assert_eq!(show("HEAD:").await, "bin\nd/\nf.txt\nnew name\né.txt");
}

#[tokio::test]
async fn staging_and_committing_answer_the_published_sentences() {
    let w = World::new();
    w.put("r/un.txt", "u\n");
    let s = w.open().await;
    let r = w.at("r");
    let text = s.bad("git_commit", on(&r, json!({"message": "x"}))).await;
    assert_eq!(
        text,
        "No changes staged for commit. Use git_add to stage changes first; git_status shows what is currently staged."
    );
    let (text, theirs) = s.refused("git_add", on(&r, json!({"files": ["nope.txt"]}))).await;
    assert!(text.starts_with("git add failed with exit code 128\nHint: git_status lists"), "{text}");
    assert_eq!(theirs, "fatal: pathspec 'nope.txt' did not match any files");
    s.bad("git_add", on(&r, json!({"files": []}))).await;
    assert_eq!(s.text("git_add", on(&r, json!({"files": ["un.txt"]}))).await, "Files staged successfully");
    let (text, value) = s.good("git_add", on(&r, json!({"files": ["un.txt"]}))).await;
    let nothing = "No changes were staged: the given paths had nothing new to stage. git_status shows what is modified or untracked.";
    assert_eq!((text.as_str(), &value), (nothing, &json!({"changed": false, "message": nothing})));
    let (text, value) = s.good("git_commit", on(&r, json!({"message": "add un"}))).await;
    let hash = w.git("r", &["rev-parse", "HEAD"]);
    assert_eq!(text, format!("Changes committed successfully with hash {hash}"));
    assert_eq!(value, json!({"hash": hash, "branch": "main"}));
    assert_eq!(w.git("r", &["cat-file", "commit", "HEAD"]).split_once("\n\n").unwrap().1, "add un", "word for word");
    w.put("r/two.txt", "2");
    w.put("r/three.txt", "3");
    assert_eq!(s.text("git_add", on(&r, json!({"files": ["."]}))).await, "Files staged successfully");
    assert_eq!(w.git("r", &["diff", "--cached", "--name-only"]), "three.txt\ntwo.txt");
    assert_eq!(s.text("git_reset", on(&r, json!({}))).await, "All staged changes reset");
    assert_eq!(w.git("r", &["diff", "--cached", "--name-only"]), "");
    assert!(w.has("r/two.txt"), "the files stay");
    std::fs::remove_file(w.path("r/f.txt")).unwrap();
    assert_eq!(
        s.text("git_add", on(&r, json!({"files": ["f.txt"]}))).await,
        "Files staged successfully",
        "also a removal"
    );
}

#[tokio::test]
async fn the_first_commit_and_odd_messages_work() {
    let w = World::bare();
    w.init("r");
    let s = w.open().await;
    let r = w.at("r");
    assert!(s.text("git_status", on(&r, json!({}))).await.contains("No commits yet"));
    s.bad("git_commit", on(&r, json!({"message": "x"}))).await;
    s.bad("git_log", on(&r, json!({}))).await;
    s.bad("git_create_branch", on(&r, json!({"branch_name": "b"}))).await;
    for (n, message) in ["-m first", "# not a comment\n\n", "", "ünï\n\nbody\n"].iter().enumerate() {
        w.put("r/f.txt", n.to_string());
        s.text("git_add", on(&r, json!({"files": ["f.txt"]}))).await;
        s.text("git_commit", on(&r, json!({"message": message}))).await;
        let (_, value) = s.good("git_log", on(&r, json!({"max_count": 1}))).await;
        assert_eq!(value["commits"][0]["message"], **message);
    }
    s.bad("git_commit", on(&r, json!({"message": "nul\u{0}"}))).await;
    s.text("git_reset", on(&r, json!({}))).await;
}

#[tokio::test]
async fn a_commit_concludes_a_merge_and_brings_the_autostash_back() {
    for conflicting in [false, true] {
        let w = World::new();
        w.git("r", &["checkout", "-q", "feat"]);
        w.put("r/f.txt", "1\n2\nfeat\n");
        w.git("r", &["commit", "-qam", "feat"]);
        w.git("r", &["checkout", "-q", "main"]);
        w.put("r/f.txt", "1\n2\nmain\n");
        w.put("r/side.txt", "side\n");
        w.git("r", &["add", "."]);
        w.git("r", &["commit", "-qm", "main"]);
        w.put("r/side.txt", "dirty\n");
        let (good, _) = w.try_git("r", &["merge", "--autostash", "feat"]);
        assert!(!good, "it conflicts");
        w.put("r/f.txt", "1\n2\nboth\n");
        if conflicting {
            w.put("r/side.txt", "other\n");
        }
        let s = w.open().await;
        let files = if conflicting { json!(["f.txt", "side.txt"]) } else { json!(["f.txt"]) };
        s.text("git_add", on(&w.at("r"), json!({"files": files}))).await;
        let text = s.text("git_commit", on(&w.at("r"), json!({"message": "merged"}))).await;
        let hash = w.git("r", &["rev-parse", "HEAD"]);
        let note = if conflicting {
            "Applying autostash resulted in conflicts. Your changes are safe in the stash; run \"git stash pop\" or \"git stash drop\" at any time."
        } else {
            "Applied autostash."
        };
        assert_eq!(text, format!("Changes committed successfully with hash {hash}\n{note}"));
        assert_eq!(w.git("r", &["log", "-1", "--format=%p"]).split(' ').count(), 2, "both parents");
        assert!(!w.has("r/.git/MERGE_HEAD") && !w.has("r/.git/MERGE_AUTOSTASH"));
        assert_eq!(w.read("r/side.txt"), if conflicting { w.read("r/side.txt") } else { "dirty\n".into() });
    }
}

#[tokio::test]
async fn branches_are_listed_made_and_switched_to() {
    let w = World::new();
    let s = w.open().await;
    let r = w.at("r");
    let ok = [
        ("git_branch", json!({"branch_type": "local"}), "  feat\n* main"),
        ("git_branch", json!({"branch_type": "all", "contains": "v1"}), "  feat\n* main"),
        ("git_branch", json!({"branch_type": "local", "not_contains": "v1"}), ""),
        ("git_branch", json!({"branch_type": "remote"}), ""),
        ("git_create_branch", json!({"branch_name": "nb"}), "Created branch 'nb' from 'main'"),
        ("git_create_branch", json!({"branch_name": "nb2", "base_branch": "v1"}), "Created branch 'nb2' from 'v1'"),
        ("git_checkout", json!({"branch_name": "nb"}), "Switched to branch 'nb'"),
        ("git_checkout", json!({"branch_name": "@{-1}"}), "Switched to branch 'main'"),
        ("git_checkout", json!({"branch_name": "HEAD"}), "Switched to branch 'main'"),
        ("git_branch", json!({"branch_type": "local", "contains": null}), "  feat\n* main\n  nb\n  nb2"),
    ];
    for (tool, args, expected) in ok {
        assert_eq!(s.text(tool, on(&r, args.clone())).await, expected, "{tool} {args}");
    }
    let short = &w.git("r", &["rev-parse", "v1"])[..7];
    let text = s.text("git_checkout", on(&r, json!({"branch_name": "v1"}))).await;
    assert_eq!(text, format!("HEAD is now detached at {short}"));
    let bad = [
        (
            "git_create_branch",
            json!({"branch_name": "x"}),
            "HEAD is detached, so there is no current branch to branch from; pass base_branch",
        ),
        (
            "git_create_branch",
            json!({"branch_name": "nb", "base_branch": "main"}),
            "Cannot create branch 'nb': refs/heads/nb already exists",
        ),
        ("git_create_branch", json!({"branch_name": "nb3", "base_branch": "zzz"}), "No item found with id zzz"),
        (
            "git_create_branch",
            json!({"branch_name": "bad..name", "base_branch": "main"}),
            "Invalid branch name: 'bad..name'",
        ),
        ("git_create_branch", json!({"branch_name": "nb/below", "base_branch": "main"}), "cannot lock ref"),
        ("git_create_branch", json!({"branch_name": "HEAD", "base_branch": "main"}), "Invalid branch name: 'HEAD'"),
        ("git_branch", json!({"branch_type": "bogus"}), "Invalid branch type: bogus"),
        ("git_checkout", json!({"branch_name": "f.txt"}), "Ref 'f.txt' did not resolve to an object"),
        ("git_checkout", json!({"branch_name": ""}), "Ref '' did not resolve to an object"),
    ];
    for (tool, args, expected) in bad {
        let text = s.bad(tool, on(&r, args.clone())).await;
        let found = text.starts_with(expected) || expected == "cannot lock ref" && text.contains(expected);
        assert!(found, "{tool} {args}: {text}");
    }
    let (_, value) = s.good("git_branch", on(&r, json!({"branch_type": "local"}))).await;
    let hash = w.git("r", &["rev-parse", "v1"]);
    assert_eq!(
        value["branches"][1],
        json!({"name": "main", "hash": hash, "current": false, "remote": false, "subject": "c3"})
    );
}

#[tokio::test]
async fn a_checkout_never_touches_files_by_name_or_loses_changes() {
    let w = World::new();
    w.git("r", &["checkout", "-q", "-b", "other"]);
    w.put("r/f.txt", "other\n");
    w.git("r", &["commit", "-qam", "other"]);
    w.git("r", &["checkout", "-q", "main"]);
    w.put("r/f.txt", "precious\n");
    let s = w.open().await;
    let text = s.bad("git_checkout", on(&w.at("r"), json!({"branch_name": "other"}))).await;
    assert!(text.contains("would be overwritten") && text.contains("Hint: "), "{text}");
    s.bad("git_checkout", on(&w.at("r"), json!({"branch_name": "f.txt"}))).await;
    // A branch wins over a file of the same name.
    w.git("r", &["branch", "f.txt"]);
    assert_eq!(
        s.text("git_checkout", on(&w.at("r"), json!({"branch_name": "f.txt"}))).await,
        "Switched to branch 'f.txt'"
    );
    assert_eq!(w.read("r/f.txt"), "precious\n");
}

#[tokio::test]
async fn a_repository_can_be_named_by_its_git_directory_or_a_directory_below() {
    let w = World::new();
    std::fs::create_dir(w.path("r/sub")).unwrap();
    w.put("r/sub/x.txt", "x\n");
    let s = w.open().await;
    for path in ["r", "r/", "r/.git", "r/sub", "r/sub/..", "r/.git/refs", "r/sub/x.txt"] {
        let text = s.text("git_status", on(&w.at(path), json!({}))).await;
        assert!(text.contains("sub/"), "{path}: paths begin at the top level: {text}");
    }
    s.text("git_add", on(&w.at("r/sub"), json!({"files": ["sub/x.txt"]}))).await;
    for (path, expected) in [("r/nope", "does not exist"), ("nope", "is outside the allowed repository")] {
        let text = s.bad("git_status", on(&w.at(path), json!({}))).await;
        assert!(text.contains(expected), "{path}: {text}");
    }
    assert!(s.call("git_status", json!({})).await.is_error(), "repo_path is needed");
}
