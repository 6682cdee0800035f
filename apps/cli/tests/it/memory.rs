//! Clients that want a server's memory: what it takes at most, as the system counts it. The server is a process of its own.
#![cfg(all(target_os = "linux", feature = "filesystem", feature = "everything"))]

use crate::common;

use common::{Served, command, program};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const MIB: usize = 1 << 20;
/// What clients may hold by default, and what a server of this test takes besides: the message it is at work on, and what the
/// allocator keeps, which varies by some MiB with the load of the machine.
const BUDGET: usize = 256 * MIB;
const BESIDES: usize = 208 * MIB;

const HEAD: &str =
    "host: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n";
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Attacked {
    served: Served,
    _home: tempfile::TempDir,
}

impl Attacked {
    fn start() -> Attacked {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("files")).unwrap();
        std::fs::write(home.path().join("files/six.txt"), "x".repeat(6 * MIB)).unwrap();
        let mut command = command(program(), home.path());
        command.args(["serve", "filesystem:files", "everything", "--http", "127.0.0.1:0"]);
        Attacked { served: Served::start(&mut command), _home: home }
    }

    /// The most that was ever resident.
    fn peak(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.served.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// Waits until it does nothing.
    fn rests(&self) {
        let ticks = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.served.id())).unwrap();
            let after_name = stat.rsplit(") ").next().unwrap().split(' ');
            after_name.skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum::<u64>()
        };
        let mut before = u64::MAX;
        while std::mem::replace(&mut before, ticks()) != before {
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn connect(&self) -> TcpStream {
        let tcp = TcpStream::connect(self.served.address()).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        tcp
    }

    /// Sends a POST and gives the beginning of what comes back.
    fn post(&self, path: &str, headers: &str, body: &str) -> (TcpStream, String) {
        let mut tcp = self.connect();
        let head = format!("POST {path} HTTP/1.1\r\n{HEAD}{headers}content-length: {}\r\n\r\n", body.len());
        tcp.write_all(head.as_bytes()).unwrap();
        // A refusal may come, and the connection end, before everything is sent.
        let _ = tcp.write_all(body.as_bytes());
        let answer = read_some(&mut tcp);
        (tcp, answer)
    }

    fn session(&self) -> String {
        let (_, answer) = self.post("/mcp", "", &initialize("{}", ""));
        let at = answer.find("mcp-session-id: ").unwrap_or_else(|| panic!("{answer}")) + 16;
        format!("mcp-session-id: {}\r\n", &answer[at..at + 32])
    }

    /// Still there, for others.
    fn serves(&self) -> bool {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
        self.post("/mcp", headers, &body).1.starts_with("HTTP/1.1 200")
    }
}

fn read_some(tcp: &mut TcpStream) -> String {
    let mut piece = [0; 2_048];
    let read = tcp.read(&mut piece).unwrap_or(0);
    String::from_utf8_lossy(&piece[..read]).into_owned()
}

fn initialize(capabilities: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"{more}}}}}}}"#
    )
}

fn read_six(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"fs_read_text_file","arguments":{{"path":"six.txt"}}}}}}"#
    )
}

/// Sessions that each declare twelve megabytes.
fn declarations(at: &Attacked) {
    let (info, capabilities) =
        (format!(r#","title":"{}""#, "x".repeat(12 * MIB)), format!(r#"{{"x":"{}"}}"#, "x".repeat(12 * MIB)));
    for _ in 0..8 {
        at.post("/mcp", "", &initialize("{}", &info));
        at.post("/mcp", "", &initialize(&capabilities, ""));
    }
}

/// Subscriptions to resources with long names, in both eras.
fn subscriptions(at: &Attacked) {
    let session = at.session();
    let mut streams = Vec::new();
    for n in 0..6 {
        let uri = format!("demo://{n}{}", "x".repeat(12 * MIB));
        let subscribe =
            format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#);
        at.post("/mcp", &session, &subscribe);
        let listen = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["{uri}"]}},{META}}}}}"#
        );
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
        streams.push(at.post("/mcp", headers, &listen));
    }
}

