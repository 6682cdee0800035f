//! What a server says that wants to command a terminal: `hostile.py` puts `«field»` and what a terminal would obey into
//! everything it says.

use crate::common::on_terminals;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What follows each field's name, as `hostile.py` writes it.
const BAD: &str =
    "\x1b]0;PWN\x07\x1b[2J\x1b[31m\u{9b}31m\x7f\u{85}\u{202e}\u{2066}\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}\u{e0041}\r";

/// A command, how its server misbehaves, what is typed, and which fields are seen in what it prints.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("tools", "", "", "tool tool-about argument refused"),
    ("tools -l", "", "", "tool tool-title tool-about argument about-argument choice default type member"),
    ("tools --json", "", "", "tool tool-title argument about-argument choice member"),
    ("resources", "", "", "uri resource mime about-resource template template-name about-template"),
    ("resources --json", "", "", "uri template"),
    ("prompts", "", "", "prompt about-prompt prompt-argument"),
    ("prompts --json", "", "", "prompt"),
    ("inspect", "", "", "server title version instructions capability tool uri template prompt refused"),
    ("inspect", "broken", "", "error"),
    ("inspect --json", "", "", "server title version instructions tool uri template prompt refused"),
    ("inspect --method tools/list", "", "", "tool argument"),
    ("inspect --method tools/list --format json", "", "", "tool argument"),
    ("inspect --method initialize", "", "", "server title instructions capability"),
    ("inspect --method prompts/get --prompt-name no", "", "", "error"),
    ("call good", "", "", "text image link link-name link-mime blob embedded"),
    ("call good --json", "", "", "text image link blob embedded"),
    ("call structured", "", "", "structured"),
    ("call fails", "", "", "failure"),
    ("call slow --log-level debug", "", "", "progress log"),
    ("call good zzz=1", "", "", "argument text"),
    ("call good argumant=1", "", "", "text"),
    ("call closed zzz=1", "", "", "argument"),
    ("call closed n", "", "", "argument"),
    ("call nothing", "", "", ""),
    ("call echo a=1", "", "", ""),
    ("call «refused» a=1", "", "", "refused"),
    ("call form", "", "a word\n\ny\n", "server question field field-title about-field field-default pick"),
    ("call url", "", "y\n", "server visit"),
    ("call sample", "", "an answer\n\n", "server system sampled"),
    ("read x:/text", "", "", "contents contents-mime"),
    ("read x:/text --json", "", "", "contents contents-mime"),
    ("read x:/note", "", "", "error"),
    ("prompt said", "", "", "message"),
    ("prompt said --json", "", "", "message"),
    ("prompt greet", "", "", ""),
    ("prompt hello", "", "", "error prompt-argument"),
    ("complete hello city=O", "", "", "completed"),
    ("complete hello city=O --json", "", "", "completed"),
    ("watch -c 1", "talks", "", "garbage notification param value"),
    ("watch -c 1 --json", "talks", "", "garbage notification param value"),
    ("ping --trace", "talks", "", "server instructions garbage notification"),
    ("ping --trace -vvv", "", "", "server"),
    ("ping", "refuses", "", "connect"),
    ("ping", "dies", "", "stderr"),
    ("load fails -n 1", "", "", "failure"),
    ("load nothing -n 1 --warm-up 0 --json", "", "", "error"),
    ("diff recorded", "other", "", "added described"),
    ("diff recorded --json", "other", "", "added described"),
];

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let scene = Scene { folder: tempfile::tempdir().unwrap() };
        let recorded = scene.plain("inspect --record recorded", "");
        assert!(recorded.status.success(), "{recorded:?}");
        scene
    }

    fn words(&self, command: &str, mode: &str) -> Vec<String> {
        let here = |word: &str| match word {
            "recorded" => self.folder.path().join("recorded").display().to_string(),
            word => word.replace("«refused»", &format!("«refused»{BAD}")),
        };
        let server = common().join("hostile.py").display().to_string();
        let program = env!("CARGO_BIN_EXE_linchpin").to_owned();
        let words = std::iter::once(program).chain(command.split(' ').map(here));
        words.chain(["--", "python3", &server, mode].map(str::to_owned)).collect()
    }

    fn environment(&self) -> Value {
        json!({ "PATH": std::env::var("PATH").unwrap(), "HOME": self.folder.path(), "TERM": "xterm" })
    }

    /// Runs a command without a terminal.
    fn plain(&self, command: &str, mode: &str) -> Output {
        let mut words = self.words(command, mode).into_iter();
        let mut run = Command::new(words.next().unwrap());
        run.args(words).current_dir(self.folder.path()).stdin(Stdio::null()).env_clear();
        for (name, value) in self.environment().as_object().unwrap() {
            run.env(name, value.as_str().unwrap());
        }
        run.output().unwrap()
    }

    /// Runs commands, each on a terminal: exit codes, and what was seen.
    fn on_terminals(&self, rows: &[Row]) -> Vec<(i64, String)> {
        let rows = rows.iter().map(|(command, mode, typed, _)| {
            json!({ "words": self.words(command, mode), "env": self.environment(), "typed": typed })
        });
        on_terminals(self.folder.path(), rows.collect())
    }
}

