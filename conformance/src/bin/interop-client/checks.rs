//! The checks, made with the public API as a host would.

use crate::Outcome;
use crate::extensions;
use crate::host::{Host, soon};
use crate::recording::Recording;
use crate::table::{Action, Expect, Lane, List};
use linchpin::client::{Change, Connection, Error, ErrorKind, RawCallToolResult, Step};
use linchpin::types::tool::Tool;
use serde_json::Value;
use std::time::Duration;

/// How long a call runs before it is dropped or given up.
const PATIENCE: Duration = Duration::from_millis(400);

/// Makes one check; the error says what is wrong.
pub(crate) async fn run(
    conn: &Connection,
    host: &Host,
    recording: &Recording,
    lane: &Lane,
    action: &Action,
) -> Outcome {
    match action {
        Action::Connect => connected(conn, lane),
        Action::Ping => conn.ping().await.map_err(told),
        Action::List { list, have } => listed(conn, *list, have).await,
        Action::Pages { least } => pages(conn, *least).await,
        Action::Call { tool, args, expect } => call(conn, tool, lane.fill_all(args), lane, expect).await,
        Action::Read { uri, expect } => read(conn, &lane.fill(uri), lane, expect).await,
        Action::Prompt { prompt, args, expect } => {
            let answer = conn.prompt(prompt, lane.fill_all(args)).await;
            judge(answer.map(|answer| answer.as_json().to_owned()), lane, expect)
        }
        Action::Complete { .. } => complete(conn, action).await,
        Action::Progress { tool, args, least } => progress(conn, tool, lane.fill_all(args), *least).await,
        Action::Log { tool, args, text } => {
            host.forget();
            conn.call(tool, lane.fill_all(args)).await.map_err(told)?;
            if host.hears_log(text).await { Ok(()) } else { Err(format!("no log message with `{text}`")) }
        }
        Action::Cancel { tool, args, stopped } => cancel(conn, tool, lane.fill_all(args), stopped.as_deref()).await,
        Action::Timeout { tool, args } => timeout(conn, tool, lane.fill_all(args)).await,
        Action::Ask { tool, args, answer, text } => {
            host.will_answer(answer.clone());
            consult(conn, tool, lane.fill_all(args), text).await?;
            if host.asked() == 1 { Ok(()) } else { Err(format!("the user was asked {} times", host.asked())) }
        }
        Action::Consult { tool, args, text } => consult(conn, tool, lane.fill_all(args), text).await,
        Action::Task { tool, told, text } => extensions::task(conn, tool, told.as_deref(), text).await,
        Action::TaskFails { tool, text } => extensions::task_fails(conn, tool, text).await,
        Action::TaskCancel { tool, stopped } => extensions::task_cancel(conn, tool, stopped.as_deref()).await,
        Action::TaskUnknown => extensions::task_unknown(conn).await,
        Action::Skills { have } => extensions::skills(conn, have).await,
        Action::Skill { uri, file, verified, expect } => {
            extensions::skill(conn, uri, file.as_ref(), *verified, expect).await
        }
        Action::SkillDirectory { uri, have } => extensions::skill_directory(conn, uri, have).await,
        Action::Subscribe { uri, tool, args } => subscribe(conn, uri, tool, lane.fill_all(args)).await,
        Action::Changed { tool, args, then } => changed(conn, host, tool, lane.fill_all(args), then).await,
        Action::Parallel { tool, args, calls, text } => parallel(conn, tool, &lane.fill_all(args), *calls, text).await,
        Action::Resume { tool, text } => {
            let before = recording.resumed();
            consult(conn, tool, lane.fill_all(&Value::Null), text).await?;
            if recording.resumed() > before { Ok(()) } else { Err("no stream was taken up again".to_owned()) }
        }
        Action::Large { tool, argument, bytes } => large(conn, tool, argument, *bytes).await,
        Action::Forget { tool } => {
            conn.call(tool, ()).await.and_then(|result| result.ok()).map_err(told)?;
            // The server forgets once it has answered.
            tokio::time::sleep(PATIENCE).await;
            let tools = conn.pages::<Tool>().next().await.ok_or("no page of tools")?.map_err(told)?;
            if tools.items.is_empty() { Err("no tools after that".to_owned()) } else { Ok(()) }
        }
        // Made by the caller, who knows how to connect.
        Action::Again => Ok(()),
        Action::Close => close(conn).await,
    }
}

