//! Counts what one call asks of the allocator, inside the server.
//!
//!     bench-allocs            a table
//!     bench-allocs --json     one JSON object per line, for the benchmark driver
//!     bench-allocs sessions   what each of ten thousand idle sessions over HTTP holds, in bytes
//!     bench-allocs sites      where each allocation of a call comes from (build with symbols; see bench/README.md)
//!
//! The server runs in a process of its own, so that nothing of the client is counted, and is asked for its counters
//! with a tool; what that tool costs is measured and taken off. The in-process path (a frame in, a frame out, no wire)
//! is counted right here.

mod direct;
mod sessions;
mod wire;

use direct::Direct;
use linchpin::{Error, Result};
use linchpin_bench::TOOLS;
use linchpin_bench::counting::{Counting, Counts};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use wire::{Client, Era, Http, Pipe};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls made before counting begins: tables have grown, lazy things exist.
const WARM_UP: u32 = 200;
/// Calls counted.
const CALLS: u32 = 1000;
/// Lists of tools are long: as many of them are counted, after a tenth of that.
const LISTS: u32 = 100;
/// Sessions opened and left idle, as many as the benchmark opens.
const SESSIONS: u64 = 10_000;
const ECHO: (&str, &str) = ("echo", r#"{"message":"Quick brown fox 0123456789"}"#);
/// Source files that say nothing about whose allocation it is.
const FOREIGN: &[&str] = &["/rustc/", "/counting.rs", "/bytes-", "/http-", "/serde_core-", "/serde_json-"];
const FRAMES_SHOWN: usize = 5;
/// Characters of a frame's name; generic names can fill a screen.
const NAME_SHOWN: usize = 100;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => table(&measure()?),
        ["--json"] => lines(&measure()?),
        ["sessions"] => print(&format!("{}\n", sessions::bytes_of_an_idle_one(SESSIONS)?)),
        ["sites"] => sites(),
        ["stdio"] => linchpin_bench::run_stdio(linchpin_bench::counted()),
        ["http", port] => linchpin_bench::run_http(linchpin_bench::counted(), port.parse()?, None),
        _ => Err(Error::tool("usage: bench-allocs [--json | sessions | sites]")),
    }
}

/// Mean cost of one call on one path.
struct Cost {
    case: String,
    calls: u32,
    allocs: f64,
    reallocs: f64,
    bytes: f64,
}

fn measure() -> Result<Vec<Cost>> {
    let mut costs = Vec::new();
    for era in [Era::Modern, Era::Legacy] {
        let label = era.label();
        costs.push(mean(format!("in process, {label}"), CALLS, Direct::open(era)?.cost(WARM_UP, CALLS, ECHO)?));
        let transports: [(&str, &mut dyn Client); 2] =
            [("stdio", &mut Pipe::open(era)?), ("HTTP", &mut Http::open(era)?)];
        for (wire, client) in transports {
            costs.push(mean(format!("{wire}, {label}"), CALLS, remote(client)?));
            let listed = counted(client, LISTS / 10, LISTS, &list)?;
            costs.push(mean(format!("list of {TOOLS} tools, {wire}, {label}"), LISTS, listed));
        }
    }
    Ok(costs)
}

fn mean(case: String, calls: u32, sum: Counts) -> Cost {
    let per_call = |n: u64| n as f64 / f64::from(calls);
    Cost { case, calls, allocs: per_call(sum.allocs), reallocs: per_call(sum.reallocs), bytes: per_call(sum.bytes) }
}

/// The counters of the server behind `client`, as its own tool reports them.
fn counters(client: &mut dyn Client) -> Result<Counts> {
    let answer: serde_json::Value = serde_json::from_str(&client.call("allocations", "{}")?)?;
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.ok_or_else(|| Error::tool(format!("no counters in {answer}")))?;
    let numbers: Vec<u64> = text.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [allocs, reallocs, bytes] => Ok(Counts { allocs, reallocs, bytes }),
        _ => Err(Error::tool(format!("not three counters: {text}"))),
    }
}

fn remote(client: &mut dyn Client) -> Result<Counts> {
    counted(client, WARM_UP, CALLS, &echo)
}

fn echo(client: &mut dyn Client) -> Result<()> {
    let answer = client.call(ECHO.0, ECHO.1)?;
    if answer.contains("Quick brown fox") { Ok(()) } else { Err(Error::tool(format!("wrong answer: {answer}"))) }
}

