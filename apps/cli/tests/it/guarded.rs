//! Servers that want a token: `--auth`, keys, and what `auth check` says of mistakes.

#![cfg(all(feature = "client", feature = "memory"))]

use crate::common::{Served, command, program, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

fn serve(home: &Path, words: &[&str]) -> Result<Served, String> {
    let mut command = command(program(), home);
    Served::try_start(command.args(["serve", "memory", "--http", "127.0.0.1:0"]).args(words))
}

#[test]
fn a_server_does_not_start_open_to_other_machines_unless_that_is_meant() {
    let home = tempfile::tempdir().unwrap();
    let rows: [(&[&str], &str); 9] = [
        (&["--http", "0.0.0.0:0"], "--no-auth-i-know"),
        (&["--http", "[::]:0"], "--auth token"),
        (&["--http", "0.0.0.0:0", "--auth", "https://login.example.com"], "--public-url"),
        (
            &["--http", "127.0.0.1:0", "--auth", "http://login.example.com", "--public-url", "https://a/mcp"],
            "not https",
        ),
        (&["--http", "127.0.0.1:0", "--public-url", "foo"], "foo is not a usable URL"),
        (&["--http", "127.0.0.1:0", "--auth", "keys:none.toml"], "linchpin auth key new NAME --file none.toml"),
        (&["--http", "127.0.0.1:1", "--auth", "login:none.toml"], "linchpin user add NAME --file none.toml"),
        (&["--http", "127.0.0.1:0", "--auth", "password"], "expected token, keys:FILE"),
        (&["--http", "127.0.0.1:0", "--auth", "token", "--tool-scope", "no_such=x"], "there is no tool no_such"),
    ];
    for (words, says) in rows {
        let (code, out, err) = run(home.path(), &[&["serve", "memory"], words].concat());
        assert!(code == Some(2) && out.is_empty() && err.contains(says), "109: {words:?}: {code:?} {err}");
    }
    std::fs::write(home.path().join("t.jsonl"), "").unwrap();
    let skills = ["serve", "skills", ".", "--http", "127.0.0.1:0", "--auth", "token"];
    for scopes in [["--scopes", "auto"], ["--tool-scope", "x=y"]] {
        let (code, _, err) = run(home.path(), &[&skills[..], &scopes].concat());
        assert!(code == Some(2) && err.contains("are for tools, and this server has none"), "{code:?} {err}");
    }
    for command in [&["replay", "t.jsonl"][..], &["bridge", "http://127.0.0.1:1/mcp"]] {
        for (words, says) in [
            (&["--http", "0.0.0.0:0"][..], "--no-auth-i-know"),
            (&["--http", "127.0.0.1:0", "--auth", "token", "--scopes", "auto"], "`linchpin serve` only"),
            (&["--http", "127.0.0.1:0", "--auth", "token", "--tool-scope", "x=y"], "`linchpin serve` only"),
        ] {
            let (code, _, err) = run(home.path(), &[command, words].concat());
            assert!(code == Some(2) && err.contains(says), "{command:?} {words:?}: {code:?} {err}");
        }
    }
    for command in ["replay", "bridge"] {
        let (_, help, _) = run(home.path(), &[command, "--help"]);
        assert!(help.contains("--auth") && !help.contains("--scopes") && !help.contains("--tool-scope"), "{help}");
    }
    let mut open = command(program(), home.path());
    let open = open.args(["serve", "memory", "--http", "0.0.0.0:0", "--no-auth-i-know"]);
    assert!(Served::start(open).stopped().contains("without authentication"));
}

#[test]
fn the_token_of_a_run_and_keys_of_a_file_let_in_and_nothing_else_does() {
    let home = tempfile::tempdir().unwrap();
    let (code, key, err) = run(home.path(), &["auth", "key", "new", "laptop", "--scopes", "read", "--days", "3"]);
    assert!(code == Some(0) && key.starts_with("lp_laptop_") && err.contains("shown this once"), "{err}");
    let (code, _, err) = run(home.path(), &["auth", "key", "new", "laptop"]);
    assert!(code == Some(2) && err.contains("has a key laptop already"), "{err}");
    assert_eq!(run(home.path(), &["auth", "key", "new", "Laptop 2"]).0, Some(2));
    let file = std::fs::read_to_string(home.path().join("keys.toml")).unwrap();
    assert!(!file.contains(&key.trim()[12..]) && file.contains("expires = 2"), "{file}");

    let served = serve(home.path(), &["--auth", "token", "--auth", "keys:keys.toml", "--scopes", "auto"]).unwrap();
    let token = served.said.split("the token of this run is ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(served.said.contains(&format!("--header 'Authorization: Bearer {token}'")), "{}", served.said);
    let call = |token: &str, tool: &str| {
        let header = format!("Authorization: Bearer {token}");
        run(home.path(), &["call", &served.url, tool, "--header", &header])
    };
    let (code, out, _) = call(token, "read_graph");
    assert!(code == Some(0) && out.contains("entities"), "{out}");
    assert_eq!(call(key.trim(), "read_graph").0, Some(0));
    let (_, _, refused) = run(
        home.path(),
        &[
            "call",
            &served.url,
            "delete_entities",
            "entityNames=[]",
            "--header",
            &format!("Authorization: Bearer {}", key.trim()),
        ],
    );
    assert!(refused.contains("write"), "the key may only read: {refused}");
    assert_ne!(call("lp_laptop_guessed", "read_graph").0, Some(0));
    let (code, _, err) = run(home.path(), &["call", &served.url, "read_graph"]);
    assert!(
        code == Some(6) && err.contains("hint: pass a token with --bearer-env VAR, or try `linchpin auth login"),
        "{err}"
    );
}

/// The names of `--enable-tools`, in all forms.
#[cfg(feature = "time")]
#[test]
fn a_scope_is_for_a_tool_by_any_of_its_names() {
    let home = tempfile::tempdir().unwrap();
    let rows: [(&[&str], &str, &str); 5] = [
        (&["memory"], "memory.read_graph", "read_graph"),
        (&["memory"], "memory_read_graph", "read_graph"),
        (&["memory:", "time"], "read_graph", "memory_read_graph"),
        (&["memory:", "time"], "memory.read_graph", "memory_read_graph"),
        (&["a=memory:a.jsonl", "b=memory:b.jsonl"], "a.read_graph", "a_read_graph"),
    ];
    let (code, key, err) = run(home.path(), &["auth", "key", "new", "laptop"]);
    assert_eq!(code, Some(0), "{err}");
    for (servers, name, tool) in rows {
        let mut start = command(program(), home.path());
        start.arg("serve").args(servers).args(["--http", "127.0.0.1:0", "--auth", "keys:keys.toml"]);
        let served = Served::start(start.args(["--tool-scope", &format!("{name}=special")]));
        let (code, _, err) = run(home.path(), &["call", &served.url, tool, "--bearer", key.trim()]);
        assert!(code != Some(0) && err.contains("special"), "{name}: {code:?} {err}");
    }
    let two = ["serve", "a=memory:a.jsonl", "b=memory:b.jsonl", "--http", "127.0.0.1:0", "--auth", "token"];
    let (code, _, err) = run(home.path(), &[&two[..], &["--tool-scope", "read_graph=x"]].concat());
    assert!(code == Some(2) && err.contains("use one of: a_read_graph, b_read_graph"), "{err}");
}

#[test]
fn a_server_with_an_issuer_tells_clients_where_to_log_in() {
    let home = tempfile::tempdir().unwrap();
    let issuer = Issuer::start(|_, _| {});
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let addr = format!("127.0.0.1:{port}");
    let mut command = command(program(), home.path());
    let served =
        Served::start(command.args(["serve", "memory", "--http", &addr, "--sse"]).args(["--auth", &issuer.url]));
    assert_eq!(served.url, format!("http://{addr}/mcp"));
    let (code, out, err) = run(home.path(), &["auth", "check", &served.url]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("resource is this URL") && out.contains("usable key") && !out.contains("problem"), "{out}");
}

#[test]
fn a_login_goes_with_tokens_keys_another_issuer_and_both_transports() {
    let home = tempfile::tempdir().unwrap();
    let other = Issuer::start(|_, _| {});
    let (_, key, _) = run(home.path(), &["auth", "key", "new", "laptop"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (addr, users) = (format!("127.0.0.1:{port}"), "users.toml");
    std::fs::write(home.path().join(users), "").unwrap();
    let mut program = command(program(), home.path());
    let auth = ["--auth", "login:users.toml", "--auth", "token", "--auth", "keys:keys.toml", "--auth", &other.url];
    let served = Served::start(program.args(["serve", "memory", "--http", &addr, "--sse"]).args(auth));
    let (code, out, err) = run(home.path(), &["auth", "check", &served.url]);
    assert!(code == Some(0) && !out.contains("problem"), "{out}{err}");
    // Clients of either transport find the document of theirs, which names both issuers.
    for path in ["mcp", "sse"] {
        let document = get(&addr, &format!("/.well-known/oauth-protected-resource/{path}"));
        assert_eq!(document["resource"], format!("http://{addr}/{path}"));
        assert_eq!(document["authorization_servers"], json!([format!("http://{addr}"), other.url]));
    }
    let document = get(&addr, "/.well-known/oauth-authorization-server");
    assert_eq!(document["protected_resources"], json!([format!("http://{addr}/mcp"), format!("http://{addr}/sse")]));
    for target in [served.url.clone(), format!("http://{addr}/sse")] {
        let call = |token: &str| {
            let header = format!("Authorization: Bearer {token}");
            run(home.path(), &["call", &target, "read_graph", "--header", &header]).0
        };
        assert_eq!(call(key.trim()), Some(0), "{target}");
        assert_ne!(call("lp_laptop_guessed"), Some(0), "{target}");
    }
    let two = ["serve", "memory", "--http", &addr, "--auth", "login", "--auth", "login:users.toml"];
    let (code, _, err) = run(home.path(), &two);
    assert!(code == Some(2) && err.contains("only one --auth can be a login"), "{err}");
    let (code, _, err) = run(home.path(), &["serve", "memory", "--http", &addr, "--auth", "token", "--audience", "x"]);
    assert!(code == Some(2) && err.contains("add --auth URL"), "{err}");
}

#[test]
fn an_issuer_is_asked_about_tokens_that_are_no_jwt_and_may_name_the_server_in_another_way() {
    let home = tempfile::tempdir().unwrap();
    let issuer = Issuer::start(|path, answer| {
        if path.starts_with("/.well-known/oauth-authorization-server") {
            let base = answer.document["issuer"].as_str().unwrap_or_default();
            answer.document["introspection_endpoint"] = json!(format!("{base}/introspect"));
        }
        if path == "/introspect" {
            answer.status = 200;
            answer.document = json!({ "active": true, "sub": "ada", "aud": "api://files", "exp": 4_000_000_000_u64 });
        }
    });
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let addr = format!("127.0.0.1:{port}");
    let words = ["serve", "memory", "--http", &addr, "--auth", &issuer.url];
    let (id, secret) = ("LINCHPIN_INTROSPECTION_CLIENT_ID", "LINCHPIN_INTROSPECTION_CLIENT_SECRET");
    for (audience, client, works) in [
        (&["--audience", "api://files"][..], true, true),
        (&[], true, false),
        (&["--audience", "api://files"], false, false),
    ] {
        let mut program = command(program(), home.path());
        program.args(words).args(audience);
        if client {
            program.env(id, "files").env(secret, "a-secret");
        }
        let served = Served::start(&mut program);
        let call = ["call", &served.url, "read_graph", "--header", "Authorization: Bearer opaque"];
        let (code, out, err) = run(home.path(), &call);
        assert_eq!(code == Some(0), works, "{audience:?} {client}: {out}{err}");
    }
    let refused = |more: &[&str], variables: &[&str]| {
        let mut program = command(program(), home.path());
        let ended = program.args(words).args(more).envs(variables.iter().map(|name| (name, "x"))).output().unwrap();
        assert_eq!(ended.status.code(), Some(2));
        String::from_utf8(ended.stderr).unwrap()
    };
    assert!(refused(&[], &[id]).contains("LINCHPIN_INTROSPECTION_CLIENT_SECRET is not set"));
    // A secret of one server is not sent to another.
    assert!(refused(&["--auth", "https://other.example.com"], &[id, secret]).contains("for one authorization server"));
}

/// The JSON document at a path.
fn get(addr: &str, path: &str) -> Value {
    let mut stream = TcpStream::connect(addr).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{answer}"))
}

/// An authorization server, and an MCP server that names it, with a mistake.
struct Issuer {
    url: String,
}

impl Issuer {
    /// `mistake` changes the status, challenge or documents.
    fn start(mistake: impl Fn(&str, &mut Answer) + Send + Sync + 'static) -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let base = url.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &base, &mistake);
            }
        });
        Issuer { url }
    }
}

struct Answer {
    status: u16,
    challenge: String,
    document: Value,
}

fn answer(mut stream: TcpStream, base: &str, mistake: &impl Fn(&str, &mut Answer)) {
    let mut read = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line);
    }
    let length =
        lines.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let _ = read.read_exact(&mut vec![0; length.unwrap_or(0)]);
    let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
    let (status, document) = match path.as_str() {
        "/mcp" => (401, json!({})),
        "/.well-known/oauth-protected-resource/mcp" => {
            (200, json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }))
        }
        "/.well-known/oauth-authorization-server" => (
            200,
            json!({
                "issuer": base, "authorization_endpoint": format!("{base}/a"), "token_endpoint": format!("{base}/t"),
                "jwks_uri": format!("{base}/keys"), "code_challenge_methods_supported": ["S256"],
                "client_id_metadata_document_supported": true,
            }),
        ),
        "/keys" => {
            let x = "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs";
            let y = "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA";
            (200, json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": x, "y": y }] }))
        }
        _ => (404, json!({})),
    };
    let mut answer = Answer { status, challenge: format!("Bearer resource_metadata=\"{place}\""), document };
    mistake(&path, &mut answer);
    let Answer { status, challenge, document } = answer;
    let body = document.to_string();
    let head = format!("HTTP/1.1 {status} X\r\nwww-authenticate: {challenge}\r\ncontent-type: application/json\r\n");
    let _ = write!(stream, "{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
}

