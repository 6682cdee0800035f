//! `--max-output-bytes` holds for every list of every tool, as text and as structured content; what is left out comes on the
//! following pages, once and in order.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use serde_json::{Value, json};
use std::fmt::Write as _;

const LIMIT: usize = 2_000;

async fn limited(w: &World, bytes: usize) -> Session {
    let names: &[&str] = if w.has("remote.git") { &["r", "remote.git"] } else { &["r"] };
    let mut config = w.config_of(names);
    config.allow_remote = true;
    config.max_output_bytes = bytes;
    Session::of(config).await
}

/// A call whose answer holds the limit: its first text and its structured content.
async fn held(s: &Session, tool: &str, args: Value) -> (String, Value) {
    let result = s.call(tool, args.clone()).await;
    assert!(!result.is_error(), "{tool} {args}: {}", result.text());
    let whole: Value = serde_json::from_str(result.as_json()).unwrap();
    let texts: Vec<&str> = whole["content"].as_array().unwrap().iter().filter_map(|c| c["text"].as_str()).collect();
    let structured = result.structured().unwrap();
    assert!(texts[0].len() <= LIMIT, "{tool} {args}: {} bytes of text", texts[0].len());
    let notes: usize = texts[1..].iter().map(|note| note.len()).sum();
    assert!(notes <= 800, "{tool} {args}: {notes} bytes of notes");
    assert!(structured.len() <= LIMIT, "{tool} {args}: {} bytes of structured content", structured.len());
    let value: Value = serde_json::from_str(structured).unwrap();
    let truncated = value["truncated"] == true || value["changes"]["truncated"] == true;
    assert_eq!(truncated, texts.len() > 1 && texts[1..].concat().contains("[Truncated"), "{tool} {args}");
    (texts[0].to_owned(), value)
}

fn long(n: usize) -> String {
    format!("{n:04}-{}", "long name ".repeat(9).trim_end().replace(' ', "-"))
}

/// Hundreds of everything.
fn world() -> World {
    let w = World::new();
    let mut stream = String::new();
    for n in 0..300 {
        let message =
            format!("commit {n} \"{}\"\n\n{}", "subject ".repeat(60 * (n % 9 / 8)), "body\tline\n".repeat(n % 20));
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter U <u@x> {} +0000\ndata {}\n{message}\n",
            1_800_000_000 + n,
            message.len()
        );
        if n == 0 {
            stream.push_str("from refs/heads/main^0\n");
            for file in 0..250 {
                let _ = write!(stream, "M 100644 inline d/{}\ndata 4\nold\n\n", long(file));
            }
            let lines: String = (0..400).map(|n| format!("match {n} \"\t\n")).collect();
            let _ = write!(stream, "M 100644 inline lines\ndata {}\n{lines}\n", lines.len());
        }
    }
    w.put("stream", stream);
    let done = std::process::Command::new(common::program())
        .args(["fast-import", "--quiet"])
        .current_dir(w.path("r"))
        .stdin(std::fs::File::open(w.path("stream")).unwrap())
        .status();
    assert!(done.unwrap().success());
    w.git("r", &["reset", "-q", "--hard"]);
    let id = w.git("r", &["rev-parse", "HEAD"]);
    let refs: String = (0..300).map(|n| format!("{id} refs/heads/{}\n{id} refs/tags/{}\n", long(n), long(n))).collect();
    let mut refs: Vec<&str> = refs.lines().collect();
    refs.sort_by_key(|line| line[41..].to_owned());
    w.put("r/.git/packed-refs", format!("# pack-refs with: sorted \n{}\n", refs.join("\n")));
    // As many stashes of the same commit, and work trees that are gone.
    w.put("r/f.txt", "stashed\n");
    w.git("r", &["stash", "-q"]);
    let entry = w.read("r/.git/logs/refs/stash");
    let (ids, _) = entry.split_once('\t').unwrap();
    w.put("r/.git/logs/refs/stash", (0..300).map(|n| format!("{ids}\tOn main: {}\n", long(n))).collect::<String>());
    for n in 0..120 {
        let dir = format!("r/.git/worktrees/{}", long(n));
        w.put(&format!("{dir}/HEAD"), format!("{id}\n"));
        w.put(&format!("{dir}/commondir"), "../..\n");
        w.put(&format!("{dir}/gitdir"), format!("{}\n", w.at(&format!("r/gone/{n}/.git"))));
    }
    // Staged, changed and new.
    for n in 0..250 {
        w.put(&format!("r/d/{}", long(n)), if n % 2 == 0 { "new\n" } else { "staged\n" });
    }
    w.git("r", &["add", "d"]);
    for n in 0..250 {
        w.put(&format!("r/d/{}", long(n)), if n % 3 == 0 { "newer\n" } else { "staged\n" });
        w.put(&format!("r/{}.new", long(n)), "match\n");
    }
    w
}

