//! What is too long for one answer can be read on to its end.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use serde_json::{Value, json};

/// All pages of a call: what `part` holds in each.
async fn pages(s: &Session, tool: &str, args: Value, part: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut args = args.clone();
        args["cursor"] = cursor;
        let (text, value) = s.good(tool, args).await;
        assert!(text.len() <= 100_000, "{}", text.len());
        all.push(value[part].clone());
        cursor = value["next_cursor"].clone();
        assert_eq!(value["truncated"] == true, !cursor.is_null());
        if cursor.is_null() {
            return all;
        }
        assert!(all.len() < 500, "it does not end");
    }
}

#[tokio::test]
async fn a_long_file_is_read_to_its_end() {
    let w = World::new();
    let lines: String = (0..900).map(|n| format!("{n} äöü €\n")).collect();
    let dense: String = "€𝄞ä".repeat(900);
    let mut odd = b"text \xff\xfe".repeat(300);
    odd.extend_from_slice("€".as_bytes());
    w.put("r/lines", &lines);
    w.put("r/dense", &dense);
    w.put("r/odd", &odd);
    w.put("r/empty", "");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "long"]);
    let mut config = w.config();
    config.max_output_bytes = 1_000;
    let s = Session::of(config).await;
    for (name, expected) in [
        ("lines", lines.clone()),
        ("dense", dense.clone()),
        ("odd", String::from_utf8_lossy(&odd).into_owned()),
        ("empty", String::new()),
    ] {
        let parts = pages(&s, "git_show", on(&w.at("r"), json!({"revision": format!("HEAD:{name}")})), "content").await;
        let text: String = parts.iter().map(|part| part.as_str().unwrap()).collect();
        assert!(text == expected, "{name}: {} of {}", text.len(), expected.len());
    }
    let s = w.open().await;
    for args in [
        json!({"revision": "HEAD:lines", "cursor": "x"}),
        json!({"revision": "HEAD:lines", "cursor": "99999999"}),
        json!({"revision": "HEAD:lines", "cursor": "-1"}),
        json!({"revision": "HEAD", "cursor": "1"}),
        json!({"revision": "HEAD:", "cursor": "99"}),
    ] {
        s.bad("git_show", on(&w.at("r"), args)).await;
    }
}

