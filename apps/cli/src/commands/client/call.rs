//! `linchpin call`: calls a tool.

use super::input::Input;
use crate::client::args;
use crate::client::session::{self, Session, TalkArgs};
use crate::client::target::TargetArgs;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::bar::{Bar, busy, waiting};
use crate::show::content::ContentPrinter;
use crate::show::describe;
use crate::show::out::{Out, near, note};
use clap::Args;
use linchpin::client::{Error, ErrorKind, RawCallToolResult};
use linchpin::types::error::code;
use linchpin::types::logging::LoggingLevel;
use linchpin::types::tool::Tool;
use linchpin_core::exact;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    input: Input,

    /// Save images, audio and other data to this directory.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    /// Show the server's log messages of at least this level.
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    log_level: Option<LoggingLevel>,

    /// Do not wait if the call becomes a task: print its identifier, for `linchpin task`.
    #[arg(long, conflicts_with = "wait")]
    detach: bool,

    /// Maximum time to wait for a task, for example 30 or 10m; 0 disables the limit [default: 1h]. The task itself continues.
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read)]
    wait: Option<Duration>,

    /// Request a task, where the client decides that (2025-11-25) and the tool allows it.
    #[arg(long)]
    as_task: bool,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

pub(crate) fn level(text: &str) -> Result<LoggingLevel, String> {
    LoggingLevel::parse(text)
        .ok_or_else(|| "expected debug, info, notice, warning, error, critical, alert or emergency".to_owned())
}

pub(crate) fn run(mut args: CallArgs) -> Result<(), Failure> {
    args.talk.json &= !args.input.by_json;
    let target = args.target.restrict_to(&mut args.input.words)?;
    if args.input.words.is_empty() {
        return Err(Failure::usage("missing tool name").hint("`linchpin tools` lists the tools"));
    }
    let name = args.input.words.remove(0);
    let level = args.log_level;
    let logs = move |client: linchpin::client::Client| match level {
        None => client,
        Some(level) => client.on_log(level, |message| {
            let data = match serde_json::from_str(message.data.get()) {
                Ok(Value::String(text)) => text,
                _ => message.data.get().to_owned(),
            };
            note(format!("{}: {data}", message.level.as_str()));
        }),
    };
    let book = args.detach || args.wait.is_some();
    let further = move |client| if book { session::with_book(logs(client)) } else { logs(client) };
    session::run_with(&args.talk, target, further, async |session| {
        let arguments = given(session, &name, &args.input.words, args.input.json.as_deref()).await?;
        match call(session, &name, arguments, &args).await? {
            Called::Done(result) => show(&result, &name, args.talk.json, args.save.as_deref()),
            Called::Detached(id) => {
                let mut out = Out::new();
                match args.talk.json {
                    true => out.json(&json!({ "taskId": id }))?,
                    false => out.line(&id)?,
                }
                out.flush()?;
                goes_on(session, &id);
                Ok(())
            }
        }
    })
}

/// Returns the arguments, typed by the tool's input schema where necessary.
pub(crate) async fn given(
    session: &Session,
    name: &str,
    words: &[String],
    json: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let mut all = match json {
        Some(json) => args::object(json, "the tool's input")?,
        None => Map::new(),
    };
    let plain = |word: &String| word == "-" || word.starts_with(['{', '@']);
    // Only `key=value` needs the schema.
    if words.iter().all(plain) {
        all.extend(args::arguments(words, None)?);
        return Ok(all);
    }
    let tools = busy("listing tools", session.connection.tools()).await.map_err(|e| session.told(&e))?;
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        if let Some(refused) = tools.refused.iter().find(|refused| refused.name == name) {
            let why = &refused.why;
            return Err(Failure::new(format!("the tool `{name}` cannot be called: {why}")).exit(Exit::Protocol));
        }
        return Err(unknown(name, &tools));
    };
    let schema = describe::input(tool);
    match args::arguments(words, Some(&schema)) {
        Ok(more) => all.extend(more),
        Err(failure) => return Err(failure.hint(format!("usage: {}", describe::usage(tool)))),
    }
    Ok(all)
}

fn unknown(name: &str, tools: &[Tool]) -> Failure {
    let failure = Failure::usage(format!("the server has no tool `{name}`"));
    match near(name, tools.iter().map(|tool| tool.name.as_str())) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("`linchpin tools` lists the tools"),
    }
}

/// What became of a call.
enum Called {
    Done(RawCallToolResult),
    /// The identifier of the task.
    Detached(String),
}

