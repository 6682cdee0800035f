//! With `--sign`, the key is the user's, whatever the repository says.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use serde_json::json;
use std::process::Command;

/// With the keys `mine` and `theirs` in the home; the user signs with `mine`.
fn world() -> World {
    let w = World::new();
    for name in ["mine", "theirs"] {
        let done = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &w.at(&format!("home/{name}"))])
            .status();
        assert!(done.is_ok_and(|status| status.success()), "this test needs ssh-keygen");
        let key = w.read(&format!("home/{name}.pub"));
        w.put(&format!("home/only-{name}"), format!("u@x {key}"));
    }
    w.git("r", &["config", "--global", "gpg.format", "ssh"]);
    w.git("r", &["config", "--global", "user.signingKey", &w.at("home/mine.pub")]);
    w
}

/// Whose key it was; `None` when it was nobody's.
fn signer(w: &World, verify: &str, name: &str) -> Option<&'static str> {
    ["mine", "theirs"].into_iter().find(|key| {
        let allowed = format!("gpg.ssh.allowedSignersFile={}", w.at(&format!("home/only-{key}")));
        w.try_git("r", &["-c", &allowed, "-c", "gpg.format=ssh", "-c", "gpg.ssh.program=ssh-keygen", verify, name]).0
    })
}

#[tokio::test]
async fn the_repository_does_not_choose_the_key() {
    let theirs = |w: &World| w.at("home/theirs.pub");
    type Arrange = Vec<(&'static str, String)>;
    let w = world();
    let evil = w.script("evil", "mark");
    let cases: Vec<Arrange> = vec![
        vec![("user.signingKey", theirs(&w))],
        vec![("user.signingKey", theirs(&w)), ("gpg.ssh.program", evil.clone())],
        vec![("gpg.format", "openpgp".into()), ("gpg.program", evil.clone())],
        vec![("gpg.ssh.defaultKeyCommand", evil.clone()), ("gpg.ssh.allowedSignersFile", ".git/x".into())],
    ];
    for case in cases {
        let w2 = w.copied();
        // The copy is elsewhere, the keys are where they were.
        for (name, value) in &case {
            w2.git("r", &["config", name, value]);
        }
        let mut config = w2.config();
        config.sign = true;
        let s = Session::of(config).await;
        w2.put("r/f.txt", "signed\n");
        s.text("git_add", on(&w2.at("r"), json!({"files": ["f.txt"]}))).await;
        s.text("git_commit", on(&w2.at("r"), json!({"message": "signed"}))).await;
        s.text("git_tag", on(&w2.at("r"), json!({"action": "create", "name": "t", "message": "signed"}))).await;
        assert_eq!(signer(&w2, "verify-commit", "HEAD"), Some("mine"), "{case:?}");
        assert_eq!(signer(&w2, "verify-tag", "t"), Some("mine"), "{case:?}");
        assert!(!w.has("mark"), "{case:?}");
        if case[0].0 == "gpg.ssh.defaultKeyCommand" {
            continue;
        }
        let _ = w2.try_git("r", &["commit", "-q", "-S", "--allow-empty", "-m", "control"]);
        let fell = signer(&w2, "verify-commit", "HEAD") == Some("theirs") || w.has("mark");
        assert!(fell, "{case:?}: the trap of this test does not work");
        let _ = std::fs::remove_file(w.path("mark"));
    }
}

#[tokio::test]
async fn a_key_that_only_the_repository_names_is_not_used() {
    let w = world();
    w.git("r", &["config", "--global", "--unset", "user.signingKey"]);
    w.git("r", &["config", "user.signingKey", &w.at("home/theirs.pub")]);
    let mut config = w.config();
    config.sign = true;
    let s = Session::of(config).await;
    let head = w.git("r", &["rev-parse", "HEAD"]);
    w.put("r/f.txt", "signed\n");
    w.git("r", &["add", "f.txt"]);
    let text = s.bad("git_commit", on(&w.at("r"), json!({"message": "signed"}))).await;
    assert!(text.contains("signing key is set in") && text.contains("user.signingKey"), "{text}");
    assert_eq!(w.git("r", &["rev-parse", "HEAD"]), head);
    s.text("git_status", on(&w.at("r"), json!({}))).await;
    w.git("r", &["commit", "-q", "-S", "-m", "control"]);
    assert_eq!(signer(&w, "verify-commit", "HEAD"), Some("theirs"), "the trap of this test does not work");
}

#[tokio::test]
async fn a_rebase_in_progress_does_not_bring_a_key() {
    for sign in [false, true] {
        let w = world();
        w.git("r", &["checkout", "-q", "-B", "feat", "v1~1"]);
        w.put("r/f.txt", "feat\n");
        w.git("r", &["commit", "-qam", "feat"]);
        assert!(!w.try_git("r", &["rebase", "main"]).0, "it stops at a conflict");
        w.put("r/.git/rebase-merge/gpg_sign_opt", format!("-S{}\n", w.at("home/theirs.pub")));
        w.put("r/f.txt", "resolved\n");
        w.git("r", &["add", "f.txt"]);
        let mut config = w.config();
        config.sign = sign;
        let text = Session::of(config).await.bad("git_rebase", on(&w.at("r"), json!({"action": "continue"}))).await;
        assert!(text.contains("own settings for signing"), "{text}");
        w.git("r", &["-c", "core.editor=true", "rebase", "--continue"]);
        assert_eq!(signer(&w, "verify-commit", "HEAD"), Some("theirs"), "the trap of this test does not work");
    }
}
