//! `linchpin bridge`, and other bridges' command lines.
#![cfg(all(unix, feature = "client", feature = "everything", feature = "time"))]

use crate::common::{REVISIONS, Raw, Served, command, finished, host, over_http, program, run};
use linchpin::transport::Child;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The processes that serve `everything` for a bridge in this home.
fn upstreams(home: &Path) -> Vec<u32> {
    let mark = format!("--bridged={}", home.display());
    let listed = Command::new("ps").args(["-eo", "pid=,args="]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    // The shell that holds the mark is the program's parent in its own group.
    let own = |line: &&str| line.contains(&mark) && line.contains("exec-everything") && !line.contains(" bridge ");
    listed.lines().filter(own).filter_map(pid).collect()
}

fn pid(line: &str) -> Option<u32> {
    line.split_whitespace().next()?.parse().ok()
}

/// Waits until there are so many of them; `false` after 20 seconds.
fn become_(home: &Path, count: usize) -> bool {
    for _ in 0..200 {
        if upstreams(home).len() == count {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// A command that serves `everything` and can be found among all processes.
fn upstream(home: &Path) -> Vec<String> {
    let script = format!(": exec-everything --bridged={}; \"$0\" serve everything; true", home.display());
    vec!["sh".into(), "-c".into(), script, program().display().to_string()]
}

#[test]
fn no_process_is_left_whoever_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for revision in REVISIONS {
        let words = ["bridge", "--http", "127.0.0.1:0", "--"];
        let served = Served::start(command(program(), home.path()).args(words).args(upstream(home.path())));
        runtime.block_on(async {
            let connection = over_http(&served.url, revision).await;
            let echoed = connection.call("echo", json!({ "message": "hi" })).await.unwrap();
            assert!(echoed.text().contains("hi"), "{revision}");
            // The upstream is killed: the next call has a new one.
            let before = upstreams(home.path());
            assert!(!before.is_empty());
            for pid in &before {
                Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
            }
            let mut again = connection.call("echo", json!({ "message": "again" })).await;
            for _ in 0..50 {
                if again.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                again = connection.call("echo", json!({ "message": "again" })).await;
            }
            assert!(again.is_ok_and(|result| result.text().contains("again")), "{revision}");
            // Whoever is killed may take a moment to go.
            for _ in 0..50 {
                if upstreams(home.path()).iter().all(|pid| !before.contains(pid)) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            assert!(upstreams(home.path()).iter().all(|pid| !before.contains(pid)));
        });
        // The bridge is killed.
        drop(served);
        assert!(become_(home.path(), 0), "{:?}", upstreams(home.path()));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_with_too_much_memory_is_restarted_when_it_has_no_call() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (max, stays) in [("1M", false), ("1G", true)] {
        let words = ["bridge", "--isolation", "shared", "--memory-max", max, "--http", "127.0.0.1:0", "--"];
        let served = Served::start(command(program(), home.path()).args(words).args(upstream(home.path())));
        runtime.block_on(async {
            for revision in [REVISIONS[0], REVISIONS[REVISIONS.len() - 1]] {
                let connection = over_http(&served.url, revision).await;
                let echoed = connection.call("echo", json!({ "message": "hi" })).await.unwrap();
                assert!(echoed.text().contains("hi"), "{revision}");
                let before = upstreams(home.path());
                assert!(!before.is_empty());
                let is_there = || upstreams(home.path()).iter().any(|pid| before.contains(pid));
                for _ in 0..if stays { 30 } else { 200 } {
                    if !is_there() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                assert_eq!(is_there(), stays, "{max} {revision}");
                let again = connection.call("echo", json!({ "message": "again" })).await.unwrap();
                assert!(again.text().contains("again"), "{max} {revision}");
            }
        });
        drop(served);
        assert!(become_(home.path(), 0), "{:?}", upstreams(home.path()));
    }
}

#[test]
fn an_old_server_is_behind_a_new_client_on_standard_input_and_output() {
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for era in ["legacy", "modern"] {
        for revision in REVISIONS {
            let child = Child::new(program())
                .args(["bridge", "--era", era, "--"])
                .args(upstream(home.path()))
                .env("HOME", home.path());
            runtime.block_on(async {
                let connection = host(revision).connect(child).await.unwrap();
                let sum = connection.call("get-sum", json!({ "a": 2, "b": 40 })).await.unwrap();
                assert!(sum.text().contains("42"), "{revision} to {era}");
                connection.close().await;
            });
        }
    }
    assert!(become_(home.path(), 0));
}

#[test]
fn the_program_of_another_bridge_is_understood_by_name_and_by_link() {
    let home = tempfile::tempdir().unwrap();
    let line = format!("{} serve time", program().display());
    let mut raw = Raw::start(command(program(), home.path()).args([
        "supergateway",
        "--stdio",
        &line,
        "--outputTransport",
        "stdio",
    ]));
    let time = raw.call("get_current_time", json!({ "timezone": "UTC" }));
    assert!(time.to_string().contains("UTC"), "{time}");
    let link = home.path().join("mcp-proxy");
    std::os::unix::fs::symlink(program(), &link).unwrap();
    let shown =
        crate::common::finished(command(&link, home.path()).args(["--show-as-linchpin", "--port", "1", "a", "b"]));
    assert_eq!((shown.0, shown.1.as_str()), (Some(0), "linchpin bridge --http 127.0.0.1:1 --sse -- a b\n"));
    let (code, out, _) = run(home.path(), &["supergateway", "--version"]);
    assert_eq!((code, out), (Some(0), format!("linchpin {}\n", env!("CARGO_PKG_VERSION"))));
    let (code, out, err) = run(home.path(), &["mcp-remote", "https://example.com", "--protocl", "auto"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("no flag --protocl") && err.contains("--protocol?"), "{err}");
}

#[test]
fn the_server_of_supergateway_has_its_environment() {
    let home = tempfile::tempdir().unwrap();
    let seen = home.path().join("seen");
    let script = format!("echo $MY_API_KEY $FOO > {}; exec {} serve time", seen.display(), program().display());
    let line = format!("FOO=foo sh -c '{script}'");
    let words = ["supergateway", "--outputTransport", "stdio", "--stdio", &line];
    let raw = Raw::start(command(program(), home.path()).args(words).env("MY_API_KEY", "key"));
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), "key foo\n");
    raw.ended();
}

#[test]
fn supergateway_stops_at_the_end_of_a_pipe_and_of_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    for is_pipe in [true, false] {
        let mut gateway = command(program(), home.path());
        gateway.args(["supergateway", "--port", "0", "--stdio", "cat"]).stderr(Stdio::piped());
        gateway.stdin(if is_pipe { Stdio::piped() } else { Stdio::null() });
        let mut gateway = gateway.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(gateway.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("is listening on"), "{said}");
        std::thread::sleep(Duration::from_millis(500));
        assert!(gateway.try_wait().unwrap().is_none(), "it stopped by itself");
        if is_pipe {
            drop(gateway.stdin.take());
            assert!(gateway.wait().unwrap().success());
        } else {
            gateway.kill().unwrap();
            gateway.wait().unwrap();
        }
    }
}

#[test]
fn nothing_is_open_to_other_machines_unless_it_is_said() {
    let home = tempfile::tempdir().unwrap();
    for (address, refused) in [("0.0.0.0:0", true), ("[::]:0", true), ("192.0.2.1:0", true), ("example.com:0", true)] {
        let (code, _, err) = run(home.path(), &["bridge", "--http", address, "--", "true"]);
        assert_eq!((code, err.contains("--no-auth-i-know")), (Some(2), refused), "{address}: {err}");
    }
    for (header, why) in
        [("Authorization", "never sent on"), ("mcp-session-id", "never sent on"), ("a b", "not the name")]
    {
        let (code, _, err) = run(home.path(), &["bridge", "--forward-header", header, "--", "true"]);
        assert!(code == Some(2) && err.contains(why), "{header}: {err}");
    }
}

/// A server of one tool, which notes each call's argument in a file and answers with it after a moment. It does not end by itself.
fn noting(home: &Path) -> Vec<String> {
    let script = r#"
: exec-everything --bridged=HOME
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}}\n' "$id" ;;
    *'"tools/call"'*)
      word=$(printf '%s' "$line" | sed -n 's/.*"word":"\([a-z0-9-]*\)".*/\1/p')
      echo "$word" >> HOME/noted
      sleep 0.05
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$id" "$word" ;;
    *'"ping"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
sleep 60
true
"#;
    let script = script.replace("HOME", &home.display().to_string());
    vec!["sh".into(), "-c".into(), script]
}

/// Posts a message and returns what came back, its head first; `None` where nothing or not all of it did.
fn posted(url: &str, headers: &[&str], message: &Value) -> Option<String> {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-i", "--max-time", "20", url, "-d", &message.to_string()]);
    for header in
        ["content-type: application/json", "accept: application/json, text/event-stream"].iter().chain(headers)
    {
        curl.args(["-H", *header]);
    }
    let output = curl.output().unwrap();
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Calls the tool, without a session or in this one, and returns the response; `None` where nobody answered.
fn called(url: &str, session: Option<&str>, id: usize, word: &str) -> Option<Value> {
    let mut params = json!({ "name": "note", "arguments": { "word": word } });
    let session = session.map(|session| format!("mcp-session-id: {session}"));
    let headers = match &session {
        Some(session) => vec!["mcp-protocol-version: 2025-11-25", session.as_str()],
        None => {
            params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
            vec!["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: note"]
        }
    };
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    let said = posted(url, &headers, &call)?;
    let body = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let event = body.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| !data.is_empty());
    Some(serde_json::from_str(event.unwrap_or(body)).unwrap_or_else(|_| panic!("{word}: {said}")))
}

/// Sends one request in a revision without sessions and returns the response.
fn asked(url: &str, id: usize, word: &str) -> Value {
    called(url, None, id, word).unwrap_or_default()
}

/// Opens a session and returns its id.
fn session(url: &str) -> String {
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } });
    let said =
        posted(url, &[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).unwrap();
    let id = said.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.unwrap_or_else(|| panic!("no session in {said}")).trim().to_owned();
    let headers = [&format!("mcp-session-id: {id}"), "mcp-protocol-version: 2025-11-25"];
    posted(url, &headers, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    id
}

/// Whether a call was lost with the upstream: it may have run, or did not.
fn is_lost(answer: &Value) -> bool {
    let code = &answer["error"]["code"];
    *code == json!(-31001) || *code == json!(-31007)
}

#[test]
fn whoever_is_killed_when_no_call_runs_twice_and_nobody_hears_anothers_answer() {
    let home = tempfile::tempdir().unwrap();
    let mut bridge = command(program(), home.path());
    bridge
        .args(["bridge", "--http", "127.0.0.1:0", "--isolation", "call", "--era", "legacy", "--"])
        .args(noting(home.path()));
    let served = Served::start(&mut bridge);
    let url = served.url.clone();
    let folder = home.path().to_owned();
    let killer = std::thread::spawn(move || {
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(130));
            for pid in upstreams(&folder).into_iter().take(1) {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
        }
    });
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let url = url.clone();
            std::thread::spawn(move || {
                for n in 0..8 {
                    let word = format!("canary-{caller}-{n}");
                    let answer = asked(&url, 7, &word);
                    assert!(
                        is_lost(&answer) || answer["result"]["content"][0]["text"] == json!(word),
                        "{word}: {answer}"
                    );
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    killer.join().unwrap();
    let noted = std::fs::read_to_string(home.path().join("noted")).unwrap();
    let mut words: Vec<&str> = noted.lines().collect();
    let all = words.len();
    words.sort_unstable();
    words.dedup();
    assert!(all > 8 && words.len() == all, "a call ran twice: {noted}");
    drop(served);
    assert!(become_(home.path(), 0), "{:?}", upstreams(home.path()));
}

/// Callers that call with one canary after the other, and never twice with the same: the first in a session, the others without.
struct Callers {
    /// How many answers each of them has.
    answers: Arc<[AtomicUsize; 4]>,
    over: Arc<AtomicBool>,
    running: Vec<std::thread::JoinHandle<Vec<String>>>,
}

impl Callers {
    fn start(url: &str) -> Callers {
        let session = session(url);
        let (answers, over) = (Arc::new([const { AtomicUsize::new(0) }; 4]), Arc::new(AtomicBool::new(false)));
        let call = |caller: usize| {
            let (url, session) = (url.to_owned(), (caller == 0).then(|| session.clone()));
            let (answers, over) = (Arc::clone(&answers), Arc::clone(&over));
            std::thread::spawn(move || {
                let mut answered = Vec::new();
                for n in 0.. {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let word = format!("canary-{caller}-{n}");
                    match called(&url, session.as_deref(), 7, &word).filter(|answer| !is_lost(answer)) {
                        Some(answer) => {
                            assert_eq!(answer["result"]["content"][0]["text"], word, "{answer}");
                            answered.push(word);
                            answers[caller].fetch_add(1, Ordering::Relaxed);
                        }
                        None => std::thread::sleep(Duration::from_millis(20)),
                    }
                }
                answered
            })
        };
        let running = (0..4).map(call).collect();
        Callers { answers, over, running }
    }

    /// Waits until each of them has got another answer, up to half a minute.
    fn go_on(&self) -> bool {
        let so_far = || self.answers.each_ref().map(|answers| answers.load(Ordering::Relaxed));
        let before = so_far();
        (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            so_far().iter().zip(before).all(|(now, before)| *now > before)
        })
    }

    /// Stops them, and returns the canaries that came back to those who had sent them.
    fn stopped(self) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        self.running.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    }
}

#[test]
fn bridge_and_server_are_killed_in_turn_and_no_call_runs_twice() {
    for isolation in ["call", "auto"] {
        let home = tempfile::tempdir().unwrap();
        // Not one of those that connections get: nobody who calls while nobody listens shall be connected to himself.
        let mut ports = (0..).map(|n| 20_000 + ((std::process::id() + n) % 10_000) as u16);
        let port = ports.find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap();
        let start = || {
            let mut bridge = command(program(), home.path());
            let address = format!("127.0.0.1:{port}");
            bridge.args(["bridge", "--http", &address, "--isolation", isolation, "--era", "legacy", "--"]);
            Served::start(bridge.args(noting(home.path())))
        };
        let mut served = start();
        let callers = Callers::start(&served.url);
        for victim in ["server", "bridge", "server", "bridge"] {
            assert!(callers.go_on(), "{isolation}: before the {victim} is killed");
            if victim == "bridge" {
                // SIGKILL.
                drop(served);
                assert!(become_(home.path(), 0), "{isolation}: {:?}", upstreams(home.path()));
                served = start();
            } else {
                let pids = upstreams(home.path());
                // Some may have ended since.
                let _ = Command::new("kill").arg("-9").args(pids.iter().map(u32::to_string)).output();
            }
        }
        assert!(callers.go_on(), "{isolation}: after all");
        let answered = callers.stopped();
        drop(served);
        assert!(become_(home.path(), 0), "{isolation}: {:?}", upstreams(home.path()));
        let noted = std::fs::read_to_string(home.path().join("noted")).unwrap();
        let times = |word: &str| noted.lines().filter(|noted| *noted == word).count();
        assert!(noted.lines().all(|word| times(word) == 1), "{isolation}: a call ran twice: {noted}");
        assert!(answered.iter().all(|word| times(word) == 1), "{isolation}: {answered:?} of {noted}");
    }
}

#[test]
fn a_signal_lets_running_calls_end_and_no_process_is_left() {
    let home = tempfile::tempdir().unwrap();
    let mut bridge = command(program(), home.path());
    bridge.args(["bridge", "--http", "127.0.0.1:0", "--era", "legacy", "--"]);
    let served = Served::start(bridge.args(noting(home.path())));
    let call = |caller: usize| {
        let url = served.url.clone();
        std::thread::spawn(move || {
            let (mut answered, mut n) = (Vec::new(), 0);
            loop {
                let word = format!("canary-{caller}-{n}");
                // Whatever else comes, comes once it stops.
                match called(&url, None, 7, &word).filter(|answer| answer["result"]["content"][0]["text"] == word) {
                    Some(_) => answered.push(word),
                    None => return answered,
                }
                n += 1;
            }
        })
    };
    let callers: Vec<_> = (0..4).map(call).collect();
    let noted = || std::fs::read_to_string(home.path().join("noted")).unwrap_or_default();
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        noted().lines().count() >= 12
    }));
    assert!(Command::new("kill").args(["-TERM", &served.id().to_string()]).status().unwrap().success());
    let answered: Vec<String> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
    let noted = noted();
    assert!(noted.lines().all(|word| answered.iter().any(|answer| answer == word)), "{answered:?} of {noted}");
    assert!(become_(home.path(), 0), "{:?}", upstreams(home.path()));
}

