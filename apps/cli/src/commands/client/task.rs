//! `linchpin task`: shows, awaits, answers and cancels tasks.

use super::call;
use crate::client::args;
use crate::client::session::{self, Session, TalkArgs};
use crate::client::target::TargetArgs;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::bar::{Bar, busy, waiting};
use crate::show::out::{Out, indent, note, shorten};
use clap::{Args, ValueEnum};
use linchpin::client::{Step, Task, TaskState};
use linchpin::types::elicit::ElicitResult;
use linchpin::types::task::Task as TaskInfo;
use linchpin_core::exact;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// What to do.
    #[arg(value_name = "ACTION")]
    action: Action,

    /// The target, unless set by an option; the identifier of the task; for `answer`, the key of the input request and
    /// field=value, or an object as '{…}'.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    /// With wait and watch, maximum time to wait, for example 30 or 10m; 0 disables the limit [default: 1h]. The task itself
    /// continues.
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read)]
    wait: Option<Duration>,

    /// With wait and result, save images, audio and other data to this directory.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// List the server's tasks or, if it cannot list them, those started with `call --detach` or `--wait`.
    List,
    /// Show the state of a task, and its open input requests.
    Get,
    /// Wait for the end, answer input requests, and print the result as `call` does.
    Wait,
    /// Print the status messages of a task until it ends.
    Watch,
    /// Print the result of a task that has ended.
    Result,
    /// Answer an input request; --decline declines it.
    Answer,
    /// End a task.
    Cancel,
}

pub(crate) fn run(mut args: TaskArgs) -> Result<(), Failure> {
    let target = args.target.restrict_to(&mut args.words)?;
    let most = match args.action {
        Action::List => 0,
        Action::Answer => usize::MAX,
        _ => 1,
    };
    if args.words.len() > most {
        return Err(Failure::usage(format!("unexpected `{}`", args.words[most])));
    }
    if most > 0 && args.words.is_empty() {
        return Err(Failure::usage("missing identifier of the task").hint("`linchpin task list` lists them"));
    }
    if args.wait.is_some() && !matches!(args.action, Action::Wait | Action::Watch) {
        return Err(Failure::usage("--wait is for `linchpin task wait` and `linchpin task watch`: leave it out"));
    }
    if args.save.is_some() && !matches!(args.action, Action::Wait | Action::Result) {
        return Err(Failure::usage("--save is for `linchpin task wait` and `linchpin task result`: leave it out"));
    }
    session::run_with(&args.talk, target, session::with_book, async |session| {
        if args.action == Action::List {
            return list(session, args.talk.json).await;
        }
        let task = session.connection.task(&args.words[0]);
        match args.action {
            Action::List | Action::Get => get(session, &task, args.talk.json).await,
            Action::Wait => wait(session, task, &args).await,
            Action::Watch => watch(session, task, &args).await,
            Action::Result => {
                let state = state(session, &task).await?;
                if !state.task.status.is_terminal() {
                    let why = format!("the task {} is {}", args.words[0], state.task.status);
                    return Err(Failure::new(why).exit(Exit::Timeout).hint("`linchpin task wait` waits for its end"));
                }
                wait(session, task, &args).await
            }
            Action::Answer => answer(session, &task, &args).await,
            Action::Cancel => busy("cancelling the task", task.cancel()).await.map_err(|e| session.told(&e)),
        }
    })
}

/// Asks for the state of a task.
async fn state(session: &Session, task: &Task) -> Result<TaskState, Failure> {
    busy("getting the state of the task", task.state()).await.map_err(|e| session.told(&e))
}

async fn list(session: &Session, json: bool) -> Result<(), Failure> {
    let tasks = busy("listing tasks", session.connection.tasks()).await.map_err(|e| session.told(&e))?;
    let mut out = Out::new();
    if json {
        out.json(&json!({ "tasks": exact::of(&tasks) }))?;
    }
    for task in tasks.iter().filter(|_| !json) {
        let line = line(task, &mut out);
        out.line(line)?;
    }
    Ok(out.flush()?)
}

/// One line about a task.
fn line(task: &TaskInfo, out: &mut Out) -> String {
    let said = task.status_message.as_deref().map_or(String::new(), |said| format!("  {}", shorten(said, 80)));
    format!("{}  {}  {}{said}", out.style.bold(&task.task_id), task.status, out.style.dim(&task.created_at))
}

