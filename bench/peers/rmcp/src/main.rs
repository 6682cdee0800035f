//! rmcp 3.9.0 peer. argv: http PORT MODE TOOLS | stdio TOOLS [pipes]
//!
//! MODE is a '+'-joined list:
//!   default    StreamableHttpServerConfig::default(): sessions for 2025, SSE answers
//!   stateless  legacy_session_mode = false
//!   json       json_response = true (only has effect with stateless or 2026)
//!   docs       handler as in the README: #[tool_router(server_handler)], which
//!              rebuilds the router on each use. Without it the router is built
//!              once and shared through an Arc ("tuned").
//!   fanout     keep the peers of initialised sessions so `fanout` can reach them

use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::service::{NotificationContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router,
};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    message: String,
}
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Blob {
    size: usize,
}

// ---- tuned: one router, built once, shared -------------------------------

struct Shared {
    router: ToolRouter<Tuned>,
    keep_peers: bool,
    peers: Mutex<Vec<Peer<RoleServer>>>,
    bus: broadcast::Sender<()>,
}

#[derive(Clone)]
struct Tuned(Arc<Shared>);

#[tool_router]
impl Tuned {
    #[tool(description = "Echo the message back")]
    async fn echo(&self, Parameters(p): Parameters<Echo>) -> String {
        p.message
    }
    #[tool(description = "Add two numbers")]
    async fn add(&self, Parameters(p): Parameters<Add>) -> String {
        (p.a + p.b).to_string()
    }
    #[tool(description = "Return a text of the given size")]
    async fn blob(&self, Parameters(p): Parameters<Blob>) -> String {
        "x".repeat(p.size)
    }
    #[tool(description = "Length of the message")]
    async fn len(&self, Parameters(p): Parameters<Echo>) -> String {
        p.message.len().to_string()
    }
    #[tool(description = "Send tools/list_changed to every open stream")]
    async fn fanout(&self) -> String {
        let _ = self.0.bus.send(());
        let peers = std::mem::take(&mut *self.0.peers.lock().expect("no holder panics"));
        let live: Vec<_> = peers
            .into_iter()
            .filter(|p| !p.is_transport_closed())
            .collect();
        *self.0.peers.lock().expect("no holder panics") = live.clone();
        tokio::spawn(async move {
            futures::future::join_all(live.iter().map(|p| p.notify_tool_list_changed())).await;
        });
        "ok".into()
    }

    fn with_tools(total: usize, keep_peers: bool) -> Self {
        let mut router = Self::tool_router();
        for i in 5..total {
            let schema = serde_json::json!({"type": "object", "properties": {
                "message": {"type": "string", "description": "text to process"},
                "count": {"type": "integer", "description": "how many times"}}, "required": ["message"]});
            let serde_json::Value::Object(schema) = schema else {
                unreachable!()
            };
            let attr = Tool::new(
                format!("tool_{i:05}"),
                format!("Filler tool number {i} that gives tools/list a realistic size."),
                Arc::new(schema),
            );
            router.add_route(ToolRoute::new_dyn(attr, |_| {
                Box::pin(async {
                    Ok(CallToolResult::success(vec![ContentBlock::text("filler")]).into())
                })
            }));
        }
        Tuned(Arc::new(Shared {
            router,
            keep_peers,
            peers: Mutex::default(),
            bus: broadcast::channel(16).0,
        }))
    }
}

#[tool_handler(router = self.0.router)]
impl ServerHandler for Tuned {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_tool_list_changed()
                .build(),
        )
        .with_server_info(Implementation::new("peer-rmcp", "0.1.0"))
    }
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.0.keep_peers {
            self.0
                .peers
                .lock()
                .expect("no holder panics")
                .push(context.peer);
        }
    }
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut rx = self.0.bus.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                ev = rx.recv() => {
                    if ev.is_err() { return Ok(()) }
                    if context.sink().notify_tool_list_changed().await.is_err() { return Ok(()) }
                }
            }
        }
    }
}

// ---- docs: exactly the README's style ------------------------------------

#[derive(Clone)]
struct Docs;

#[tool_router(server_handler)]
impl Docs {
    #[tool(description = "Echo the message back")]
    fn echo(&self, Parameters(p): Parameters<Echo>) -> String {
        p.message
    }
    #[tool(description = "Add two numbers")]
    fn add(&self, Parameters(p): Parameters<Add>) -> String {
        (p.a + p.b).to_string()
    }
    #[tool(description = "Return a text of the given size")]
    fn blob(&self, Parameters(p): Parameters<Blob>) -> String {
        "x".repeat(p.size)
    }
    #[tool(description = "Length of the message")]
    fn len(&self, Parameters(p): Parameters<Echo>) -> String {
        p.message.len().to_string()
    }
    #[tool(description = "Not supported in this variant")]
    fn fanout(&self) -> String {
        "ok".into()
    }
}

async fn http<S: ServerHandler + Clone + 'static>(port: u16, mode: &str, proto: S)
where
    S: Send + Sync,
{
    let on = |m: &str| mode.split('+').any(|x| x == m);
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = !on("stateless");
    config.json_response = on("json");
    config.max_request_body_bytes = 16 << 20;
    let service: StreamableHttpService<S, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(proto.clone()), Default::default(), config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port))
        .await
        .expect("bind")
        .tap_io(|t| {
            let _ = t.set_nodelay(true);
        });
    axum::serve(listener, router).await.expect("serve");
}

/// Over HTTP what `#[tokio::main]` makes, and over stdio one thread, as the other stdio servers here.
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let runtime = match a[1].as_str() {
        "http" => tokio::runtime::Runtime::new(),
        _ => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build(),
    };
    runtime.expect("a runtime").block_on(run(a));
}

async fn run(a: Vec<String>) {
    if a[1] == "http" {
        let (port, mode, tools) = (
            a[2].parse().expect("port"),
            a[3].as_str(),
            a[4].parse().expect("tools"),
        );
        if mode.contains("docs") {
            http(port, mode, Docs).await;
        } else {
            http(
                port,
                mode,
                Tuned::with_tools(tools, mode.contains("fanout")),
            )
            .await;
        }
    } else {
        let tools = a.get(2).map_or(5, |t| t.parse().expect("tools"));
        match a.get(3).map(String::as_str) {
            Some("pipes") => {
                let s = Tuned::with_tools(tools, false)
                    .serve(rmcp::transport::io::stdio_pipes())
                    .await
                    .expect("serve");
                let _ = s.waiting().await;
            }
            Some("docs") => {
                let s = Docs.serve(rmcp::transport::stdio()).await.expect("serve");
                let _ = s.waiting().await;
            }
            _ => {
                let s = Tuned::with_tools(tools, false)
                    .serve(rmcp::transport::stdio())
                    .await
                    .expect("serve");
                let _ = s.waiting().await;
            }
        }
    }
}
