//! `git_status` and the diffs answer what git says, in words and in parts, the diffs with one run of git in common states: held
//! against real git over many states of repositories.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on, program};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % below as u64).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}

/// Names that look like something else in a list, need quotes, or are not text.
const NAMES: &[&[u8]] = &[
    b"plain.txt",
    b"two words",
    b" lead",
    b"trail ",
    b"a -> b",
    b"x\ty",
    b"n\nl",
    b"q\"uote",
    b"\"",
    b"back\\slash",
    "é.txt".as_bytes(),
    "日本".as_bytes(),
    b"caf\xe9",
    b"sub (new commits)",
    b"x (modified content, untracked content)",
    b"report (1)",
    b"-dash",
    b"(paren)",
    b"#hash",
    b"modified:   f",
    b"Untracked files:",
    b"g -> h/i -> j",
    b"deep/er/still",
    b":colon",
    b"*star",
    b"\x7f\x01bell",
    b"~t",
    b"? q",
    b"\r",
];

/// Files that every world has, committed.
const FILES: &[&str] = &["f.txt", "two words", "d -> e", "é", "x\ty", "dir/a", "dir/b", "long"];

/// A world with a remote that `main` follows, a submodule, and branches that conflict with it.
fn first() -> World {
    let w = World::new();
    for name in FILES {
        if *name != "f.txt" {
            w.put(&format!("r/{name}"), format!("{name}\n").repeat(20));
        }
    }
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "files"]);
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
    w.git("r", &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &w.at("remote.git"), "sub"]);
    w.git("r", &["commit", "-qm", "submodule"]);
    for (branch, text) in [("other", "1\nother\n"), ("more", "1\nmore\n")] {
        w.git("r", &["checkout", "-q", "-B", branch, "main"]);
        w.put("r/f.txt", text);
        w.git("r", &["rm", "-q", "long"]);
        w.put(&format!("r/{branch}"), text);
        w.put("r/both", text);
        w.git("r", &["add", "."]);
        w.git("r", &["commit", "-qm", branch]);
    }
    w.git("r", &["checkout", "-q", "main"]);
    w.put("r/f.txt", "1\nmain\n");
    w.put("r/long", "changed\n");
    w.put("r/both", "main\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "main"]);
    w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
    w.git("r", &["push", "-q", "-u", "origin", "main"]);
    // Few files, because it is copied a lot; and no loose refs but those that steps make.
    for repo in ["r", "r/sub", "remote.git"] {
        w.git(repo, &["repack", "-qad"]);
        w.git(repo, &["pack-refs", "--all"]);
    }
    w
}

