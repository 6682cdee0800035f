//! Nothing outside the allowed directories is read, written or learnt about: every row of the vulnerability table.
#![cfg(unix)]

use crate::common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{World, at, call, text};
use linchpin_filesystem::{Config, Filesystem, FollowSymlinks};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

/// Every tool that can be pointed at a file, pointed at `path`.
fn every_use_of(path: &str) -> Vec<(&'static str, Value)> {
    let edits = json!([{"oldText": "SECRET", "newText": "x"}, ]);
    vec![
        ("read_text_file", json!({"path": path})),
        ("read_text_file", json!({"path": path, "head": 1})),
        ("read_text_file", json!({"path": path, "tail": 1})),
        ("read_file", json!({"path": path})),
        ("read_media_file", json!({"path": path})),
        ("fs_read_range", json!({"path": path})),
        ("fs_search_content", json!({"path": path, "pattern": "."})),
        ("get_file_info", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "PWNED"})),
        ("edit_file", json!({"path": path, "edits": edits})),
        ("fs_append", json!({"path": path, "content": "PWNED"})),
        ("create_directory", json!({"path": path})),
        ("move_file", json!({"source": path, "destination": "stolen"})),
        ("move_file", json!({"source": "own.txt", "destination": path})),
        ("fs_copy", json!({"source": path, "destination": "stolen"})),
        ("fs_copy", json!({"source": path, "destination": "stolen", "recursive": true})),
        ("fs_copy", json!({"source": "own.txt", "destination": path, "overwrite": true})),
        ("list_directory", json!({"path": path})),
        ("list_directory_with_sizes", json!({"path": path})),
        ("directory_tree", json!({"path": path})),
        ("search_files", json!({"path": path, "pattern": "**"})),
        ("fs_glob", json!({"path": path, "pattern": "**"})),
    ]
}

/// No tool may do anything with `path`, and the neighbour's secret stays as it was.
async fn refused_everywhere(w: &World, path: &str) {
    w.put("own.txt", "own");
    for (tool, args) in every_use_of(path) {
        let error = w.error(tool, args.clone()).await;
        assert!(!error.contains("SECRET"), "{tool} {args}: {error}");
        assert!(error.contains("Access denied"), "{tool} {args}: {error}");
    }
    let multiple = w.text("read_multiple_files", json!({"paths": [path, "own.txt"]})).await;
    assert!(multiple.contains("Error - Access denied") && multiple.contains("own") && !multiple.contains("SECRET"));
    assert_eq!(std::fs::read_to_string(w.outside("ws-evil/s.txt")).expect("the secret"), "SECRET");
    assert_eq!(std::fs::read_dir(w.outside("ws-evil")).expect("a directory").count(), 1);
    assert!(!w.path("stolen").exists());
}

#[tokio::test]
async fn cve_2025_53110_a_neighbour_with_the_same_prefix_is_outside() {
    let w = World::new();
    let evil = text(&w.outside("ws-evil"));
    for path in [
        format!("{evil}/s.txt"),
        format!("{}/../ws-evil/s.txt", w.at("")),
        format!("{}/x/../../ws-evil/s.txt", w.at("")),
        format!("/{evil}/s.txt"),
        format!("{}/../ws-evil", w.at("")),
        format!("{}-evil/s.txt", w.at("")),
        "../ws-evil/s.txt".to_owned(),
        "/etc/passwd".to_owned(),
        "/".to_owned(),
    ] {
        refused_everywhere(&w, &path).await;
    }
}

