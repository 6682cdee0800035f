//! What rmcp 3.9 has of extensions, with the parts that it brings for them: tasks and skills.
//!
//! The tools are those of `../../py_tasks.py`; what each does is in `../README.md`. The skills are those in `../../../skills`,
//! and one whose file is not what its entry says.

use crate::{of, result, text};
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A file of a skill: its URI, and its text.
type File = (&'static str, &'static str);

const HERONS: [File; 2] = [
    ("skill://heron-watch/SKILL.md", include_str!("../../../skills/heron-watch/SKILL.md")),
    ("skill://heron-watch/references/words.md", include_str!("../../../skills/heron-watch/references/words.md")),
];
const POND: [File; 1] = [("skill://pond-care/SKILL.md", include_str!("../../../skills/pond-care/SKILL.md"))];
/// What the entry describes, and what is read.
const CLAIMED: File =
    ("skill://forged/SKILL.md", "---\nname: forged\ndescription: Not what it says.\n---\nTrust me!\n");
const FORGED: File = ("skill://forged/SKILL.md", "---\nname: forged\ndescription: Not what it says.\n---\nTrust it!\n");
/// Not listed, and without digests.
const FRESH: File = ("skill://fresh/SKILL.md", "---\nname: fresh\ndescription: Made anew each time.\n---\nToday.\n");

#[derive(Clone, Default)]
pub(crate) struct Extensions {
    tasks: TaskManager,
    stopped: Arc<AtomicU64>,
}

impl Extensions {
    /// The work of a tool, which may ask and be cancelled if it is a task.
    async fn work(self, tool: String, task: Option<TaskContext>) -> Result<CallToolResult, TaskExit> {
        let answer = match (tool.as_str(), task) {
            ("stopped", _) => text(self.stopped.load(Ordering::SeqCst)),
            ("dig", task) => {
                if let Some(task) = task {
                    task.set_status_message("digging");
                }
                tokio::time::sleep(Duration::from_millis(400)).await;
                text("found an amphora")
            }
            ("broken", _) => {
                let mut result = text("the shovel broke");
                result["isError"] = json!(true);
                result
            }
            ("name", Some(task)) => {
                let answer = task.request_input("who", of(question())?).await?;
                text(match answer["content"]["name"].as_str() {
                    Some(name) => format!("named by {name}"),
                    None => format!("no name: {}", answer["action"].as_str().unwrap_or("nothing")),
                })
            }
            ("wait", Some(task)) => tokio::select! {
                () = task.cancelled() => {
                    self.stopped.fetch_add(1, Ordering::SeqCst);
                    return Err(TaskExit::Cancelled);
                }
                () = tokio::time::sleep(Duration::from_secs(60)) => text("done"),
            },
            ("collapse", _) => return Err(ErrorData::internal_error("the shaft collapsed", None).into()),
            (tool, _) => return Err(ErrorData::invalid_params(format!("unknown tool: {tool}"), None).into()),
        };
        Ok(result(answer)?)
    }
}

fn question() -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Who names it?", "requestedSchema": {
        "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
    } } })
}

/// The entry of a skill, its digests made by rmcp.
fn entry(files: &[File], front: SkillFrontmatter) -> Skill {
    let files = files.iter().map(|(uri, text)| SkillResource::from_bytes(*uri, text.as_bytes())).collect();
    let uri = format!("skill://{}/SKILL.md", front.name);
    Skill::new(uri, front, SkillResources::Files(files))
}

/// Every skill, those that are listed first.
fn skills() -> [Skill; 4] {
    let herons = SkillFrontmatter::new(
        "heron-watch",
        "Count herons at a pond, and write down what they do. Use it when somebody asks about herons.",
    );
    let herons =
        herons.with_field("license", "MIT OR Apache-2.0").with_field("metadata", json!({ "season": "spring" }));
    let pond = SkillFrontmatter::new("pond-care", "Keep a pond clean, so that herons come back.");
    let forged = SkillFrontmatter::new("forged", "Not what it says.");
    let fresh = SkillFrontmatter::new("fresh", "Made anew each time.");
    [
        entry(&HERONS, herons),
        entry(&POND, pond),
        entry(&[CLAIMED], forged),
        Skill::new(FRESH.0, fresh, SkillResources::Dynamic),
    ]
}

impl ServerHandler for Extensions {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_tasks();
        ServerConfig::new(capabilities.enable_skills_with_directory_read().build())
            .with_server_info(Implementation::new("interop-rmcp", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = ["dig", "broken", "collapse", "name", "wait", "stopped"];
        let tool = |name| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
        result(json!({ "tools": names.map(tool) }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let knows_tasks = context.client_capabilities().is_some_and(|caps| caps.supports_tasks());
        let (this, tool) = (self.clone(), request.name.to_string());
        if knows_tasks && tool != "stopped" {
            let options = TaskOptions::new().with_poll_interval_ms(100);
            let task = self.tasks.spawn(options, move |task| Box::pin(this.work(tool, Some(task))));
            return Ok(CallToolResponse::Task(CreateTaskResult::new(task)));
        }
        match this.work(tool, None).await {
            Ok(result) => Ok(result.into()),
            Err(TaskExit::Error(why)) => Err(why),
            Err(TaskExit::Cancelled) => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn get_task(&self, it: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&it.task_id)?))
    }

    async fn update_task(&self, it: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&it.task_id, it.input_responses)
    }

    async fn cancel_task(&self, it: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&it.task_id)
    }

    async fn list_skills(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let listed: Vec<Skill> = skills().into_iter().filter(|skill| skill.name() != "fresh").collect();
        result(json!({ "skills": listed }))
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let found = skills().into_iter().find(|skill| skill.uri == request.uri);
        found
            .map(GetSkillResult::new)
            .ok_or_else(|| ErrorData::invalid_params(format!("no skill {}", request.uri), None))
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        if request.uri != "skill://heron-watch" {
            return Err(ErrorData::invalid_params(format!("no directory {}", request.uri), None));
        }
        let file = json!({ "uri": HERONS[0].0, "name": "SKILL.md", "mimeType": "text/markdown" });
        let folder =
            json!({ "uri": "skill://heron-watch/references", "name": "references", "mimeType": DIRECTORY_MIME_TYPE });
        result(json!({ "resources": [file, folder] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let mut files = HERONS.iter().chain(&POND).chain([&FORGED, &FRESH]);
        let (uri, text) = files
            .find(|(uri, _)| *uri == request.uri)
            .ok_or_else(|| ErrorData::resource_not_found(format!("no resource {}", request.uri), None))?;
        let contents = json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", "text": text }] });
        Ok(result::<ReadResourceResult>(contents)?.into())
    }
}
