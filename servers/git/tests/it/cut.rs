//! Output of git that is longer than what is read of it: the record that the limit cuts is left out.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use serde_json::{Value, json};

const LIST_BYTES_MAX: usize = 32 << 20;
const RECORD_BYTES: usize = 10_000;

/// A session whose git prints this instead of running the command in whose words `word` is.
async fn printing(w: &World, word: &str, output: &[u8]) -> Session {
    w.put("output", output);
    w.script("git", "unused");
    let (file, git) = (w.at("output"), common::program());
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *' {word} '*) exec cat '{file}';; esac\nexec '{}' \"$@\"\n", git.display());
    w.put("git", script);
    Session::of(w.config().with(|config| config.program = Some(w.path("git")))).await
}

/// Output that the limit cuts in the last word, and how many records are before these. `record` makes one of so many bytes.
fn cut_in(last: &str, record: impl Fn(usize) -> String) -> (Vec<u8>, usize) {
    let before = LIST_BYTES_MAX - (last.len() - "word\0".len());
    let count = before / RECORD_BYTES;
    let mut output = record(RECORD_BYTES).repeat(count - 1);
    output.push_str(&record(before - output.len()));
    assert_eq!(output.len(), before);
    output.push_str(last);
    (output.into_bytes(), count)
}

/// Pads a record to this length, with all of its padding in `{}`, the same in each.
fn padded(shape: &str, length: usize) -> String {
    let places = shape.matches("{}").count();
    let padding = length - (shape.len() - 2 * places);
    let mut record = shape.replacen("{}", &"x".repeat(padding / places), places - 1);
    record = record.replacen("{}", &"x".repeat(padding - padding / places * (places - 1)), 1);
    assert_eq!(record.len(), length);
    record
}

#[tokio::test]
async fn the_tag_that_is_cut_is_left_out() {
    let w = World::new();
    let last = "kept\0a\0b\0tag\0\0whole word\0\ncut\0a\0b\0tag\0\0cut word\0";
    let (output, count) = cut_in(last, |length| padded("f\0{}\0b\0{}\0\0{}\0\n", length));
    let s = printing(&w, "for-each-ref", &output).await;
    let (text, value) = s.good("git_tag", on(&w.at("r"), json!({"action": "list", "cursor": count.to_string()}))).await;
    assert_eq!(text, "kept");
    assert_eq!(value["tags"].as_array().unwrap().len(), 1, "{value}");
    assert_eq!((&value["tags"][0]["subject"], &value["truncated"]), (&json!("whole word"), &json!(true)));
}

#[tokio::test]
async fn the_branch_that_is_cut_is_left_out() {
    let w = World::new();
    let shape = |name: &str, worktree: &str, hash: &str, subject: &str| {
        format!(" \0{worktree}\0refs/heads/{name}\0{name}\0\0{hash}\0\0{subject}\0\n")
    };
    let last = shape("kept", "", "a", "whole word") + shape("cut", "", "a", "cut word").trim_end();
    let (output, count) = cut_in(&last, |length| padded(&shape("f", "{}", "{}", "{}"), length));
    let s = printing(&w, "branch", &output).await;
    let args = json!({"branch_type": "local", "cursor": count.to_string()});
    let (text, value) = s.good("git_branch", on(&w.at("r"), args)).await;
    assert_eq!(text, "  kept");
    assert_eq!(value["branches"].as_array().unwrap().len(), 1, "{value}");
    assert_eq!((&value["branches"][0]["subject"], &value["truncated"]), (&json!("whole word"), &json!(true)));
}

#[tokio::test]
async fn the_stash_that_is_cut_is_left_out() {
    let w = World::new();
    w.put("r/f.txt", "changed\n");
    w.git("r", &["stash"]);
    let (output, count) = cut_in("a\0b\0whole word\0a\0b\0cut word\0", |length| padded("{}\0{}\0{}\0", length));
    let s = printing(&w, "-g", &output).await;
    let (text, value) =
        s.good("git_stash", on(&w.at("r"), json!({"action": "list", "cursor": count.to_string()}))).await;
    assert_eq!(text, format!("stash@{{{count}}}: whole word"));
    assert_eq!((value["stashes"].as_array().unwrap().len(), &value["truncated"]), (1, &json!(true)), "{value}");
}

#[tokio::test]
async fn the_changed_file_that_is_cut_is_left_out() {
    let w = World::new();
    let hashes = "100644 100644 100644 a a";
    for last in
        ["? whole word\0? cut word\0".to_owned(), format!("? whole word\x002 R. N... {hashes} R100 cut\0from word\0")]
    {
        // Headers of a kind that is not known are skipped.
        let (output, _) = cut_in(&last, |length| padded("# {}\0", length));
        let s = printing(&w, "--porcelain=v2", &output).await;
        let (_, value) = s.good("git_status", on(&w.at("r"), json!({}))).await;
        let paths: Vec<&Value> = value["entries"].as_array().unwrap().iter().map(|entry| &entry["path"]).collect();
        assert_eq!((paths, &value["truncated"]), (vec![&json!("whole word")], &json!(true)), "{last:?}");
    }
}

#[tokio::test]
async fn the_name_that_is_cut_is_left_out() {
    let w = World::new();
    let last = "100644 blob a\twhole word\x00100644 blob a\tcut word\0";
    // What has no name is skipped.
    let (output, _) = cut_in(last, |length| padded("{}\0", length));
    let s = printing(&w, "ls-tree", &output).await;
    let (text, value) = s.good("git_show", on(&w.at("r"), json!({"revision": "HEAD:"}))).await;
    assert_eq!(
        (text.as_str(), &value["names"], &value["truncated"]),
        ("whole word", &json!(["whole word"]), &json!(true))
    );
}

#[tokio::test]
async fn the_line_that_is_cut_is_left_out() {
    let w = World::new();
    let hash = "a".repeat(40);
    let max = 100_000 * 10 + 16 * 8 * 1024;
    let head = format!("{hash} 1 1 1\nauthor A\nauthor-time 0\nauthor-tz +0000\n\twhole word\n{hash} 2 2\nother ");
    let end = "\n\tcut word\n";
    let padding = max - head.len() - (end.len() - "word\n".len());
    // Of a line no more is read than can be shown.
    let filler = format!("{}\nother ", "x".repeat(9_993)).repeat(padding / 10_000);
    let output = format!("{head}{filler}{}{end}", "x".repeat(padding - filler.len()));
    let s = printing(&w, "blame", output.as_bytes()).await;
    let (text, value) = s.good("git_blame", on(&w.at("r"), json!({"path": "f.txt"}))).await;
    assert_eq!(text, "aaaaaaaa (A 1970-01-01 1) whole word\n");
    assert_eq!((&value["truncated"], &value["next_line"]), (&json!(true), &json!(2)), "{value}");
}