/// Calls the tool, with a progress bar on a terminal.
async fn call(
    session: &Session,
    name: &str,
    arguments: Map<String, Value>,
    args: &CallArgs,
) -> Result<Called, Failure> {
    let mut bar = Bar::new();
    let drawn = bar.drawn();
    let said = |took: Duration| format!("calling {name} … {} s", took.as_secs());
    let mut call = session
        .connection
        .call(name, exact::raw(&Value::Object(arguments)))
        .on_progress(move |progress| bar.show(&progress));
    if args.as_task {
        call = call.as_task();
    }
    // A server that ends with this command has no use for a task that goes on.
    if !args.detach && args.wait.is_none() && session.ends_with_command() {
        return match waiting(async { call.await }, Some(drawn), said).await {
            Ok(result) => Ok(Called::Done(result)),
            Err(e) => Err(failed(session, name, &e).await),
        };
    }
    let mut task = match waiting(call.detached(), Some(drawn.clone()), said).await {
        Ok(task) => task,
        Err(e) => return Err(failed(session, name, &e).await),
    };
    let id = task.id().map(str::to_owned);
    if let (Some(id), true) = (&id, args.detach) {
        return Ok(Called::Detached(id.clone()));
    }
    if let Some(wait) = args.wait {
        task = task.timeout(wait);
    }
    let interrupted = async {
        match (&id, tokio::signal::ctrl_c().await) {
            (Some(id), Ok(())) => goes_on(session, id),
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        done = waiting(async { task.await }, Some(drawn), said) => match done {
            Ok(result) => Ok(Called::Done(result)),
            Err(e) => Err(failed(session, name, &e).await),
        },
        () = interrupted => Err(Failure::silent(Exit::Interrupted)),
    }
}

/// Says how to come back to a task.
pub(crate) fn goes_on(session: &Session, id: &str) {
    let (target, ends) = (&session.target, session.ends_with_command());
    if ends {
        note(format!(
            "warning: {target} ends with this command, and the task {id} with it, unless the server keeps its tasks"
        ));
    }
    let words = if ends { format!("{id} -- {target}") } else { format!("{target} {id}") };
    let goes_on = if ends { "then it goes on as" } else { "goes on as" };
    note(format!("{goes_on} {id}: `linchpin task wait {words}`, or `linchpin task cancel {words}`"));
}

/// Explains a failed call to the user: the tool may not exist, or take other arguments.
pub(crate) async fn failed(session: &Session, name: &str, e: &Error) -> Failure {
    let failure = session.told(e);
    let doubtful = |code| matches!(code, code::INVALID_PARAMS | code::METHOD_NOT_FOUND | code::INTERNAL_ERROR);
    if !e.rpc().is_some_and(|rpc| doubtful(rpc.code)) && e.kind() != ErrorKind::InvalidTool {
        return failure;
    }
    if session.is_transcript() {
        return failure.hint("a transcript only answers recorded requests");
    }
    match busy("listing tools", session.connection.tools()).await {
        Ok(tools) => match tools.iter().find(|tool| tool.name == name) {
            Some(tool) => failure.hint(format!("usage: {}", describe::usage(tool))),
            None => unknown(name, &tools),
        },
        Err(_) => failure,
    }
}

/// The result of servers of 2024-10-07, in place of content.
fn tool_result(result: &RawCallToolResult) -> Option<String> {
    #[derive(Deserialize)]
    struct Older {
        #[serde(rename = "toolResult")]
        tool_result: Box<RawValue>,
    }
    let older: Older = serde_json::from_str(result.as_json()).ok()?;
    Some(older.tool_result.get().to_owned())
}

/// Prints a string unchanged, anything else as JSON.
fn show_json(out: &mut Out, json: &str) -> std::io::Result<()> {
    match exact::read(json).unwrap_or_default() {
        value if exact::number(&value).is_some() => out.json(&value),
        Value::String(text) => out.text(&text),
        value => out.json(&value),
    }
}

/// Prints the result of a call.
pub(crate) fn show(result: &RawCallToolResult, name: &str, json: bool, save: Option<&Path>) -> Result<(), Failure> {
    let mut out = Out::new();
    if json {
        out.json(&exact::read(result.as_json()).unwrap_or_default())?;
    }
    if !json || save.is_some() {
        let mut printer = ContentPrinter::new(save, name)?.beside_json(json);
        let content = match result.content() {
            Ok(content) => content,
            Err(e) => return Err(Failure::new(e).exit(Exit::Protocol).hint("--json shows the raw result")),
        };
        let text = content.iter().any(|block| block.as_text().is_some_and(|text| !text.is_empty()));
        for block in &content {
            printer.show(&mut out, block)?;
        }
        // Without text content, the structured content is shown as JSON.
        if !text && !json {
            let older = tool_result(result);
            if let Some(json) = result.structured().or(older.as_deref()) {
                show_json(&mut out, json)?;
            }
        }
    }
    out.flush()?;
    if result.is_error() {
        return Err(Failure::new(format!("tool `{name}` returned an error")).exit(Exit::Failed));
    }
    Ok(())
}
