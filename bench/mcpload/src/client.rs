//! Where requests go, and a blocking client for everything that is not measured.
use crate::ops::{Era, Op};
use crate::parser::Parser;
use crate::{Args, Res};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

pub struct Target {
    pub addr: SocketAddr,
    host: String,
    path: String,
    /// Lines of further headers.
    more: String,
}

impl Target {
    pub fn parse(url: &str) -> Res<Self> {
        let rest = url.strip_prefix("http://").ok_or("only http:// urls")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Target { addr: host.parse()?, host: host.to_owned(), path: format!("/{path}"), more: String::new() })
    }

    /// With a further header in every request: `Name: value`.
    pub fn with_header(mut self, header: Option<&str>) -> Self {
        self.more = header.map(|header| format!("{header}\r\n")).unwrap_or_default();
        self
    }

    /// Bytes of one POST and the offset of the id's digits in it.
    pub fn post(&self, era: Era, op: &Op, session: Option<&str>) -> (Vec<u8>, usize) {
        let (body, at) = op.render(era);
        let mut h = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: mcpload\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.path,
            self.host,
            body.len()
        );
        if op.method != "initialize" {
            h += &format!("MCP-Protocol-Version: {}\r\n", era.version());
        }
        if era == Era::V2026 {
            h += &format!("Mcp-Method: {}\r\n", op.method);
            if let Some(n) = op.name {
                h += &format!("Mcp-Name: {n}\r\n");
            }
        }
        if let Some(s) = session {
            h += &format!("Mcp-Session-Id: {s}\r\n");
        }
        h += &self.more;
        h += "\r\n";
        let at = h.len() + at;
        h += &body;
        (h.into_bytes(), at)
    }

    pub fn initialized(&self, session: &str) -> Vec<u8> {
        let body = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n{}\r\n{body}",
            self.path,
            self.host,
            body.len(),
            self.more
        )
        .into_bytes()
    }

    pub fn bodyless(&self, verb: &str, session: &str) -> Vec<u8> {
        format!(
            "{verb} {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n{}\r\n",
            self.path, self.host, self.more
        )
        .into_bytes()
    }
}

pub struct Client {
    pub sock: std::net::TcpStream,
    pub p: Parser,
    pub buf: Vec<u8>,
}

impl Client {
    pub fn connect(t: &Target) -> io::Result<Self> {
        let sock = std::net::TcpStream::connect_timeout(&t.addr, Duration::from_secs(5))?;
        sock.set_nodelay(true)?;
        sock.set_read_timeout(Some(Duration::from_secs(15)))?;
        Ok(Client { sock, p: Parser::new(), buf: vec![0; 256 << 10] })
    }

    pub fn send(&mut self, req: &[u8]) -> Res<&Parser> {
        self.sock.write_all(req)?;
        self.finish()
    }

    /// Reads the answer to what was written on the socket.
    pub fn finish(&mut self) -> Res<&Parser> {
        self.p.reset();
        loop {
            let n = self.sock.read(&mut self.buf)?;
            if n == 0 {
                if self.p.eof() {
                    return Ok(&self.p);
                }
                return Err("closed before the answer was complete".into());
            }
            if self.p.feed(&self.buf[..n])? {
                return Ok(&self.p);
            }
        }
    }
}

/// initialize + initialized. Returns the session id, if the server gave one.
pub fn handshake(t: &Target, c: &mut Client) -> Res<Option<String>> {
    let op = Op::parse("initialize", 0);
    let (req, _) = t.post(Era::V2025, &op, None);
    let p = c.send(&req)?;
    if p.status != 200 || !op.good(&p.body, p.body_len) {
        return Err(format!("initialize: status {} body {}", p.status, String::from_utf8_lossy(&p.body)).into());
    }
    let Some(s) = p.session.clone() else {
        return Ok(None);
    };
    if p.close {
        *c = Client::connect(t)?;
    }
    let p = c.send(&t.initialized(&s))?;
    if p.status != 202 && p.status != 200 {
        return Err(format!("initialized: status {}", p.status).into());
    }
    if p.close {
        *c = Client::connect(t)?;
    }
    Ok(Some(s))
}

/// One session per connection (the way clients use them), or none.
pub fn open_sessions(t: &Target, era: Era, n: usize) -> Res<Vec<Option<String>>> {
    if era == Era::V2026 {
        return Ok(vec![None; n]);
    }
    let mut c = Client::connect(t)?;
    let first = handshake(t, &mut c)?;
    if first.is_none() {
        return Ok(vec![None; n]);
    }
    let mut all = vec![first];
    while all.len() < n {
        all.push(handshake(t, &mut c)?);
    }
    Ok(all)
}

pub fn close_session(t: &Target, c: &mut Client, s: &str) -> Res<u16> {
    let p = c.send(&t.bodyless("DELETE", s))?;
    let (status, close) = (p.status, p.close);
    if close {
        *c = Client::connect(t)?;
    }
    Ok(status)
}

pub fn check(a: &Args) -> Res<Value> {
    let t = Target::parse(a.str("url"))?;
    let era = Era::parse(a.str("era"));
    let tools = a.num("tools", 5);
    let mut c = Client::connect(&t)?;
    let mut out = serde_json::Map::new();
    let session = if era == Era::V2025 { handshake(&t, &mut c)? } else { None };
    out.insert("session".into(), json!(session.is_some()));
    for name in ["echo", "add", "blob_result", "blob_arg", "list", "discover"] {
        if name == "discover" && era == Era::V2025 {
            continue;
        }
        let op = Op::parse(name, tools);
        let (req, _) = t.post(era, &op, session.as_deref());
        let r = match c.send(&req) {
            Err(e) => json!({"ok": false, "error": e.to_string()}),
            Ok(p) => {
                let ok = p.status == 200 && op.good(&p.body, p.body_len);
                let shown: String = String::from_utf8_lossy(&p.body).chars().take(if ok { 700 } else { 900 }).collect();
                json!({"ok": ok, "status": p.status, "sse": p.sse, "bytes": p.body_len, "close": p.close, "body": shown})
            }
        };
        if r["ok"] == json!(false) || r["close"] == json!(true) {
            c = Client::connect(&t)?;
        }
        out.insert(name.into(), r);
    }
    if let Some(s) = session {
        out.insert("delete_status".into(), json!(close_session(&t, &mut c, &s).ok()));
    }
    Ok(Value::Object(out))
}
