//! What is looked at is what git uses. Every case puts two readings before a parser: one harmless, one that runs a program or
//! leads outside. The real git alone takes the second (the control); here nothing runs and nothing is shown.
#![cfg(unix)]

use crate::common;

use common::{Session, World, on};
use linchpin_git::Git;
use serde_json::json;
use std::os::unix::ffi::OsStrExt;

const SECRET: &str = "machine h login me password hunter2";

/// Calls that would run filters, drivers and monitors, and show what is outside.
const CALLS: &[(&str, &str)] = &[
    ("git_status", "{}"),
    ("git_diff_unstaged", "{}"),
    ("git_diff", r#"{"target":"HEAD"}"#),
    ("git_add", r#"{"files":["a.bin"]}"#),
    ("git_log", "{}"),
    ("git_show", r#"{"revision":"HEAD"}"#),
    ("git_blame", r#"{"path":"f.txt"}"#),
    ("git_stash", r#"{"action":"push"}"#),
    ("git_commit", r#"{"message":"m"}"#),
    ("git_checkout", r#"{"branch_name":"feat"}"#),
];

/// `r` with a changed file that has a filter and a driver, both named `evil` and not configured.
fn world() -> World {
    let w = World::new();
    w.put("home/.netrc", format!("{SECRET}\nsecond line\n"));
    w.put("r/.gitattributes", "*.bin filter=evil diff=evil\n");
    w.put("r/a.bin", "bin\n");
    w.git("r", &["add", "."]);
    w.git("r", &["commit", "-qm", "bin"]);
    w.put("r/a.bin", "changed\n");
    w.put("r/f.txt", "1\n2\nchanged\n");
    w
}

/// Configuration that runs a script which leaves `mark`.
fn traps(w: &World) -> String {
    let evil = w.script("evil", "mark");
    format!("[core]\n\tfsmonitor = {evil}\n[filter \"evil\"]\n\tclean = {evil}\n[diff \"evil\"]\n\ttextconv = {evil}\n")
}

fn append(w: &World, name: &str, text: impl AsRef<[u8]>) {
    let mut content = std::fs::read(w.path(name)).unwrap_or_default();
    content.extend_from_slice(text.as_ref());
    w.put(name, content);
}

fn copied(w: &World, from: &str, to: &str) {
    std::fs::create_dir_all(w.path(to)).unwrap();
    let done = std::process::Command::new("cp").args(["-a", &format!("{}/.", w.at(from)), &w.at(to)]).status();
    assert!(done.unwrap().success());
}

/// Calls everything; what was answered.
async fn parade(w: &World) -> Vec<(bool, String)> {
    let mut answers = Vec::new();
    // Nothing is used at all when it is refused at the start.
    let Ok((git, _)) = Git::open(w.config()) else { return answers };
    drop(git);
    let s = w.open().await;
    for (tool, args) in CALLS {
        let result = s.call(tool, on(&w.at("r"), serde_json::from_str(args).unwrap())).await;
        assert!(!w.has("mark"), "{tool} ran: {}", w.read("mark"));
        let json = result.as_json().to_owned();
        assert!(!json.contains("hunter2"), "{tool}: {json}");
        answers.push((result.is_error(), result.text()));
    }
    answers
}

#[tokio::test]
async fn a_git_directory_that_git_does_not_take_for_one_is_not_used() {
    for head in
        ["garbage\n", "", "ref: heads/main\n", "ref:\u{b}refs/heads/main\n", "0123456789012345678901234567890123456\n"]
    {
        let w = world();
        copied(&w, "r/.git", "r");
        append(&w, "r/config", traps(&w) + "[core]\n\tworktree = .\n");
        w.put("r/.git/HEAD", head);
        assert!(parade(&w).await.iter().all(|(error, _)| *error), "{head:?}");
        let _ = w.try_git("r", &["status"]);
        assert!(w.has("mark"), "{head:?}: the trap of this test does not work");
    }
    // A link that leads to no ref.
    let w = world();
    copied(&w, "r/.git", "r");
    append(&w, "r/config", traps(&w) + "[core]\n\tworktree = .\n");
    std::fs::rename(w.path("r/.git/HEAD"), w.path("r/.git/HEAD2")).unwrap();
    w.link("HEAD2", "r/.git/HEAD");
    assert!(parade(&w).await.iter().all(|(error, _)| *error));
    let _ = w.try_git("r", &["status"]);
    assert!(w.has("mark"), "the trap of this test does not work");
}

#[tokio::test]
async fn nor_does_it_show_files_outside() {
    let w = world();
    copied(&w, "r/.git", "r");
    append(&w, "r/config", format!("[core]\n\tworktree = {}\n", w.at("home")));
    w.put("r/.git/HEAD", "garbage\n");
    w.git("r", &["--work-tree", &w.at("home"), "--git-dir", ".", "add", "-f", "-N", &w.at("home/.netrc")]);
    assert!(parade(&w).await.iter().all(|(error, _)| *error));
    assert!(w.git("r", &["diff"]).contains("hunter2"), "the trap of this test does not work");
}

#[tokio::test]
async fn heads_of_all_kinds_are_known() {
    let w = world();
    let id = w.git("r", &["rev-parse", "HEAD"]);
    for (head, words) in [
        ("ref: refs/heads/main\n".to_owned(), "On branch main"),
        ("ref:refs/heads/main\n".to_owned(), "On branch main"),
        ("ref: \t refs/heads/main".to_owned(), "On branch main"),
        (format!("{id}\n"), "Not currently on any branch"),
        (id.to_uppercase(), "Not currently on any branch"),
    ] {
        w.put("r/.git/HEAD", &head);
        let text = w.open().await.text("git_status", on(&w.at("r"), json!({}))).await;
        assert!(text.contains(words) && w.git("r", &["status"]).contains(words), "{head:?}: {text}");
    }
    std::fs::remove_file(w.path("r/.git/HEAD")).unwrap();
    w.link("refs/heads/feat", "r/.git/HEAD");
    assert!(w.git("r", &["status"]).contains("On branch feat"));
    assert!(w.open().await.text("git_status", on(&w.at("r"), json!({}))).await.contains("On branch feat"));
}

#[tokio::test]
async fn a_git_file_is_read_as_git_reads_it() {
    for text in ["gitdir: real \n", "gitdir: real \r\n\n", "gitdir:  real\n", "gitdir: real\t\n"] {
        let w = world();
        std::fs::rename(w.path("r/.git"), w.path("r/real")).unwrap();
        let name = text.strip_prefix("gitdir: ").unwrap().trim_end_matches(['\n', '\r']);
        copied(&w, "r/real", &format!("r/{name}"));
        append(&w, &format!("r/{name}/config"), traps(&w));
        w.put("r/.git", text);
        parade(&w).await;
        let _ = w.try_git("r", &["status"]);
        assert!(w.has("mark"), "{text:?}: the trap of this test does not work");
    }
    for text in ["gitdir:real\n", "gitdir: \n", "Gitdir: real\n", "\u{feff}gitdir: real\n", "gitdir: real\0x\n"] {
        let w = world();
        std::fs::rename(w.path("r/.git"), w.path("r/real")).unwrap();
        w.put("r/.git", text);
        assert!(parade(&w).await.iter().all(|(error, _)| *error), "{text:?}");
    }
}

#[tokio::test]
async fn a_common_directory_of_a_bare_repository_is_refused() {
    let w = world();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("b.git")]);
    copied(&w, "b.git", "copy");
    std::fs::rename(w.path("copy"), w.path("b.git/evil")).unwrap();
    append(&w, "b.git/evil/config", "[mark]\n\tis = evil\n");
    w.put("b.git/commondir", "evil\n");
    assert_eq!(w.git("b.git", &["config", "mark.is"]), "evil", "the trap of this test does not work");
    let opened = Git::open(w.config_of(&["b.git"])).map(drop);
    assert!(opened.expect_err("it is refused").to_string().contains("commondir"));
}

/// A repository outside with a file that holds the secret; the object of that file.
fn outside(w: &World) -> String {
    w.init("out");
    w.put("out/secret", SECRET);
    w.git("out", &["add", "."]);
    w.git("out", &["rev-parse", ":secret"])
}

#[tokio::test]
async fn objects_of_other_repositories_are_not_shown() {
    type Arrange = fn(&World, &str);
    let cases: &[(&str, Arrange)] = &[
        ("a carriage return is part of the name", |w, _| {
            std::fs::create_dir(w.path("r/alt")).unwrap();
            w.link(w.path("out/.git/objects"), "r/alt\r");
            w.put("r/.git/objects/info/alternates", "../../alt\r\n");
        }),
        ("a link in an alternate", |w, id| {
            std::fs::create_dir(w.path("r/alt")).unwrap();
            w.link(w.path(&format!("out/.git/objects/{}", &id[..2])), &format!("r/alt/{}", &id[..2]));
            w.put("r/.git/objects/info/alternates", "../../alt\n");
        }),
        ("a link behind a link", |w, id| {
            std::fs::create_dir(w.path("r/in")).unwrap();
            w.link(w.path(&format!("out/.git/objects/{}/{}", &id[..2], &id[2..])), &format!("r/in/{}", &id[2..]));
            let _ = std::fs::remove_dir_all(w.path(&format!("r/.git/objects/{}", &id[..2])));
            w.link("../../in", &format!("r/.git/objects/{}", &id[..2]));
        }),
        ("a link behind one into modules", |w, id| {
            std::fs::create_dir_all(w.path("r/.git/modules/m")).unwrap();
            let object = w.path(&format!("out/.git/objects/{}/{}", &id[..2], &id[2..]));
            w.link(object, &format!("r/.git/modules/m/{}", &id[2..]));
            w.link("../modules/m", &format!("r/.git/objects/{}", &id[..2]));
        }),
    ];
    for (name, arrange) in cases {
        let w = world();
        let id = outside(&w);
        let s = w.open().await;
        arrange(&w, &id);
        for (tool, args) in [("git_show", json!({"revision": id})), ("git_log", json!({})), ("git_status", json!({}))] {
            let text = s.bad(tool, on(&w.at("r"), args)).await;
            assert!(
                text.contains("refers to a location outside") && !text.contains("hunter2"),
                "{name}: {tool}: {text}"
            );
        }
        assert_eq!(w.git("r", &["cat-file", "blob", &id]), SECRET, "{name}: the trap of this test does not work");
    }
}

#[tokio::test]
async fn includes_are_found_where_git_finds_them() {
    // What a link includes, git looks for beside the link and not where it leads.
    let w = world();
    append(&w, "r/.git/config", "[include]\n\tpath = inc/a\n");
    w.put("r/.git/real/b", "[include]\n\tpath = more\n");
    w.put("r/.git/real/more", "");
    w.put("r/.git/inc/more", traps(&w));
    w.link("../real/b", "r/.git/inc/a");
    let answers = parade(&w).await;
    assert!(!answers[0].0, "{answers:?}");
    let _ = w.try_git("r", &["status"]);
    assert!(w.has("mark"), "the trap of this test does not work");
    // A name that is not text would be looked for under another one.
    let w = world();
    append(&w, "r/.git/config", b"[include]\n\tpath = caf\xe9\n");
    std::fs::write(w.path("r/.git").join(std::ffi::OsStr::from_bytes(b"caf\xe9")), traps(&w)).unwrap();
    assert!(parade(&w).await.iter().all(|(error, text)| *error && text.contains("not valid UTF-8")));
    let _ = w.try_git("r", &["status"]);
    assert!(w.has("mark"), "the trap of this test does not work");
}

#[tokio::test]
async fn every_way_to_write_a_key_is_seen() {
    let forms = [
        "[FILTER \"evil\"]\nCLEAN=EVIL\n",
        "[filter \"ev\\il\"]clean=\"EVIL\"\n",
        "[filter\t\"evil\"] clean = \\\n EVIL # why\n",
        "[filter.EVIL]\n\tclean = EVIL\n",
        "\u{feff}[filter \"evil\"]\n\tclean = EVIL\n",
        "[filter \"evil\"]\r\n\tclean = EVIL\r\n",
        "[includeIf \"onbranch:main\"]\n\tpath = ./x/../more\n",
        "[IncludeIf \"gitdir/i:**/R/.GIT\"]\n\tpath = \"mo\\\nre\"\n",
    ];
    for form in forms {
        let w = world();
        let evil = w.script("evil", "mark");
        let config = w.read("r/.git/config");
        w.put("r/.git/more", format!("[filter \"evil\"]\n\tclean = {evil}\n"));
        std::fs::create_dir(w.path("r/.git/x")).unwrap();
        // The mark of the byte order counts at the beginning only.
        w.put(
            "r/.git/config",
            form.replace("\tclean = EVIL", &format!("\tclean = {evil}"))
                .replace("EVIL\"\n", &format!("{evil}\"\n"))
                .replace("=EVIL\n", &format!("={evil}\n"))
                .replace(" EVIL #", &format!(" {evil} #"))
                + &config,
        );
        let answers = parade(&w).await;
        assert!(!answers.is_empty() && !answers[0].0, "{form}: {answers:?}");
        let _ = w.try_git("r", &["add", "a.bin"]);
        assert!(w.has("mark"), "{form}: the trap of this test does not work");
    }
}

#[tokio::test]
async fn git_does_not_search_for_the_repository() {
    let w = World::new();
    w.script("git", "log");
    let real = common::program();
    let script =
        format!("#!/bin/sh\necho \"$GIT_DIR $1 $2 $3\" >> '{}'\nexec '{}' \"$@\"\n", w.at("log"), real.display());
    w.put("git", script);
    let mut config = w.config();
    config.program = Some(w.path("git"));
    let s = Session::of(config.clone()).await;
    w.put("r/f.txt", "x\n");
    for (tool, args) in CALLS.iter().filter(|(_, args)| !args.contains("a.bin")) {
        s.call(tool, on(&w.at("r"), serde_json::from_str(args).unwrap())).await;
    }
    let log = w.read("log");
    let known =
        |line: &&str| line.starts_with(&w.at("r/.git ")) || line.contains(" version") || line.starts_with("/dev/null ");
    let other: Vec<&str> = log.lines().filter(|line| !known(line)).collect();
    assert!(log.lines().count() > 10 && other.is_empty(), "{other:?}");
    // Hooks that are trusted get no such variable: they may go to other repositories.
    w.put("log", "");
    config.trust_repo_config = true;
    Session::of(config).await.text("git_status", on(&w.at("r"), json!({}))).await;
    assert!(!w.read("log").contains(&w.at("r/.git ")));
}

#[tokio::test]
async fn a_bare_repository_in_a_directory_of_the_usual_name_stays_bare() {
    // As people set it up to have nothing but linked work trees.
    let w = world();
    w.git("", &["clone", "-q", "--bare", &w.at("r"), "p/.git"]);
    w.git("p", &["worktree", "add", "-q", "tree", "feat"]);
    let s = Session::of(w.config_of(&["p"])).await;
    assert!(s.text("git_log", on(&w.at("p"), json!({"max_count": 1}))).await.contains("bin"));
    let text = s.bad("git_status", on(&w.at("p"), json!({}))).await;
    assert!(text.contains("work tree"), "{text}");
    assert!(s.text("git_status", on(&w.at("p/tree"), json!({}))).await.contains("On branch feat"));
}

#[tokio::test]
async fn repositories_of_other_users_are_used_only_where_that_is_trusted() {
    let w = world();
    // Only root can give files away; git's own tests make it believe that somebody did.
    let chown = std::process::Command::new("chown").args(["-R", "54321", &w.at("r")]).output().unwrap();
    let mut config = w.config();
    if !chown.status.success() {
        w.script("git", "unused");
        let real = common::program();
        w.put("git", format!("#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec '{}' \"$@\"\n", real.display()));
        config.program = Some(w.path("git"));
    }
    let text = Session::of(config.clone()).await.bad("git_status", on(&w.at("r"), json!({}))).await;
    let complaint = text.contains("dubious ownership") || text.contains("unsafe repository");
    assert!(complaint && text.contains("Hint: The repository belongs to another user"), "{text}");
    w.git("", &["config", "--global", "safe.directory", &w.at("r")]);
    let text = Session::of(config).await.text("git_status", on(&w.at("r"), json!({}))).await;
    assert!(text.contains("a.bin"), "{text}");
}

#[tokio::test]
async fn no_line_of_a_file_outside_shows_up() {
    // Key, what else it needs, and the command of a user that shows the line.
    let cases: &[(&str, &[&str], &str)] = &[
        ("blame.ignoreRevsFile", &[], "blame f.txt"),
        ("fsck.skipList", &[], "fsck"),
        ("fetch.fsck.skipList", &["fetch.fsckObjects"], "fetch origin"),
        ("receive.fsck.skipList", &["receive.fsckObjects"], ""),
        ("core.attributesFile", &[], ""),
        ("core.excludesFile", &[], ""),
        ("diff.orderFile", &[], ""),
        ("gpg.ssh.allowedSignersFile", &[], ""),
        ("gpg.ssh.revocationFile", &[], ""),
        ("mailmap.file", &[], ""),
    ];
    for (key, needs, control) in cases {
        for value in ["~/.netrc", "../home/.netrc", ":(optional)~/.netrc"] {
            let w = world();
            w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
            w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
            w.git("", &["clone", "-q", &w.at("remote.git"), "other"]);
            w.git("other", &["commit", "-q", "--allow-empty", "-m", "theirs"]);
            w.git("other", &["push", "-q", "origin", "HEAD"]);
            for switch in *needs {
                w.git("r", &["config", switch, "true"]);
            }
            w.git("r", &["config", key, value]);
            for any in [false, true] {
                let mut config = w.config_of(if any { &[] } else { &["r", "remote.git"] });
                config.allow_remote = true;
                config.allow_any = any;
                let s = Session::of(config).await;
                for (tool, args) in CALLS.iter().chain(&[("git_fetch", "{}"), ("git_push", "{}")]) {
                    let text = s.bad(tool, on(&w.at("r"), serde_json::from_str(args).unwrap())).await;
                    let named = text.contains(&key.to_lowercase()) && !text.contains("hunter2");
                    assert!(named && text.contains("refers to a location outside"), "{key} {tool}: {text}");
                }
                // A file inside is as good as any.
                w.put("r/.git/list", "");
                w.git("r", &["config", key, ".git/list"]);
                s.text("git_blame", on(&w.at("r"), json!({"path": "f.txt"}))).await;
                w.git("r", &["config", key, value]);
            }
            if !control.is_empty() && !value.starts_with(':') {
                let args: Vec<&str> = control.split(' ').collect();
                let (_, said) = w.try_git("r", &args);
                assert!(said.contains("hunter2"), "{key} {value}: the trap of this test does not work: {said}");
            }
        }
    }
    // A directory that serves as a remote reads its own.
    let w = world();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("remote.git")]);
    w.git("r", &["remote", "add", "origin", &w.at("remote.git")]);
    w.git("remote.git", &["config", "receive.fsckObjects", "true"]);
    w.git("remote.git", &["config", "receive.fsck.skipList", "~/.netrc"]);
    w.git("r", &["commit", "-q", "--allow-empty", "-m", "mine"]);
    let mut config = w.config_of(&["r", "remote.git"]);
    config.allow_remote = true;
    let text = Session::of(config).await.bad("git_push", on(&w.at("r"), json!({}))).await;
    assert!(text.contains("receive.fsck.skiplist") && !text.contains("hunter2"), "{text}");
    assert!(w.try_git("r", &["push", "origin", "main"]).1.contains("hunter2"), "the trap of this test does not work");
}

#[tokio::test]
async fn a_submodule_whose_path_is_not_text_is_not_overlooked() {
    let w = world();
    w.git("r", &["clone", "-q", "--bare", ".", &w.at("sub.git")]);
    w.git("r", &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &w.at("sub.git"), "sub"]);
    w.git("r", &["commit", "-qm", "sub"]);
    w.git("r", &["-c", "alias.rename=!git mv sub \"$(printf 'caf\\351')\"", "rename"]);
    append(&w, "r/.git/modules/sub/config", traps(&w));
    let s = w.open().await;
    for (tool, args) in [("git_add", json!({"files": ["f.txt"]})), ("git_commit", json!({"message": "m"}))] {
        let text = s.bad(tool, on(&w.at("r"), args)).await;
        assert!(text.contains("not valid UTF-8"), "{tool}: {text}");
    }
    // Looking does not go into submodules.
    for tool in ["git_status", "git_diff_unstaged"] {
        s.text(tool, on(&w.at("r"), json!({}))).await;
    }
    assert!(!w.has("mark"), "{}", w.read("mark"));
    let _ = w.try_git("r", &["status"]);
    assert!(w.has("mark"), "the trap of this test does not work");
}
