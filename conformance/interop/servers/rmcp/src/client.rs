//! The client of rmcp 3.9 against the extensions of our servers: `interop-rmcp-client LANE`, where `LANE` is what
//! `cargo xtask interop` gives to every driver. It makes the checks of `../../../tasks.json` or `skills.json`.

use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService, ServiceError};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};
use std::time::Duration;

type Client = RunningService<RoleClient, ClientConfig>;
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const RESEARCH: &str = "simulate-research-query";
const HERONS: &str = "skill://heron-watch/SKILL.md";
const WORDS: &str = "skill://heron-watch/references/words.md";
/// How long a check may take.
const CHECK: Duration = Duration::from_secs(25);

/// Where the server is.
struct Lane(Value);

impl Lane {
    fn text(&self, member: &str) -> &str {
        self.0[member].as_str().unwrap_or_default()
    }

    async fn connect(&self, capabilities: Value) -> Outcome<Client> {
        let mut info =
            ClientConfig::new(serde_json::from_value(capabilities)?, Implementation::new("interop-rmcp-client", "1"));
        let lifecycle = match self.text("revision") {
            "2026-07-28" => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
            older => {
                info.protocol_version = serde_json::from_value(json!(older))?;
                ClientLifecycleMode::Initialize
            }
        };
        if let Some(words) = self.0["command"].as_array() {
            let mut words = words.iter().filter_map(Value::as_str);
            let mut command = tokio::process::Command::new(words.next().ok_or("no command")?);
            command.args(words);
            return Ok(info.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?);
        }
        Ok(info.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(self.text("url")), lifecycle).await?)
    }
}

fn hold(is: bool, what: impl std::fmt::Display) -> Outcome {
    if is { Ok(()) } else { Err(what.to_string().into()) }
}

/// What must be refused with this code.
fn refused<T: std::fmt::Debug>(answer: Result<T, ServiceError>, code: i32) -> Outcome {
    match answer {
        Err(ServiceError::McpError(error)) if error.code.0 == code => Ok(()),
        other => Err(format!("{other:?} instead of error {code}").into()),
    }
}

fn research(arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(RESEARCH).with_arguments(arguments)
}

/// Calls the tool that takes its time; the answer must be a task.
async fn made(client: &Client, arguments: Value) -> Outcome<Task> {
    match client.call_tool_once(research(arguments)).await? {
        CallToolResponse::Task(made) => Ok(made.task),
        other => Err(format!("no task: {other:?}").into()),
    }
}

async fn look(client: &Client, id: &str) -> Outcome<DetailedTask> {
    Ok(client.get_task(GetTaskParams::new(id)).await?.task)
}

/// Looks at a task at the interval that it asks for, until it is in another state than `working`.
async fn settled(client: &Client, task: &Task) -> Outcome<TaskPayload> {
    loop {
        let now = look(client, &task.task_id).await?;
        if now.payload != TaskPayload::Working {
            return Ok(now.payload);
        }
        tokio::time::sleep(Duration::from_millis(now.task.poll_interval_ms.unwrap_or(500))).await;
    }
}

/// The text of a task that is done.
fn text(payload: &TaskPayload) -> Outcome<String> {
    match payload {
        TaskPayload::Completed { result } => Ok(json!(result)["content"][0]["text"].to_string()),
        other => Err(format!("not completed: {other:?}").into()),
    }
}

async fn task(client: &Client) -> Outcome {
    let task = made(client, json!({ "topic": "otters" })).await?;
    hold(task.status == TaskStatus::Working, "it does not work")?;
    hold(task.ttl_ms > Some(0) && task.poll_interval_ms > Some(0), "it has no times")?;
    let looked = look(client, &task.task_id).await?.task;
    hold((&looked.task_id, &looked.created_at) == (&task.task_id, &task.created_at), "another task")?;
    for _ in 0..2 {
        let said = text(&settled(client, &task).await?)?;
        hold(said.contains("otters"), said)?;
    }
    // What has ended stays as it is.
    client.cancel_task(CancelTaskParams::new(&task.task_id)).await?;
    text(&look(client, &task.task_id).await?.payload).map(drop)
}

async fn ask(client: &Client) -> Outcome {
    let task = made(client, json!({ "topic": "python", "ambiguous": true })).await?;
    let TaskPayload::InputRequired { input_requests } = settled(client, &task).await? else {
        return Err("nothing was asked".into());
    };
    let (key, question) = input_requests.first_key_value().ok_or("no question")?;
    let question = serde_json::to_value(question)?;
    hold(question["method"] == "elicitation/create", &question)?;
    hold(question["params"]["message"].to_string().contains("python"), &question)?;
    let answer = json!({ "action": "accept", "content": { "interpretation": "snake" } });
    // An answer to nothing is no error.
    let answers = [(key.clone(), answer.clone()), ("never-asked".to_owned(), answer)].into();
    client.update_task(UpdateTaskParams::new(&task.task_id, answers)).await?;
    let said = text(&settled(client, &task).await?)?;
    hold(said.contains("Clarification**: snake"), said)
}

async fn cancel(client: &Client) -> Outcome {
    let task = made(client, json!({ "topic": "otters" })).await?;
    client.cancel_task(CancelTaskParams::new(&task.task_id)).await?;
    let payload = settled(client, &task).await?;
    hold(payload == TaskPayload::Cancelled, format!("{payload:?}"))?;
    // Once more is no error.
    Ok(client.cancel_task(CancelTaskParams::new(&task.task_id)).await?)
}

async fn unknown(client: &Client) -> Outcome {
    refused(client.get_task(GetTaskParams::new("never-was")).await, -32602)?;
    refused(client.cancel_task(CancelTaskParams::new("never-was")).await, -32602)?;
    refused(client.update_task(UpdateTaskParams::new("never-was", Default::default())).await, -32602)
}