#[test]
fn a_command_that_does_not_exist_is_an_error_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let bridge = ["bridge", "--http", "127.0.0.1:0", "--", "no-such-program"];
    let (code, out, err) = finished(command(program(), home.path()).args(bridge));
    assert!(code == Some(3) && out.is_empty(), "{out}");
    assert!(err.contains("`no-such-program` could not be started: it was not found in PATH"), "{err}");
}

#[test]
fn a_server_that_ends_says_why() {
    let home = tempfile::tempdir().unwrap();
    for (script, why) in [
        ("echo no-such-license >&2; exit 3", &["no-such-license", "3"][..]),
        ("printf 'this is a banner\\n'; exit 0", &["banner", "status 0"]),
    ] {
        let served = Served::start(command(program(), home.path()).args([
            "bridge",
            "--http",
            "127.0.0.1:0",
            "--",
            "sh",
            "-c",
            script,
        ]));
        let answer = asked(&served.url, 1, "x");
        let text = answer["error"].to_string();
        assert_eq!(answer["error"]["code"], -31001, "{answer}");
        assert!(why.iter().all(|word| text.contains(word)), "{text}");
    }
}

#[test]
fn a_client_that_tries_again_is_no_news_in_the_log() {
    let home = tempfile::tempdir().unwrap();
    let bridge = ["bridge", "--http", "127.0.0.1:0", "http://127.0.0.1:1/mcp"];
    let served = Served::start(command(program(), home.path()).args(bridge));
    for id in 1..4 {
        assert_eq!(asked(&served.url, id, "x")["error"]["code"], -31001);
    }
    let said = served.stopped();
    assert_eq!(said.matches("the upstream cannot be opened").count(), 1, "{said}");
}