#[tokio::test]
async fn a_large_directory_is_listed_to_its_end() {
    let w = World::new();
    let id = w.git("r", &["rev-parse", "HEAD:f.txt"]);
    let entries: String = (0..10_500).map(|n| format!("100644 blob {id}\t{n:05}\n")).collect();
    w.put("entries", entries);
    let done = std::process::Command::new(common::program())
        .arg("mktree")
        .current_dir(w.path("r"))
        .stdin(std::fs::File::open(w.path("entries")).unwrap())
        .output()
        .unwrap();
    let tree = String::from_utf8(done.stdout).unwrap();
    let s = w.open().await;
    let parts = pages(&s, "git_show", on(&w.at("r"), json!({"revision": tree.trim()})), "names").await;
    assert_eq!(parts.len(), 2);
    let names: Vec<&str> = parts.iter().flat_map(|part| part.as_array().unwrap()).filter_map(Value::as_str).collect();
    assert_eq!(names, (0..10_500).map(|n| format!("{n:05}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_blame_that_was_cut_says_so() {
    let w = World::new();
    let mut config = w.config();
    config.max_output_bytes = 1_000;
    w.put("r/long", "line\n".repeat(100));
    w.git("r", &["add", "."]);
    let (_, value) = Session::of(config).await.good("git_blame", on(&w.at("r"), json!({"path": "long"}))).await;
    assert_eq!((&value["truncated"], value["next_line"].as_u64().is_some()), (&json!(true), true));
    let (_, value) = w.open().await.good("git_blame", on(&w.at("r"), json!({"path": "f.txt"}))).await;
    assert!(value["truncated"].is_null() && value["next_line"].is_null());
}

#[tokio::test]
async fn many_branches_are_listed_to_their_end() {
    let w = World::new();
    let id = w.git("r", &["rev-parse", "HEAD"]);
    let packed: String = (0..1_500).map(|n| format!("{id} refs/heads/b{n:04}\n")).collect();
    w.put("r/.git/packed-refs", packed);
    let expected: Vec<String> = (0..1_500).map(|n| format!("b{n:04}")).chain(["feat".into(), "main".into()]).collect();
    for detached in [false, true] {
        if detached {
            w.git("r", &["checkout", "-q", "--detach"]);
        }
        for (max, least) in [(1_000_000, 2), (5_000, 10)] {
            let mut config = w.config();
            config.max_output_bytes = max;
            let s = Session::of(config).await;
            let (mut names, mut lines, mut count, mut cursor) = (Vec::new(), Vec::new(), 0, Value::Null);
            loop {
                let args = on(&w.at("r"), json!({"branch_type": "local", "cursor": cursor}));
                let (text, value) = s.good("git_branch", args).await;
                lines.extend(text.lines().map(|line| line[2..].to_owned()));
                let page = value["branches"].as_array().unwrap();
                names.extend(page.iter().map(|branch| branch["name"].as_str().unwrap().to_owned()));
                count += 1;
                cursor = value["next_cursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            assert_eq!(names, expected, "{detached} {max}");
            if detached {
                assert!(lines.remove(0).starts_with("(HEAD detached"));
            }
            assert_eq!(lines, expected, "{detached} {max}");
            assert!(count >= least, "{count}");
        }
    }
}

#[tokio::test]
async fn a_long_diff_is_read_to_its_end_unless_it_changes_meanwhile() {
    let w = World::new();
    let lines: String = (0..600).map(|n| format!("{n} äöü €\n")).collect();
    w.put("r/new", &lines);
    w.put("r/one line", "€".repeat(2_000));
    w.git("r", &["add", "."]);
    let mut config = w.config();
    config.max_output_bytes = 1_000;
    let s = Session::of(config).await;
    let r = w.at("r");
    for (tool, args, command) in [
        ("git_diff_staged", json!({}), vec!["diff", "--cached", "--no-color"]),
        ("git_diff", json!({"target": "v1"}), vec!["diff", "--no-color", "v1"]),
        ("git_diff_staged", json!({"paths": ["new"]}), vec!["diff", "--cached", "--no-color", "--", "new"]),
    ] {
        let parts = pages(&s, tool, on(&r, args), "diff").await;
        assert!(parts.len() > 5, "{}", parts.len());
        let text: String = parts.iter().map(|part| part.as_str().unwrap()).collect();
        assert_eq!(text.trim_end(), w.git("r", &command), "{tool}");
    }
    let (_, first) = s.good("git_diff_staged", on(&r, json!({}))).await;
    let cursor = first["next_cursor"].clone();
    let (_, again) = s.good("git_diff_staged", on(&r, json!({"cursor": cursor}))).await;
    assert!(again["diff"] != first["diff"], "it goes on");
    w.put("r/more", "more\n");
    w.git("r", &["add", "more"]);
    let text = s.bad("git_diff_staged", on(&r, json!({"cursor": cursor}))).await;
    assert!(text.contains("has changed since") && text.contains("Hint: "), "{text}");
    for cursor in ["x", "5", "5-1", "-5-1", "5-0-xyz", "99999999999999999999-0-1"] {
        let text = s.bad("git_diff_staged", on(&r, json!({"cursor": cursor}))).await;
        assert!(text.contains("Unknown cursor"), "{cursor}: {text}");
    }
    let (_, value) = s.good("git_diff_staged", on(&r, json!({}))).await;
    let about = value["next_cursor"].as_str().unwrap().rsplit_once('-').unwrap().1.to_owned();
    s.bad("git_diff_staged", on(&r, json!({"cursor": format!("99999999-0-{about}")}))).await;
}