pub(crate) fn told(why: Error) -> String {
    why.to_string()
}

fn connected(conn: &Connection, lane: &Lane) -> Outcome {
    if conn.revision() != lane.revision {
        return Err(format!("{} was agreed on, not {}", conn.revision(), lane.revision));
    }
    match conn.server() {
        Some(server) if server.name == lane.server => Ok(()),
        other => Err(format!("the server calls itself {:?}, not {}", other.map(|server| server.name), lane.server)),
    }
}

async fn listed(conn: &Connection, list: List, have: &[String]) -> Outcome {
    let (names, refused) = match list {
        List::Tools => {
            let tools = conn.tools().await.map_err(told)?;
            (tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(), tools.refused)
        }
        List::Resources => {
            let resources = conn.resources().await.map_err(told)?;
            (resources.iter().map(|resource| resource.uri.clone()).collect(), resources.refused)
        }
        List::Templates => {
            let templates = conn.resource_templates().await.map_err(told)?;
            (templates.iter().map(|template| template.uri_template.clone()).collect(), templates.refused)
        }
        List::Prompts => {
            let prompts = conn.prompts().await.map_err(told)?;
            (prompts.iter().map(|prompt| prompt.name.clone()).collect(), prompts.refused)
        }
    };
    if let Some(refused) = refused.first() {
        return Err(format!("`{}` was refused: {}", refused.name, refused.why));
    }
    match have.iter().find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(missing) => Err(format!("no `{missing}` among {}", names.join(", "))),
    }
}

async fn pages(conn: &Connection, least: usize) -> Outcome {
    let whole = conn.tools().await.map_err(told)?;
    let (mut pages, mut number, mut names) = (conn.pages::<Tool>(), 0, Vec::new());
    while let Some(page) = pages.next().await {
        number += 1;
        names.extend(page.map_err(told)?.items.into_iter().map(|tool| tool.name));
    }
    let same = whole.iter().map(|tool| &tool.name).eq(names.iter());
    match same && number >= least {
        true => Ok(()),
        false => Err(format!("{} tools on {number} pages, {} at once", names.len(), whole.len())),
    }
}

async fn call(conn: &Connection, tool: &str, args: Value, lane: &Lane, expect: &Expect) -> Outcome {
    let answer = conn.call(tool, args).await;
    if let (Ok(answer), Some(want)) = (&answer, &expect.json) {
        let got: Value = answer.json().map_err(told)?;
        if !holds(&got, want) {
            return Err(format!("{got} is not {want}"));
        }
    }
    // The words of the specification must have room for everything that real servers send.
    if let Ok(answer) = &answer {
        answer.result().map_err(told)?;
    }
    let answer = answer.and_then(RawCallToolResult::ok);
    judge(answer.map(|answer| answer.as_json().to_owned()), lane, expect)
}

async fn read(conn: &Connection, uri: &str, lane: &Lane, expect: &Expect) -> Outcome {
    let answer = conn.read(uri).await;
    judge(answer.map(|answer| answer.as_json().to_owned()), lane, expect)
}

