//! mcpload: raw load for MCP servers. Prints one JSON object on stdout.
//! It knows the wire, not any SDK: requests are bytes rendered once and patched
//! with a new id; answers are checked, not decoded.

mod client;
mod closed_loop;
mod distance;
mod fanout;
mod ops;
mod parser;
mod proc;
mod sessions;
mod startup;
mod stats;
mod stdio;

use serde_json::{Value, json};
use std::collections::HashMap;

const USAGE: &str = "\
mcpload check    --url U --era E [--tools N]
mcpload http     --url U --era E --op OP --conns N --secs S [--warmup S] [--pid P] [--tools N]
mcpload sessions --url U --pid P --count N [--max-secs S]
mcpload fanout   --url U --era E --streams N --repeat K [--pid P]
mcpload startup  --url U --era E -- CMD...
mcpload stdio    --era E --secs S --pipelined N [--what all|startup] -- CMD...
  Servers it starts run on the first core of MCPLOAD_CORES (default 0,1).
  era: 2025 (initialize, session id if the server gives one) | 2026 (no handshake)
  op:  echo add blob_result blob_arg list";

pub type Res<T> = Result<T, Box<dyn std::error::Error>>;

pub struct Args {
    map: HashMap<String, String>,
    pub rest: Vec<String>,
}

impl Args {
    fn parse(mut it: impl Iterator<Item = String>) -> Self {
        let mut map = HashMap::new();
        let mut rest = Vec::new();
        while let Some(a) = it.next() {
            if a == "--" {
                rest.extend(it.by_ref());
            } else if let Some(k) = a.strip_prefix("--") {
                map.insert(k.to_owned(), it.next().unwrap_or_else(|| fail(&format!("--{k} needs a value"))));
            } else {
                fail(&format!("unexpected argument {a}"));
            }
        }
        Args { map, rest }
    }
    pub fn str(&self, k: &str) -> &str {
        self.map.get(k).map(String::as_str).unwrap_or_else(|| fail(&format!("--{k} is required")))
    }
    pub fn num<T: std::str::FromStr>(&self, k: &str, default: T) -> T {
        match self.map.get(k) {
            None => default,
            Some(v) => v.parse().unwrap_or_else(|_| fail(&format!("--{k}: bad number {v}"))),
        }
    }
    pub fn opt(&self, k: &str) -> Option<&str> {
        self.map.get(k).map(String::as_str)
    }
}

pub fn fail(msg: &str) -> ! {
    println!("{}", json!({"failed": msg}));
    std::process::exit(1)
}

/// A window, and how far apart the cores were when it began and when it ended, whichever was more.
fn with_distance(run: impl FnOnce() -> Res<Value>) -> Res<Value> {
    let before = distance::line_ns();
    let mut out = run()?;
    out["line_ns"] = json!(before.max(distance::line_ns()));
    Ok(out)
}

fn main() {
    let mut it = std::env::args().skip(1);
    let Some(cmd) = it.next() else {
        eprintln!("{USAGE}");
        std::process::exit(2)
    };
    let args = Args::parse(it);
    let out = match cmd.as_str() {
        "check" => client::check(&args),
        "http" => with_distance(|| closed_loop::closed_loop(&args)),
        "sessions" => sessions::sessions(&args),
        "fanout" => fanout::fanout(&args),
        "startup" => startup::startup(&args),
        "stdio" => with_distance(|| stdio::run(&args)),
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2)
        }
    };
    match out {
        Ok(v) => println!("{v}"),
        Err(e) => fail(&e.to_string()),
    }
}