#[tokio::test]
async fn cve_2025_53109_links_that_lead_outside_are_refused_by_every_tool() {
    let w = World::new();
    let evil = w.outside("ws-evil");
    w.put("deep/er/x", "");
    w.link("abs", evil.join("s.txt"));
    w.link("rel", "../ws-evil/s.txt");
    w.link("chain1", "chain2");
    w.link("chain2", "deep/../rel");
    w.link("parent", &evil);
    w.link("deep/er/up", "../../..");
    w.link("twisted", "deep/er/../../../ws-evil/s.txt");
    w.link("proc", "/proc/self/root/etc/passwd");
    for path in
        ["abs", "rel", "chain1", "parent/s.txt", "deep/er/up/ws-evil/s.txt", "deep/er/up", "twisted", "proc", "parent"]
    {
        refused_everywhere(&w, &w.at(path)).await;
    }
    // A missing leaf behind a link that leads outside must not be created.
    for (tool, args) in [
        ("write_file", json!({"path": w.at("parent/new"), "content": "x"})),
        ("fs_append", json!({"path": w.at("parent/new"), "content": "x"})),
        ("create_directory", json!({"path": w.at("parent/new/deep")})),
        ("fs_copy", json!({"source": "own.txt", "destination": w.at("parent/new")})),
        ("move_file", json!({"source": "own.txt", "destination": w.at("parent/new")})),
    ] {
        assert!(w.error(tool, args).await.contains("Access denied"));
    }
    assert_eq!(std::fs::read_dir(&evil).expect("a directory").count(), 1);
    // Walks name the links in a directory, as its content, but do not go through them.
    let tree = w.text("directory_tree", at(w.path(""))).await;
    let found = w.text("search_files", json!({"path": w.at(""), "pattern": "**"})).await;
    let grep = w.text("fs_search_content", json!({"path": w.at(""), "pattern": "SECRET"})).await;
    assert!(!tree.contains("s.txt") && !found.contains("s.txt") && !found.contains("abs"), "{tree} {found}");
    assert_eq!(grep, "No matches found");
}

#[tokio::test]
async fn links_inside_work_with_relative_and_absolute_targets() {
    let w = World::new();
    w.put("a/b/c.txt", "inside");
    w.link("rel", "a/b");
    w.link("a/b/up", "../../a/b/c.txt");
    w.link("abs", w.path("a/b/c.txt"));
    w.link("dotted", w.outside("ws-evil/../ws/a/./b/c.txt"));
    for path in ["rel/c.txt", "rel/up", "a/b/up", "abs", "dotted"] {
        assert_eq!(w.text("read_text_file", at(w.path(path))).await, "inside", "{path}");
    }
}

#[tokio::test]
async fn with_follow_symlinks_never_no_link_is_used() {
    let w = World::with(|config| config.follow_symlinks = FollowSymlinks::Never);
    w.put("a/b.txt", "inside");
    w.link("file", "a/b.txt");
    w.link("dir", "a");
    for path in ["file", "dir/b.txt"] {
        refused_everywhere(&w, &w.at(path)).await;
    }
    assert_eq!(w.text("read_text_file", at(w.path("a/b.txt"))).await, "inside");
}

#[tokio::test]
async fn sizes_of_files_outside_are_not_told() {
    let w = World::new();
    std::fs::write(w.outside("ws-evil/s.txt"), "x".repeat(77_777)).expect("a file");
    w.link("lnk", w.outside("ws-evil/s.txt"));
    w.put("own", "12345");
    w.link("inner", "own");
    let own = std::fs::symlink_metadata(w.path("lnk")).expect("metadata").len();
    let listed = w.text("list_directory_with_sizes", at(w.path(""))).await;
    assert!(!listed.contains("75.95 KB"), "{listed}");
    assert!(listed.contains(&format!("{own} B\n")), "{listed}");
    assert!(listed.ends_with(&format!("Combined size: {} B", own + 5 + 5)), "{listed}");
}

