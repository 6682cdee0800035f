//! The flags of the MCP Inspector's command line, for existing scripts: prints the result of one request as JSON.

use crate::client::session::{self, Session};
use crate::commands::client::Plain;
use crate::commands::client::call::{failed, given, level};
use crate::commands::client::prompt::texts;
use crate::commands::client::skills;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::out::Out;
use clap::Args;
use linchpin::types::logging::LoggingLevel;
use linchpin_core::{Features, exact};
use serde_json::{Map, Value, json};

/// Options for one request.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "MCP Inspector compatibility")]
pub(crate) struct InspectorArgs {
    /// Accepted for compatibility; has no effect.
    #[arg(long, hide = true)]
    cli: bool,

    /// Send this request and print its result as JSON: initialize, tools/list, tools/call, resources/list,
    /// resources/read, resources/templates/list, resources/subscribe, resources/unsubscribe, prompts/list, prompts/get,
    /// logging/setLevel, tasks/get, tasks/result, tasks/list, tasks/cancel, tasks/update, skills/list, skills/get,
    /// resources/directory/read, or any other, with --params. Lists are printed whole, from all pages.
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    /// Parameters of the request, as a JSON object. Those of other options are added to them.
    #[arg(long, value_name = "JSON", requires = "method", value_parser = object)]
    params: Option<Map<String, Value>>,

    /// The tool to call.
    #[arg(long, value_name = "NAME", requires = "method")]
    tool_name: Option<String>,

    /// Arguments for the tool.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., requires = "method")]
    tool_arg: Vec<String>,

    /// Arguments for the tool, as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "tool_arg", requires = "method")]
    tool_args_json: Option<String>,

    /// The resource to read or subscribe to, or the skill to get.
    #[arg(long, value_name = "URI", requires = "method")]
    uri: Option<String>,

    /// The prompt to render.
    #[arg(long, value_name = "NAME", requires = "method")]
    prompt_name: Option<String>,

    /// Arguments for the prompt.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., requires = "method")]
    prompt_args: Vec<String>,

    /// The task for tasks/get, tasks/result, tasks/cancel and tasks/update.
    #[arg(long, value_name = "ID", alias = "task-id", requires = "method")]
    task: Option<String>,

    /// The level for logging/setLevel.
    #[arg(long, value_name = "LEVEL", value_parser = level, requires = "method")]
    log_level: Option<LoggingLevel>,

    /// Members for `_meta` of the request.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., alias = "tool-metadata", requires = "method")]
    metadata: Vec<String>,

    /// text: indented JSON; json: {"result":…} on one line.
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text", requires = "method")]
    format: String,

    /// Print only the result.
    #[arg(short, long, hide = true)]
    quiet: bool,
}

impl InspectorArgs {
    /// Whether a request is selected, and not the overview.
    pub(crate) fn is_asked(&self) -> bool {
        self.method.is_some()
    }

    /// Options with several values also consume a target that follows; returns its words.
    pub(crate) fn spilled(&mut self) -> Vec<String> {
        let mut spilled = Vec::new();
        for pairs in [&mut self.tool_arg, &mut self.prompt_args, &mut self.metadata] {
            if let Some(at) = pairs.iter().position(|word| !word.contains('=')) {
                spilled.extend(pairs.drain(at..));
            }
        }
        spilled
    }

