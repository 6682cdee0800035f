//! What was done is answered as done, whatever happens to the questions that come after it; and which git is too old.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use linchpin_git::Config;
use serde_json::{Value, json};

/// A git that, once it has run a command that begins so, answers nothing any more: it fails, or is not there at all.
fn breaking(w: &World, after: &str, gone: bool) -> Config {
    w.script("git", "unused");
    let (real, done) = (common::program(), w.at("done"));
    let end = if gone { "rm \"$0\"".to_owned() } else { format!("touch '{done}'") };
    let script = format!(
        "#!/bin/sh\n[ -e '{done}' ] && exit 1\n'{}' \"$@\"\ncode=$?\ncase \" $* \" in *\" {after} \"*) {end};; esac\nexit $code\n",
        real.display()
    );
    w.put("git", script);
    let mut config = w.config_of(&["r", "remote.git"]);
    config.allow_remote = true;
    config.program = Some(w.path("git"));
    config
}

fn world() -> World {
    let w = World::new();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
    w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
    w.git("r", &["checkout", "-q", "-b", "side", "v1~1"]);
    w.put("r/side.txt", "side\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "side"]);
    w.git("r", &["checkout", "-q", "--detach", "main"]);
    w.git("r", &["worktree", "add", "-q", "old", "feat"]);
    w.put("r/f.txt", "changed\n");
    w.git("r", &["stash", "-q"]);
    w
}

#[tokio::test]
async fn what_was_done_is_no_failure() {
    type Case = (&'static str, &'static str, Value, &'static [&'static str], &'static str);
    // The command after which git breaks, the tool, its arguments, and what of it is seen where.
    let cases: &[Case] = &[
        ("commit", "git_commit", json!({"message": "made"}), &["log", "-1", "--format=%s"], "made"),
        (
            "tag --annotate",
            "git_tag",
            json!({"action": "create", "name": "t", "message": "m"}),
            &["tag", "-l", "t"],
            "t",
        ),
        ("tag --no-sign", "git_tag", json!({"action": "create", "name": "t"}), &["tag", "-l", "t"], "t"),
        (
            "worktree add",
            "git_worktree",
            json!({"action": "add", "path": "wt", "revision": "v1"}),
            &["-C", "wt", "log", "-1", "--format=%s"],
            "c3",
        ),
        (
            "worktree remove",
            "git_worktree",
            json!({"action": "remove", "path": "old"}),
            &["rev-list", "--count", "v1..feat"],
            "0",
        ),
        ("stash push", "git_stash", json!({"action": "push"}), &["rev-list", "-g", "--count", "refs/stash"], "2"),
        ("stash apply", "git_stash", json!({"action": "apply"}), &["diff", "--name-only"], "f.txt"),
        ("stash drop", "git_stash", json!({"action": "drop"}), &["stash", "list"], ""),
        ("checkout --quiet", "git_checkout", json!({"branch_name": "side"}), &["branch", "--show-current"], "side"),
        (
            "merge --quiet",
            "git_merge",
            json!({"branch": "side"}),
            &["log", "-1", "--format=%s"],
            "Merge branch 'side' into HEAD",
        ),
        ("cherry-pick", "git_cherry_pick", json!({"revisions": ["side"]}), &["log", "-1", "--format=%s"], "side"),
        (
            "rebase --quiet",
            "git_rebase",
            json!({"upstream": "side", "confirm": true}),
            &["log", "-2", "--format=%s"],
            "c3\nside",
        ),
        ("fetch --quiet", "git_fetch", json!({}), &["rev-parse", "--abbrev-ref", "origin/main"], "origin/main"),
    ];
    let template = world();
    for (after, tool, args, look, seen) in cases {
        for gone in [false, true] {
            let w = template.copied();
            w.git("r", &["remote", "set-url", "origin", &w.at("remote.git")]);
            w.put("r/old/.git", format!("gitdir: {}\n", w.at("r/.git/worktrees/old")));
            w.put("r/.git/worktrees/old/gitdir", format!("{}\n", w.at("r/old/.git")));
            if ["git_commit", "git_stash"].contains(tool) && !after.ends_with("apply") {
                w.put("r/f.txt", "mine\n");
                w.git("r", &["add", "f.txt"]);
            }
            let s = Session::of(breaking(&w, after, gone)).await;
            let result = s.call(tool, on(&w.at("r"), args.clone())).await;
            assert!(!result.is_error(), "{tool} {args} {gone}: {}", result.text());
            assert_eq!(w.git("r", look), *seen, "{tool} {args}");
            assert!(w.has("done") != gone && w.has("git") != gone, "{tool} {args}: git did not break");
            let text = s.bad("git_log", on(&w.at("r"), json!({}))).await;
            assert!(!text.is_empty(), "{tool}: from here on nothing is answered");
        }
    }
}

#[tokio::test]
async fn a_git_that_is_too_old_is_not_used() {
    for (version, fine) in [
        ("2.35.8", false),
        ("1.99.0", false),
        ("2.9.5", false),
        ("nonsense", false),
        ("2.36.0", true),
        ("2.39.5 (Apple Git-154)", true),
        ("2.100.1.windows.1", true),
        ("3.0.0-rc1", true),
    ] {
        let w = World::new();
        w.script("git", "unused");
        let (real, log) = (common::program(), w.at("log"));
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *\" version \"*) echo 'git version {version}'; exit 0;; esac\necho \"$*\" >> '{log}'\nexec '{}' \"$@\"\n",
            real.display()
        );
        w.put("git", script);
        let mut config = w.config();
        config.program = Some(w.path("git"));
        let result = Session::of(config).await.call("git_status", on(&w.at("r"), json!({}))).await;
        assert_eq!(!result.is_error(), fine, "{version}: {}", result.text());
        if !fine {
            assert!(result.text().contains("too old") && result.text().contains("2.36 or newer"), "{}", result.text());
        }
        assert_eq!(w.has("log"), fine, "{version}: a git that is too old runs nothing");
    }
}
