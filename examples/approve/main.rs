//! A host that asks before every call, as hosts should, unless a server that it trusts says that the tool is read-only.
//!
//!     cargo run -p linchpin-examples --example approve                       # a small server inside this program
//!     cargo run -p linchpin-examples --example approve -- npx -y some-server # any other server
//!
//! Type a tool's name and its arguments as JSON; an empty line ends.

use linchpin::client::Error as ClientError;
use linchpin::prelude::*;
use linchpin::types::elicit::ElicitResult;
use linchpin::types::tool::Tool as Definition;
use std::io::{BufRead, Write};

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to write down.
    text: String,
}

#[tokio::main]
async fn main() -> Result<(), ClientError> {
    // Elicitations during a call are shown to the user.
    let client = Client::new("approve", "1.0").on_elicitation(|form| async move {
        match yes(&format!("{} asks: {} Use its defaults?", form.server, form.message)) {
            true => form.accept_defaults(),
            false => ElicitResult::decline(),
        }
    });
    let words: Vec<String> = std::env::args().skip(1).collect();
    // A server's hints are its own words: only those of the server inside this program count.
    let trusted = words.is_empty();
    let asks_first = |tool: &Definition| !trusted || !reads_only(tool);
    let server = match words.split_first() {
        None => client.connect(in_process(notes())).await?,
        Some((program, args)) => client.connect(linchpin::transport::Child::new(program).args(args)).await?,
    };
    let tools = server.tools().await?;
    for tool in tools.iter() {
        say(&format!("{}{}", tool.name, if asks_first(tool) { " (asks first)" } else { "" }));
    }
    say(r#"Type a tool's name and its arguments as JSON, such as: add {"text": "milk"}. An empty line ends."#);
    while let Some((name, arguments)) = line("> ").as_deref().map(split) {
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            say("there is no such tool");
            continue;
        };
        if asks_first(tool) && !yes(&format!("call {name} with {arguments}?")) {
            continue;
        }
        match server.call(name, serde_json::from_str::<serde_json::Value>(arguments).unwrap_or_default()).await {
            Ok(result) if result.is_error() => say(&format!("it failed: {}", result.text())),
            Ok(result) => say(&result.text()),
            Err(why) => say(&why.to_string()),
        }
    }
    server.close().await;
    Ok(())
}

/// What the server says of the tool.
fn reads_only(tool: &Definition) -> bool {
    tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true))
}

fn split(line: &str) -> (&str, &str) {
    line.split_once(' ').map_or((line, "{}"), |(name, rest)| (name, rest.trim()))
}

fn yes(question: &str) -> bool {
    line(&format!("{question} [y/N] ")).is_some_and(|answer| answer.eq_ignore_ascii_case("y"))
}

/// Reads a line from the user; `None` for an empty one or at the end.
fn line(prompt: &str) -> Option<String> {
    let mut out = std::io::stdout();
    let _ = out.write_all(prompt.as_bytes()).and_then(|()| out.flush());
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn notes() -> Server<std::sync::Mutex<Vec<String>>> {
    type Notes = std::sync::Mutex<Vec<String>>;
    async fn list(notes: &Notes) -> String {
        notes.lock().map(|notes| notes.join("\n")).unwrap_or_default()
    }
    async fn add(notes: &Notes, note: Note) -> String {
        notes.lock().map(|mut notes| notes.push(note.text)).map_or("lost", |()| "noted").to_owned()
    }
    Server::new("notes", "1.0")
        .state(Notes::default())
        .tool(Tool::new("list", "All notes.").read_only(), list)
        .tool(Tool::new("add", "Writes a note down."), add)
}