#[test]
fn a_connection_for_each_user_needs_users() {
    let home = tempfile::tempdir().unwrap();
    let mut bridge = command(program(), home.path());
    bridge.args(["bridge", "--http", "127.0.0.1:0", "--isolation", "user", "--", "cat"]);
    let output = bridge.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--isolation user") && said.contains("--auth token"), "{said}");
}

#[test]
fn one_bridge_has_several_places_and_records_both_sides() {
    let home = tempfile::tempdir().unwrap();
    let (socket, file) = (home.path().join("s.sock"), home.path().join("both.jsonl"));
    let mut bridge = command(program(), home.path());
    bridge.args(["bridge", "--http", "127.0.0.1:0", "--path", "/m", "--unix"]).arg(&socket).arg("--record").arg(&file);
    bridge.args(["--no-tools", "get-*", "--"]).arg(program()).args(["serve", "everything"]);
    let served = Served::start(&mut bridge);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let connection = host(REVISIONS[0]).connect(linchpin::transport::unix(&socket)).await.unwrap();
        let tools = connection.tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
        assert!(
            names.iter().any(|name| name == "echo") && !names.iter().any(|name| name.starts_with("get-")),
            "{names:?}"
        );
        connection.close().await;
    });
    assert!(served.url.ends_with("/m"), "{}", served.url);
    drop(served);
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert!(
        recorded.contains("\"side\":\"client\"")
            && recorded.lines().any(|line| !line.contains("\"side\"") && line.contains("\"sent\"")),
        "{recorded}"
    );
}

