//! Repositories that lost something are told from those that have nothing yet.

use crate::common::{World, on};
use serde_json::json;

/// Whatever is said, it must not sound like a new repository.
const NEW: &[&str] = &["no commits yet", "git_commit creates the first"];

/// What is lost, and how.
type Loss = (&'static str, fn(&World));

#[tokio::test]
async fn a_head_that_cannot_be_read_is_damage_and_not_a_new_repository() {
    let losses: [Loss; 5] = [
        ("the object of a loose ref", |w| {
            let id = w.git("r", &["rev-parse", "HEAD"]);
            std::fs::remove_file(w.path(&format!("r/.git/objects/{}/{}", &id[..2], &id[2..]))).unwrap();
        }),
        ("the object of a packed ref", |w| {
            let id = w.git("r", &["rev-parse", "HEAD"]);
            w.git("r", &["pack-refs", "--all"]);
            std::fs::remove_file(w.path(&format!("r/.git/objects/{}/{}", &id[..2], &id[2..]))).unwrap();
        }),
        ("the object of a detached HEAD", |w| {
            w.git("r", &["checkout", "-q", "--detach"]);
            w.put("r/.git/HEAD", format!("{}\n", "1".repeat(40)));
        }),
        ("the content of a ref", |w| w.put("r/.git/refs/heads/main", "nothing\n")),
        ("all of the content of a ref", |w| w.put("r/.git/refs/heads/main", "")),
    ];
    for (what, lose) in losses {
        let w = World::new();
        lose(&w);
        let s = w.open().await;
        for (tool, args) in [
            ("git_log", json!({})),
            ("git_log", json!({"revision": "HEAD"})),
            ("git_create_branch", json!({"branch_name": "n"})),
            ("git_commit", json!({"message": "m"})),
        ] {
            let result = s.call(tool, on(&w.at("r"), args.clone())).await;
            let text = result.text();
            assert!(result.is_error(), "{what}: {tool}: {text}");
            assert!(NEW.iter().all(|new| !text.contains(new)), "{what}: {tool}: {text}");
            if tool == "git_log" {
                assert!(text.contains("damaged") && text.contains("git fsck"), "{what}: {tool}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_branch_without_commits_is_new_whatever_other_branches_there_are() {
    let w = World::bare();
    w.init("r");
    let s = w.open().await;
    assert!(s.bad("git_log", on(&w.at("r"), json!({}))).await.contains(NEW[0]));
    assert!(s.bad("git_create_branch", on(&w.at("r"), json!({"branch_name": "n"}))).await.contains(NEW[0]));
    let w = World::new();
    w.git("r", &["checkout", "-q", "--orphan", "fe"]);
    w.git("r", &["branch", "fea/deep", "v1"]);
    let s = w.open().await;
    assert!(s.bad("git_log", on(&w.at("r"), json!({}))).await.contains(NEW[0]));
}