/// Bodies that never end.
fn bodies(at: &Attacked) {
    let body = "x".repeat(16_000_000);
    let mut open = Vec::new();
    for _ in 0..40 {
        let mut tcp = at.connect();
        tcp.write_all(format!("POST /mcp HTTP/1.1\r\n{HEAD}content-length: 16700000\r\n\r\n").as_bytes()).unwrap();
        let _ = tcp.write_all(body.as_bytes());
        open.push(tcp);
    }
}

/// Arguments of the wrong type, eight at once.
fn arguments(at: &Attacked) {
    let zeros = vec!["0"; 7 * MIB].join(",");
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"everything_echo","arguments":{{"message":[{zeros}]}},{META}}}}}"#
    );
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: everything_echo\r\n";
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (mut tcp, mut answer) = at.post("/mcp", headers, &call);
                if answer.ends_with("\r\n\r\n") {
                    answer += &read_some(&mut tcp);
                }
                assert!(answer.contains("expected a string"), "{answer}");
            });
        }
    });
}

/// Answers over HTTP/2 to a reader that grants one byte of each.
fn windows(at: &Attacked) {
    let session = at.session();
    let mut tcp = at.connect();
    tcp.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    tcp.write_all(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 1])).unwrap();
    for n in 0..40_u32 {
        let id = 2 * n + 1;
        tcp.write_all(&frame(1, 4, id, &head(&session))).unwrap();
        tcp.write_all(&frame(0, 1, id, read_six(id).as_bytes())).unwrap();
        // The head of the answer is not bound to a window: it says that the answer is there.
        while next_frame(&mut tcp) != (1, id) {}
    }
}

/// Requests over HTTP/2, two hundred on each connection, that have a long head and never end.
fn streams(at: &Attacked) {
    let head = head(&format!("x-pad: {}", "x".repeat(11_000)));
    let body = "x".repeat(4_000);
    let mut open = Vec::new();
    for _ in 0..160 {
        let mut tcp = at.connect();
        let mut all = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        all.extend(frame(4, 0, 0, &[]));
        for n in 0..200_u32 {
            all.extend(frame(1, 4, 2 * n + 1, &head));
            all.extend(frame(0, 0, 2 * n + 1, body.as_bytes()));
        }
        let _ = tcp.write_all(&all);
        open.push(tcp);
    }
    at.rests();
}

/// The head of a POST in HPACK, with the usual headers and more.
fn head(more: &str) -> Vec<u8> {
    let mut out = vec![0x83, 0x86]; // POST, http
    let headers = HEAD.lines().skip(1).chain(more.lines()).filter_map(|line| line.split_once(": "));
    for (name, value) in [(":path", "/mcp"), (":authority", "localhost")].into_iter().chain(headers) {
        out.push(0);
        for text in [name, value] {
            let mut rest = text.len();
            if rest < 127 {
                out.push(u8::try_from(rest).unwrap());
            } else {
                out.push(127);
                rest -= 127;
                while rest > 127 {
                    out.push(u8::try_from(rest % 128).unwrap() | 128);
                    rest /= 128;
                }
                out.push(u8::try_from(rest).unwrap());
            }
            out.extend(text.as_bytes());
        }
    }
    out
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// Reads a frame: its kind and stream.
fn next_frame(tcp: &mut TcpStream) -> (u8, u32) {
    let mut head = [0; 9];
    tcp.read_exact(&mut head).unwrap();
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    tcp.read_exact(&mut payload).unwrap();
    (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]))
}

#[test]
fn attacks_on_memory_stay_within_the_budget() {
    type Attack = fn(&Attacked);
    let table: [(&str, Attack, usize); 6] = [
        ("declarations", declarations, 0),
        ("subscriptions", subscriptions, 0),
        ("bodies", bodies, BUDGET),
        ("arguments", arguments, 8 * 14 * MIB),
        ("windows that are shut", windows, BUDGET),
        ("streams that never end", streams, BUDGET),
    ];
    let mut over = Vec::new();
    for (what, attack, may_hold) in table {
        let at = Attacked::start();
        attack(&at);
        let (peak, serves) = (at.peak(), at.serves());
        eprintln!("{what}: {} MiB", peak / MIB);
        if peak > may_hold + BESIDES || !serves {
            over.push(format!("{what}: {} MiB, serves others: {serves}", peak / MIB));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}