#[tokio::test]
async fn every_list_holds_the_limit_and_is_read_to_its_end() {
    let w = world();
    let (s, whole) = (limited(&w, LIMIT).await, limited(&w, 10_000_000).await);
    // The tool, its arguments, where its list is, what stands before its text, and what between the texts of two pages.
    let rows: &[(&str, Value, &str, &str, &str)] = &[
        ("git_status", json!({}), "/entries", "Repository status:\n", ""),
        ("git_diff_unstaged", json!({}), "/files", "Unstaged changes:\n", ""),
        ("git_diff_staged", json!({}), "/files", "Staged changes:\n", ""),
        ("git_diff_staged", json!({"stat_only": true}), "/files", "Staged changes:\n", ""),
        ("git_diff", json!({"target": "HEAD"}), "/files", "Diff with HEAD:\n", ""),
        ("git_diff", json!({"target": "v1..main", "context_lines": 0}), "/files", "Diff with v1..main:\n", ""),
        ("git_log", json!({"max_count": -1}), "/commits", "Commit history:\n", "\n"),
        ("git_log", json!({"max_count": 77}), "/commits", "Commit history:\n", "\n"),
        ("git_show", json!({"revision": "HEAD:d/"}), "/names", "", "\n"),
        ("git_show", json!({"revision": "HEAD:lines"}), "", "", ""),
        ("git_branch", json!({"branch_type": "local"}), "/branches", "", "\n"),
        ("git_branch", json!({"branch_type": "all"}), "/branches", "", "\n"),
        ("git_grep", json!({"pattern": "match", "max_count": 1000}), "/matches", "", "\n"),
        ("git_grep", json!({"pattern": "match", "untracked": true, "max_count": 1000}), "/matches", "", "\n"),
        ("git_grep", json!({"pattern": "old", "revision": "HEAD", "max_count": 1000}), "/matches", "", "\n"),
        ("git_tag", json!({}), "/tags", "", "\n"),
        ("git_stash", json!({"action": "list"}), "/stashes", "", "\n"),
        ("git_worktree", json!({}), "/worktrees", "", "\n"),
    ];
    for (tool, args, list, heading, between) in rows {
        let (expected, value) = whole.good(tool, on(&w.at("r"), args.clone())).await;
        assert!(value["truncated"].is_null() && expected.len() > 5_000, "{tool} {args}: {}", expected.len());
        let items_of = |value: &Value| value.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default();
        let (mut texts, mut items, mut cursor) = (Vec::new(), Vec::new(), Value::Null);
        loop {
            let mut asked = on(&w.at("r"), args.clone());
            asked["cursor"] = cursor;
            let (text, value) = held(&s, tool, asked).await;
            let text = text.strip_prefix(heading).unwrap_or_else(|| panic!("{tool} {args}: {text}"));
            texts.push(text.to_owned());
            items.extend(items_of(&value));
            cursor = value["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
            assert!(texts.len() < 500, "{tool} {args}: it does not end");
        }
        assert!(texts.len() > 2, "{tool} {args}");
        assert!(items == items_of(&value), "{tool} {args}: {} of {} items", items.len(), items_of(&value).len());
        let (all, expected) = (texts.join(between), expected.strip_prefix(heading).unwrap());
        assert!(all.trim_end() == expected.trim_end(), "{tool} {args}: {} of {} bytes", all.len(), expected.len());
        for foreign in ["x", "-1", "999999999", "1-1-1"] {
            let mut asked = on(&w.at("r"), args.clone());
            asked["cursor"] = json!(foreign);
            // A log has no end that is known beforehand.
            if !(*tool == "git_log" && foreign == "999999999") {
                s.bad(tool, asked).await;
            }
        }
    }
    // A tool that was left out above has no list, or is in one of the other tests here.
    let others = "git_commit git_add git_reset git_create_branch git_checkout git_blame git_merge git_rebase git_cherry_pick \
                  git_fetch git_pull git_push";
    for tool in s.client.tools().await.unwrap().iter() {
        let listed = rows.iter().any(|row| row.0 == &*tool.name) || others.split(' ').any(|other| other == &*tool.name);
        assert!(listed, "{} is in no test of what an answer may hold", tool.name);
    }
}

#[tokio::test]
async fn a_blame_is_read_to_its_end_over_lines_that_are_too_long() {
    let w = World::new();
    let odd = format!("start \"\\\t{}", "€".repeat(200_000));
    let lines = ["short".to_owned(), odd.clone(), "between".to_owned(), "x".repeat(500_000), "last".to_owned()];
    w.put("r/long", lines.join("\n") + "\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", &format!("long {}", "subject ".repeat(2_000))]);
    for bytes in [1_000, LIMIT, 100_000] {
        let s = limited(&w, bytes).await;
        let (mut seen, mut from) = (Vec::new(), 1);
        loop {
            let args = on(&w.at("r"), json!({"path": "long", "start_line": from}));
            let result = s.call("git_blame", args).await;
            let value: Value = serde_json::from_str(result.structured().unwrap()).unwrap();
            assert!(
                common::first_text(&result).len() <= bytes && result.structured().unwrap().len() <= bytes,
                "{bytes}"
            );
            for hunk in value["hunks"].as_array().unwrap() {
                assert_eq!(hunk["start_line"], seen.len() + 1);
                seen.extend(hunk["lines"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()));
            }
            let cut = seen.last().is_some_and(|last| *last != lines[seen.len() - 1]);
            assert_eq!(result.text().contains("is truncated"), cut, "{bytes} {from}");
            assert_eq!(value["truncated"] == true, cut || !value["next_line"].is_null());
            match value["next_line"].as_u64() {
                Some(next) => {
                    assert_eq!(next, seen.len() as u64 + 1, "it goes on behind what was shown");
                    from = next;
                }
                None => break,
            }
        }
        assert_eq!(seen.len(), lines.len(), "{bytes}");
        for (shown, line) in seen.iter().zip(&lines) {
            assert!(
                line.starts_with(shown.as_str()) && (shown == line || shown.len() > 20),
                "{bytes}: {}",
                shown.len()
            );
        }
    }
}

