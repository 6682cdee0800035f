//! The picture of README: a terminal with commands that were really run, as an SVG.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::{Shell, note};
use crate::context::Context;
use crate::report::Report;

/// The picture.
const PICTURE: &str = "docs/terminal.svg";

/// Runs commands on terminals.
const TERMINALS: &str = "apps/cli/tests/it/common/terminals.py";

/// The width of the terminal.
const COLUMNS: usize = 92;

/// The port that the picture shows.
const PORT: &str = "8931";

/// The server, how many lines of what it prints are shown, and what is then asked of it.
const SERVE: &[&str] = &["serve", "filesystem", "notes", "--http", "127.0.0.1:8931"];
const SERVE_LINES: usize = 4;
const CLIENTS: &[&[&str]] = &[
    &["tools", "URL"],
    &["call", "URL", "read_text_file", "path=shopping.md"],
    &["call", "URL", "read_text_file", "pth=shopping.md"],
];

/// How many times the commands are run before what they print counts as different. Their programs share the machine with
/// another stage, and with whatever else runs on it.
const TRIES: usize = 3;

pub(super) fn check(context: &Context, shell: &Shell, write: bool, report: &mut Report) -> Result<()> {
    let place = context.root.join(PICTURE);
    let kept = std::fs::read_to_string(&place).unwrap_or_default();
    let mut others = Vec::new();
    let mut same = false;
    while !same && others.len() < TRIES {
        let now = svg(&session(context, shell)?);
        same = now == kept;
        others.extend((!same).then_some(now));
    }
    if let (true, Some(other)) = (same, others.first()) {
        report
            .flaky
            .push(format!("{PICTURE}: another run was as it should be; the first: {}", difference(other, &kept)));
    }
    let stable = others.windows(2).all(|pair| pair[0] == pair[1]);
    let wrong = match others.last() {
        Some(now) if !same && write && stable => {
            std::fs::write(&place, now).with_context(|| format!("cannot write {PICTURE}"))?;
            None
        }
        Some(now) if !same => {
            let advice = if stable { "`cargo xtask guide --write` makes it anew" } else { "each run is different" };
            Some(format!("{advice}: {}", difference(now, &kept)))
        }
        _ => None,
    };
    note(report, &format!("{PICTURE} shows what the program prints"), wrong);
    Ok(())
}

/// What is in one of two pictures only.
fn difference(now: &str, kept: &str) -> String {
    let only = |one: &str, other: &str| -> Vec<String> {
        one.lines().filter(|line| !other.lines().any(|theirs| theirs == *line)).map(str::to_owned).collect()
    };
    format!("printed {:?} and not {:?}", only(now, kept), only(kept, now))
}

/// The server of the picture, for as long as its clients run.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What stands on the terminal.
fn session(context: &Context, shell: &Shell) -> Result<Vec<String>> {
    let program = std::path::absolute(context.binary("linchpin"))?;
    let mut command = Command::new(&program);
    command.args(&SERVE[..SERVE.len() - 1]).arg("127.0.0.1:0").current_dir(&shell.home);
    command.env("HOME", &shell.home).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut served = Served(command.spawn().context("the program cannot be started")?);
    let mut said = BufReader::new(served.0.stderr.take().context("no standard error")?).lines();
    let mut printed = Vec::new();
    while printed.len() < SERVE_LINES {
        printed.push(said.next().context("the server ended")??);
    }
    let Some(url) = printed[0].split(' ').next_back().filter(|word| word.starts_with("http")).map(str::to_owned) else {
        bail!("the server said `{}`", printed[0]);
    };
    let port = url.split([':', '/']).nth(4).context("a URL without port")?;
    let mut screen = vec![format!("$ linchpin {} &", SERVE.join(" "))];
    screen.extend(printed.iter().map(|line| line.replace(port, PORT)));
    screen.push("…".to_owned());
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|word| word.replace("URL", &url)).collect() };
    let rows: Vec<_> = CLIENTS
        .iter()
        .map(|client| {
            let mut line = vec![program.display().to_string()];
            line.extend(words(client));
            let env = json!({ "HOME": shell.home, "PATH": shell.path, "TERM": "xterm" });
            json!({ "words": line, "env": env, "typed": "", "columns": COLUMNS })
        })
        .collect();
    for (client, shown) in CLIENTS.iter().zip(on_terminals(context, &json!(rows))?) {
        screen.push(String::new());
        screen.push(format!("$ linchpin {}", words(client).join(" ").replace(port, PORT)));
        let mut lines: Vec<String> = shown.lines().map(|line| remaining(line).replace(port, PORT)).collect();
        if lines.len() > LINES_MAX {
            lines.truncate(LINES_MAX);
            lines.push("…".to_owned());
        }
        screen.extend(lines);
    }
    Ok(screen)
}