/// Holds an answer against what is expected of it.
fn judge(answer: Result<String, Error>, lane: &Lane, expect: &Expect) -> Outcome {
    let (said, kinds) = match answer {
        Ok(_) if expect.fails => return Err("it did not fail".to_owned()),
        Ok(json) => {
            let value: Value = serde_json::from_str(&json).map_err(|why| why.to_string())?;
            (texts(&value), kinds(&value))
        }
        Err(why) if expect.fails && matches!(why.kind(), ErrorKind::Tool | ErrorKind::Rpc) => (told(why), Vec::new()),
        Err(why) => return Err(told(why)),
    };
    if !expect.kinds.is_empty() && expect.kinds != kinds {
        return Err(format!("content of the kinds {}", kinds.join(", ")));
    }
    match expect.text.iter().map(|part| lane.fill(part)).find(|part| !said.contains(part.as_str())) {
        None => Ok(()),
        Some(missing) => Err(format!("no `{missing}` in: {}", said.chars().take(400).collect::<String>())),
    }
}

/// Every text of an answer, wherever it is.
fn texts(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(members) => {
            let own = members.iter().filter(|(name, _)| matches!(name.as_str(), "text" | "blob" | "uri"));
            let own = own.filter_map(|(_, value)| value.as_str()).map(|text| format!("{text}\n"));
            let inner = members.values().filter(|value| !value.is_string()).map(texts);
            own.chain(inner).collect()
        }
        _ => String::new(),
    }
}

fn kinds(value: &Value) -> Vec<String> {
    let content = value["content"].as_array().into_iter().flatten();
    content.filter_map(|block| block["type"].as_str()).map(str::to_owned).collect()
}

/// Whether `got` is `want`, apart from members that `want` does not name.
fn holds(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => {
            want.iter().all(|(name, want)| got.get(name).is_some_and(|got| holds(got, want)))
        }
        (Value::Number(got), Value::Number(want)) => got.as_f64() == want.as_f64(),
        _ => got == want,
    }
}

async fn complete(conn: &Connection, action: &Action) -> Outcome {
    let Action::Complete { prompt, template, argument, value, known, have } = action else { return Ok(()) };
    let call = match (prompt, template) {
        (Some(prompt), _) => conn.complete_prompt(prompt, argument, value, known.clone()),
        (None, Some(template)) => conn.complete_template(template, argument, value, known.clone()),
        (None, None) => return Err("the check names nothing to complete".to_owned()),
    };
    let values = call.await.map_err(told)?.into_inner().completion.values;
    match have.iter().find(|value| !values.contains(value)) {
        None => Ok(()),
        Some(missing) => Err(format!("no `{missing}` among {}", values.join(", "))),
    }
}

async fn progress(conn: &Connection, tool: &str, args: Value, least: usize) -> Outcome {
    let (mut steps, mut heard) = (conn.call(tool, args).steps(), Vec::new());
    while let Some(step) = steps.next().await {
        match step {
            Step::Progress(progress) => heard.push(progress.progress),
            Step::Done(result) => {
                result.and_then(|result| result.ok()).map_err(told)?;
            }
            other => return Err(format!("an unknown step: {other:?}")),
        }
    }
    let rises = heard.windows(2).all(|pair| pair[0] < pair[1]);
    match rises && heard.len() >= least {
        true => Ok(()),
        false => Err(format!("progress was {heard:?}")),
    }
}