fn list(client: &mut dyn Client) -> Result<()> {
    let named = client.list()?.matches(r#"{"name":"#).count();
    // The server's own name may stand beside those of its tools.
    if named >= TOOLS { Ok(()) } else { Err(Error::tool(format!("{named} tools are listed"))) }
}

/// What `calls` of this work cost, after some to warm up.
fn counted(
    client: &mut dyn Client,
    warm_up: u32,
    calls: u32,
    work: &dyn Fn(&mut dyn Client) -> Result<()>,
) -> Result<Counts> {
    (0..warm_up).try_for_each(|_| work(client))?;
    counters(client)?;
    // Two readings with nothing between them tell what a reading costs.
    let first = counters(client)?;
    let own = counters(client)?.since(first);
    let before = counters(client)?;
    (0..calls).try_for_each(|_| work(client))?;
    Ok(counters(client)?.since(before).since(own))
}

fn table(costs: &[Cost]) -> Result<()> {
    let mut out = String::from("| path | allocations | reallocations | bytes |\n|---|--:|--:|--:|\n");
    for c in costs {
        writeln!(out, "| {} | {:.2} | {:.2} | {:.0} |", c.case, c.allocs, c.reallocs, c.bytes)?;
    }
    print(&out)
}

fn lines(costs: &[Cost]) -> Result<()> {
    let mut out = String::new();
    for c in costs {
        let row = serde_json::json!({"case": c.case, "count": c.allocs, "reallocs": c.reallocs, "bytes": c.bytes, "calls": c.calls});
        writeln!(out, "{row}")?;
    }
    print(&out)
}

/// The allocations of one call after warm-up, each with the stack it came from.
fn sites() -> Result<()> {
    let mut out = String::new();
    for era in [Era::Modern, Era::Legacy] {
        show(&mut out, "in process", era, Direct::open(era)?.sites(WARM_UP, ECHO)?)?;
        show(&mut out, "stdio", era, remote_sites(&mut Pipe::open(era)?)?)?;
        show(&mut out, "HTTP", era, remote_sites(&mut Http::open(era)?)?)?;
    }
    print(&out)
}

/// Recording begins inside the call that turns it on and ends inside the one that asks for it, so what is noted is the
/// end of one call, three whole ones and the beginning of another. Any stretch as long as one call, from the second on,
/// holds each of its allocations once; where a call begins in it does not matter.
fn remote_sites(client: &mut dyn Client) -> Result<Vec<(usize, String)>> {
    let sum = remote(client)?;
    let one_call = ((sum.allocs + sum.reallocs) / u64::from(CALLS)) as usize;
    client.call("record", "{}")?;
    for _ in 0..3 {
        client.call(ECHO.0, ECHO.1)?;
    }
    let answer: serde_json::Value = serde_json::from_str(&client.call("sites", "{}")?)?;
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.ok_or_else(|| Error::tool(format!("no sites in {answer}")))?;
    let all: Vec<(usize, String)> = serde_json::from_str(text)?;
    Ok(all.into_iter().skip(one_call).take(one_call).collect())
}

fn show(out: &mut String, path: &str, era: Era, sites: Vec<(usize, String)>) -> Result<()> {
    writeln!(out, "\n== {path}, {}: {} allocations ==", era.label(), sites.len())?;
    for (bytes, trace) in sites {
        writeln!(out, "{bytes} bytes")?;
        // A frame is a line `12: name` and, with symbols, a line `at file:line`.
        let mut name = "";
        let mut shown = 0;
        for line in trace.lines().map(str::trim_start) {
            match line.strip_prefix("at ") {
                None => name = line.split_once(": ").map_or(line, |(_, name)| name),
                Some(at) if name.contains("__rust") || FOREIGN.iter().any(|f| at.contains(f)) => {}
                Some(at) if shown < FRAMES_SHOWN => {
                    shown += 1;
                    let at = at.split_once("/registry/src/").map_or(at, |(_, at)| at);
                    let at = at.split_once(".io-").map_or(at, |(_, at)| at);
                    writeln!(out, "    {at}  {}", name.chars().take(NAME_SHOWN).collect::<String>())?;
                }
                Some(_) => break,
            }
        }
    }
    Ok(())
}

fn print(text: &str) -> Result<()> {
    Ok(io::stdout().write_all(text.as_bytes())?)
}
