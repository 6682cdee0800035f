//! The server that the guide shows beside ours (docs/guide/src/from-rmcp.md), compiled here.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::{ErrorData as McpError, ServerHandler, tool, tool_handler, tool_router};
use std::sync::Arc;
use tokio::sync::Mutex;

#[derive(serde::Deserialize, rmcp::schemars::JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Hit {
    times: u64,
}

#[derive(Clone)]
struct Hits {
    count: Arc<Mutex<u64>>,
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Hits {
    #[tool(description = "Counts some hits")]
    async fn hit(&self, Parameters(Hit { times }): Parameters<Hit>) -> Result<CallToolResult, McpError> {
        if times == 0 {
            return Ok(CallToolResult::error(vec![ContentBlock::text("nothing to count")]));
        }
        let mut count = self.count.lock().await;
        *count += times;
        Ok(CallToolResult::success(vec![ContentBlock::text(count.to_string())]))
    }
}

#[tool_handler]
impl ServerHandler for Hits {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}
