//! Whole commands and everything they print, as data: the files in `tests/shown`.
//!
//! A file is a conversation with a shell: `$ ` and a command, then what it printed on standard output, then `! ` before
//! each line of standard error, then `? ` and the exit code unless that is 0. `#` begins a comment before a command.
//! Commands run in a folder of their own that has the files of `tests/given`. `$URL` is our own everything server over
//! HTTP. Numbers that change are written as `<ms>`, the server's port as `PORT`.
//!
//! `UPDATE_SHOWN=1` writes the files anew; look at the difference before you keep it.
//!
//! What hostile servers say is in `common/hostile.rs`.
#![cfg(all(unix, feature = "client"))]

#[path = "common/hostile.rs"]
mod hostile;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The everything server over HTTP, for the length of a test.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start() -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_linchpin"))
            .args(["serve", "everything", "--http", "127.0.0.1:0", "--sse"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        // Nobody reads on: the rest fits into the pipe.
        child.stderr = Some(stderr.into_inner());
        Served { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Runs a command of a file and writes what came of it.
fn run(command: &str, folder: &Path, url: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_linchpin"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .env("URL", url)
        .env("HOME", folder)
        .env("COLUMNS", "110")
        .env("A_TOKEN", "the-secret-token")
        .env_remove("RUST_LOG")
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let clean = |bytes: &[u8]| steady(&String::from_utf8_lossy(bytes), program, folder, url);
    let mut out = clean(&output.stdout);
    if !out.is_empty() && !out.ends_with('\n') {
        out.push_str("\n(no line end)\n");
    }
    for line in clean(&output.stderr).lines() {
        let _ = writeln!(out, "{}", format!("! {line}").trim_end());
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => drop(writeln!(out, "? {code}")),
        None => out.push_str("? killed\n"),
    }
    out
}

/// Output without what is another each time.
fn steady(text: &str, program: &Path, folder: &Path, url: &str) -> String {
    let port = url.split(':').nth(2).and_then(|rest| rest.split('/').next()).unwrap_or("0");
    let real = folder.canonicalize().unwrap();
    let text = text
        .replace(&program.display().to_string(), "linchpin")
        .replace(&format!("127.0.0.1:{port}"), "127.0.0.1:PORT")
        .replace(&real.display().to_string(), "/here")
        .replace(&folder.display().to_string(), "/here")
        .replace(&format!("linchpin/{}", env!("CARGO_PKG_VERSION")), "linchpin/VERSION")
        .replace(&format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION")), "\"version\":\"VERSION\"")
        .replace(&format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION")), "\"version\": \"VERSION\"")
        .replace(&format!("linchpin-everything {}", env!("CARGO_PKG_VERSION")), "linchpin-everything VERSION");
    let mut out = String::new();
    for line in text.lines() {
        // Only builds with the feature `keyring` have it.
        if line.trim_start().starts_with("--keyring ") {
            continue;
        }
        let mut line = line.to_owned();
        for (before, after) in [
            (" in ", " ms"),
            ("\"ms\":", ","),
            ("\"ms\": ", ","),
            ("\"at_ms\":", "}"),
            ("      date: ", ""),
            ("      content-length: ", ""),
        ] {
            if let Some(at) = line.find(before) {
                let rest = &line[at + before.len()..];
                let end = if after.is_empty() { Some(rest.len()) } else { rest.find(after) };
                if let Some(end) = end.filter(|end| after.is_empty() || rest[..*end].parse::<f64>().is_ok()) {
                    line = format!("{}{before}<ms>{}", &line[..at], &rest[end..]);
                }
            }
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn play(name: &str) {
    let file = tests().join("shown").join(name);
    let given = std::fs::read_to_string(&file).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(tests().join("given")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let served = Served::start();
    let mut now = String::new();
    for line in given.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            if !now.is_empty() && !now.ends_with("\n\n") && !last_is_comment(&now) {
                now.push('\n');
            }
            let _ = writeln!(now, "{line}");
            now.push_str(&run(command, folder.path(), &served.url));
        } else if line.starts_with("# ") && !in_output(&given, line) {
            if !now.is_empty() && !last_is_comment(&now) {
                now.push('\n');
            }
            let _ = writeln!(now, "{line}");
        }
    }
    if std::env::var_os("UPDATE_SHOWN").is_some() {
        std::fs::write(&file, &now).unwrap();
    } else if now != given {
        let differs = given.lines().zip(now.lines()).position(|(a, b)| a != b).unwrap_or(0);
        let around = |text: &str| text.lines().skip(differs.saturating_sub(3)).take(12).collect::<Vec<_>>().join("\n");
        panic!("{name}, line {}:\n--- written\n{}\n--- now\n{}", differs + 1, around(&given), around(&now));
    }
}

fn last_is_comment(text: &str) -> bool {
    text.lines().last().is_some_and(|line| line.starts_with("# "))
}

/// Comments stand right before commands or other comments.
fn in_output(file: &str, comment: &str) -> bool {
    let mut lines = file.lines().skip_while(|line| *line != comment);
    !lines.find(|line| !line.starts_with("# ")).is_some_and(|line| line.starts_with("$ "))
}

macro_rules! shown {
    ($($test:ident: $file:literal;)*) => {
        $(#[test] fn $test() { play($file); })*

        #[test]
        fn every_file_is_played() {
            let played = [$($file),*];
            for entry in std::fs::read_dir(tests().join("shown")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(played.contains(&name.as_str()), "{name} is not played");
            }
        }
    };
}

shown! {
    lists_are_printed_for_people_and_programs: "lists.txt";
    calls_print_what_tools_answer: "call.txt";
    resources_prompts_and_completions_are_read: "read.txt";
    inspect_shows_everything_and_what_is_wrong: "inspect.txt";
    the_inspectors_flags_give_the_inspectors_output: "inspector.txt";
    mistakes_say_what_to_try_and_have_their_own_exit_codes: "errors.txt";
    tasks_are_shown_awaited_answered_and_cancelled: "tasks.txt";
    servers_are_found_in_files: "config.txt";
    questions_are_answered_without_a_terminal: "answers.txt";
    transcripts_are_served_again_and_compared: "transcript.txt";
    traces_show_both_ways_without_secrets: "trace.txt";
    http_and_its_forerunner_are_spoken: "http.txt";
    help_is_there_for_every_command: "help.txt";
    help_is_there_for_every_server: "serve.txt";
}