/// Lines for `sh`, in `r`. `$N` and `$M` are names from the tables above: one that is odd, one that is committed.
const STEPS: &[&str] = &[
    "echo changed >> \"$M\"",
    "echo changed >> \"$M\" && git add -- \"$M\"",
    "echo staged >> \"$M\" && git add -- \"$M\" && echo more >> \"$M\"",
    "echo new > \"$N\"",
    "echo new > \"$N\" && git add -- \"$N\"",
    "echo new > \"$N\" && git add -- \"$N\" && rm -- \"$N\"",
    "echo new > \"$N\" && git add -N -- \"$N\"",
    "git rm -q -- \"$M\"",
    "git rm -q --cached -- \"$M\"",
    "rm -- \"$M\"",
    "git mv -- \"$M\" \"$N\"",
    "git mv -- \"$M\" \"$N\" && echo more >> \"$N\"",
    "mv -- \"$M\" \"$N\" && git add -N -- \"$N\"",
    "cp -- \"$M\" \"$N\" && echo x >> \"$M\" && git add -- \"$N\" \"$M\"",
    "rm -- \"$M\" && ln -s x -- \"$M\"",
    "rm -- \"$M\" && ln -s x -- \"$M\" && git add -- \"$M\"",
    "chmod +x -- \"$M\"",
    "mkdir -p untracked/deep && echo x > \"untracked/deep/y\" && echo z > untracked/z",
    "echo ignored > .gitignore && touch ignored",
    "git merge -q other",
    "git merge -q other more",
    "git merge -q other || git add f.txt both && git rm -q --cached long",
    "git merge -q --no-commit -s ours other",
    "git cherry-pick other",
    "git revert --no-edit HEAD~1",
    "git cherry-pick --no-commit more",
    "git rebase -q other",
    "git rebase -q --apply other",
    "git rebase -q -i --exec false HEAD~2",
    "git bisect start && git bisect bad && git bisect good HEAD~2",
    "git bisect start",
    "git checkout -q --detach",
    "git checkout -q v1",
    "git checkout -q --detach origin/main",
    "git commit -q --allow-empty -m ahead",
    "git commit -q --allow-empty -m ahead && git commit -q --allow-empty -m ahead",
    "git reset -q --hard HEAD~1",
    "git reset -q --hard HEAD~2 && git commit -q --allow-empty -m parted",
    "git branch -q --set-upstream-to=other",
    "git branch -q --unset-upstream",
    "git update-ref -d refs/remotes/origin/main",
    "git pack-refs --all",
    "git pack-refs --all && git commit -q --allow-empty -m loose",
    "git switch -q --orphan empty",
    "git checkout -q -b \"ref/quo'te/x\" --track origin/main",
    "git checkout -q -b at/é",
    "git symbolic-ref refs/heads/alias refs/heads/main && git checkout -q alias",
    "git symbolic-ref HEAD refs/odd/place",
    "git symbolic-ref HEAD refs/heads/nothing/here",
    "git update-ref refs/heads/with/dir HEAD && git symbolic-ref HEAD refs/heads/with",
    "git -C sub commit -q --allow-empty -m x",
    "git -C sub commit -q --allow-empty -m x && git add sub",
    "echo x > sub/new && echo y >> sub/f.txt",
    "git rm -q -f sub",
    "git stash -q -u",
    "git sparse-checkout set dir",
    "git update-index --skip-worktree -- \"$M\"",
    "git update-index --split-index",
    "git config status.short true",
    "git config advice.statusHints false",
    "git config core.quotePath false",
    "git config status.showUntrackedFiles no",
    "git config status.showUntrackedFiles all",
    "git config status.showStash true",
    "git config status.relativePaths false",
    "git config status.displayCommentPrefix true",
    "git config status.aheadBehind false",
    "git config status.renames false",
    "git config status.renames copies",
    "git config column.status always",
    "git config color.status always",
    "git config core.commentChar %",
    "git config status.branch true",
    "git config core.abbrev 12",
    "git config diff.noPrefix true",
    "git config diff.mnemonicPrefix true",
    "git config diff.suppressBlankEmpty true",
    "git config diff.renames copies",
    "git config diff.context 0",
    "git config diff.interHunkContext 9",
    "git config diff.algorithm histogram",
    "printf '\\000bin' > \"$M\"",
    "printf '\\000bin' > \"$N\" && git add -- \"$N\"",
    "printf 'no line feed' > \"$M\"",
    "printf 'no line feed' > \"$M\" && git add -- \"$M\" && printf '\\n\\n' >> \"$M\"",
    "printf -- '-- x\\n++ y\\n@@ -1 +1 @@\\ndiff --git a/x b/x\\n\\n' > \"$M\"",
    "sed -i '3d;9s/^/-- /;15i diff --git' -- \"$M\"",
    "sed -i '1d;4s/^/\\t/;19d' -- long && git add long",
    ": > \"$M\"",
    ": > \"$N\" && git add -- \"$N\"",
    "echo '* -diff' > .gitattributes",
    "echo '*.txt diff=cpp' > .gitattributes",
    "git config i18n.commitEncoding latin1",
];