async fn cancel(conn: &Connection, tool: &str, args: Value, stopped: Option<&str>) -> Outcome {
    let before = count(conn, stopped).await?;
    if tokio::time::timeout(PATIENCE, conn.call(tool, args)).await.is_ok() {
        return Err("the call was over before it could be dropped".to_owned());
    }
    conn.ping().await.map_err(|why| format!("after the drop: {why}"))?;
    let Some(tool) = stopped else { return Ok(()) };
    for _ in 0..100 {
        if count(conn, Some(tool)).await? > before {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("the server did not stop".to_owned())
}

/// How many calls the server says to have stopped.
pub(crate) async fn count(conn: &Connection, tool: Option<&str>) -> Outcome<u64> {
    let Some(tool) = tool else { return Ok(0) };
    let text = conn.call(tool, ()).await.and_then(|result| result.ok()).map_err(told)?.text();
    text.trim().parse().map_err(|_| format!("`{text}` is not a count"))
}

async fn timeout(conn: &Connection, tool: &str, args: Value) -> Outcome {
    match conn.call(tool, args).timeout(PATIENCE).await {
        Err(why) if why.is_timeout() => conn.ping().await.map_err(|why| format!("after the timeout: {why}")),
        Err(why) => Err(told(why)),
        Ok(result) => Err(format!("it answered: {}", result.text())),
    }
}

async fn consult(conn: &Connection, tool: &str, args: Value, want: &str) -> Outcome {
    let said = conn.call(tool, args).await.and_then(|result| result.ok()).map_err(told)?.text();
    if said.contains(want) { Ok(()) } else { Err(format!("no `{want}` in: {said}")) }
}

async fn subscribe(conn: &Connection, uri: &str, tool: &str, args: Value) -> Outcome {
    let mut changes = conn.subscribe(uri).await.map_err(told)?;
    // rmcp acknowledges a listen stream before its handler listens, so that a change right after it may be lost.
    for _ in 0..4 {
        conn.call(tool, args.clone()).await.and_then(|result| result.ok()).map_err(told)?;
        match tokio::time::timeout(Duration::from_millis(2_500), changes.next()).await {
            Ok(Some(Change::Updated(told))) if told == uri => return Ok(()),
            Ok(other) => return Err(format!("{other:?} instead of an update of {uri}")),
            Err(_) => {}
        }
    }
    Err(format!("no update of {uri}"))
}

async fn changed(conn: &Connection, host: &Host, tool: &str, args: Value, then: &str) -> Outcome {
    let has = |tools: &[Tool]| tools.iter().any(|tool| tool.name == then);
    if has(&conn.tools().await.map_err(told)?) {
        return Err(format!("`{then}` is there already"));
    }
    host.forget();
    conn.call(tool, args).await.and_then(|result| result.ok()).map_err(told)?;
    if !host.hears_change(&Change::Tools).await {
        return Err("no change of the tools was told".to_owned());
    }
    match has(&conn.tools().await.map_err(told)?) {
        true => Ok(()),
        false => Err(format!("`{then}` is not there after the change")),
    }
}

async fn parallel(conn: &Connection, tool: &str, args: &Value, calls: usize, want: &str) -> Outcome {
    let mut running = tokio::task::JoinSet::new();
    for n in 0..calls {
        let number = n.to_string();
        let args = args.to_string().replace("\"{n}\"", &number).replace("{n}", &number);
        let args: Value = serde_json::from_str(&args).map_err(|why| why.to_string())?;
        let (conn, tool, want) = (conn.clone(), tool.to_owned(), want.replace("{n}", &number));
        running.spawn(async move { consult(&conn, &tool, args, &want).await });
    }
    while let Some(done) = running.join_next().await {
        done.map_err(|why| why.to_string())??;
    }
    Ok(())
}

async fn large(conn: &Connection, tool: &str, argument: &str, bytes: usize) -> Outcome {
    // Two bytes a letter, and a quote that must be escaped.
    let sent = "é\"".repeat(bytes / 3);
    let args = Value::Object([(argument.to_owned(), Value::String(sent.clone()))].into_iter().collect());
    let said = conn.call(tool, args).await.and_then(|result| result.ok()).map_err(told)?.text();
    if said.contains(&sent) { Ok(()) } else { Err(format!("{} bytes came back", said.len())) }
}

async fn close(conn: &Connection) -> Outcome {
    conn.close().await;
    if !soon(|| conn.lost().is_some_and(|why| why.kind() == ErrorKind::Closed)).await {
        return Err("it does not count as closed".to_owned());
    }
    match conn.ping().await {
        Err(why) if why.kind() == ErrorKind::Closed => Ok(()),
        other => Err(format!("a ping after the end: {other:?}")),
    }
}
