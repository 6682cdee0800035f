//! `linchpin auth-server`, and what its operator does: users, clients, tokens, keys, the audit log.

#![cfg(feature = "web")]

use crate::common::{Served, command, program, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a request, and returns status and body.
fn ask(origin: &str, head: &str, body: &str) -> (u16, String) {
    try_ask(origin, head, body).expect("it answers")
}

/// The same with a server that may be gone.
fn try_ask(origin: &str, head: &str, body: &str) -> Option<(u16, String)> {
    let answer = try_exchange(origin, head, "", body).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    // What was cut is no answer.
    let length = between(&format!("{}\r\n", head.to_ascii_lowercase()), "content-length: ", "\r\n");
    (body.len().to_string() == length).then(|| (status, body.to_owned()))
}

/// Sends a request with a cookie, and returns the whole answer.
fn exchange(origin: &str, head: &str, cookie: &str, body: &str) -> String {
    try_exchange(origin, head, cookie, body).unwrap()
}

fn try_exchange(origin: &str, head: &str, cookie: &str, body: &str) -> std::io::Result<String> {
    let address = origin.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address)?;
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let cookie = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
    write!(
        stream,
        "{head} HTTP/1.1\r\nHost: {address}\r\n{kind}\r\n{cookie}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn piped(home: &Path, words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = command(program(), home)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn json(home: &Path, words: &[&str]) -> Value {
    let (code, out, err) = run(home, words);
    assert_eq!(code, Some(0), "{words:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn users_are_added_changed_and_listed_and_passwords_are_shown_once() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (code, _, err) = run(home, &["user", "list"]);
    assert!(code == Some(2) && err.contains("linchpin user add"), "{err}");
    let (code, password, err) = run(
        home,
        &["user", "add", "ada", "--group", "admins", "--email", "ada@acme.example", "--scopes", "read,write"],
    );
    assert!(code == Some(0) && password.trim().len() == 43 && err.contains("shown only once"), "{err}");
    let file = std::fs::read_to_string(home.join("users.toml")).unwrap();
    assert!(file.contains("$argon2id$") && !file.contains(password.trim()));
    let (code, out, err) = piped(home, &["user", "add", "bob", "--password-stdin"], "a good password\n");
    assert!(code == Some(0) && out.is_empty(), "{err}");
    let rows: [(&[&str], &str, &str); 5] = [
        (&["user", "add", "ada"], "", "has a user ada already"),
        (&["user", "passwd", "eve"], "", "users: ada, bob"),
        (&["user", "passwd", "bob", "--password-stdin"], "short\n", "at least 8 characters"),
        (&["user", "disable", "eve"], "", "has no user eve"),
        (&["user", "list", "--file", "none.toml"], "", "none.toml"),
    ];
    for (words, input, says) in rows {
        let (code, _, err) = piped(home, words, input);
        assert!(code == Some(2) && err.contains(says), "{words:?}: {err}");
    }
    assert_eq!(run(home, &["user", "disable", "bob"]).0, Some(0));
    let (_, changed, _) = run(home, &["user", "passwd", "ada"]);
    assert_ne!(changed, password);
    let users = json(home, &["user", "list", "--json"]);
    let (ada, bob) = (&users["users"][0], &users["users"][1]);
    assert_eq!(
        (&ada["groups"][0], &ada["scopes"][1], &ada["disabled"]),
        (&"admins".into(), &"write".into(), &false.into())
    );
    assert_eq!((&bob["name"], &bob["disabled"]), (&"bob".into(), &true.into()));
    assert_eq!(run(home, &["user", "enable", "bob"]).0, Some(0));
    let (_, out, _) = run(home, &["user", "list"]);
    assert!(out.contains("ada  ada@acme.example; groups admins; scopes read, write\nbob\n"), "{out}");
    assert_eq!(run(home, &["user", "remove", "bob"]).0, Some(0));
    assert_eq!(run(home, &["user", "remove", "bob"]).0, Some(2));
}

#[test]
fn what_is_missing_or_wrong_is_said_before_anything_starts() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("private.json"), r#"{"keys":[{"kty":"EC","crv":"P-256","x":"","y":"","d":""}]}"#)
        .unwrap();
    let server = [
        "auth-server",
        "--http",
        "127.0.0.1:0",
        "--issuer",
        "http://127.0.0.1:1",
        "--resource",
        "http://127.0.0.1:2/mcp",
    ];
    let with = |more: &[&'static str]| [&server[..], more].concat();
    let store = ["--store", "sqlite:auth.db"];
    let rows = [
        (vec!["auth-server"], "--issuer"),
        (with(&["--no-such-option"]), "unexpected argument '--no-such-option'"),
        (vec!["auth-server", "--http", "127.0.0.1:0", "--issuer", "http://127.0.0.1:1"], "--resource"),
        (with(&["--auth", "users.toml"]), "--auth"),
        (with(&["--auth", "login:none.toml"]), "none.toml"),
        (with(&["--store", "auth.db"]), "expected memory, sqlite:FILE"),
        (with(&["--grant", "admins=x", "--auth", "login"]), "group:NAME"),
        (with(&["--scope", "read", "--grant", "group:admins=raed", "--auth", "login"]), "the scope raed"),
        (with(&["--auth", "github"]), "LINCHPIN_CLIENT_ID"),
        (with(&["--tls-cert", "a.pem"]), "--tls-key"),
        (
            vec!["auth-server", "--http", "127.0.0.1:0", "--issuer", "http://a.example", "--resource", "https://b/mcp"],
            "https",
        ),
        (with(&["--access-life", "25h"]), "expected 1s to 24h"),
        (with(&["--access-life", "0"]), "expected 1s to 24h"),
        (with(&["--key-file", "auth.key"]), "--key-file is for a store that outlives the process"),
        (with(&["--key-file", "auth.key", "--store", "memory"]), "--key-file is for a store that outlives the process"),
        (vec!["client", "list"], "--store"),
        (vec!["client", "list", "--store", "memory"], "--store"),
        ([&["client", "list"], &store[..]].concat(), "there is no store at auth.db"),
        ([&["token", "revoke", "x"], &store[..]].concat(), "there is no store at auth.db"),
        ([&["key", "rotate"], &store[..]].concat(), "there is no store at auth.db"),
        ([&["client", "add", "a"], &store[..]].concat(), "--redirect-uri"),
        ([&["client", "add", "a", "--own-scope", "x"], &store[..]].concat(), "--secret"),
        ([&["client", "add", "https://a/b", "--redirect-uri", "x"], &store[..]].concat(), "need not be added"),
        ([&["client", "add", "a", "--own-scope", "x", "--keys", "private.json"], &store[..]].concat(), "private.json"),
        (vec!["audit", "none.jsonl"], "none.jsonl"),
        (vec!["serve", "memory", "--http", "127.0.0.1:0", "--auth", "token", "--store", "memory"], "--auth login"),
        (
            vec!["serve", "memory", "--http", "127.0.0.1:0", "--auth", "token", "--allow", "@a.example"],
            "--allow is for logins",
        ),
    ];
    #[cfg(feature = "redis")]
    let rows = rows.into_iter().chain([
        (with(&["--redis-may-evict"]), "are for a store in Redis"),
        (with(&["--redis-master", "m", "--store", "sqlite:auth.db"]), "are for a store in Redis"),
        ([&["client", "list", "--redis-may-evict"], &store[..]].concat(), "are for a store in Redis"),
        (
            vec!["serve", "memory", "--http", "127.0.0.1:0", "--auth", "token", "--redis-may-evict"],
            "--store and its options are for logins",
        ),
    ]);
    for (words, says) in rows {
        let (code, out, err) = run(home.path(), &words);
        assert!(code == Some(2) && out.is_empty() && err.contains(says), "{words:?}: {code:?} {err}");
    }
    assert!(!home.path().join("auth.db").exists() && !home.path().join("auth.key").exists(), "nothing was made");
}

/// The help of `audit --event` names every event that an authorization server records.
#[test]
fn the_events_of_an_audit_log_are_in_its_help() {
    let home = tempfile::tempdir().unwrap();
    let (code, help, err) = run(home.path(), &["audit", "--help"]);
    assert_eq!(code, Some(0), "{err}");
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let known = help.split("Only this event: ").nth(1).unwrap().split(", or the method").next().unwrap();
    let known: BTreeSet<&str> = known.split(", ").collect();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/issuer/src");
    let sources = std::fs::read_dir(sources).unwrap().map(|file| file.unwrap().path());
    let sources: String = sources.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let events = sources.split("Entry::new(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    assert_eq!(known, events.collect());
}

#[test]
fn a_program_with_a_secret_comes_in_until_its_client_is_removed_and_all_of_it_is_recorded() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let store = ["--store", "sqlite:auth.db"];
    let (code, secret, err) =
        run(home, &[&["client", "add", "nightly", "--secret", "--own-scope", "read"], &store[..]].concat());
    assert!(code == Some(0) && secret.trim().len() == 43 && err.contains("shown only once"), "{err}");
    let (port, behind) = (free_port(), free_port());
    let (origin, resource) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{behind}/mcp"));
    let mut start = command(program(), home);
    start.args(["auth-server", "--http", &format!("127.0.0.1:{port}"), "--issuer", &origin, "--resource", &resource]);
    start.args(["--scope", "read=use the tools that only read", "--audit", "auth.jsonl"]).args(store);
    let issuer = Served::start(&mut start);
    assert!(issuer.said.contains(&format!("--auth {origin} --public-url {resource}")), "{}", issuer.said);
    let mut serve = command(program(), home);
    serve.args(["serve", "memory", "--http", &format!("127.0.0.1:{behind}"), "--auth", &origin, "--scopes", "auto"]);
    let served = Served::start(&mut serve);
    let token = |secret: &str| {
        let body = format!("grant_type=client_credentials&client_id=nightly&client_secret={secret}");
        ask(&origin, "POST /token", &body)
    };
    let (status, body) = token(secret.trim());
    assert_eq!(status, 200, "{body}");
    let access = serde_json::from_str::<Value>(&body).unwrap()["access_token"].as_str().unwrap().to_owned();
    let call = |tool: &str| {
        let header = format!("Authorization: Bearer {access}");
        run(home, &["call", &served.url, tool, "--header", &header])
    };
    let (code, out, err) = call("read_graph");
    assert!(code == Some(0) && out.contains("entities"), "{out}{err}");
    assert_eq!(token("guess").0, 401);
    assert_eq!(ask(&origin, "GET /mcp", "").0, 404, "there is nothing behind it");

    let clients = json(home, &[&["client", "list", "--json"], &store[..]].concat());
    assert_eq!(
        (&clients["clients"][0]["id"], &clients["clients"][0]["ownScopes"][0]),
        (&"nightly".into(), &"read".into())
    );
    assert!(!clients.to_string().contains(secret.trim()));
    assert_eq!(json(home, &[&["token", "list", "--json"], &store[..]].concat())["logins"], serde_json::json!([]));
    let (code, _, err) = run(home, &[&["token", "revoke", "nobody"], &store[..]].concat());
    assert!(code == Some(2) && err.contains("there is no login nobody"), "{err}");
    let (code, kid, _) = run(home, &[&["key", "rotate"], &store[..]].concat());
    assert!(code == Some(0) && kid.trim().len() == 43, "{kid}");
    assert_eq!(run(home, &[&["client", "remove", "nightly"], &store[..]].concat()).0, Some(0));
    assert_eq!(run(home, &[&["client", "remove", "nightly"], &store[..]].concat()).0, Some(2));
    assert_eq!(token(secret.trim()).0, 401, "it holds for the running server");

    let (code, log, err) = run(home, &["audit", "auth.jsonl"]);
    assert!(code == Some(0) && log.contains("token issued") && log.contains("by nightly"), "{log}{err}");
    let (_, refused, _) = run(home, &["audit", "auth.jsonl", "--verdict", "refused", "--last", "1", "--json"]);
    let refused: Value = serde_json::from_str(&refused).unwrap();
    assert_eq!(
        (&refused["event"], &refused["item"], &refused["address"]),
        (&"token".into(), &"invalid_client".into(), &"127.0.0.1".into())
    );
    let file = std::fs::read_to_string(home.join("auth.jsonl")).unwrap();
    assert!(!file.contains(secret.trim()) && !file.contains(&access), "row 100: no secret in it");
}

/// A process that ends with the test.
#[cfg(all(feature = "redis", unix))]
struct Ending(std::process::Child);

#[cfg(all(feature = "redis", unix))]
impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An authority, and a certificate of it for `localhost`: `ca.pem`, `server.pem`, `server.key`.
#[cfg(all(feature = "redis", unix))]
fn certificates(home: &Path) {
    let openssl = |words: &str| {
        let mut openssl = std::process::Command::new("openssl");
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
        let done =
            openssl.args(["req", "-x509"]).args(curve).args(words.split(' ')).current_dir(home).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    openssl("-subj /CN=authority -keyout ca.key -out ca.pem");
    openssl(
        "-CA ca.pem -CAkey ca.key -subj /CN=localhost -addext subjectAltName=DNS:localhost \
         -addext basicConstraints=critical,CA:FALSE -keyout server.key -out server.pem",
    );
}

#[cfg(all(feature = "redis", unix))]
#[test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
fn redis_is_spoken_to_over_tls_if_an_authority_that_is_trusted_names_it() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    certificates(home);
    std::fs::write(home.join("key"), "7".repeat(64)).unwrap();
    std::fs::set_permissions(home.join("key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let port = free_port();
    let server = std::env::var_os("LINCHPIN_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    let mut redis = std::process::Command::new(server);
    redis.args(["--bind", "127.0.0.1", "--port", "0", "--tls-port", &port.to_string(), "--save", ""]);
    redis.args(["--tls-cert-file", "server.pem", "--tls-key-file", "server.key", "--tls-ca-cert-file", "ca.pem"]);
    redis.args(["--tls-auth-clients", "no", "--requirepass", "s3cret"]).current_dir(home).stdout(Stdio::null());
    let _redis = Ending(redis.spawn().unwrap());
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let client = |words: &[&str], host: &str, trusted: Option<&str>| {
        let mut client = command(program(), home);
        client.arg("client").args(words).args(["--key-file", "key", "--store"]);
        client.arg(format!("rediss://:s3cret@{host}:{port}"));
        if let Some(file) = trusted {
            client.env("SSL_CERT_FILE", home.join(file));
        }
        let done = client.output().unwrap();
        (done.status.success(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    let add = ["add", "nightly", "--secret", "--own-scope", "read"];
    for (host, trusted) in [("localhost", None), ("127.0.0.1", Some("ca.pem"))] {
        let (done, _, said) = client(&add, host, trusted);
        assert!(!done && said.contains("the certificate of Redis is not trusted, or for another name"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    let (done, _, said) = client(&add, "localhost", Some("ca.pem"));
    assert!(done, "{said}");
    let (done, listed, said) = client(&["list"], "localhost", Some("ca.pem"));
    assert!(done && listed.contains("nightly"), "{listed}{said}");
}

/// The value of a parameter or hidden field.
fn between(text: &str, before: &str, after: &str) -> String {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("no {after} in {rest}")).0.to_owned()
}

/// Row 83, with real ends: whatever `kill -9` interrupts, the login goes on with the refresh token that the client has.
#[test]
fn a_server_that_is_killed_again_and_again_keeps_its_logins() {
    use base64::Engine as _;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let store = ["--store", "sqlite:auth.db"];
    let desktop = ["client", "add", "desktop", "--redirect-uri", "http://127.0.0.1/cb"];
    assert_eq!(run(home, &[&desktop[..], &store[..]].concat()).0, Some(0));
    let port = free_port();
    let (origin, resource) = (format!("http://127.0.0.1:{port}"), "http://127.0.0.1:9/mcp");
    let start = || {
        let mut start = command(program(), home);
        start.args([
            "auth-server",
            "--http",
            &format!("127.0.0.1:{port}"),
            "--issuer",
            &origin,
            "--resource",
            resource,
        ]);
        Served::start(start.args(["--auth", "login"]).args(store))
    };
    let mut served = start();
    let verifier = "v".repeat(43);
    let challenge = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(challenge);
    let query = format!(
        "response_type=code&client_id=desktop&redirect_uri=http://127.0.0.1:7/cb&code_challenge={challenge}&code_challenge_method=S256"
    );
    let begun = exchange(&origin, &format!("GET /authorize?{query}"), "", "");
    let cookie = between(&begun, "set-cookie: ", ";");
    let page =
        exchange(&origin, &format!("GET {}", between(&begun, &format!("location: {origin}"), "\r\n")), &cookie, "");
    assert!(served.says("Code: "));
    let code = between(&format!("{}\n", served.heard()), "Code: ", "\n");
    let [t, f] = ["t", "f"].map(|name| between(&page, &format!("name=\"{name}\" value=\""), "\""));
    let allowed = exchange(&origin, "POST /consent", &cookie, &format!("t={t}&f={f}&code={code}&answer=allow"));
    let code = between(&allowed, "cb?code=", "&amp;");
    let body = format!("grant_type=authorization_code&client_id=desktop&code={code}&code_verifier={verifier}");
    let (status, body) = ask(&origin, "POST /token", &body);
    assert_eq!(status, 200, "{body}");
    let refresh_token = |body: &str| between(body, "\"refresh_token\":\"", "\"");
    let mut token = refresh_token(&body);
    for wait_ms in [3, 9, 15, 22] {
        let asking = std::thread::spawn({
            let (origin, mut token) = (origin.clone(), token.clone());
            move || {
                // Until the server is gone; the token is the last one that arrived.
                loop {
                    let body = format!("grant_type=refresh_token&client_id=desktop&refresh_token={token}");
                    let Some((200, body)) = try_ask(&origin, "POST /token", &body) else { return token };
                    token = refresh_token(&body);
                }
            }
        });
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        served.stopped();
        token = asking.join().unwrap();
        served = start();
        let (status, body) =
            ask(&origin, "POST /token", &format!("grant_type=refresh_token&client_id=desktop&refresh_token={token}"));
        assert_eq!(status, 200, "after {wait_ms} ms: {body}");
        token = refresh_token(&body);
    }
    let logins = json(home, &[&["token", "list", "--json"], &store[..]].concat());
    assert_eq!(logins["logins"].as_array().unwrap().len(), 1, "{logins}");
    assert!(run(home, &[&["token", "list"], &store[..]].concat()).1.contains("#owner"));
    let id = logins["logins"][0]["id"].as_str().unwrap();
    assert_eq!(run(home, &[&["token", "revoke", id], &store[..]].concat()).0, Some(0));
    let body = format!("grant_type=refresh_token&client_id=desktop&refresh_token={token}");
    assert_eq!(ask(&origin, "POST /token", &body).0, 400);
}