#[tokio::test]
async fn swapped_links_never_lead_outside_10_000_times() {
    let w = World::new();
    let evil = w.outside("ws-evil");
    // `dir` and `file` are swapped with links to the neighbour while every kind of call runs.
    w.put("dir/s.txt", "inside");
    w.put("file", "inside");
    w.link("dir.link", &evil);
    w.link("file.link", evil.join("s.txt"));
    let (calls, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let swapper = {
        let (calls, stop) = (Arc::clone(&calls), Arc::clone(&stop));
        let pairs = [(w.path("dir"), w.path("dir.link")), (w.path("file"), w.path("file.link"))];
        std::thread::spawn(move || {
            let mut swaps = 0;
            let started = Instant::now();
            while (swaps < 10_000 || calls.load(Ordering::Relaxed) < 6_000)
                && started.elapsed() < Duration::from_secs(40)
            {
                for (a, b) in &pairs {
                    swap(a, b);
                }
                swaps += 1;
            }
            stop.store(true, Ordering::Relaxed);
            swaps
        })
    };
    let mut workers = Vec::new();
    for worker in 0..4 {
        let (fs, calls, stop) = (w.fs.clone(), Arc::clone(&calls), Arc::clone(&stop));
        let (dir_leaf, file, new) = (w.at("dir/s.txt"), w.at("file"), w.at(&format!("dir/new{worker}")));
        let dir = w.at("dir");
        workers.push(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let (mut good, mut refused) = (0, 0);
            while !stop.load(Ordering::Relaxed) {
                for (tool, args) in [
                    ("read_text_file", json!({"path": dir_leaf})),
                    ("read_text_file", json!({"path": file})),
                    ("read_media_file", json!({"path": dir_leaf})),
                    ("fs_search_content", json!({"path": dir, "pattern": "."})),
                    ("get_file_info", json!({"path": file})),
                    ("write_file", json!({"path": dir_leaf, "content": "inside"})),
                    ("write_file", json!({"path": file, "content": "inside"})),
                    ("write_file", json!({"path": new, "content": "inside"})),
                    ("edit_file", json!({"path": file, "edits": [{"oldText": "i", "newText": "i"}, {"oldText": "n", "newText": "n"}]})),
                    ("fs_append", json!({"path": file, "content": ""})),
                    ("create_directory", json!({"path": format!("{new}.d/x")})),
                    ("move_file", json!({"source": new, "destination": format!("{new}.moved")})),
                    ("fs_delete", json!({"path": format!("{new}.moved")})),
                ] {
                    calls.fetch_add(1, Ordering::Relaxed);
                    match runtime.block_on(call(&fs, tool, args)) {
                        Ok(answer) => {
                            assert!(!answer.to_string().contains("SECRET"), "{tool}: {answer}");
                            good += 1;
                        }
                        Err(error) => {
                            assert!(!error.contains("SECRET"), "{tool}: {error}");
                            refused += 1;
                        }
                    }
                }
            }
            (good, refused)
        }));
    }
    let swaps = swapper.join().expect("the swapper");
    let (mut good, mut refused) = (0, 0);
    for worker in workers {
        let counts = worker.join().expect("a worker");
        good += counts.0;
        refused += counts.1;
    }
    assert!(swaps >= 10_000, "only {swaps} swaps");
    assert!(
        good > 100 && refused > 100,
        "both sides of the race were met: {good} calls worked, {refused} were refused"
    );
    let left: Vec<_> =
        std::fs::read_dir(&evil).expect("a directory").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(left, ["s.txt"], "nothing was created outside");
    assert_eq!(
        std::fs::read_to_string(evil.join("s.txt")).expect("the secret"),
        "SECRET",
        "nothing was changed outside"
    );
}

/// Swaps two names: at once where the system can, otherwise in three steps.
fn swap(a: &Path, b: &Path) {
    #[cfg(target_os = "linux")]
    rustix::fs::renameat_with(CWD, a, CWD, b, rustix::fs::RenameFlags::EXCHANGE).expect("an exchange");
    #[cfg(not(target_os = "linux"))]
    {
        let aside = a.with_extension("aside");
        std::fs::rename(a, &aside)
            .and_then(|()| std::fs::rename(b, a))
            .and_then(|()| std::fs::rename(&aside, b))
            .expect("renames");
    }
}

#[tokio::test]
async fn a_write_through_a_hard_link_does_not_change_the_other_name() {
    let w = World::new();
    let secret = w.outside("ws-evil/s.txt");
    for (tool, args) in [
        ("write_file", json!({"path": "hard", "content": "x"})),
        ("edit_file", json!({"path": "hard", "edits": [{"oldText": "SECRET", "newText": "x"}]})),
    ] {
        std::fs::hard_link(&secret, w.path("hard")).expect("a hard link");
        w.text(tool, args).await;
        assert_eq!(w.get("hard"), "x");
        assert_eq!(std::fs::read_to_string(&secret).expect("the secret"), "SECRET", "{tool}");
        std::fs::remove_file(w.path("hard")).expect("removed");
    }
    std::fs::hard_link(&secret, w.path("hard")).expect("a hard link");
    let error = w.error("fs_append", json!({"path": "hard", "content": "x"})).await;
    assert!(error.contains("hard links") && error.contains("write_file"), "{error}");
    assert_eq!(std::fs::read_to_string(&secret).expect("the secret"), "SECRET");
}

