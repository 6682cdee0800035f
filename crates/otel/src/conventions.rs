//! The names of the OpenTelemetry conventions for MCP.

use linchpin_core::Outcome;

pub(crate) const METHOD: &str = "mcp.method.name";
pub(crate) const TOOL: &str = "gen_ai.tool.name";
pub(crate) const PROMPT: &str = "gen_ai.prompt.name";
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const SESSION: &str = "mcp.session.id";
pub(crate) const REVISION: &str = "mcp.protocol.version";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const STATUS_CODE: &str = "rpc.response.status_code";

/// What stands for a name of which there could be too many.
pub(crate) const OTHER: &str = "_OTHER";

/// The buckets of durations, in seconds.
pub(crate) const SECONDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The attribute of a request's target: a tool or prompt.
pub(crate) fn target(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" => Some(TOOL),
        "prompts/get" => Some(PROMPT),
        _ => None,
    }
}

/// The class of error that a request ended with.
pub(crate) fn error_type(outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Error(code) => Some(code.to_string()),
        Outcome::ToolError | Outcome::Cancelled => Some(outcome.as_str().to_owned()),
        _ => None,
    }
}
