//! Children: how they are started, what their end is called, and that none is left over.
#![cfg(all(feature = "child", target_os = "linux"))]
#![allow(missing_docs)]

use crate::client;

use client::*;
use linchpin_core::{ClientTransport, Connector};
use linchpin_transport::child::{Child, child};
use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server written in shell.
fn sh(script: &str) -> Child {
    Child::new("sh").arg("-c").arg(script)
}

async fn start(script: &str, side: &Side) -> Arc<dyn ClientTransport> {
    sh(script).connect(side.options.clone()).await.unwrap()
}

/// Tells its own process id and that of a descendant, which both stay for long.
const FAMILY: &str = r#"sleep 1000 & printf '{"jsonrpc":"2.0","method":"pids","params":[%d,%d]}\n' $$ $!;"#;

/// The two ids of [`FAMILY`], and that of the watchdog, which has the child's mark for its last argument.
async fn family(side: &Side) -> Vec<u32> {
    let heard = side.inbox.first("heard {\"jsonrpc\":\"2.0\",\"method\":\"pids\"").await;
    let mut pids = numbers(&heard);
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", pids[0])).unwrap();
    let mark = environment.split('\0').find_map(|variable| variable.strip_prefix("LINCHPIN_CHILD=")).unwrap();
    let words = format!("\0{}\0", mark.rsplit(' ').next().unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    while pids.len() < 3 {
        assert!(Instant::now() < deadline, "there is no watchdog: {heard}");
        // A program that is about to be executed has no words yet.
        pids.extend(with_words(&words));
    }
    pids
}

/// The ids of the processes whose words end with these; each word ends with a zero byte.
fn with_words(end: &str) -> Vec<u32> {
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|words| words.ends_with(end.as_bytes())))
        .collect()
}

fn numbers(text: &str) -> Vec<u32> {
    let list = &text[text.find('[').unwrap() + 1..text.find(']').unwrap()];
    list.split(',').map(|n| n.trim().parse().unwrap()).collect()
}

/// The state and the group of a process. Dead ones that only the system has to ask about count as gone.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let words: Vec<_> = stat[stat.rfind(')')? + 2..].split(' ').collect();
    let (state, parent, group) = (words[0].chars().next()?, words[1].parse::<u32>().ok()?, words[2].parse().ok()?);
    (state != 'Z' || parent == std::process::id()).then_some((state, group))
}