async fn get(session: &Session, task: &Task, json: bool) -> Result<(), Failure> {
    let state = state(session, task).await?;
    let mut out = Out::new();
    if json {
        let mut value = exact::of(&state.task);
        if let Some(object) = value.as_object_mut() {
            if !state.input_requests.is_empty() {
                object.insert("inputRequests".to_owned(), exact::of(&state.input_requests));
            }
            if let Some(result) = &state.result {
                object.insert("result".to_owned(), exact::read(result.as_json()).unwrap_or_default());
            }
            if let Some(error) = &state.error {
                object.insert("error".to_owned(), exact::of(error));
            }
        }
        out.json(&value)?;
        return Ok(out.flush()?);
    }
    let first = line(&state.task, &mut out);
    out.line(first)?;
    for (key, question) in &state.input_requests {
        out.line(indent(&format!("{key}: {}", asks(question)), 2))?;
    }
    if let Some(error) = &state.error {
        out.line(indent(&error.to_string(), 2))?;
    }
    Ok(out.flush()?)
}

/// What an input request says to a user.
fn asks(question: &RawValue) -> String {
    let question: Value = serde_json::from_str(question.get()).unwrap_or_default();
    let method = question.get("method").and_then(Value::as_str).unwrap_or("input request");
    let message = question.pointer("/params/message").and_then(Value::as_str);
    message.map_or_else(|| method.to_owned(), |message| shorten(message, 200))
}

/// Waits for the end, with a progress bar on a terminal.
async fn wait(session: &Session, task: Task, args: &TaskArgs) -> Result<(), Failure> {
    let id = args.words[0].clone();
    let mut bar = Bar::new();
    let drawn = bar.drawn();
    let waited = format!("waiting for {id}");
    let mut task = task.on_progress(move |progress| bar.show(&progress));
    if let Some(wait) = args.wait {
        task = task.timeout(wait);
    }
    let interrupted = async {
        match tokio::signal::ctrl_c().await {
            Ok(()) => call::goes_on(session, &id),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        done = waiting(async { task.await }, Some(drawn), |took| format!("{waited} … {} s", took.as_secs())) => {
            let result = done.map_err(|e| session.told(&e))?;
            call::show(&result, &id, args.talk.json, args.save.as_deref())
        }
        () = interrupted => Err(Failure::silent(Exit::Interrupted)),
    }
}

/// Prints each status message, and how the task ended.
async fn watch(session: &Session, mut task: Task, args: &TaskArgs) -> Result<(), Failure> {
    if let Some(wait) = args.wait {
        task = task.timeout(wait);
    }
    let mut steps = task.steps();
    let mut out = Out::new();
    let doing = format!("waiting for {}", args.words[0]);
    while let Some(step) = busy(&doing, steps.next()).await {
        match step {
            Step::Progress(progress) => {
                let said = progress.message.unwrap_or_else(|| progress.progress.to_string());
                match args.talk.json {
                    true => out.json_line(&json!({ "statusMessage": said }))?,
                    false => out.line(said)?,
                }
                out.flush()?;
            }
            Step::Done(result) => {
                let result = result.map_err(|e| session.told(&e))?;
                let status = if result.is_error() { "failed" } else { "completed" };
                match args.talk.json {
                    true => out.json_line(&json!({ "status": status }))?,
                    false => out.line(status)?,
                }
                out.flush()?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Answers an input request: `KEY field=value…`, `KEY '{…}'`, or `KEY` with `--decline`.
async fn answer(session: &Session, task: &Task, args: &TaskArgs) -> Result<(), Failure> {
    let state = state(session, task).await?;
    let Some((key, words)) = args.words[1..].split_first() else {
        return Err(Failure::usage("missing key of the input request").hint(open(&state)));
    };
    let Some(question) = state.input_requests.get(key) else {
        return Err(Failure::usage(format!("the task has no open input request `{key}`")).hint(open(&state)));
    };
    if !args.talk.answers.answer.is_empty() {
        return Err(Failure::usage("--answer is for requests that come during a call")
            .hint(format!("write the fields behind the key: linchpin task answer … {key} FIELD=VALUE")));
    }
    let question: Value = serde_json::from_str(question.get()).unwrap_or_default();
    let given = if args.talk.answers.decline {
        exact::of(&ElicitResult::decline())
    } else {
        let schema = question.pointer("/params/requestedSchema");
        let content = args::arguments(words, schema)?;
        match question.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => json!({ "action": "accept", "content": content }),
            // The answers to other input requests are written as they are sent.
            _ => Value::Object(content),
        }
    };
    busy("sending the answer", task.answer(key, given)).await.map_err(|e| session.told(&e))?;
    note(format!("answered `{key}`"));
    Ok(())
}

fn open(state: &TaskState) -> String {
    match state.input_requests.len() {
        0 => "no input request is open".to_owned(),
        _ => format!("open: {}", state.input_requests.keys().map(String::as_str).collect::<Vec<_>>().join(", ")),
    }
}