type Mistake = fn(&str, &mut Answer);

#[test]
fn the_check_names_each_mistake() {
    let home = tempfile::tempdir().unwrap();
    let rows: [(&str, Mistake); 13] = [
        ("the server is not protected", |path, a| a.status = if path == "/mcp" { 200 } else { a.status }),
        ("status 400: the server is not protected", |path, a| a.status = if path == "/mcp" { 400 } else { a.status }),
        ("with status 403 instead of 401", |path, a| a.status = if path == "/mcp" { 403 } else { a.status }),
        ("names no resource_metadata", |path, a| {
            if path == "/mcp" {
                a.challenge = "Bearer".into()
            }
        }),
        ("the challenge is Basic", |path, a| {
            if path == "/mcp" {
                a.challenge = "Basic realm=\"x\"".into()
            }
        }),
        ("which is not this URL", |path, a| {
            if path.contains("protected") {
                a.document["resource"] = json!("https://other/mcp")
            }
        }),
        ("has no resource", |path, a| {
            if path.contains("protected") {
                a.document["resource"] = json!(null)
            }
        }),
        ("names no authorization_servers", |path, a| {
            if path.contains("protected") {
                a.document["authorization_servers"] = json!([])
            }
        }),
        ("has no metadata at", |path, a| a.status = if path.contains("authorization-server") { 404 } else { a.status }),
        ("both must be the same to the letter", |path, a| {
            if path.contains("authorization-server") {
                a.document["issuer"] = json!("http://other")
            }
        }),
        ("has no token_endpoint", |path, a| {
            if path.contains("authorization-server") {
                a.document["token_endpoint"] = json!(null)
            }
        }),
        ("does not declare PKCE", |path, a| {
            if path.contains("authorization-server") {
                a.document["code_challenge_methods_supported"] = json!(["plain"])
            }
        }),
        ("has no usable key", |path, a| {
            if path == "/keys" {
                a.document = json!({ "keys": [] })
            }
        }),
    ];
    for (says, mistake) in rows {
        let issuer = Issuer::start(mistake);
        let (code, out, err) = run(home.path(), &["auth", "check", &format!("{}/mcp", issuer.url)]);
        assert!(code == Some(1) && out.contains(says), "{says}: {code:?} {out}{err}");
        assert_eq!(out.matches("problem").count(), 1, "{says}: {out}");
    }
}

#[test]
fn a_key_file_without_keys_is_filled() {
    let home = tempfile::tempdir().unwrap();
    for text in ["", "# nobody yet\n"] {
        std::fs::write(home.path().join("keys.toml"), text).unwrap();
        let (code, key, err) = run(home.path(), &["auth", "key", "new", "laptop"]);
        assert!(code == Some(0) && key.starts_with("lp_laptop_"), "{text:?}: {err}");
        let file = std::fs::read_to_string(home.path().join("keys.toml")).unwrap();
        assert!(file.starts_with(text) && file.contains("[laptop]"), "{file}");
        assert_eq!(run(home.path(), &["auth", "key", "new", "laptop"]).0, Some(2), "it has one now");
    }
}
