//! A server written with rmcp 3.9, for both eras: `interop-rmcp stdio` or `interop-rmcp http PORT`, with `extensions` at the
//! end that of `extensions.rs`.
//!
//! The same offer as `ts.mjs` and `py.py`: what each tool does is in `../README.md`.

mod extensions;
#[allow(dead_code, reason = "the guide shows it; it need only compile")]
mod hits;

use extensions::Extensions;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;

const PEOPLE: [&str; 3] = ["ada", "alan", "grace"];
const BOARD: &str = "note://board";

/// What lives longer than a session.
struct World {
    stopped: AtomicU64,
    note: AtomicU64,
    grown: AtomicBool,
    /// Sessions, which are told of changes one by one.
    peers: Mutex<Vec<Peer<RoleServer>>>,
    /// Listen streams: `true` is the list of tools, `false` the board.
    bus: broadcast::Sender<bool>,
}

#[derive(Clone)]
struct Register(Arc<World>);

/// The words of the specification are easier to read as JSON than as builders.
fn of<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

/// The same of a whole result.
fn result<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = json!("complete");
    of(value)
}

fn text(said: impl ToString) -> Value {
    json!({ "content": [{ "type": "text", "text": said.to_string() }] })
}

fn suggestions(typed: &str) -> Vec<&'static str> {
    PEOPLE.into_iter().filter(|name| name.starts_with(typed)).collect()
}

impl Register {
    fn new() -> Register {
        Register(Arc::new(World {
            stopped: AtomicU64::new(0),
            note: AtomicU64::new(0),
            grown: AtomicBool::new(false),
            peers: Mutex::default(),
            bus: broadcast::channel(16).0,
        }))
    }

    async fn tell(&self, tools: bool) {
        let _ = self.0.bus.send(tools);
        let peers = self.0.peers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for peer in peers.iter().filter(|peer| !peer.is_transport_closed()) {
            let _ = match tools {
                true => peer.notify_tool_list_changed().await,
                false => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(BOARD)).await,
            };
        }
    }

    /// The answer to a question: of this round, or of the user at the other end of a session.
    async fn ask(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, CallToolResponse>, ErrorData> {
        if let Some(answer) = request.input_responses.as_ref().and_then(|all| all.get("it")) {
            return Ok(Ok(answer.clone()));
        }
        let rounds = context.protocol_version().is_some_and(|version| version.as_str() >= "2026-07-28");
        if rounds {
            let question: InputRequest = of(json!({ "method": method, "params": params }))?;
            let wanted = InputRequiredResult::from_input_requests([("it".to_owned(), question)].into());
            return Ok(Err(wanted.into()));
        }
        let failed = |e: rmcp::ServiceError| ErrorData::internal_error(e.to_string(), None);
        #[allow(deprecated)]
        let answer = match method {
            "elicitation/create" => json!(context.peer.create_elicitation(of(params)?).await.map_err(failed)?),
            "roots/list" => json!(context.peer.list_roots().await.map_err(failed)?),
            _ => json!(context.peer.create_message(of(params)?).await.map_err(failed)?),
        };
        Ok(Ok(answer))
    }

    async fn steps(&self, n: u64, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
        let log = json!({ "level": "info", "data": "counting begins" });
        #[allow(deprecated)]
        let _ = context.peer.notify_logging_message(of(log)?).await;
        for step in 1..=n {
            if let Some(token) = context.meta.get_progress_token() {
                let progress = json!({ "progressToken": token, "progress": step as f64, "total": n as f64 });
                let _ = context.peer.notify_progress(of(progress)?).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(text(format!("{n} steps")))
    }
}

fn question(tool: &str) -> (&'static str, Value) {
    match tool {
        "ask" => (
            "elicitation/create",
            json!({ "mode": "form", "message": "Who are you?", "requestedSchema": { "type": "object", "properties": {
                "name": { "type": "string" }, "age": { "type": "integer" },
            }, "required": ["name"] } }),
        ),
        "sample" => (
            "sampling/createMessage",
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "What is the answer?" } }], "maxTokens": 50 }),
        ),
        _ => ("roots/list", json!({})),
    }
}