#[tokio::test]
async fn a_long_message_is_read_to_its_end_and_then_come_the_changes() {
    let w = World::new();
    let message: String = (0..900).map(|n| format!("{n} \"äöü\" €\n")).collect();
    w.put("message", &message);
    w.git("r", &["commit", "-q", "--allow-empty", "-m", "before"]);
    w.put("r/f.txt", "changed\n");
    w.git("r", &["commit", "-qa", "--cleanup=verbatim", "-F", &w.at("message")]);
    let s = limited(&w, LIMIT).await;
    let (mut all, mut text, mut pages, mut cursor) = (String::new(), String::new(), 0, Value::Null);
    let last = loop {
        let (page, value) = held(&s, "git_show", on(&w.at("r"), json!({"revision": "HEAD", "cursor": cursor}))).await;
        all.push_str(value["commit"]["message"].as_str().unwrap());
        let (head, body) = page.split_once("\n\n").unwrap();
        assert!(head.starts_with("commit ") && head.contains("\nAuthor: U <u@x>\nDate:   "), "{head}");
        text.push_str(body);
        pages += 1;
        cursor = value["next_cursor"].clone();
        if cursor.is_null() {
            break value;
        }
        assert_eq!(value["content"], "", "the changes come after the message");
    };
    assert!(all == message && pages > 5, "{} of {} bytes, {pages} pages", all.len(), message.len());
    assert!(last["content"].as_str().unwrap().starts_with("\n--- a/f.txt\n"), "{last}");
    let expected: String = message.lines().map(|line| format!("    {line}\n")).collect();
    assert!(text.starts_with(&expected) && text[expected.len()..].starts_with("\n--- a/f.txt\n"));
    // A log shows its beginning, and where the rest is.
    let (_, value) = held(&s, "git_log", on(&w.at("r"), json!({"max_count": 2}))).await;
    let shown = value["commits"][0]["message"].as_str().unwrap();
    assert!(message.starts_with(shown) && shown.len() > 800, "{}", shown.len());
    let (_, value) = held(&s, "git_log", on(&w.at("r"), json!({"max_count": 2, "cursor": value["next_cursor"]}))).await;
    assert_eq!((&value["commits"][0]["message"], &value["next_cursor"]), (&json!("before\n"), &Value::Null));
    for foreign in ["m", "m99999999", "1", "m-1", "m12"] {
        // The last lies inside a character or not; it is answered or refused, and nothing ends.
        let result = s.call("git_show", on(&w.at("r"), json!({"revision": "HEAD", "cursor": foreign}))).await;
        assert!(result.is_error() || foreign == "m12", "{foreign}: {}", result.text());
    }
}

