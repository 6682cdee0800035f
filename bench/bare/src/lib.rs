//! The part every "bare" server shares: typed serde parsing of one JSON-RPC
//! message and typed serde writing of the answer. No MCP SDK involved.
//!
//! It speaks both revisions: with `_meta.…/protocolVersion` in the request it
//! answers in the 2026-07-28 shape (resultType, serverInfo), else in the
//! 2025-11-25 shape.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

pub const V2026: &str = "2026-07-28";
pub const MAX_BODY: usize = 16 << 20;

#[derive(Deserialize)]
pub struct Request<'a> {
    pub jsonrpc: &'a str,
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub params: Option<Params<'a>>,
}

#[derive(Deserialize, Default)]
pub struct Params<'a> {
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "protocolVersion")]
    pub protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<Meta<'a>>,
}

#[derive(Deserialize, Default)]
pub struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<ClientInfo<'a>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub struct ClientInfo<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub version: Cow<'a, str>,
}

#[derive(Deserialize)]
struct EchoArgs<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}
#[derive(Deserialize)]
struct AddArgs {
    a: f64,
    b: f64,
}
#[derive(Deserialize)]
struct BlobArgs {
    size: usize,
}

#[derive(Serialize)]
struct Response<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}
#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: ErrorBody<'a>,
}
#[derive(Serialize)]
struct ErrorBody<'a> {
    code: i32,
    message: &'a str,
}

#[derive(Serialize, Clone, Copy)]
struct ServerInfo {
    name: &'static str,
    version: &'static str,
}
const INFO: ServerInfo = ServerInfo {
    name: "bare",
    version: "0.1.0",
};

#[derive(Serialize)]
struct ResultMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: ServerInfo,
}
fn meta(modern: bool) -> Option<ResultMeta> {
    modern.then_some(ResultMeta { server_info: INFO })
}
fn complete(modern: bool) -> Option<&'static str> {
    modern.then_some("complete")
}

#[derive(Serialize)]
struct CallResult<'a> {
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text<'a>; 1],
    #[serde(rename = "isError")]
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta>,
}
#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct Tool {
    name: String,
    description: String,
    #[serde(rename = "inputSchema")]
    input_schema: serde_json::Value,
}
#[derive(Serialize)]
struct ListResult<'a> {
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    tools: &'a [Tool],
    #[serde(rename = "ttlMs", skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(rename = "cacheScope", skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta>,
}

pub struct App {
    tools: Vec<Tool>,
    /// With BARE_CACHE_LIST=1 the serialised tools/list result is kept and copied.
    cached: Option<[Box<RawValue>; 2]>,
}

fn schema(props: serde_json::Value, required: &[&str]) -> serde_json::Value {
    serde_json::json!({"type": "object", "properties": props, "required": required})
}

impl App {
    pub fn new(total_tools: usize) -> Self {
        use serde_json::json;
        let mut tools = vec![
            Tool {
                name: "echo".into(),
                description: "Echo the message back".into(),
                input_schema: schema(json!({"message": {"type": "string"}}), &["message"]),
            },
            Tool {
                name: "add".into(),
                description: "Add two numbers".into(),
                input_schema: schema(
                    json!({"a": {"type": "number"}, "b": {"type": "number"}}),
                    &["a", "b"],
                ),
            },
            Tool {
                name: "blob".into(),
                description: "Return a text of the given size".into(),
                input_schema: schema(json!({"size": {"type": "integer"}}), &["size"]),
            },
            Tool {
                name: "len".into(),
                description: "Length of the message".into(),
                input_schema: schema(json!({"message": {"type": "string"}}), &["message"]),
            },
            Tool {
                name: "fanout".into(),
                description: "Send tools/list_changed to every open stream".into(),
                input_schema: schema(json!({}), &[]),
            },
        ];
        for i in tools.len()..total_tools {
            tools.push(Tool {
                name: format!("tool_{i:05}"),
                description: format!("Filler tool number {i} that gives tools/list a realistic size."),
                input_schema: schema(
                    json!({"message": {"type": "string", "description": "text to process"}, "count": {"type": "integer", "description": "how many times"}}),
                    &["message"],
                ),
            });
        }
        let mut app = App {
            tools,
            cached: None,
        };
        if std::env::var_os("BARE_CACHE_LIST").is_some() {
            let render = |modern| {
                RawValue::from_string(
                    serde_json::to_string(&app.list_result(modern)).expect("plain data serialises"),
                )
                .expect("plain data serialises")
            };
            app.cached = Some([render(false), render(true)]);
        }
        app
    }

    fn list_result(&self, modern: bool) -> ListResult<'_> {
        ListResult {
            result_type: complete(modern),
            tools: &self.tools,
            ttl_ms: modern.then_some(0),
            cache_scope: modern.then_some("public"),
            meta: meta(modern),
        }
    }
}

pub struct Headers<'h> {
    pub version: Option<&'h [u8]>,
    pub method: Option<&'h [u8]>,
    pub name: Option<&'h [u8]>,
}