/// Opening a FIFO may wait for somebody at its other end, and a device may never end. Were one read, this would not come back.
#[tokio::test]
async fn special_files_are_refused_without_being_opened() {
    let w = World::new();
    mknodat(CWD, w.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
    let _socket = std::os::unix::net::UnixListener::bind(w.path("socket")).expect("a socket");
    let mut names = vec!["fifo", "socket"];
    // Only root can make a device: 1:5 is zero, which would never end.
    if mknodat(CWD, w.path("device"), FileType::CharacterDevice, Mode::from_raw_mode(0o600), rustix::fs::makedev(1, 5))
        .is_ok()
    {
        names.push("device");
    }
    w.put("own.txt", "own");
    #[cfg(target_os = "linux")]
    let opened = Opened::in_directory(&w.path(""));
    for name in &names {
        for (tool, args) in every_use_of(&w.at(name)) {
            // Metadata and moving the name do not touch the thing itself.
            if matches!(tool, "get_file_info") || args["source"] == w.at(name) && tool == "move_file" {
                continue;
            }
            let answer = w.call(tool, args.clone()).await;
            let searched = tool == "fs_search_content"
                && answer.as_ref().is_ok_and(|answer| answer["content"] == "No matches found");
            assert!(answer.is_err() || searched, "{tool} {args}: {answer:?}");
        }
        let listed = w.text("list_directory", at(w.path(""))).await;
        assert!(listed.contains(&format!("[FILE] {name}")), "{listed}");
    }
    let found = w.text("fs_search_content", json!({"path": w.at(""), "pattern": "own"})).await;
    assert_eq!(found, format!("{}:1:1: own", w.at("own.txt")));
    #[cfg(target_os = "linux")]
    {
        let opened = opened.names();
        assert!(opened.contains("own.txt"), "{opened:?}: what is opened is seen");
        assert!(names.iter().all(|name| !opened.contains(*name)), "{opened:?}");
    }
}

/// What is opened in a directory, as the kernel tells it.
#[cfg(target_os = "linux")]
struct Opened(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Opened {
    fn in_directory(path: &Path) -> Self {
        use rustix::fs::inotify;
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).expect("inotify");
        inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).expect("a watch");
        Self(watch)
    }

    fn names(&self) -> std::collections::BTreeSet<String> {
        let mut room = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = rustix::fs::inotify::Reader::new(&self.0, &mut room);
        let mut names = std::collections::BTreeSet::new();
        while let Ok(event) = events.next() {
            // The directory itself has no name here.
            names.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        names
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn process_information_is_unreachable_even_when_everything_is_allowed() {
    let config = Config::default().with(|config| config.directories = vec!["/".to_owned()]);
    let (fs, _) = Filesystem::open(config).expect("the root directory");
    let w = World::new();
    w.link("environ", "/proc/self/environ");
    w.link("root", "/proc/self/root");
    for path in [
        "/proc/self/environ".to_owned(),
        "/proc/self/root/etc/passwd".to_owned(),
        "/proc/1/environ".to_owned(),
        "/dev/fd/../environ".to_owned(),
        w.at("environ"),
        w.at("root/etc/passwd"),
    ] {
        for tool in ["read_text_file", "read_media_file", "get_file_info", "fs_read_range"] {
            let answer = call(&fs, tool, json!({"path": path})).await;
            assert!(answer.is_err(), "{tool} {path}: {answer:?}");
        }
    }
    for tool in ["list_directory", "directory_tree"] {
        assert!(call(&fs, tool, json!({"path": "/proc"})).await.is_err());
    }
    assert!(call(&fs, "read_text_file", json!({"path": "/etc/passwd"})).await.is_ok(), "the rest is as allowed");
    let proc_only = Config::default().with(|config| config.directories = vec!["/proc".to_owned()]);
    assert!(Filesystem::open(proc_only).is_err());
}

#[tokio::test]
async fn windows_forms_are_refused() {
    let always = World::new();
    for path in [r"C:\Windows\win.ini", "c:/Windows", r"\\server\share\x", r"\\?\C:\x", r"\\.\pipe\x"] {
        refused_everywhere(&always, path).await;
    }
    // On Unix these are ordinary names; on Windows, and on its file systems, they are something else.
    let strict = World::with(|config| config.windows_names = true);
    for name in [
        "file.txt:ads",
        "file.txt::$DATA",
        "CON",
        "con",
        "con.txt",
        "sub/NUL",
        "COM1",
        "lpt9.log",
        "COM\u{b9}",
        "trailing.",
        "trailing ./x",
        "a<b",
        "pipe|",
        "PROGRA~1",
        "LONGNA~1.TXT",
        "CONIN$",
    ] {
        refused_everywhere(&strict, &strict.at(name)).await;
    }
    for name in ["console.txt", "com10", "a.b.c", "nul-terminated", "~notes", "command"] {
        strict.text("write_file", json!({"path": strict.at(name), "content": "x"})).await;
    }
}

#[tokio::test]
async fn names_that_differ_only_in_composition_are_found_or_ambiguous() {
    let (composed, decomposed) = ("caf\u{e9}.txt", "cafe\u{301}.txt");
    let w = World::new();
    w.put(decomposed, "one");
    assert_eq!(w.text("read_text_file", at(w.path(composed))).await, "one");
    w.text("write_file", json!({"path": w.at(composed), "content": "two"})).await;
    assert_eq!(w.get(decomposed), "two", "the file that is there is written, no second one made");
    w.put(composed, "other");
    for name in [composed, decomposed] {
        for (tool, args) in every_use_of(&w.at(name)) {
            if args["source"] == "own.txt" {
                continue;
            }
            let error = w.error(tool, args).await;
            assert!(error.starts_with("Ambiguous path"), "{tool}: {error}");
        }
    }
    let exact = World::with(|config| config.allow_odd_names = true);
    exact.put(composed, "composed");
    exact.put(decomposed, "decomposed");
    assert_eq!(exact.text("read_text_file", at(exact.path(decomposed))).await, "decomposed");
    assert_eq!(exact.text("read_text_file", at(exact.path(composed))).await, "composed");
}

#[tokio::test]
async fn new_names_must_look_like_what_they_are() {
    for (name, allowed) in [
        ("a\u{202e}txt.exe", false),
        ("a\u{200b}b", false),
        ("a\u{feff}", false),
        ("a\nb", false),
        ("a\u{7}", false),
        ("日本語 ñ.txt", true),
    ] {
        let w = World::new();
        w.put("own.txt", "own");
        w.put("dir/x", "x");
        let odd = World::with(|config| config.allow_odd_names = true);
        for (tool, args) in [
            ("write_file", json!({"path": name, "content": "x"})),
            ("fs_append", json!({"path": name, "content": "x"})),
            ("create_directory", json!({"path": format!("{name}/deeper")})),
            ("fs_copy", json!({"source": "own.txt", "destination": name})),
            ("move_file", json!({"source": "own.txt", "destination": name})),
        ] {
            let answer = w.call(tool, args.clone()).await;
            assert_eq!(answer.is_ok(), allowed, "{tool} {name:?}: {answer:?}");
            if !allowed {
                assert!(answer.is_err_and(|error| error.contains("U+")), "the character is named");
                assert!(!w.path(name).exists());
            } else {
                let _ = std::fs::remove_dir_all(w.path(name)).or_else(|_| std::fs::remove_file(w.path(name)));
            }
        }
        odd.text("write_file", json!({"path": name, "content": "x"})).await;
        // What is there already can be read and moved to a better name.
        w.put(name, "x");
        assert_eq!(w.text("read_text_file", json!({"path": name})).await, "x");
    }
}

#[tokio::test]
async fn circular_links_end() {
    let w = World::new();
    w.link("a", "b");
    w.link("b", "a");
    w.link("self", "self");
    w.put("d/f", "x");
    w.link("d/loop", "..");
    for path in ["a", "self"] {
        let error = w.error("read_text_file", at(w.path(path))).await;
        assert!(error.starts_with("ELOOP"), "{error}");
    }
    let tree = w.text("directory_tree", at(w.path(""))).await;
    assert_eq!(tree.matches("\"f\"").count(), 1, "{tree}");
    let deep = format!("d/{}f", "loop/d/".repeat(10));
    assert_eq!(w.text("read_text_file", at(w.path(&deep))).await, "x");
    assert!(w.error("read_text_file", at(w.path(&format!("d/{}f", "loop/d/".repeat(50))))).await.starts_with("ELOOP"));
}

#[tokio::test]
async fn denied_paths_are_absent_or_refused_everywhere() {
    let w = World::with(|config| {
        config.deny = vec!["**/.env".into(), "secrets/".into(), "key.pem".into(), "top/only.txt".into()]
    });
    for name in [".env", "a/.env", "a/.ENV", "secrets/s.txt", "a/secrets/deep/s.txt", "a/b/key.pem", "top/only.txt"] {
        w.put(name, "SECRET");
        refused_everywhere(&w, &w.at(name)).await;
        assert_eq!(w.get(name), "SECRET", "{name}");
    }
    w.link("alias", "a/.env");
    refused_everywhere(&w, &w.at("alias")).await;
    w.put("a/visible.txt", "SECRET word");
    w.put("a/top/only.txt", "elsewhere");
    for (tool, args) in [
        ("list_directory", json!({"path": w.at("")})),
        ("list_directory", json!({"path": w.at("a")})),
        ("list_directory_with_sizes", json!({"path": w.at("a")})),
        ("directory_tree", json!({"path": w.at("")})),
        ("search_files", json!({"path": w.at(""), "pattern": "**"})),
        ("fs_glob", json!({"path": w.at("a"), "pattern": "**"})),
        ("fs_search_content", json!({"path": w.at(""), "pattern": "SECRET"})),
    ] {
        let text = w.text(tool, args.clone()).await.replace("visible", "");
        for hidden in [".env", ".ENV", "secrets", "key.pem", "ws/top/only.txt"] {
            assert!(!text.contains(hidden), "{tool} {args} shows {hidden}: {text}");
        }
    }
    // A directory must not be carried off with what it hides, nor deleted.
    let error = w.error("move_file", json!({"source": w.at("a"), "destination": w.at("z")})).await;
    assert!(error.contains("deny pattern"), "{error}");
    let copied = w.call("fs_copy", json!({"source": w.at("a"), "destination": w.at("copy"), "recursive": true})).await;
    assert_eq!(copied.expect("a copy")["skipped"], 4);
    assert!(w.path("copy/visible.txt").exists() && !w.path("copy/.env").exists() && !w.path("copy/secrets").exists());
    let deleting = World::with(|config| {
        config.deny = vec![".env".into()];
        config.allow_delete = true;
    });
    deleting.put("a/b/.env", "SECRET");
    let error = deleting.error("fs_delete", json!({"path": deleting.at("a"), "recursive": true})).await;
    assert!(error.contains("deny pattern") && deleting.path("a/b/.env").exists(), "{error}");
}

#[tokio::test]
async fn a_deny_pattern_for_an_absolute_path_works() {
    let base = tempfile::tempdir().expect("a directory");
    let real = base.path().canonicalize().expect("a path");
    std::fs::create_dir_all(real.join("ws/sub")).expect("directories");
    std::fs::write(real.join("ws/sub/x"), "SECRET").expect("a file");
    let config = Config::default().with(|config| {
        config.directories = vec![text(&real.join("ws")), text(&real.join("ws/sub"))];
        config.deny = vec![format!("{}/ws/sub/x", text(&real))];
    });
    let (fs, _) = Filesystem::open(config).expect("opened");
    assert!(call(&fs, "read_text_file", json!({"path": real.join("ws/sub/x")})).await.is_err());
    let listed = call(&fs, "list_directory", json!({"path": real.join("ws/sub")})).await.expect("a listing");
    assert_eq!(listed["content"], "");
    // A pattern relative to one allowed directory also holds when another, inner one is allowed.
    let config = Config::default().with(|config| {
        config.directories = vec![text(&real.join("ws")), text(&real.join("ws/sub"))];
        config.deny = vec!["sub/x".to_owned()];
    });
    let (fs, _) = Filesystem::open(config).expect("opened");
    assert!(call(&fs, "read_text_file", json!({"path": real.join("ws/sub/x")})).await.is_err());
}

#[tokio::test]
async fn nul_characters_are_refused() {
    let w = World::new();
    refused_everywhere(&w, &format!("{}\0.txt", w.at("own.txt"))).await;
}

#[tokio::test]
async fn an_allowed_directory_that_was_replaced_is_not_followed() {
    let w = World::new();
    w.put("x", "inside");
    std::fs::rename(w.path(""), w.outside("aside")).expect("renamed");
    std::os::unix::fs::symlink(w.outside("ws-evil"), w.outside("ws")).expect("a link");
    // The handle still is the directory that was allowed, wherever its name went.
    assert_eq!(w.text("read_text_file", json!({"path": "x"})).await, "inside");
    assert!(!w.error("read_text_file", json!({"path": w.at("s.txt")})).await.contains("SECRET"));
}
