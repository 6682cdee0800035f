//! The JSON-RPC messages sent, and how an answer is recognised as right.
use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq)]
pub enum Era {
    /// 2025-11-25: initialize first; session header when the server hands one out.
    V2025,
    /// 2026-07-28: every request carries its own `_meta`.
    V2026,
}

impl Era {
    pub fn parse(s: &str) -> Self {
        match s {
            "2025" => Era::V2025,
            "2026" => Era::V2026,
            _ => crate::fail("era must be 2025 or 2026"),
        }
    }
    pub fn version(self) -> &'static str {
        match self {
            Era::V2025 => "2025-11-25",
            Era::V2026 => "2026-07-28",
        }
    }
}

/// Ids are ten digits wide so that a rendered request can be patched in place.
pub const ID0: u64 = 1_000_000_000;
pub const MIB: usize = 1 << 20;
pub const MARK: &str = "Quick brown fox 0123456789";
/// The tool whose calls are tasks.
const TASK: &str = "note";

pub struct Op {
    pub method: &'static str,
    /// `params.name`, mirrored into Mcp-Name in 2026.
    pub name: Option<&'static str>,
    pub params: Value,
    /// Bytes that must be in the first 4 KiB of the answer's body.
    pub expect: &'static str,
    /// The answer's body must be at least this long.
    pub min_len: usize,
}

fn call(name: &'static str, arguments: Value, expect: &'static str, min_len: usize) -> Op {
    Op {
        method: "tools/call",
        name: Some(name),
        params: json!({"name": name, "arguments": arguments}),
        expect,
        min_len,
    }
}

impl Op {
    pub fn parse(s: &str, tools: usize) -> Op {
        match s {
            "echo" => call("echo", json!({"message": MARK}), MARK, 0),
            "add" => call("add", json!({"a": 2.5, "b": 40}), "42.5", 0),
            "blob_result" => call("blob", json!({"size": MIB}), "xxxxxxxxxxxxxxxx", MIB),
            "blob_arg" => call("len", json!({"message": "y".repeat(MIB)}), "1048576", 0),
            "task" => call(TASK, json!({"message": MARK}), "\"resultType\":\"task\"", 0),
            "fanout" => call("fanout", json!({}), "ok", 0),
            "list" => {
                Op { method: "tools/list", name: None, params: json!({}), expect: "\"tools\":[", min_len: tools * 100 }
            }
            "initialize" => Op {
                method: "initialize",
                name: None,
                params: json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "mcpload", "version": "0.1.0"}}),
                expect: "\"serverInfo\"",
                min_len: 0,
            },
            "discover" => Op {
                method: "server/discover",
                name: None,
                params: json!({}),
                expect: "\"supportedVersions\"",
                min_len: 0,
            },
            "listen" => Op {
                method: "subscriptions/listen",
                name: None,
                params: json!({"notifications": {"toolsListChanged": true}}),
                expect: "acknowledged",
                min_len: 0,
            },
            _ => crate::fail("unknown op"),
        }
    }

    /// The first request a client of this era sends.
    pub fn hello(era: Era) -> Op {
        Op::parse(if era == Era::V2025 { "initialize" } else { "discover" }, 0)
    }

    /// The message as text, and the offset of its ten-digit id.
    pub fn render(&self, era: Era) -> (String, usize) {
        let mut params = self.params.clone();
        if era == Era::V2026 {
            let capabilities = match self.name {
                Some(TASK) => json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
                _ => json!({}),
            };
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": era.version(),
                "io.modelcontextprotocol/clientInfo": {"name": "mcpload", "version": "0.1.0"},
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            });
        }
        let head = "{\"jsonrpc\":\"2.0\",\"id\":";
        (format!("{head}{ID0},\"method\":\"{}\",\"params\":{params}}}", self.method), head.len())
    }

    pub fn good(&self, body_head: &[u8], len: usize) -> bool {
        len >= self.min_len
            && find(body_head, self.expect.as_bytes()).is_some()
            && find(body_head, b"\"isError\":true").is_none()
    }
}

/// Overwrite the ten digits at `at`.
pub fn patch_id(buf: &mut [u8], at: usize, mut id: u64) {
    for b in buf[at..at + 10].iter_mut().rev() {
        *b = b'0' + (id % 10) as u8;
        id /= 10;
    }
}

pub fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() || hay.len() < needle.len() {
        return None;
    }
    let first = needle[0];
    let mut i = 0;
    while let Some(p) = hay[i..=hay.len() - needle.len()].iter().position(|&b| b == first) {
        i += p;
        if &hay[i..i + needle.len()] == needle {
            return Some(i);
        }
        i += 1;
        if i > hay.len() - needle.len() {
            return None;
        }
    }
    None
}