/// What remains of a line after what the program wrote over, which is how long something has taken.
fn remaining(line: &str) -> &str {
    line.rsplit("\r\u{1b}[2K").next().unwrap_or(line)
}

/// How much of what a command prints is shown.
const LINES_MAX: usize = 8;

fn on_terminals(context: &Context, rows: &serde_json::Value) -> Result<Vec<String>> {
    let mut python = Command::new("python3")
        .arg(context.root.join(TERMINALS))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("python3 cannot be started")?;
    python.stdin.take().context("no standard input")?.write_all(rows.to_string().as_bytes())?;
    let output = python.wait_with_output()?;
    let shown: Vec<(i64, String)> = serde_json::from_slice(&output.stdout).context("no terminals")?;
    Ok(shown.into_iter().map(|(_, text)| text).collect())
}

const SIZE: usize = 14;
const LINE: usize = 19;
/// The width of a character, in hundredths of a pixel.
const CHARACTER: usize = 843;
const BORDER: usize = 18;
const BAR: usize = 34;

fn svg(lines: &[String]) -> String {
    let (width, height) = (2 * BORDER + COLUMNS * CHARACTER / 100, BAR + 2 * BORDER + lines.len() * LINE - LINE / 2);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"{SIZE}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"9\" fill=\"#1b1f27\"/>\n"
    );
    for (at, colour) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        let _ = writeln!(out, "<circle cx=\"{}\" cy=\"18\" r=\"6\" fill=\"{colour}\"/>", 22 + 20 * at);
    }
    for (at, line) in lines.iter().enumerate() {
        let y = BAR + BORDER + at * LINE;
        let typed = line.starts_with("$ ");
        let fill = if typed { "#8fd0ff" } else { "#d7dae0" };
        let _ = write!(out, "<text x=\"{BORDER}\" y=\"{y}\" fill=\"{fill}\" xml:space=\"preserve\">");
        out.push_str(&styled(line));
        out.push_str("</text>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// A line with its styles.
fn styled(line: &str) -> String {
    let mut out = String::new();
    let mut open = 0;
    for (at, part) in line.split("\u{1b}[").enumerate() {
        let (code, text) = if at == 0 { ("", part) } else { part.split_once('m').unwrap_or(("", part)) };
        let style = match code {
            "1" => " font-weight=\"bold\" fill=\"#ffffff\"",
            "2" => " fill=\"#8a919e\"",
            "31" => " fill=\"#ff7b72\"",
            "32" => " fill=\"#7ee787\"",
            "33" => " fill=\"#f2cc60\"",
            _ => "",
        };
        if code == "0" {
            out.push_str(&"</tspan>".repeat(std::mem::take(&mut open)));
        } else if !style.is_empty() {
            let _ = write!(out, "<tspan{style}>");
            open += 1;
        }
        out.push_str(&text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    }
    out + &"</tspan>".repeat(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_the_terminal_become_those_of_the_picture() {
        assert_eq!(
            styled("\u{1b}[1ma\u{1b}[0m <b>"),
            "<tspan font-weight=\"bold\" fill=\"#ffffff\">a</tspan> &lt;b&gt;"
        );
        assert_eq!(styled("plain"), "plain");
    }

    #[test]
    fn what_the_program_wrote_over_is_not_in_the_picture() {
        assert_eq!(remaining("\r\u{1b}[2Kcalling x … 1 s\r\u{1b}[2Kmilk"), "milk");
        assert_eq!(remaining("milk"), "milk");
    }
}