/// What a message is answered with.
pub enum Answer {
    Json(Vec<u8>),
    /// A notification: nothing to answer.
    Elicited,
    /// `subscriptions/listen`: keep the stream open; the id as JSON text.
    Listen(String),
    /// `fanout` called: publish, then send this.
    Publish(Vec<u8>),
}

fn ok<T: Serialize>(id: &RawValue, cap: usize, result: T) -> Vec<u8> {
    let mut out = Vec::with_capacity(cap + 192);
    serde_json::to_writer(
        &mut out,
        &Response {
            jsonrpc: "2.0",
            id,
            result,
        },
    )
    .expect("serialize");
    out
}
fn err(id: Option<&RawValue>, code: i32, message: &str) -> Answer {
    Answer::Json(
        serde_json::to_vec(&ErrorResponse {
            jsonrpc: "2.0",
            id,
            error: ErrorBody { code, message },
        })
        .expect("serialize"),
    )
}
fn text(id: &RawValue, modern: bool, text: &str) -> Vec<u8> {
    ok(
        id,
        text.len(),
        CallResult {
            result_type: complete(modern),
            content: [Text {
                r#type: "text",
                text,
            }],
            is_error: false,
            meta: meta(modern),
        },
    )
}

/// Handle one message. `headers` is None on stdio.
pub fn handle(app: &App, body: &[u8], headers: Option<Headers<'_>>) -> Answer {
    let Ok(req) = serde_json::from_slice::<Request>(body) else {
        return err(None, -32700, "parse error");
    };
    if req.jsonrpc != "2.0" {
        return err(None, -32600, "invalid request");
    }
    let Some(id) = req.id else {
        return Answer::Elicited;
    };
    let params = req.params.unwrap_or_default();
    let version = params.meta.as_ref().and_then(|m| m.version.as_deref());
    let modern = version == Some(V2026);
    if modern && let Some(h) = &headers {
        let name_ok = params
            .name
            .as_deref()
            .is_none_or(|n| h.name == Some(n.as_bytes()));
        if h.version != Some(V2026.as_bytes())
            || h.method != Some(req.method.as_bytes())
            || !name_ok
        {
            return err(Some(id), -32020, "header mismatch");
        }
    }
    match &*req.method {
        "tools/call" => {
            let args = params.arguments.map_or("{}", RawValue::get);
            match params.name.as_deref() {
                Some("echo") => match serde_json::from_str::<EchoArgs>(args) {
                    Ok(a) => Answer::Json(text(id, modern, &a.message)),
                    Err(_) => err(Some(id), -32602, "bad arguments"),
                },
                Some("add") => match serde_json::from_str::<AddArgs>(args) {
                    Ok(a) => Answer::Json(text(id, modern, &(a.a + a.b).to_string())),
                    Err(_) => err(Some(id), -32602, "bad arguments"),
                },
                Some("blob") => match serde_json::from_str::<BlobArgs>(args) {
                    Ok(a) => Answer::Json(text(id, modern, &"x".repeat(a.size))),
                    Err(_) => err(Some(id), -32602, "bad arguments"),
                },
                Some("len") => match serde_json::from_str::<EchoArgs>(args) {
                    Ok(a) => Answer::Json(text(id, modern, &a.message.len().to_string())),
                    Err(_) => err(Some(id), -32602, "bad arguments"),
                },
                Some("fanout") => Answer::Publish(text(id, modern, "ok")),
                _ => err(Some(id), -32602, "unknown tool"),
            }
        }
        "tools/list" => Answer::Json(match &app.cached {
            Some(c) => ok(id, c[modern as usize].get().len(), &c[modern as usize]),
            None => ok(id, app.tools.len() * 350, app.list_result(modern)),
        }),
        "initialize" => Answer::Json(ok(
            id,
            64,
            serde_json::json!({"protocolVersion": params.protocol_version, "capabilities": {"tools": {"listChanged": true}}, "serverInfo": INFO}),
        )),
        "server/discover" => Answer::Json(ok(
            id,
            64,
            serde_json::json!({"resultType": "complete", "supportedVersions": [V2026], "capabilities": {"tools": {"listChanged": true}}, "_meta": meta(true), "ttlMs": 0, "cacheScope": "public"}),
        )),
        "ping" => Answer::Json(ok(id, 0, serde_json::json!({}))),
        "subscriptions/listen" => Answer::Listen(id.get().to_owned()),
        _ => err(Some(id), -32601, "method not found"),
    }
}

/// argv: [http PORT MODE TOOLS] or [stdio TOOLS]
pub fn http_args() -> (u16, String, usize) {
    let a: Vec<String> = std::env::args().collect();
    (
        a[2].parse().expect("port"),
        a[3].clone(),
        a[4].parse().expect("tools"),
    )
}
pub fn stdio_args() -> usize {
    std::env::args()
        .nth(2)
        .map_or(5, |t| t.parse().expect("tools"))
}