impl ServerHandler for Register {
    fn get_info(&self) -> ServerConfig {
        #[allow(deprecated)]
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("interop-rmcp", "1.0.0"))
            .with_instructions("Try everything.")
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.peers.lock().unwrap_or_else(PoisonError::into_inner).push(context.peer);
    }

    #[allow(deprecated)]
    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let none = json!({ "type": "object" });
        let numbers = json!({ "type": "object", "properties": { "a": { "type": "number" }, "b": { "type": "number" } }, "required": ["a", "b"] });
        let count = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let sum = json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
        let mut tools = vec![
            json!({ "name": "add", "description": "Adds", "inputSchema": numbers, "outputSchema": sum }),
            json!({ "name": "steps", "description": "Counts", "inputSchema": count }),
        ];
        let mut names = vec!["fail", "slow", "stopped", "touch", "grow", "ask", "sample", "roots"];
        if self.0.grown.load(Ordering::SeqCst) {
            names.push("grown");
        }
        tools.extend(names.iter().map(|name| json!({ "name": name, "description": name, "inputSchema": none })));
        result(json!({ "tools": tools }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let number = |name: &str| {
            arguments[name]
                .as_f64()
                .ok_or_else(|| ErrorData::invalid_params(format!("`{name}` must be a number"), None))
        };
        let answer = match &*request.name {
            "add" => {
                let sum = number("a")? + number("b")?;
                let mut result = text(sum);
                result["structuredContent"] = json!({ "sum": sum });
                result
            }
            "steps" => self.steps(number("n")? as u64, &context).await?,
            "fail" => {
                let mut result = text("it broke");
                result["isError"] = json!(true);
                result
            }
            "slow" => tokio::select! {
                () = context.ct.cancelled() => {
                    self.0.stopped.fetch_add(1, Ordering::SeqCst);
                    text("stopped")
                }
                () = tokio::time::sleep(Duration::from_secs(60)) => text("done"),
            },
            "stopped" => text(self.0.stopped.load(Ordering::SeqCst)),
            "touch" => {
                self.0.note.fetch_add(1, Ordering::SeqCst);
                self.tell(false).await;
                text("touched")
            }
            "grow" => {
                self.0.grown.store(true, Ordering::SeqCst);
                self.tell(true).await;
                text("grown")
            }
            "grown" => text("here"),
            name @ ("ask" | "sample" | "roots") => {
                let (method, params) = question(name);
                match self.ask(&request, &context, method, params).await? {
                    Err(wanted) => return Ok(wanted),
                    Ok(answer) if answer["action"] == "accept" => {
                        text(format!("hello {}", answer["content"]["name"].as_str().unwrap_or("nobody")))
                    }
                    Ok(answer) => match answer["action"].as_str() {
                        Some(action) => text(format!("no name: {action}")),
                        None => text(format!("{name}: {answer}")),
                    },
                }
            }
            name => return Err(ErrorData::invalid_params(format!("unknown tool: {name}"), None)),
        };
        Ok(result::<CallToolResult>(answer)?.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        result(json!({ "resources": [{ "uri": BOARD, "name": "board", "mimeType": "text/plain" }] }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        result(json!({ "resourceTemplates": [{ "uriTemplate": "person://{name}", "name": "person" }] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let said = match uri.strip_prefix("person://") {
            _ if uri == BOARD => format!("note {}", self.0.note.load(Ordering::SeqCst)),
            Some(name) => format!("about {name}"),
            None => return Err(ErrorData::resource_not_found(format!("no resource {uri}"), None)),
        };
        let contents = json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": said }] });
        Ok(result::<ReadResourceResult>(contents)?.into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut news = self.0.bus.subscribe();
        loop {
            let sent = tokio::select! {
                () = context.cancelled() => return Ok(()),
                tools = news.recv() => match tools {
                    // What was not asked for is held back by the sink.
                    Ok(true) => context.sink().notify_tool_list_changed().await,
                    Ok(false) => context.sink().notify_resource_updated(BOARD).await,
                    Err(_) => return Ok(()),
                },
            };
            drop(sent);
        }
    }

    #[allow(deprecated)]
    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    #[allow(deprecated)]
    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        result(json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "name", "required": true }] }] }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "greet" {
            return Err(ErrorData::invalid_params(format!("no prompt {}", request.name), None));
        }
        let arguments = json!(request.arguments);
        let said = format!("Say hello to {}.", arguments["name"].as_str().unwrap_or("nobody"));
        let message = json!({ "role": "user", "content": { "type": "text", "text": said } });
        Ok(result::<GetPromptResult>(json!({ "messages": [message] }))?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        result(json!({ "completion": { "values": suggestions(&request.argument.value) } }))
    }
}

/// Serves until the input ends, or for ever.
async fn serve<H: ServerHandler + Clone>(offer: H, words: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    if words.first().is_some_and(|word| word == "stdio") {
        offer.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let port: u16 = words.get(1).ok_or("usage: interop-rmcp stdio | http PORT [extensions]")?.parse()?;
    let service: StreamableHttpService<H, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(offer.clone()), Arc::default(), StreamableHttpServerConfig::default());
    let router = axum::Router::new().nest_service("/mcp", service);
    axum::serve(tokio::net::TcpListener::bind(("127.0.0.1", port)).await?, router).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.last().is_some_and(|word| word == "extensions") {
        true => serve(Extensions::default(), &words).await,
        false => serve(Register::new(), &words).await,
    }
}