fn common() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/common")
}

/// What a terminal obeys, or shows nothing for.
fn is_bad(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t' || BAD.contains(c) && !c.is_ascii()
}

/// Without the line ends of terminals, the styles that are ours, and the bar that writes over itself.
fn without_ours(seen: &str) -> String {
    let mut text = seen.replace("\r\n", "\n");
    for ours in ["\r\x1b[2K", "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"] {
        text = text.replace(ours, "");
    }
    text
}

#[test]
fn nothing_that_a_server_says_commands_a_terminal() {
    let scene = Scene::new();
    let mut wrong = String::new();
    for ((command, mode, _, fields), (code, seen)) in ROWS.iter().zip(scene.on_terminals(ROWS)) {
        let text = without_ours(&seen);
        for (at, c) in text.char_indices().filter(|(_, c)| is_bad(*c)).take(3) {
            let from = text[..at].char_indices().rev().nth(40).map_or(0, |(at, _)| at);
            wrong.push_str(&format!("{command} ({mode}): {c:?} after {:?}\n", &text[from..at]));
        }
        let json = serde_json::from_str::<Value>(&text).is_ok();
        for field in fields.split_whitespace() {
            let escaped = [r"\u001b", r"\u009b"].iter().all(|part| text.contains(part));
            let shown = if json {
                escaped && text.contains(&format!("«{field}»\\u001b"))
            } else {
                text.contains(&format!("«{field}»"))
            };
            if !shown {
                wrong.push_str(&format!("{command} ({mode}): no {field} (exit code {code}) in\n{text}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn where_there_is_no_terminal_content_is_what_the_server_said() {
    let scene = Scene::new();
    let out = |command| String::from_utf8(scene.plain(command, "").stdout).unwrap();
    assert!(out("call good").contains(&format!("«text»{BAD}\n")));
    for command in ["call good --json", "inspect --method tools/list", "tools --json"] {
        let text = out(command);
        assert!(text.contains("\u{9b}31m\u{7f}\u{85}\u{202e}") && !text.contains("\\u009b"), "{text}");
    }
    // What is told of it is for people all the same, who may look at a file.
    let told = scene.plain("tools", "");
    for told in [told.stdout, told.stderr] {
        let told = String::from_utf8(told).unwrap();
        assert!(told.contains("«") && !told.contains(is_bad), "{told:?}");
    }
}

#[test]
fn files_are_saved_under_names_that_no_server_chose() {
    let scene = Scene::new();
    let saved = scene.plain("call good --save saved", "");
    assert!(saved.status.success(), "{saved:?}");
    let read = scene.plain("read x:/text --save saved", "");
    assert!(read.status.success(), "{read:?}");
    let entries = std::fs::read_dir(scene.folder.path().join("saved")).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["good-1.bin", "good-2.bin", "text-1.bin"]);
}