#[test]
fn headers_come_from_files_and_variables() {
    let home = tempfile::tempdir().unwrap();
    for (flags, why) in [
        (&["--header", "X-Key: ${NO_SUCH_KEY}"][..], "NO_SUCH_KEY"),
        (&["--header-file", "/no/such/file"], "cannot be read"),
        (&["--header", "no colon"], "Name: value"),
    ] {
        let words: Vec<&str> = ["bridge"].iter().chain(flags).copied().chain(["http://127.0.0.1:1/mcp"]).collect();
        let (code, _, err) = run(home.path(), &words);
        assert!(code == Some(2) && err.contains(why), "{flags:?}: {err}");
    }
    let file = home.path().join("headers");
    std::fs::write(&file, "# of the example\nX-Canary: ${CANARY}\n\n").unwrap();
    let site = crate::common::Site::start(|_| crate::common::Site::answer("500 No", "", ""));
    let url = site.url("/mcp");
    let mut call = command(program(), home.path());
    call.env("CANARY", "from-a-variable").args(["tools", &url, "--header-file"]).arg(&file);
    let _ = crate::common::finished(&mut call);
    assert!(
        site.seen().iter().any(|head| head.to_lowercase().contains("x-canary: from-a-variable")),
        "{:?}",
        site.seen()
    );
}
