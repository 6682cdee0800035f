//! `linchpin call`: calls a tool.

use crate::args;
use crate::bar::Bar;
use crate::content::Keeper;
use crate::describe;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::session::{self, Session, TalkArgs};
use crate::shown::{Out, near, note};
use crate::target::TargetArgs;
use clap::Args;
use linchpin::client::{CallResult, Error};
use linchpin::types::error::code;
use linchpin::types::logging::LoggingLevel;
use linchpin::types::tool::Tool;
use serde_json::{Map, Value};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The target, if it is a word; the tool's name; and its arguments: key=value, key:=JSON, key=@FILE, a.b=value,
    /// or a whole object as '{…}', @FILE or - (standard input).
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    /// The arguments as JSON. `--json '{…}'` means the same.
    #[arg(long, value_name = "JSON")]
    args_json: Option<String>,

    /// Save images, audio and other data to this folder.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    /// Show log messages of the server from this level on.
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    log_level: Option<LoggingLevel>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

pub(crate) fn level(text: &str) -> Result<LoggingLevel, String> {
    LoggingLevel::parse(text)
        .ok_or_else(|| "there are debug, info, notice, warning, error, critical, alert and emergency".to_owned())
}

pub(crate) fn run(mut args: CallArgs) -> Result<(), Failure> {
    let target = args.target.take(&mut args.words);
    let target = args.target.resolve(target)?;
    if args.words.is_empty() {
        return Err(Failure::usage("no tool is named").hint("`linchpin tools` shows what there is"));
    }
    let name = args.words.remove(0);
    let level = args.log_level;
    let logs = move |client: linchpin::client::Client| match level {
        None => client,
        Some(level) => client.on_log(level, |message| {
            let data = serde_json::from_str(message.data.get()).unwrap_or_default();
            let data = match data {
                Value::String(text) => text,
                other => other.to_string(),
            };
            note(format!("{}: {data}", message.level.as_str()));
        }),
    };
    session::run_with(&args.talk, target, logs, async |session| {
        let arguments = given(session, &name, &args.words, args.args_json.as_deref()).await?;
        let result = call(session, &name, arguments).await?;
        show(&result, &name, &args)
    })
}

/// The arguments, typed by the tool's schema where words have to be.
pub(crate) async fn given(
    session: &Session,
    name: &str,
    words: &[String],
    json: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let mut all = match json {
        Some(json) => args::object(json, "--json")?,
        None => Map::new(),
    };
    let plain = |word: &String| word == "-" || word.starts_with(['{', '@']);
    // Only `key=value` needs to know the tool.
    if words.iter().all(plain) {
        all.extend(args::arguments(words, None)?);
        return Ok(all);
    }
    let tools = session.connection.tools().await.map_err(|e| session.told(&e))?;
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
        Err(failure) => return Err(failure.hint(format!("it is called like this: {}", describe::usage(tool)))),
    }
    Ok(all)
}

fn unknown(name: &str, tools: &[Tool]) -> Failure {
    let failure = Failure::usage(format!("the server has no tool `{name}`"));
    match near(name, tools.iter().map(|tool| tool.name.as_str())) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("`linchpin tools` shows what there is"),
    }
}

/// Calls, with a bar on a terminal.
async fn call(session: &Session, name: &str, arguments: Map<String, Value>) -> Result<CallResult, Failure> {
    let mut bar = Bar::new();
    let call = session.connection.call(name, arguments).on_progress(move |progress| bar.show(&progress));
    match call.await {
        Ok(result) => Ok(result),
        Err(e) => {
            let failure = session.told(&e);
            let doubtful = matches!(&e, Error::Refused(refused) if matches!(refused.code, code::INVALID_PARAMS | code::METHOD_NOT_FOUND | code::INTERNAL_ERROR));
            if !doubtful && !matches!(e, Error::Tools(_)) {
                return Err(failure);
            }
            if session.is_transcript() {
                return Err(failure.hint("a transcript answers only what was recorded"));
            }
            Err(match session.connection.tools().await {
                Ok(tools) => match tools.iter().find(|tool| tool.name == name) {
                    Some(tool) => failure.hint(format!("it is called like this: {}", describe::usage(tool))),
                    None => unknown(name, &tools),
                },
                Err(_) => failure,
            })
        }
    }
}

fn show(result: &CallResult, name: &str, args: &CallArgs) -> Result<(), Failure> {
    let mut out = Out::new();
    if args.talk.json {
        let value: Value = serde_json::from_str(result.as_json()).unwrap_or_default();
        out.json(&value)?;
    }
    if !args.talk.json || args.save.is_some() {
        let mut quiet = Keeper::new(args.save.as_deref(), name)?;
        let content = match result.content() {
            Ok(content) => content,
            Err(e) => return Err(Failure::new(e).exit(Exit::Protocol).hint("--json shows the result as it came")),
        };
        let text = content.iter().any(|block| block.as_text().is_some_and(|text| !text.is_empty()));
        for block in content.iter().filter(|block| !args.talk.json || block.as_text().is_none()) {
            quiet.show(&mut out, block)?;
        }
        // What is said in no other way is said as JSON.
        if let (Some(structured), false, false) = (result.structured(), text, args.talk.json) {
            out.json(&serde_json::from_str::<Value>(structured).unwrap_or_default())?;
        }
    }
    out.flush()?;
    if result.is_error() {
        return Err(Failure::new(format!("the tool `{name}` says that it failed")).exit(Exit::Failed));
    }
    Ok(())
}