/// Wrong arguments may be found before there is a task or in it.
async fn bad_arguments(client: &Client) -> Outcome {
    let said = match client.call_tool_once(research(json!({ "topic": 7 }))).await {
        Ok(CallToolResponse::Task(made)) => match settled(client, &made.task).await? {
            TaskPayload::Completed { result } if result["isError"] == true => json!(result).to_string(),
            TaskPayload::Failed { error } => json!(error).to_string(),
            other => return Err(format!("{other:?}").into()),
        },
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => json!(result).to_string(),
        Err(ServiceError::McpError(error)) => error.message.to_string(),
        other => return Err(format!("{other:?}").into()),
    };
    hold(said.contains("topic"), said)
}

/// A caller that knows no tasks.
async fn undeclared(lane: &Lane) -> Outcome {
    let client = lane.connect(json!({})).await?;
    refused(client.call_tool_once(research(json!({ "topic": "otters" }))).await, -32021)?;
    refused(client.get_task(GetTaskParams::new("never-was")).await, -32021)?;
    client.cancel().await?;
    Ok(())
}

/// The bytes of a file, which must be those that its entry promises.
async fn verified(client: &Client, skill: &Skill, uri: &str) -> Outcome<String> {
    let SkillResources::Files(files) = &skill.resources else { return Err("no files".into()) };
    let file = files.iter().find(|file| file.uri == uri).ok_or("not listed")?;
    let read = json!(client.read_resource(ReadResourceRequestParams::new(uri)).await?);
    let text = read["contents"][0]["text"].as_str().ok_or("no text")?;
    file.verify(text.as_bytes())?;
    Ok(text.to_owned())
}

async fn skills(client: &Client, name: &str) -> Outcome {
    match name {
        "list" => {
            let skills = client.list_all_skills().await?;
            let names: Vec<&str> = skills.iter().map(Skill::name).collect();
            hold(names.contains(&"heron-watch") && names.contains(&"pond-care"), format!("{names:?}"))?;
            Ok(validate_skills(&skills)?)
        }
        "get" => {
            let skill = client.get_skill(GetSkillRequestParams::new(HERONS)).await?.skill;
            let listed = client.list_all_skills().await?;
            hold(listed.contains(&skill), "it is listed otherwise")?;
            hold(skill.frontmatter.extra["metadata"]["season"] == "spring", "no metadata")
        }
        "load" => {
            let skill = client.get_skill(GetSkillRequestParams::new(HERONS)).await?.skill;
            let text = verified(client, &skill, HERONS).await?;
            hold(text.contains("Stand still"), text)
        }
        "file" => {
            let skill = client.get_skill(GetSkillRequestParams::new(HERONS)).await?.skill;
            let text = verified(client, &skill, WORDS).await?;
            hold(text.contains("“Fischreiher”"), text)
        }
        "directory" => {
            let request = ReadResourceDirectoryRequestParams::new("skill://heron-watch");
            let children = client.read_resource_directory(request).await?.resources;
            let folders: Vec<&str> =
                children.iter().filter(|child| child.is_directory()).map(|child| &*child.uri).collect();
            hold(folders == ["skill://heron-watch/references"], format!("{folders:?}"))?;
            hold(children.iter().any(|child| child.uri == HERONS), "no SKILL.md")
        }
        "unknown" => {
            refused(client.get_skill(GetSkillRequestParams::new("skill://none/SKILL.md")).await, -32602)?;
            let outside = ReadResourceRequestParams::new("skill://heron-watch/../secret");
            hold(client.read_resource(outside).await.is_err(), "a file outside was read")
        }
        other => Err(format!("no check {other}").into()),
    }
}

async fn check(client: &Client, lane: &Lane, catalog: &str, name: &str) -> Outcome {
    match (catalog, name) {
        (_, "connect") => {
            let info = client.peer_info().ok_or("the server says nothing about itself")?;
            let agreed = info.protocol_version.to_string();
            hold(agreed == lane.text("revision"), agreed)
        }
        ("tasks", "task") => task(client).await,
        ("tasks", "ask") => ask(client).await,
        ("tasks", "cancel") => cancel(client).await,
        ("tasks", "unknown") => unknown(client).await,
        ("tasks", "bad-arguments") => bad_arguments(client).await,
        ("tasks", "undeclared") => undeclared(lane).await,
        (_, name) => skills(client, name).await,
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let lane = Lane(serde_json::from_str(&std::env::args().nth(1).ok_or("usage: interop-rmcp-client LANE")?)?);
    let catalog = lane.text("catalog");
    let client = lane.connect(json!({
        "elicitation": { "form": {} },
        "extensions": { "io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/skills": {} },
    }));
    let client = client.await?;
    let report = |check: &str, failure: Option<String>| {
        let status = if failure.is_none() { "pass" } else { "fail" };
        println!("{}", json!({ "check": check, "status": status, "detail": failure.unwrap_or_default() }));
    };
    let names: &[&str] = match catalog {
        "tasks" => &["connect", "task", "ask", "cancel", "unknown", "bad-arguments", "undeclared"],
        _ => &["connect", "list", "get", "load", "file", "directory", "unknown"],
    };
    for name in names {
        let outcome = tokio::time::timeout(CHECK, check(&client, &lane, catalog, name)).await;
        report(
            name,
            outcome.map_or_else(|_| Some("it takes too long".to_owned()), |done| done.err().map(|e| e.to_string())),
        );
    }
    report("close", client.cancel().await.err().map(|why| why.to_string()));
    Ok(())
}