    pub(crate) fn run(&self, plain: &Plain) -> Result<(), Failure> {
        let Some(method) = self.method.as_deref() else { return Ok(()) };
        if self.params.is_some() && TAKE_NONE.contains(&method) {
            let why = match method {
                "initialize" | "server/discover" => "it is sent when connecting",
                _ => "it has options of its own",
            };
            return Err(Failure::usage(format!("{method} takes no --params: {why}")));
        }
        self.check(method)?;
        let target = plain.resolve()?;
        session::run_with(&plain.talk, target, skills::declared, async |session| {
            let asked = async {
                match method {
                    "initialize" | "server/discover" => Ok(opening(session)),
                    _ => match LISTS.iter().find(|(list, _)| *list == method) {
                        Some((_, member)) => self.all(session, method, member).await,
                        None => self.ask(session, method).await,
                    },
                }
            };
            let result = busy(&format!("requesting {method}"), asked).await?;
            let failed = result.get("isError") == Some(&Value::Bool(true));
            let mut out = Out::new();
            match self.format.as_str() {
                "json" => out.json_line(&json!({ "result": result }))?,
                _ => out.json(&result)?,
            }
            out.flush()?;
            if failed { Err(Failure::silent(Exit::Failed)) } else { Ok(()) }
        })
    }

    /// Refuses options of other requests.
    fn check(&self, method: &str) -> Result<(), Failure> {
        let given = [
            ("--tool-name", self.tool_name.is_some(), OF_TOOLS),
            ("--tool-arg", !self.tool_arg.is_empty(), OF_TOOLS),
            ("--tool-args-json", self.tool_args_json.is_some(), OF_TOOLS),
            ("--uri", self.uri.is_some(), OF_URIS),
            ("--prompt-name", self.prompt_name.is_some(), OF_PROMPTS),
            ("--prompt-args", !self.prompt_args.is_empty(), OF_PROMPTS),
            ("--task", self.task.is_some(), OF_TASKS),
            ("--log-level", self.log_level.is_some(), OF_LOGS),
        ];
        let other = given.iter().find(|(_, is_given, methods)| *is_given && !methods.contains(&method));
        if let Some((flag, _, methods)) = other {
            return Err(Failure::usage(format!("{flag} is for {}: leave it out for {method}", methods.join(", "))));
        }
        if !self.metadata.is_empty() && NO_META.contains(&method) {
            return Err(Failure::usage(format!("{method} is sent without --metadata: leave it out")));
        }
        Ok(())
    }

    /// Sends a single request.
    async fn ask(&self, session: &Session, method: &str) -> Result<Value, Failure> {
        let want = |value: &Option<String>, flag: &str| {
            value.clone().ok_or_else(|| Failure::usage(format!("{method} requires {flag}")))
        };
        if method == "logging/setLevel" {
            let level = self.log_level.ok_or_else(|| Failure::usage("logging/setLevel requires --log-level"))?;
            let revision = session.connection.revision();
            if Features::of(revision).log_level_per_request {
                return Err(Failure::new(format!(
                    "{revision} has no logging/setLevel: each request sets its own level"
                ))
                .exit(Exit::Protocol)
                .hint("--era legacy selects a revision that has it"));
            }
            session.connection.set_log_level(level).await.map_err(|e| session.told(&e))?;
            return Ok(json!({}));
        }
        if method == "tools/call" {
            let name = want(&self.tool_name, "--tool-name")?;
            let arguments = given(session, &name, &self.tool_arg, self.tool_args_json.as_deref()).await?;
            let mut call = session.connection.call(&name, exact::raw(&Value::Object(arguments)));
            for (key, value) in self.meta()? {
                call = call.meta(key, value);
            }
            let result = match call.await {
                Ok(result) => result,
                Err(e) => return Err(failed(session, &name, &e).await),
            };
            return Ok(read(result.as_json()));
        }
        let params = exact::raw(&Value::Object(self.params(method)?));
        let result = session.connection.request(method, params).await.map_err(|e| session.told(&e))?;
        Ok(read(result.as_json()))
    }

