//! The messages sent, and raw clients for the two transports of a server in another process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Which of the two ways of speaking is counted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Era {
    /// 2025-11-25, after `initialize`.
    Legacy,
    /// 2026-07-28, `_meta` in every request.
    Modern,
}

impl Era {
    /// The name used in the table.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }
}

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench-allocs","version":"0.1.0"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench-allocs","version":"0.1.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A `tools/call` of `name` with these arguments (JSON text).
pub(crate) fn call(era: Era, name: &str, arguments: &str) -> String {
    let meta = if era == Era::Modern { META } else { "" };
    format!(
        r#"{{"jsonrpc":"2.0","id":1000000007,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}{meta}}}}}"#
    )
}

/// A `tools/list`.
fn list(era: Era) -> String {
    let params = if era == Era::Modern { format!("{{{}}}", &META[1..]) } else { "{}".to_owned() };
    format!(r#"{{"jsonrpc":"2.0","id":1000000007,"method":"tools/list","params":{params}}}"#)
}

/// A server in a process of its own, reached over one transport.
pub(crate) trait Client {
    /// Sends one `tools/call` and returns the answer's JSON text.
    fn call(&mut self, name: &str, arguments: &str) -> io::Result<String>;

    /// The same for `tools/list`.
    fn list(&mut self) -> io::Result<String>;
}

/// Over stdin and stdout.
pub(crate) struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    era: Era,
}

impl Pipe {
    /// Starts this program again as a stdio server.
    pub(crate) fn open(era: Era) -> io::Result<Pipe> {
        let mut child =
            Command::new(std::env::current_exe()?).arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
        let mut pipe = Pipe { child, input, output: BufReader::new(output), era };
        if era == Era::Legacy {
            pipe.exchange(INITIALIZE)?;
            pipe.write(INITIALIZED)?;
        }
        Ok(pipe)
    }

    fn write(&mut self, message: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("closed"))?;
        input.write_all(format!("{message}\n").as_bytes())
    }

    fn exchange(&mut self, message: &str) -> io::Result<String> {
        self.write(message)?;
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(io::Error::other("the server ended")),
            _ => Ok(line),
        }
    }
}

impl Client for Pipe {
    fn call(&mut self, name: &str, arguments: &str) -> io::Result<String> {
        let message = call(self.era, name, arguments);
        self.exchange(&message)
    }

    fn list(&mut self) -> io::Result<String> {
        self.exchange(&list(self.era))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Over one keep-alive HTTP connection.
pub(crate) struct Http {
    child: Child,
    socket: BufReader<TcpStream>,
    port: u16,
    era: Era,
    session: Option<String>,
}

impl Http {
    /// Starts this program again as an HTTP server.
    pub(crate) fn open(era: Era) -> io::Result<Http> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child =
            Command::new(std::env::current_exe()?).args(["http", &port.to_string()]).stdin(Stdio::null()).spawn()?;
        let begun = Instant::now();
        let socket = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(socket) => break socket,
                Err(e) if begun.elapsed() > Duration::from_secs(10) => return Err(e),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        socket.set_nodelay(true)?;
        let mut http = Http { child, socket: BufReader::new(socket), port, era, session: None };
        if era == Era::Legacy {
            http.post(INITIALIZE, "")?;
            http.post(INITIALIZED, "MCP-Protocol-Version: 2025-11-25\r\n")?;
        }
        Ok(http)
    }

    fn post(&mut self, body: &str, headers: &str) -> io::Result<String> {
        let session = self.session.as_ref().map(|s| format!("Mcp-Session-Id: {s}\r\n"));
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}{}\r\n{body}",
            self.port,
            body.len(),
            session.unwrap_or_default(),
        );
        self.socket.get_mut().write_all(request.as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.socket.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the server closed the connection"));
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                if line == "\r\n" {
                    break;
                }
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(io::Error::other)?;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                self.session = Some(value.trim().to_owned());
            }
        }
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body)?;
        String::from_utf8(body).map_err(io::Error::other)
    }
}

fn headers(era: Era, method: &str) -> String {
    match era {
        Era::Legacy => "MCP-Protocol-Version: 2025-11-25\r\n".to_owned(),
        Era::Modern => format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"),
    }
}

impl Client for Http {
    fn call(&mut self, name: &str, arguments: &str) -> io::Result<String> {
        let message = call(self.era, name, arguments);
        self.post(&message, &headers(self.era, &format!("tools/call\r\nMcp-Name: {name}")))
    }

    fn list(&mut self) -> io::Result<String> {
        self.post(&list(self.era), &headers(self.era, "tools/list"))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
