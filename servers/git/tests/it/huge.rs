//! A diff of one gigabyte: the answer is short, git is stopped, and this process does not grow. In a file of its own, so that
//! no other test grows the process that is looked at.
#![cfg(target_os = "linux")]

use crate::common;

use common::{Session, World, on};
use serde_json::{Value, json};

const FILES: usize = 100;
const LINES: usize = 10_000;
const LINE: usize = 1_025;

/// The most memory this process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Stages a gigabyte of text in a few kilobytes: the same ten megabytes under many names, and they pack well.
fn gigabyte(w: &World) {
    w.put("big", format!("{}\n", "x".repeat(LINE - 1)).repeat(LINES));
    let id = w.git("r", &["hash-object", "-w", &w.at("big")]);
    let entries: Vec<String> = (0..FILES).map(|n| format!("100644,{id},big{n:02}.txt")).collect();
    let mut command = vec!["update-index", "--add"];
    for entry in &entries {
        command.extend(["--cacheinfo", entry]);
    }
    w.git("r", &command);
    let size: usize = w.git("r", &["cat-file", "-s", &id]).parse().unwrap();
    assert!(size * FILES > 1_000_000_000, "what git would print");
}

/// The git of the session: it writes down which diffs began, and which came to their end.
fn watched(w: &World) -> linchpin_git::Config {
    let mut config = w.config();
    w.script("git", "unused");
    w.put(
        "git",
        format!(
            "#!/bin/sh\ncase \"$*\" in *' diff '*) ;; *) exec '{0}' \"$@\";; esac\n'{0}' \"$@\" &\necho \"$! $*\" >> '{1}/began'\n\
             wait $!\ncode=$?\necho \"$code $*\" >> '{1}/came'\nexit $code\n",
            common::program().display(),
            w.at("")
        ),
    );
    config.program = Some(w.path("git"));
    config
}

#[tokio::test]
async fn a_gigabyte_of_diff_is_cut_and_its_git_stopped() {
    let w = World::new();
    gigabyte(&w);
    let s = Session::of(watched(&w)).await;
    for (tool, args) in [("git_diff_staged", json!({})), ("git_show", json!({"revision": "HEAD"}))] {
        if tool == "git_show" {
            w.git("r", &["commit", "-qm", "big"]);
        }
        w.put("began", "");
        w.put("came", "");
        let before = peak();
        let result = s.call(tool, on(&w.at("r"), args)).await;
        let grown = peak() - before;
        let value: Value = serde_json::from_str(result.as_json()).unwrap();
        let texts: Vec<&str> =
            value["content"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
        assert!(texts[0].len() > 50_000 && texts[0].len() <= 101_000, "{tool}: {}", texts[0].len());
        let added = FILES * LINES;
        let notice =
            format!("[Truncated: the diff is too long. {FILES} files changed, {added} lines added, 0 removed:");
        assert!(texts[1].starts_with(&notice), "{tool}: {}", texts[1]);
        assert_eq!(value["structuredContent"]["truncated"], true, "{tool}");
        assert!(grown < 16 * 1024, "{tool}: {grown} KiB more");
        // Two began, and only the count came to its end by itself; the diff was stopped, or had nobody left to write to.
        let (began, came) = (w.read("began"), w.read("came"));
        let whole: Vec<&str> = came.lines().filter(|line| line.starts_with("0 ")).collect();
        assert!(began.lines().count() == 2 && began.lines().any(|line| !line.contains("--numstat")), "{tool}: {began}");
        assert!(whole.len() == 1 && whole[0].contains("--numstat"), "{tool}: {came}");
        for line in began.lines() {
            common::ended(line.split(' ').next().unwrap()).await;
        }
    }
}
