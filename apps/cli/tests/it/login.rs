//! The whole way through a login: `auth login` gets a token that other commands send and `auth logout` forgets, and a
//! server that wants one is told apart from one that is broken.

#![cfg(feature = "client")]

use crate::common::{Served, command, program};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

fn linchpin(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linchpin"));
    command.args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    for variable in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"] {
        command.env(variable, home);
    }
    command
}

fn run(home: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = linchpin(home, args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// An MCP server that wants a token, and the authorization server that gives it, at one address.
fn guarded() -> String {
    watched().0
}

/// The same, with the paths that it is asked for.
fn watched() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (base, seen) = (origin.clone(), Arc::new(Mutex::new(Vec::new())));
    let paths = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (base, paths) = (base.clone(), Arc::clone(&paths));
            std::thread::spawn(move || answer(stream.unwrap(), &base, &paths));
        }
    });
    (format!("{origin}/mcp"), seen)
}

fn answer(mut stream: TcpStream, base: &str, seen: &Mutex<Vec<String>>) {
    let mut read = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut token, mut length) = (String::new(), String::new(), 0);
    if read.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => token = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    let _ = read.read_exact(&mut body);
    let body = String::from_utf8(body).unwrap();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    seen.lock().unwrap().push(path.split('?').next().unwrap().to_owned());
    let (status, more, reply) = reply(&path, &body, &token, base);
    let reply = reply.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{reply}",
        reply.len()
    );
}

fn reply(path: &str, body: &str, token: &str, base: &str) -> (u16, String, Value) {
    let none = String::new;
    match path {
        "/mcp" if token != "Bearer the-access-token" => {
            let where_to = format!("{base}/.well-known/oauth-protected-resource/mcp");
            (401, format!("WWW-Authenticate: Bearer resource_metadata=\"{where_to}\"\r\n"), json!({}))
        }
        "/mcp" => {
            let request: Value = serde_json::from_str(body).unwrap();
            let about = json!({ "io.modelcontextprotocol/serverInfo": { "name": "guarded", "version": "1" } });
            let result = match request["method"].as_str() {
                Some("server/discover") => {
                    json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "resultType": "complete",
                            "ttlMs": 0, "cacheScope": "private", "_meta": about })
                }
                Some("tools/call") => {
                    json!({ "content": [{ "type": "text", "text": "the secret" }], "resultType": "complete" })
                }
                _ => json!({ "tools": [{ "name": "secret_tool", "inputSchema": { "type": "object" } }],
                             "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }),
            };
            (200, none(), json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            (200, none(), json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }))
        }
        "/.well-known/oauth-authorization-server" => (
            200,
            none(),
            json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"), "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }),
        ),
        "/register" => {
            let asked: Value = serde_json::from_str(body).unwrap();
            let known = json!({ "client_id": "a-client", "redirect_uris": asked["redirect_uris"],
                                "token_endpoint_auth_method": "none" });
            (201, none(), known)
        }
        // The user is somebody who agrees at once.
        _ if path.starts_with("/authorize?") => {
            let given = |name| path.split(['?', '&']).find_map(|pair: &str| pair.strip_prefix(name)).unwrap();
            let back = given("redirect_uri=").replace("%3A", ":").replace("%2F", "/");
            (302, format!("Location: {back}?code=the-code&state={}\r\n", given("state=")), json!({}))
        }
        "/token" if body.contains("code=the-code") && body.contains("code_verifier=") => {
            (200, none(), json!({ "access_token": "the-access-token", "token_type": "Bearer", "expires_in": 3600 }))
        }
        _ => (404, none(), json!({ "error": "invalid_request" })),
    }
}

