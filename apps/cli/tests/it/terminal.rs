//! What is another on a terminal, and what is not.
#![cfg(all(feature = "client", unix))]

use crate::common::{command, finished, on_terminals, program};
use serde_json::{Value, json};
use std::path::Path;

fn row(home: &Path, words: &[&str], typed: &str) -> Value {
    let program = program().display().to_string();
    let words: Vec<&str> = words.iter().map(|word| if *word == "linchpin" { program.as_str() } else { word }).collect();
    let env = json!({ "PATH": std::env::var("PATH").unwrap(), "HOME": home, "TERM": "xterm" });
    json!({ "words": words, "env": env, "typed": typed })
}

/// What was seen, without styles.
fn seen(home: &Path, row: Value) -> String {
    let (_, text) = on_terminals(home, vec![row]).remove(0);
    let mut text = text.replace("\r\n", "\n");
    for style in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"] {
        text = text.replace(style, "");
    }
    text
}

#[cfg(feature = "time")]
#[test]
fn lines_are_wrapped_at_the_terminals_width_and_keep_their_indentation() {
    let home = tempfile::tempdir().unwrap();
    for columns in [50, 80] {
        let mut row = row(home.path(), &["linchpin", "inspect", "--", "linchpin", "serve", "time"], "");
        row["columns"] = columns.into();
        let text = seen(home.path(), row);
        for line in text.lines() {
            let is_short = line.chars().count() <= columns;
            assert!(is_short || !line.trim().contains(' '), "{columns}: {line}\n{text}");
        }
        let tools =
            text.lines().skip_while(|line| !line.contains(" tools  ")).skip_while(|line| !line.starts_with(' '));
        let mut lines = tools.take_while(|line| !line.is_empty());
        assert!(lines.all(|line| line.starts_with("  ")), "{columns}: {text}");
    }
}

#[cfg(feature = "time")]
#[test]
fn what_is_declared_does_not_depend_on_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let words = ["linchpin", "ping", "--trace", "--", "linchpin", "serve", "time"];
    let program = program().display().to_string();
    let plain = words[1..].iter().map(|word| if *word == "linchpin" { program.as_str() } else { word });
    let (_, _, err) = finished(command(&program, home.path()).args(plain));
    let declared = |text: &str| {
        let text = text.replace('\n', "");
        let at = text.find("clientCapabilities").unwrap_or_else(|| panic!("{text}"));
        text[at..].split("}}}}").next().unwrap().to_owned()
    };
    let declared_plain = declared(&err);
    assert!(declared_plain.contains("elicitation") && declared_plain.contains("sampling"), "{err}");
    assert!(!declared_plain.contains("roots"), "{err}");
    assert_eq!(declared(&seen(home.path(), row(home.path(), &words, ""))), declared_plain);
}