    /// The parameters of a request.
    fn params(&self, method: &str) -> Result<Map<String, Value>, Failure> {
        let mut params = self.params.clone().unwrap_or_default();
        let mut add = |member: &str, value: Option<&String>, flag: &str| {
            match value {
                Some(value) => drop(params.insert(member.to_owned(), value.as_str().into())),
                None if params.contains_key(member) => {}
                None => return Err(Failure::usage(format!("{method} requires {flag}"))),
            }
            Ok(())
        };
        if OF_URIS.contains(&method) {
            add("uri", self.uri.as_ref(), "--uri")?;
        } else if OF_PROMPTS.contains(&method) {
            add("name", self.prompt_name.as_ref(), "--prompt-name")?;
        } else if OF_TASKS.contains(&method) {
            add("taskId", self.task.as_ref(), "--task")?;
        }
        let arguments = texts(&self.prompt_args)?.into_iter().map(|(key, text)| (key, Value::String(text)));
        let meta = self.meta()?;
        let has_meta = !meta.is_empty();
        let objects =
            [("arguments", arguments.collect::<Map<_, _>>(), method == "prompts/get"), ("_meta", meta, has_meta)];
        for (member, more, _) in objects.into_iter().filter(|(_, _, wanted)| *wanted) {
            match params.entry(member).or_insert_with(|| json!({})) {
                Value::Object(known) => known.extend(more),
                _ => return Err(Failure::usage(format!("`{member}` of --params must be an object"))),
            }
        }
        Ok(params)
    }

    /// Returns a whole list as sent by the server, from all pages.
    async fn all(&self, session: &Session, method: &str, member: &str) -> Result<Value, Failure> {
        let mut items = Vec::new();
        let mut params = self.params(method)?;
        for _ in 0..PAGES_MAX {
            let sent = exact::raw(&Value::Object(params.clone()));
            let page = session.connection.request(method, sent).await.map_err(|e| session.told(&e))?;
            let mut page = read(page.as_json());
            if let Some(Value::Array(more)) = page.get_mut(member).map(Value::take) {
                items.extend(more);
            }
            match page.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty()) {
                Some(next) if params.get("cursor").and_then(Value::as_str) != Some(next) => {
                    params.insert("cursor".to_owned(), next.into());
                }
                _ => break,
            }
        }
        Ok(json!({ member: items }))
    }

    fn meta(&self) -> Result<Map<String, Value>, Failure> {
        Ok(texts(&self.metadata)?.into_iter().map(|(key, text)| (key, Value::String(text))).collect())
    }
}

/// Returns the handshake in the shape of `initialize`, in both eras.
fn opening(session: &Session) -> Value {
    let connection = &session.connection;
    let mut out = json!({
        "serverInfo": exact::of(&connection.server()),
        "protocolVersion": connection.revision().as_str(),
        "capabilities": exact::of(&connection.capabilities()),
    });
    if let Some(instructions) = connection.instructions() {
        out["instructions"] = instructions.into();
    }
    out
}

/// Lists, and the members of their pages.
const LISTS: &[(&str, &str)] = &[
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("resources/directory/read", "resources"),
    ("prompts/list", "prompts"),
    ("tasks/list", "tasks"),
    ("skills/list", "skills"),
];
// The methods that an option is for.
const OF_TOOLS: &[&str] = &["tools/call"];
const OF_URIS: &[&str] =
    &["resources/read", "resources/directory/read", "resources/subscribe", "resources/unsubscribe", "skills/get"];
const OF_PROMPTS: &[&str] = &["prompts/get"];
const OF_TASKS: &[&str] = &["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"];
const OF_LOGS: &[&str] = &["logging/setLevel"];
/// What is sent without `--metadata`.
const NO_META: &[&str] = &["initialize", "server/discover", "logging/setLevel"];
/// What is not sent with `--params`.
const TAKE_NONE: &[&str] = &["initialize", "server/discover", "logging/setLevel", "tools/call"];
/// Maximum number of pages.
const PAGES_MAX: usize = 1_000;

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match exact::read(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// Parses a result and removes protocol-only members.
fn read(json: &str) -> Value {
    let mut result = exact::read(json).unwrap_or_default();
    if let Some(members) = result.as_object_mut() {
        members.remove("resultType");
    }
    result
}