#[test]
fn a_login_is_kept_for_other_commands_until_logout() {
    let home = tempfile::tempdir().unwrap();
    let (home, url) = (home.path(), guarded());
    let (code, _, err) = run(home, &["tools", &url]);
    assert_eq!(code, Some(6), "{err}");
    assert!(err.contains(&format!("linchpin auth login {url}")), "{err}");

    // The user opens the address, and pastes where it led.
    let mut login = linchpin(home, &["auth", "login", &url, "--no-browser"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(login.stderr.take().unwrap());
    let mut told = String::new();
    let address = loop {
        let mut line = String::new();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "{told}");
        told.push_str(&line);
        if line.contains("/authorize?") {
            break line.trim().to_owned();
        }
    };
    let state = address.split(['?', '&']).find_map(|pair| pair.strip_prefix("state=")).unwrap();
    writeln!(login.stdin.take().unwrap(), "code=the-code&state={state}").unwrap();
    stderr.read_to_string(&mut told).unwrap();
    assert!(login.wait().unwrap().success(), "{told}");
    assert!(!told.contains("the-access-token"), "{told}");

    let (code, out, err) = run(home, &["tools", &url, "--trace"]);
    assert_eq!((code, out.as_str()), (Some(0), "secret_tool\n"), "{err}");
    assert!(err.contains("authorization: •••") && !err.contains("the-access-token"), "{err}");
    let (code, out, _) = run(home, &["auth", "status", "--json"]);
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(status["servers"][0]["resource"], url);
    assert_eq!(status["servers"][0]["loggedIn"], true);
    assert!(!out.contains("the-access-token"));

    assert_eq!(run(home, &["auth", "logout", &url]).0, Some(0));
    assert_eq!(run(home, &["tools", &url]).0, Some(6));
}

/// `linchpin bridge` on standard input and output before this server. The browser of its user notes in `opened` that it was, and
/// goes on as soon as there is a file `go`.
#[cfg(target_os = "linux")]
fn bridge(home: &Path, url: &str) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    let bin = home.join("bin");
    let browser = bin.join("xdg-open");
    if !browser.exists() {
        std::fs::create_dir_all(&bin).unwrap();
        let home = home.display();
        let script = format!(
            "#!/bin/sh\necho \"$1\" >> {home}/opened\nwhile ! [ -e {home}/go ]; do sleep 0.05; done\ncurl -sL -o /dev/null \"$1\"\n"
        );
        std::fs::write(&browser, script).unwrap();
        std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut bridge = linchpin(home, &["bridge", url, "--login-timeout", "60"]);
    bridge.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    bridge
}

#[test]
#[cfg(target_os = "linux")]
fn a_bridge_on_standard_input_and_output_lets_its_user_log_in() {
    let home = tempfile::tempdir().unwrap();
    let (home, url) = (home.path(), guarded());
    std::fs::write(home.join("go"), "").unwrap();
    for _ in 0..2 {
        let mut bridge = crate::common::Raw::start(&mut bridge(home, &url));
        let secret = bridge.call("secret_tool", json!({}));
        assert_eq!(secret["result"]["content"][0]["text"], "the secret", "{secret}");
        let said = bridge.ended();
        assert!(!said.contains("the-access-token"), "{said}");
    }
    // The second one has the token of the first.
    assert_eq!(std::fs::read_to_string(home.join("opened")).unwrap().lines().count(), 1);
    assert_eq!(run(home, &["tools", &url]).1, "secret_tool\n");
}

#[test]
#[cfg(target_os = "linux")]
fn two_bridges_that_start_together_have_one_login() {
    let home = tempfile::tempdir().unwrap();
    let (home, (url, seen)) = (home.path(), watched());
    let opened = || std::fs::read_to_string(home.join("opened")).unwrap_or_default().lines().count();
    let started = || seen.lock().unwrap().iter().filter(|path| *path == "/mcp").count();
    let until = |is_so: &dyn Fn() -> bool| {
        (0..600).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            is_so()
        })
    };
    std::thread::scope(|scope| {
        let used = || {
            let mut bridge = crate::common::Raw::start(&mut bridge(home, &url));
            let secret = bridge.call("secret_tool", json!({}));
            assert_eq!(secret["result"]["content"][0]["text"], "the secret", "{secret}");
        };
        let first = scope.spawn(used);
        assert!(until(&|| opened() == 1), "no browser was opened");
        let before = started();
        let second = scope.spawn(used);
        assert!(until(&|| started() > before), "the second one did not start");
        // It had the time to open another.
        std::thread::sleep(std::time::Duration::from_millis(500));
        std::fs::write(home.join("go"), "").unwrap();
        first.join().unwrap();
        second.join().unwrap();
    });
    assert_eq!(opened(), 1);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|path| *path == "/token").count(), 1, "{seen:?}");
}

#[test]
fn a_token_that_is_not_accepted_is_said_to_be_that_and_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let (code, out, err) = run(home.path(), &["tools", &guarded(), "--bearer", "no-good-token"]);
    assert_eq!((code, out.as_str()), (Some(6), ""), "{err}");
    assert!(err.contains("hint: the token was rejected") && !err.contains("no-good-token"), "{err}");
}

#[test]
fn a_server_without_a_login_is_said_to_be_that() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::start(command(program(), home.path()).args(["serve", "time", "--http", "127.0.0.1:0"]));
    let (code, out, err) = run(home.path(), &["auth", "login", &served.url, "--no-browser"]);
    assert_eq!((code, out.as_str(), err), (Some(0), "", format!("{} does not require login\n", served.url)));
}

#[test]
fn a_port_that_is_taken_is_explained_once() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::start(command(program(), home.path()).args(["serve", "time", "--http", "127.0.0.1:0"]));
    let (code, _, err) = run(home.path(), &["serve", "time", "--http", served.address()]);
    assert_eq!(code, Some(1), "{err}");
    assert_eq!(err.matches("another program is listening there").count(), 1, "{err}");
}