#[cfg(feature = "time")]
#[test]
fn what_takes_more_than_a_second_says_so_on_a_terminal_only() {
    let home = tempfile::tempdir().unwrap();
    let slow = format!("sleep 1.2; exec {} serve time", program().display());
    let words = ["ping", "--", "sh", "-c", &slow];
    let text = seen(home.path(), row(home.path(), &[&["linchpin"], &words[..]].concat(), ""));
    let (said, rest) = text.split_once("connecting to sh -c ").unwrap_or_else(|| panic!("{text}"));
    assert!(said.ends_with("\r\x1b[2K") && rest.contains("\r\x1b[2K"), "{text:?}");
    let (code, _, err) = finished(command(program(), home.path()).args(words));
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn a_command_that_does_not_answer_is_wondered_about_on_a_terminal_only() {
    let home = tempfile::tempdir().unwrap();
    let words = ["ping", "--timeout", "4", "--", "sleep", "9"];
    let note = "If it serves HTTP, start it separately and pass its URL";
    let text = seen(home.path(), row(home.path(), &[&["linchpin"], &words[..]].concat(), ""));
    assert_eq!(text.replace('\n', " ").matches(note).count(), 1, "{text:?}");
    let (code, _, err) = finished(command(program(), home.path()).args(words));
    assert!(code == Some(5) && !err.contains(note), "{err}");
}

#[test]
fn a_form_is_sent_by_its_own_words_only() {
    let home = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/common/hostile.py").display().to_string();
    let words = ["linchpin", "call", "form", "--", "python3", &server, ""];
    for (typed, asked) in [("a word\n\ny\n", 1), ("a word\n\nclear; ls\n\n", 2), ("a word\n\nmaybe\nnot\nc\n", 3)] {
        let text = seen(home.path(), row(home.path(), &words, typed));
        assert_eq!(text.matches("Send this?").count(), asked, "{typed:?}: {text}");
        assert_eq!(text.matches("enter y, n or c").count(), asked - 1, "{typed:?}: {text}");
    }
}

#[cfg(feature = "filesystem")]
#[test]
fn who_starts_a_file_server_without_a_directory_is_told_what_it_serves() {
    let home = tempfile::tempdir().unwrap();
    let note = "note: filesystem will only serve the client's roots";
    let text = seen(home.path(), row(home.path(), &["linchpin", "serve", "filesystem"], "\x04"));
    assert!(text.contains(note) && text.contains("claude_desktop_config.json"), "{text}");
    let text = seen(home.path(), row(home.path(), &["linchpin", "serve", "filesystem", "."], "\x04"));
    assert!(!text.contains(note), "{text}");
    let (_, _, err) = finished(command(program(), home.path()).args(["serve", "filesystem"]));
    assert!(!err.contains(note), "{err}");
}

#[test]
fn who_starts_a_bridge_by_hand_is_told_how_hosts_start_it() {
    let home = tempfile::tempdir().unwrap();
    let bridge = ["linchpin", "bridge"];
    let told = |words: &[&str]| {
        let mut row = row(home.path(), &[&bridge, words].concat(), "\x04");
        (row["columns"], row["env"]["A_TOKEN"]) = (300.into(), "a secret".into());
        seen(home.path(), row)
    };
    let text = told(&["--bearer-env", "A_TOKEN", "https://mcp.example/mcp"]);
    for part in [
        "claude mcp add bridge -- ",
        " bridge --bearer-env A_TOKEN https://mcp.example/mcp\n",
        "claude_desktop_config.json",
        "Set these environment variables there too: A_TOKEN\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("a secret"), "{text}");
    // What may hold a secret is not shown at all.
    for words in [
        &["--header", "X-Key: abc", "https://mcp.example/mcp"][..],
        &["--bearer=--abc", "https://mcp.example/mcp"],
        &["https://mcp.example/mcp?key=abc"],
        &["--", "sleep", "9"],
    ] {
        let text = told(words);
        assert!(!text.contains("claude mcp add") && !text.contains("error:"), "{words:?}: {text}");
    }
}

/// What takes more than a second after the connection: a list, also that of a call's tool, a resource, a prompt, a ping.
#[test]
fn a_slow_answer_says_what_is_waited_for_on_a_terminal_only() {
    let home = tempfile::tempdir().unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/common/hostile.py").display().to_string();
    let rows = [
        (&["tools"][..], "listing tools … "),
        (&["call", "good", "a=b"], "listing tools … "),
        (&["ping"], "pinging the server … "),
        (&["read", "x:/text"], "reading x:/text … "),
        (&["prompt", "said"], "rendering said … "),
        (&["inspect"], "listing what the server has … "),
    ];
    let words = |words: &[&'static str]| [&["linchpin"][..], words, &["--", "python3"]].concat();
    let given = |command: &[&'static str]| {
        let mut row = row(home.path(), &words(command), "");
        row["words"].as_array_mut().unwrap().extend([server.clone().into(), "slow".into()]);
        row
    };
    let seen = on_terminals(home.path(), rows.iter().map(|(command, _)| given(command)).collect());
    for ((command, said), (_, text)) in rows.iter().zip(seen) {
        assert!(text.contains(&format!("\r\x1b[2K{said}")), "{command:?}: {text:?}");
    }
    let plain = ["tools", "--", "python3", &server, "slow"];
    let (_, out, err) = finished(command(program(), home.path()).args(plain));
    assert!(out.contains("tool") && !err.contains("listing tools"), "{out}{err}");
}

#[cfg(feature = "time")]
#[test]
fn lists_end_with_a_count_and_tables_wrap_beside_their_names() {
    let home = tempfile::tempdir().unwrap();
    let text = seen(home.path(), row(home.path(), &["linchpin", "tools", "--", "linchpin", "serve", "time"], ""));
    assert!(text.trim_end().ends_with("\n4 tools"), "{text}");
    let mut narrow = row(home.path(), &["linchpin", "servers"], "");
    narrow["columns"] = 60.into();
    let text = seen(home.path(), narrow);
    for line in text.trim_end().lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
    assert!(text.lines().any(|line| line.starts_with("                     ")), "{text}");
    assert!(text.trim_end().ends_with(" servers"), "{text}");
    let (_, out, _) = finished(command(program(), home.path()).args(["servers"]));
    assert!(!out.contains(" servers\n"), "{out}");
}

#[cfg(feature = "everything")]
#[test]
fn json_on_one_line_is_indented_on_a_terminal_only() {
    let home = tempfile::tempdir().unwrap();
    let call =
        ["linchpin", "call", "get-structured-content", "location=Chicago", "--", "linchpin", "serve", "everything"];
    let text = seen(home.path(), row(home.path(), &call, ""));
    // A call of more than a second says so first.
    let text = text.rsplit("\r\x1b[2K").next().unwrap();
    assert_eq!(text, "{\n  \"temperature\": 4.5,\n  \"conditions\": \"Light rain\",\n  \"humidity\": 82.0\n}\n");
    let program = program().display().to_string();
    let plain = call[1..].iter().map(|word| if *word == "linchpin" { program.as_str() } else { word });
    let (_, out, _) = finished(command(&program, home.path()).args(plain));
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn colours_are_everywhere_or_nowhere() {
    let home = tempfile::tempdir().unwrap();
    // An error of ours, one of the command line's parser, help, and a list.
    let commands: [&[&str]; 4] = [&["ping"], &["toosl"], &["--help"], &["servers"]];
    for (name, value, coloured) in [("A", "b", true), ("NO_COLOR", "1", false), ("TERM", "dumb", false)] {
        let rows = commands.iter().map(|words| {
            let mut row = row(home.path(), &[&["linchpin"][..], *words].concat(), "");
            row["env"][name] = value.into();
            row
        });
        for (words, (_, text)) in commands.iter().zip(on_terminals(home.path(), rows.collect())) {
            assert_eq!(text.contains("\x1b["), coloured, "{name}={value} {words:?}: {text:?}");
        }
    }
}
