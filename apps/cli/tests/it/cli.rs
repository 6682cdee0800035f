//! The program as people and hosts use it: whole commands, their output and their exit status.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};

fn linchpin(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linchpin"));
    command.args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> (Output, String, String) {
    let output = linchpin(args).output().unwrap();
    let (out, err) =
        (String::from_utf8(output.stdout.clone()).unwrap(), String::from_utf8(output.stderr.clone()).unwrap());
    (output, out, err)
}

#[test]
fn help_begins_with_examples_and_goes_to_standard_output() {
    for args in
        [&["--help"][..], &["serve", "--help"], &["serve", "filesystem", "--help"], &["serve", "everything", "--help"]]
    {
        let (output, out, err) = run(args);
        assert!(output.status.success() && err.is_empty(), "{args:?}: {err}");
        assert!(
            out.starts_with("Examples:\n  ") && out.contains("\n\n") && out.contains("  linchpin serve "),
            "{args:?}: {out}"
        );
    }
}

#[test]
fn mistakes_say_what_to_do_next_on_standard_error() {
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["serve", "filesystm"], 2, "unknown server 'filesystm'", "'filesystem'"),
        (&["serve", "filesystem", "--sse"], 2, "required arguments were not provided", "--http <ADDR>"),
        (
            &["serve", "filesystem", "/nonexistent"],
            2,
            "error: ",
            "hint: Name at least one existing, readable directory",
        ),
        (
            &["serve", "filesystem", ".", "--follow-symlinks", "maybe"],
            2,
            "error: --follow-symlinks: unknown value: maybe",
            "hint: Use inside or never.",
        ),
        (&["serve", "filesystem", ".", "--enable-tools", "read_fil"], 2, "error: ", "read_fil"),
        // Both are for --http; where fetch may be meant, only one of them.
        (&["serve", "everything", "--accept-host", "x"], 2, "required arguments were not provided", "--http <ADDR>"),
        (&["serve", "everything", "--allow-host", "x"], 2, "required arguments were not provided", "--http <ADDR>"),
        (
            &["serve", "everything:", "filesystem:.", "--allow-host", "x"],
            2,
            "unexpected argument '--allow-host'",
            "quote them",
        ),
        (&["serve", "everything", "--http", "nonsense"], 2, "error: ", "hint: expected HOST:PORT"),
        (
            &["serve", "everything", "--http", "192.0.2.1:1", "--no-auth-i-know"],
            1,
            "192.0.2.1:1",
            "hint: this machine has no such address",
        ),
        #[cfg(feature = "client")]
        (&["watch", "--count", "0", "http://127.0.0.1:1/mcp"], 2, "invalid value '0' for '--count <N>'", "1.."),
    ];
    for (args, status, first, then) in cases {
        let (output, out, err) = run(args);
        assert_eq!(output.status.code(), Some(*status), "{args:?}: {err}");
        assert!(out.is_empty(), "{args:?}: {out}");
        assert!(err.contains(first) && err.contains(then), "{args:?}: {err}");
        assert!(!err.contains("error: Error"), "{args:?}: {err}");
    }
}

#[test]
fn stdio_answers_json_lines_only_and_ends_with_its_input() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
    let mut child = linchpin(&["serve", "filesystem", folder.path().to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let path = folder.path().join("a.txt");
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"read_text_file","arguments":{{"path":{path:?}}},"_meta":{meta}}}}}"#
    );
    writeln!(child.stdin.take().unwrap(), "{call}\nnot json").unwrap();
    let lines: Vec<serde_json::Value> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).expect("every line is JSON"))
        .collect();
    assert!(child.wait().unwrap().success());
    assert_eq!(lines.len(), 2, "{lines:?}");
    let of = |id: bool| lines.iter().find(|l| l.get("id").is_some() == id).unwrap();
    assert_eq!(of(true)["result"]["content"][0]["text"], "hello");
    assert_eq!(of(false)["error"]["code"], -32700);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(err, "");
}

#[test]
fn http_prints_its_url_and_what_to_paste() {
    let mut child = linchpin(&["serve", "everything", "--http", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        err.push_str(&line);
        err.push('\n');
        if line.starts_with("Press Ctrl-C") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let url = err.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{err}");
    for part in ["claude mcp add --transport http everything", "\"mcpServers\"", "\"servers\""] {
        assert!(err.contains(part) && err.matches(&url).count() >= 4, "{part} in {err}");
    }
}

#[test]
fn a_taken_port_is_explained_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (output, _, err) = run(&["serve", "everything", "--http", &address]);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert_eq!(
        (err.matches("listening there").count(), err.matches(&address).count(), err.lines().count()),
        (1, 1, 2),
        "{err}"
    );
    assert!(err.ends_with("hint: port 0 picks a free port\n"), "{err}");
}