/// Waits until none of these processes is there any more, dead ones that nobody has asked about included.
fn gone(pids: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while pids.iter().any(|pid| stat(*pid).is_some()) {
        let left: Vec<_> = pids.iter().filter_map(|pid| Some((*pid, stat(*pid)?))).collect();
        assert!(Instant::now() < deadline, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn gone_meanwhile(pids: Vec<u32>) {
    tokio::task::spawn_blocking(move || gone(&pids)).await.unwrap();
}

const ANSWER: &str = r#"printf '{"jsonrpc":"2.0","id":1,"result":{}}\n'"#;

#[tokio::test]
async fn every_way_a_child_ends_is_told() {
    let python = "python3 -c 'import sys; sys.stdin.readline(); raise SystemExit(\"no such table\")'";
    let cases = [
        ("read l; ANSWER; read l", "ok {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"),
        (
            "read l; kill -9 $$",
            "Closed(\"the server was killed by signal 9 (SIGKILL) before answering; it wrote nothing",
        ),
        (
            "read l; echo one >&2; echo two >&2; exit 3",
            "Closed(\"the server exited with status 3 before answering; its last lines were:\\n  one\\n  two\")",
        ),
        ("exit 0", "Closed(\"the server exited with status 0; it wrote nothing to standard error\")"),
        (
            python,
            "Closed(\"the server exited with status 1 before answering; its last lines were:\\n  no such table\")",
        ),
        (
            "read l; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"re'; sleep 0.1; exit 1",
            "Closed(\"the server exited with status 1 before answering; it wrote nothing to standard error\\nthe server \
             also wrote 1 line that is not a message; it begins: {",
        ),
        ("read l; echo listening on stdio; kill -15 $$", "Closed(\"the server was killed by signal 15 (SIGTERM)"),
        ("read l; exec >&-; sleep 1000", "Closed(\"the server closed its output before answering without exiting"),
        ("exec <&-; sleep 1000", "Closed(\"the server closed its input before answering without exiting"),
        // A descendant holds the output open: the end of the server is the end all the same.
        ("read l; sleep 1000 & exit 5", "Closed(\"the server exited with status 5 before answering"),
    ];
    let tries = cases.map(|(script, expected)| {
        tokio::spawn(async move {
            let side = side(|limits| (limits.connections.close_ms_max, limits.child.term_ms_max) = (200, 200));
            let link = start(&script.replace("ANSWER", ANSWER), &side).await;
            // Where its input is closed, that has happened before the request is written.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let outcome = ask(&link, 1).await;
            assert!(outcome.starts_with(expected), "{script}: {outcome}");
            if !expected.starts_with("ok") {
                side.inbox.first("closed Closed(\"the server").await;
                assert!(ask(&link, 2).await.starts_with("Closed(\"the server"), "{script}");
            }
            link.close().await;
        })
    });
    for one in tries {
        one.await.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_what_to_do() {
    let folder = std::env::temp_dir().join(format!("linchpin-child-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, mode: u32, text: &[u8]| -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let cases = [
        (
            Child::new("no-such-program-x").arg("-y"),
            "`no-such-program-x -y` could not be started: it was not found in PATH; install it",
        ),
        (Child::new("npx").env("PATH", "/nowhere"), "not found in PATH; it is part of Node.js"),
        (Child::new("npx -y some-server"), "`child(\"…\")` parses a whole command line"),
        (Child::new("/no/such/file"), "/no/such/file does not exist"),
        (Child::new(file("plain", 0o644, b"")), "is not executable; try `chmod +x`"),
        (Child::new("plain").env("PATH", &folder), "is not executable; try `chmod +x`"),
        (Child::new(file("binary", 0o755, b"\x7fELFxx")), "is neither an executable for this machine nor"),
        (Child::new(file("script", 0o755, b"#!/no/such/shell\n")), "the interpreter named in the first line"),
        (Child::new("sh").cwd("/no/such/folder"), "the working directory /no/such/folder does not exist"),
        (Child::new(&folder), "is a folder"),
    ];
    for (child, expected) in cases {
        let error = child.connect(side(|_| {}).options).await.err().unwrap_or_else(|| panic!("{expected}: it started"));
        assert!(error.to_string().contains(expected), "{error}\nexpected: {expected}");
        assert!(error.is_closed());
    }
    std::fs::remove_dir_all(&folder).unwrap();
    for (line, expected) in [("a 'b", "unterminated quote in the command line"), ("  ", "the command line is empty")] {
        assert!(child(line).unwrap_err().to_string().contains(expected));
    }
    assert_eq!(child("npx -y 'a b'").unwrap().name(), "npx -y 'a b'");
}

#[tokio::test]
async fn a_child_starts_in_its_folder_with_its_environment_and_words() {
    // Cargo sets this for tests; it stands for everything that is not a child's business.
    let ours = "CARGO_MANIFEST_DIR";
    assert!(std::env::var_os(ours).is_some());
    let script = r#"printf '{"jsonrpc":"2.0","method":"%s|%s|%s|%s|%s"}\n' "$PWD" "${HOME:+home}" "${CARGO_MANIFEST_DIR:+ours}" "$MINE" "$1"; read l"#;
    let words = ["sh", "a b"];
    let cases = [
        (sh(script).args(words).cwd("/").env("MINE", "x"), "/|home||x|a b"),
        (sh(script).args(words).cwd("/").pass_env(ours), "/|home|ours||a b"),
        (sh(script).args(words).cwd("/").inherit_env(), "/|home|ours||a b"),
        (sh(script).args(words).cwd("/").env("A", "b").clear_env().env("MINE", "x"), "/|||x|a b"),
    ];
    for (child, expected) in cases {
        let side = side(|_| {});
        let link = child.connect(side.options.clone()).await.unwrap();
        assert_eq!(side.inbox.first("heard").await, format!("heard {{\"jsonrpc\":\"2.0\",\"method\":\"{expected}\"}}"));
        link.close().await;
    }
}

#[tokio::test]
async fn standard_error_is_bounded_and_its_end_is_kept() {
    let side = side(|limits| limits.child.stderr_bytes_max = 6_000);
    // 20 MB, one line of a megabyte among them, and nobody reads but the link.
    let script = "i=0; line=$(head -c 1000 /dev/zero | tr '\\0' y); head -c 1000000 /dev/zero | tr '\\0' z >&2; echo >&2; \
                  yes $line | head -n 20000 >&2; echo the end >&2; exit 1";
    let link = start(script, &side).await;
    let outcome = ask(&link, 1).await;
    assert!(outcome.ends_with("\\n  the end\")"), "{}", &outcome[outcome.len() - 100..]);
    assert!((5_000..7_000).contains(&outcome.len()), "{}", outcome.len());
    assert_eq!(outcome.matches("\\n  yyy").count(), 5, "whole lines are kept");
    let seen = side.tap.all();
    assert!(seen.iter().all(|line| line.starts_with("note") || line.len() < 5_000), "a long line is cut");
    assert!(seen.iter().any(|line| line.starts_with("stderr zzz") && line.ends_with('…')));
}

#[tokio::test]
async fn secrets_are_shown_nowhere() {
    let side = side(|_| {});
    let script = "for said in \"key $API_TOKEN and $2 and $3 refused\"; do echo $said >&2; echo $said; done; exit 1";
    let child = sh(script).args(["sh", "--api-key", "abcdefgh", "opqrstuv"]).secret("opqrstuv");
    let child = child.env("API_TOKEN", "ijklmnop").env("PLAIN", "plainvalue");
    let secrets = ["abcdefgh", "ijklmnop", "opqrstuv", "plainvalue"];
    for shown in [child.name(), format!("{child:?}"), child.key().unwrap()] {
        assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
    }
    assert!(child.name().ends_with("sh --api-key *** ***"), "{}", child.name());
    let link = child.connect(side.options.clone()).await.unwrap();
    let outcome = ask(&link, 1).await;
    assert!(outcome.contains("last lines were:\\n  key *** and *** and *** refused"), "{outcome}");
    assert!(outcome.contains("it begins: key *** and *** and *** refused"), "{outcome}");
    let seen = side.tap.all();
    for stream in ["stderr", "garbage"] {
        assert!(seen.contains(&format!("{stream} key *** and *** and *** refused")), "{seen:?}");
    }
    assert!(!secrets.iter().any(|secret| format!("{seen:?}{:?}", side.inbox.all()).contains(secret)), "{seen:?}");
    // Another key is another child, and its era is not known yet.
    assert_ne!(child.key(), child.clone().env("PLAIN", "other").key());
    assert_eq!(child.key(), child.clone().key());
    for child in [Child::new("/opqrstuv/server"), Child::new("sh").cwd("/opqrstuv"), Child::new("opqrstuv -x")] {
        let child = child.secret("opqrstuv");
        let error = child.connect(side.options.clone()).await.err().unwrap().to_string();
        let shown = format!("{error} {child:?} {}", child.key().unwrap());
        assert!(error.contains("could not be started") && !shown.contains("opqrstuv"), "{shown}");
    }
}

#[tokio::test]
async fn closing_first_closes_the_input_then_asks_then_kills() {
    let polite = "trap 'echo term >&2; exit 0' TERM; while read l; do :; done; echo eof >&2;";
    let cases = [
        // Ends when its input does.
        (polite.to_owned(), vec!["stderr eof"]),
        // Ends when asked.
        (format!("{polite} sleep 1000 & wait"), vec!["stderr eof", "stderr term"]),
        // Does not listen.
        (format!("{FAMILY} trap '' TERM; {polite} trap '' TERM; while :; do sleep 1; done"), vec!["stderr eof"]),
    ];
    for (script, expected) in cases {
        let side = side(|limits| (limits.connections.close_ms_max, limits.child.term_ms_max) = (500, 500));
        let link = start(&script, &side).await;
        let pids = if script.contains("pids") { family(&side).await } else { Vec::new() };
        let waiting = {
            let link = link.clone();
            tokio::spawn(async move { ask(&link, 1).await })
        };
        side.tap.first("sent").await;
        tokio::time::timeout(Duration::from_secs(30), link.close()).await.unwrap();
        // Nothing is left when closing is over, zombies included.
        assert!(pids.iter().all(|pid| stat(*pid).is_none()), "{pids:?}");
        assert_eq!(waiting.await.unwrap(), "Closed(\"the connection was closed by this client\")");
        link.close().await;
        let stderr: Vec<_> = side.tap.all().into_iter().filter(|line| line.starts_with("stderr")).collect();
        assert_eq!(stderr, expected);
        assert!(!side.inbox.all().iter().any(|line| line.starts_with("closed")), "whoever closes is not told");
    }
}

#[tokio::test]
async fn dropping_a_link_kills_the_child_and_its_descendants() {
    let side = side(|_| {});
    let link = start(&format!("trap '' TERM HUP; {FAMILY} sleep 1000"), &side).await;
    let pids = family(&side).await;
    drop(link);
    gone_meanwhile(pids).await;
}

#[tokio::test]
async fn descendants_go_when_the_child_exits_by_itself() {
    let side = side(|_| {});
    let link = start(&format!("{FAMILY} read l; exit 0"), &side).await;
    let pids = family(&side).await;
    assert!(ask(&link, 1).await.contains("exited with status 0"));
    gone_meanwhile(pids).await;
    drop(link);
}

#[tokio::test]
async fn a_panic_leaves_nothing_behind() {
    let side = side(|_| {});
    let link = start(&format!("{FAMILY} sleep 1000"), &side).await;
    let pids = family(&side).await;
    let task = tokio::spawn(async move {
        let _link = link;
        panic!("as the test wants it");
    });
    assert!(task.await.unwrap_err().is_panic());
    gone_meanwhile(pids).await;
}

#[test]
fn the_end_of_the_runtime_leaves_nothing_behind() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let side = side(|_| {});
    let pids = runtime.block_on(async {
        let link = start(&format!("{FAMILY} sleep 1000"), &side).await;
        let pids = family(&side).await;
        tokio::spawn(async move {
            let _link = link;
            std::future::pending::<()>().await;
        });
        pids
    });
    drop(runtime);
    // Without a runtime nobody asks about the dead; the next one does.
    let deadline = Instant::now() + Duration::from_secs(20);
    while pids.iter().any(|pid| stat(*pid).is_some_and(|(state, _)| state != 'Z')) {
        assert!(Instant::now() < deadline, "{pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts eight descendants, five of which leave the group, and two of these the environment of the child, too. They
/// are told apart from others by their argument.
fn clan(argument: &str) -> String {
    r#"sleep N & (trap '' TERM HUP; exec sleep N) & setsid sleep N & (setsid sleep N &); (nohup sleep N >/dev/null 2>&1 &)
       python3 -c "import subprocess
for more in {}, {'env': {}}: subprocess.Popen(['sleep', 'N'], start_new_session=True, **more)"; (env -i setsid setsid sleep N &)"#
        .replace('N', argument)
}

/// How many of a clan are there. Those that are yet to become one have more words.
fn members(argument: &str) -> usize {
    let words = format!("sleep\0{argument}\0");
    let ids = with_words(&words);
    ids.iter()
        .filter(|id| std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|all| all == words.as_bytes()))
        .count()
}

/// Waits until this many of a clan are there.
fn clan_is(argument: &str, wanted: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let there = || members(argument);
    while there() != wanted {
        assert!(Instant::now() < deadline, "{} of the clan {argument} are there, not {wanted}", there());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn descendants_that_left_the_group_go_with_it() {
    for (n, way) in ["close", "drop", "exit", "kill -KILL 0", "panic"].into_iter().enumerate() {
        let argument = format!("1{n}{}", std::process::id());
        let side = side(|limits| (limits.connections.close_ms_max, limits.child.term_ms_max) = (100, 100));
        // One with another environment is known only if it was not started in the first moments of the server.
        let last = if way.starts_with("kill") { way } else { "exit" };
        let link = start(&format!("read l; {}; read l; {last}", clan(&argument)), &side).await;
        link.notify(note("begin")).await.unwrap();
        let grown = argument.clone();
        tokio::task::spawn_blocking(move || clan_is(&grown, 8)).await.unwrap();
        match way {
            "close" => link.close().await,
            "drop" => drop(link),
            "exit" | "kill -KILL 0" => {
                link.notify(note("end")).await.unwrap();
                side.inbox.first("closed").await;
            }
            _ => {
                let task = tokio::spawn(async move {
                    let _link = link;
                    panic!("as the test wants it");
                });
                assert!(task.await.unwrap_err().is_panic());
            }
        }
        tokio::task::spawn_blocking(move || clan_is(&argument, 0)).await.unwrap();
    }
}

#[tokio::test]
async fn what_descends_from_the_first_moment_goes_too() {
    let argument = format!("2{}", std::process::id());
    for _ in 0..10 {
        // Forked before anything else is done, and in another environment only later.
        let link = start(&format!("(sleep 0.1; exec env -i setsid sleep {argument}) & read l"), &side(|_| {})).await;
        let grown = argument.clone();
        tokio::task::spawn_blocking(move || clan_is(&grown, 1)).await.unwrap();
        link.close().await;
        let left = argument.clone();
        tokio::task::spawn_blocking(move || clan_is(&left, 0)).await.unwrap();
    }
}

#[tokio::test]
async fn a_child_can_be_dialled_again() {
    let script = format!("{FAMILY} read l; {ANSWER}; read l");
    let server = sh(&script);
    let mut all = Vec::new();
    for _ in 0..3 {
        let side = side(|_| {});
        let link = server.connect(side.options.clone()).await.unwrap();
        all.extend(family(&side).await);
        assert!(ask(&link, 1).await.starts_with("ok "));
        link.close().await;
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 9, "each dial starts its own");
    gone_meanwhile(all).await;
}

/// What [`nothing_outlives_a_program_that_ends`] runs in another process: starts a family and a clan, tells of them, and
/// waits.
#[test]
fn parent_for_the_test_below() {
    let Ok(how) = std::env::var("LINCHPIN_TEST_PARENT") else { return };
    let argument = std::process::id().to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let side = side(|_| {});
        let script = format!("trap '' TERM HUP PIPE; {FAMILY} read l; {}; sleep 1000", clan(&argument));
        let link = start(&script, &side).await;
        let pids = family(&side).await;
        link.notify(note("begin")).await.unwrap();
        clan_is(&argument, 8);
        eprintln!("family {pids:?}");
        match how.as_str() {
            "exit" => {
                // Nothing is dropped.
                std::process::exit(0)
            }
            "abort" => std::process::abort(),
            "panic" => panic!("as the test wants it"),
            _ => std::future::pending::<()>().await,
        }
        drop(link);
    });
}

#[test]
fn nothing_outlives_a_program_that_ends() {
    for how in ["KILL", "TERM", "INT", "HUP", "exit", "abort", "panic"] {
        let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_life::parent_for_the_test_below", "--nocapture"])
            .env("LINCHPIN_TEST_PARENT", how)
            .stderr(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(parent.stderr.take().unwrap()).lines();
        let told = lines.map(Result::unwrap).find(|line| line.starts_with("family")).unwrap();
        let pids = numbers(&told);
        assert_eq!(pids.len(), 3);
        let argument = parent.id().to_string();
        if how == how.to_uppercase() {
            assert!(pids.iter().all(|pid| stat(*pid).is_some()), "they live until then");
            assert_eq!(members(&argument), 8);
            let kill = std::process::Command::new("kill").args([&format!("-{how}"), &argument]).status().unwrap();
            assert!(kill.success());
        }
        parent.wait().unwrap();
        gone(&pids);
        clan_is(&argument, 0);
    }
}

#[tokio::test]
async fn an_endless_line_of_a_real_child_is_skipped() {
    let side = quiet_side(|limits| limits.messages.frame_bytes_max = 1 << 20);
    let script = r#"read l; printf '{"jsonrpc":"2.0","id":1,"result":"'; head -c 200000000 /dev/zero | tr '\0' x; printf '"}\n';
                    read l; printf '{"jsonrpc":"2.0","id":2,"result":{}}\n'; read l"#;
    let link = start(script, &side).await;
    let before = resident();
    assert!(ask(&link, 1).await.starts_with("Unreadable(\"the response exceeds the limit"));
    assert!(ask(&link, 2).await.starts_with("ok "));
    let grown = resident().saturating_sub(before);
    assert!(grown < 40 << 20, "200 MB have passed and {grown} bytes were kept");
    link.close().await;
}

#[tokio::test]
async fn a_child_that_does_not_read_blocks_nobody() {
    let side = quiet_side(|limits| (limits.connections.close_ms_max, limits.child.term_ms_max) = (100, 100));
    let link = start("sleep 1000", &side).await;
    let big = || outgoing(None, format!("{{\"pad\":\"{}\"}}", "x".repeat(100_000)));
    let mut told = 0;
    while tokio::time::timeout(Duration::from_millis(300), link.notify(big())).await.is_ok() {
        told += 1;
        assert!(told < 100, "what waits is bounded");
    }
    assert!(told > 1);
    tokio::time::timeout(Duration::from_secs(20), link.close()).await.unwrap();
}