/// Takes a step; whether all of it went well.
fn step(w: &World, line: &str, dice: &mut Dice) -> bool {
    let odd: &OsStr = OsStr::from_bytes(dice.pick(NAMES));
    let mut command = Command::new("sh");
    if let Some(parent) = w.path("r").join(odd).parent() {
        // Where a step before put a file there, this one fails.
        let _ = std::fs::create_dir_all(parent);
    }
    command.args(["-c", line]).current_dir(w.path("r")).env_clear();
    command.env("N", odd).env("M", dice.pick(FILES)).env("HOME", w.at("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    let dir = program().parent().unwrap().to_owned();
    let mut dirs = vec![dir];
    dirs.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    command.env("PATH", std::env::join_paths(dirs).unwrap()).env("GIT_EDITOR", "true");
    command.env("GIT_AUTHOR_DATE", "2026-02-01T00:00:00+0000").env("GIT_COMMITTER_DATE", "2026-02-01T00:00:00+0000");
    command.output().unwrap().status.success()
}

/// What real git says, all by itself.
fn said(w: &World, repo: &str, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(program());
    command
        .current_dir(w.path(repo))
        .env_clear()
        .env("HOME", w.at("home"))
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C.UTF-8");
    let shape = ["-c", "color.status=never", "-c", "column.status=never", "-c", "diff.ignoreSubmodules=dirty"];
    let done = command.args(shape).args(words).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// What the structured content has to be, read from git's own format for programs.
fn parts(w: &World, repo: &str) -> Value {
    let out = said(w, repo, &["status", "--ignore-submodules=dirty", "--porcelain=v2", "--branch", "-z"]);
    let mut records = out.split(|byte| *byte == 0).map(|record| String::from_utf8_lossy(record).into_owned());
    let (mut all, mut entries) = (json!({}), Vec::new());
    while let Some(record) = records.next() {
        let words = |n: usize| -> Vec<&str> { record.splitn(n, ' ').collect() };
        let mut entry = |n: usize, from: Option<String>| {
            let words = words(n);
            let mut letters = words[1].chars();
            let mut entry = json!({"path": words[n - 1], "staged": letters.next(), "unstaged": letters.next()});
            if let Some(from) = from {
                entry["from"] = json!(from);
            }
            entries.push(entry);
        };
        match words(3)[..] {
            ["#", "branch.oid", id] if id != "(initial)" => all["head"] = json!(id),
            ["#", "branch.head", name] if name != "(detached)" => all["branch"] = json!(name),
            ["#", "branch.upstream", name] => all["upstream"] = json!(name),
            ["#", "branch.ab", counts] => {
                let (ahead, behind) = counts.split_once(' ').unwrap();
                all["ahead"] = json!(ahead[1..].parse::<u64>().unwrap());
                all["behind"] = json!(behind[1..].parse::<u64>().unwrap());
            }
            ["1", ..] => entry(9, None),
            ["2", ..] => {
                let from = records.next();
                entry(10, from);
            }
            ["u", ..] => entry(11, None),
            ["?", ..] => entries.push(json!({"path": &record[2..], "staged": "?", "unstaged": "?"})),
            _ => {}
        }
    }
    all["clean"] = json!(entries.is_empty());
    all["entries"] = json!(entries);
    all
}

fn text_of(out: &[u8]) -> String {
    String::from_utf8_lossy(out.strip_suffix(b"\n").unwrap_or(out)).into_owned()
}

/// What `files` of a diff has to be.
fn counted(out: &[u8]) -> Value {
    let mut records = out.split(|byte| *byte == 0).map(|record| String::from_utf8_lossy(record).into_owned());
    let mut files = Vec::new();
    while let Some(record) = records.next().filter(|record| !record.is_empty()) {
        let parts: Vec<&str> = record.splitn(3, '\t').collect();
        let (from, path) = match parts[2] {
            "" => (records.next(), records.next().unwrap()),
            path => (None, path.to_owned()),
        };
        let mut file = json!({"path": path});
        for (name, value) in [("added", parts[0]), ("removed", parts[1])] {
            if value != "-" {
                file[name] = json!(value.parse::<u64>().unwrap());
            }
        }
        if let Some(from) = from {
            file["from"] = json!(from);
        }
        files.push(file);
    }
    json!(files)
}

/// Compares a diff; whether one run of git was enough.
async fn compared_diff(w: &World, s: &Session, tool: &str, heading: &str, command: &[&str], what: &str) -> bool {
    w.put("runs", "");
    let (text, value) = s.good(tool, on(&w.at("r"), json!({}))).await;
    let runs = w.read("runs").lines().filter(|line| line.contains(" diff ")).count();
    let asked = |shape: &[&str]| said(w, "r", &[command, shape].concat());
    let words = text_of(&asked(&["--unified=3"]));
    assert_eq!(text, format!("{heading}{words}"), "{what}");
    assert_eq!(value["files"], counted(&asked(&["--numstat", "-z"])), "{what}: {words}");
    runs == 1
}

/// The session's git with a list of what it was asked.
fn listening(w: &World, repos: &[&str]) -> linchpin_git::Config {
    let mut config = w.config_of(repos);
    w.script("git", "unused");
    w.put("git", format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec '{}' \"$@\"\n", w.at("runs"), program().display()));
    config.program = Some(w.path("git"));
    config
}

/// Compares the words with git's, and the parts with its format for programs.
async fn compared(w: &World, s: &Session, repo: &str, what: &str) {
    let (text, mut value) = s.good("git_status", on(&w.at(repo), json!({}))).await;
    let words = text_of(&said(w, repo, &["status", "--ignore-submodules=dirty"]));
    assert_eq!(text, format!("Repository status:\n{words}"), "{what}");
    value.as_object_mut().unwrap().remove("truncated");
    assert_eq!(value, parts(w, repo), "{what}:\n{words}");
}

#[tokio::test]
async fn words_and_parts_are_those_of_git_in_many_states() {
    // More of them: LINCHPIN_STATUS_CASES=5000.
    let cases = std::env::var("LINCHPIN_STATUS_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(STEPS.len());
    let first = first();
    let (mut diffs, mut taken) = (0, BTreeMap::<&str, usize>::new());
    for case in 0..cases {
        let mut dice = Dice(case as u64);
        let w = first.copied();
        let s = Session::of(listening(&w, &["r"])).await;
        let mut steps = vec![];
        // Each of them first in some case, and then whatever comes.
        let mut next = case % STEPS.len();
        for _ in 0..=dice.roll(4) {
            let line = STEPS[next];
            steps.push(line);
            *taken.entry(line).or_default() += usize::from(step(&w, line, &mut dice));
            next = dice.roll(STEPS.len());
        }
        let head = w.read("r/.git/HEAD");
        let what = format!("case {case}: {steps:#?} {head}");
        compared(&w, &s, "r", &what).await;
        diffs += usize::from(compared_diff(&w, &s, "git_diff_unstaged", "Unstaged changes:\n", &["diff"], &what).await);
        let staged = ["diff", "--cached"];
        diffs += usize::from(compared_diff(&w, &s, "git_diff_staged", "Staged changes:\n", &staged, &what).await);
    }
    // Those that stop half way say so with their exit code.
    let stop = ["merge", "cherry-pick", "revert", "rebase"];
    let never: Vec<&&str> = STEPS
        .iter()
        .filter(|line| taken.get(**line) == Some(&0) && !stop.iter().any(|word| line.contains(word)))
        .collect();
    assert_eq!(never, Vec::<&&str>::new(), "steps that never worked show nothing");
    assert!(diffs > cases && diffs < cases * 2, "{diffs} of {cases} pairs of diffs with one run");
}

#[tokio::test]
async fn other_kinds_of_repositories_are_told_too() {
    for kind in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let w = World::bare();
        std::fs::create_dir_all(w.path("r")).unwrap();
        let mut init = vec!["init", "-q", "--initial-branch=main"];
        init.extend(kind);
        // Reftable came with git 2.45.
        if !w.try_git("r", &init).0 {
            continue;
        }
        let s = w.open().await;
        compared(&w, &s, "r", "unborn").await;
        w.put("r/a", "a");
        w.git("r", &["add", "."]);
        w.git("r", &["commit", "-qm", "a"]);
        w.put("r/a", "b");
        w.git("r", &["branch", "b"]);
        w.git("r", &["branch", "-q", "--set-upstream-to=b"]);
        compared(&w, &s, "r", "with a commit").await;
    }
}