#[tokio::test]
async fn what_was_done_is_told_within_the_limit() {
    let w = World::new();
    let side = |text: &str| {
        for n in 0..250 {
            w.put(&format!("r/d/{}", long(n)), text);
        }
        w.git("r", &["add", "."]);
        w.git("r", &["commit", "-qm", text]);
    };
    side("base");
    w.git("r", &["checkout", "-q", "-b", "side"]);
    side("side");
    w.git("r", &["checkout", "-q", "main"]);
    side("main");
    let s = limited(&w, LIMIT).await;
    let r = w.at("r");
    let mut stopped = 0;
    for (tool, args, end) in [
        ("git_merge", json!({"branch": "side"}), json!({"abort": true})),
        ("git_rebase", json!({"upstream": "side", "confirm": true}), json!({"action": "abort"})),
        ("git_cherry_pick", json!({"revisions": ["side"]}), json!({"action": "abort"})),
    ] {
        let (text, value) = held(&s, tool, on(&r, args)).await;
        let told = value["conflicts"].as_array().unwrap().len();
        assert!(told > 0 && text.contains(&format!(" and {} more.", 250 - told)), "{tool}: {text}");
        // All of them are in the status.
        let (mut all, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let (_, value) = held(&s, "git_status", on(&r, json!({"cursor": cursor}))).await;
            all.extend(
                value["entries"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|e| e["staged"] == "A" || e["staged"] == "U")
                    .cloned(),
            );
            cursor = value["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(all.len(), 250, "{tool}");
        held(&s, tool, on(&r, end)).await;
        stopped += 1;
    }
    assert_eq!(stopped, 3);
    // A stash that conflicts, among many.
    for n in 0..250 {
        w.put(&format!("r/d/{}", long(n)), "stashed");
    }
    w.git("r", &["stash", "-q"]);
    let entry = w.read("r/.git/logs/refs/stash");
    w.put("r/.git/logs/refs/stash", entry.trim_end().to_owned() + &format!(" {}\n", long(1)) + &entry.repeat(300));
    side("again");
    let (_, value) = held(&s, "git_stash", on(&r, json!({"action": "show", "index": 299}))).await;
    assert!(!value["changes"]["files"].as_array().unwrap().is_empty());
    held(&s, "git_stash", on(&r, json!({"action": "drop", "index": 1}))).await;
    w.put("r/f.txt", "mine\n");
    held(&s, "git_stash", on(&r, json!({"action": "push", "message": "mine"}))).await;
    let (text, value) = held(&s, "git_stash", on(&r, json!({"action": "apply", "index": 3}))).await;
    let told = value["conflicts"].as_array().unwrap().len();
    assert!(told > 0 && text.ends_with(&format!(" and {} more", 250 - told)), "{text}");
    assert!(!value["stashes"].as_array().unwrap().is_empty());
    w.git("r", &["reset", "-q", "--hard"]);
    let name = long(7);
    held(&s, "git_tag", on(&r, json!({"action": "create", "name": name, "message": "subject ".repeat(9_000)}))).await;
    held(&s, "git_tag", on(&r, json!({"action": "delete", "name": name}))).await;
    for n in 0..60 {
        let dir = format!("r/.git/worktrees/{}", long(n));
        w.put(&format!("{dir}/HEAD"), w.git("r", &["rev-parse", "HEAD"]) + "\n");
        w.put(&format!("{dir}/commondir"), "../..\n");
        w.put(&format!("{dir}/gitdir"), format!("{}\n", w.at(&format!("r/gone/{n}/.git"))));
    }
    held(&s, "git_worktree", on(&r, json!({"action": "add", "path": "tree"}))).await;
    held(&s, "git_worktree", on(&r, json!({"action": "remove", "path": "tree"}))).await;
    held(&s, "git_worktree", on(&r, json!({"action": "prune"}))).await;
}

#[tokio::test]
async fn what_went_around_is_told_within_the_limit() {
    let w = World::new();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
    w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
    w.git("r", &["fetch", "-q", "origin"]);
    let id = w.git("r", &["rev-parse", "HEAD"]);
    let refs: String = (0..300).map(|n| format!("{id} refs/heads/{}\n", long(n))).collect();
    w.put("remote.git/packed-refs", format!("{id} refs/heads/main\n{refs}"));
    let urls: String = (0..40).map(|n| format!("\tpushurl = {}/{}.git\n", w.at(""), long(n))).collect();
    let others: String = (0..300).map(|n| format!("[remote \"{}\"]\n\turl = x\n", long(n))).collect();
    w.put("r/.git/config", w.read("r/.git/config") + &others);
    let s = limited(&w, LIMIT).await;
    let r = w.at("r");
    let (text, value) = held(&s, "git_fetch", on(&r, json!({}))).await;
    let updated = value["updated"].as_array().unwrap();
    assert_eq!(text.lines().count(), updated.len() + 1);
    assert!(updated.len() > 3 && value["truncated"] == true, "{text}");
    let (_, value) = held(&s, "git_fetch", on(&r, json!({}))).await;
    assert_eq!(value["updated"], json!([]));
    w.git("r", &["branch", &long(1)]);
    w.git("r", &["tag", &long(1)]);
    let (_, value) = held(&s, "git_push", on(&r, json!({"branch": long(1), "tag": long(1)}))).await;
    assert_eq!(value["refs"].as_array().unwrap().len(), 2);
    held(&s, "git_pull", on(&r, json!({}))).await;
    let text = s.bad("git_fetch", on(&r, json!({"remote": "nope"}))).await;
    assert!(text.len() <= LIMIT + 800 && text.contains(" and 281 more"), "{}: {text}", text.len());
    // A remote with many places.
    for n in 0..40 {
        w.link(w.path("remote.git"), &format!("{}.git", long(n)));
    }
    w.put("r/.git/config", w.read("r/.git/config").replacen("\tfetch", &format!("{urls}\tfetch"), 1));
    let (text, _) = held(&s, "git_push", on(&r, json!({}))).await;
    assert!(text.contains(" more)"), "{text}");
}
