//! Counts what one call asks of the allocator, inside the server.
//!
//!     bench-allocs            a table
//!     bench-allocs --json     one JSON object per line, for the benchmark driver
//!     bench-allocs sites      where each allocation of a call comes from (build with symbols; see bench/README.md)
//!
//! The server runs in a process of its own, so that nothing of the client is counted, and is asked for its counters
//! with a tool; what that tool costs is measured and taken off. The in-process path (a frame in, a frame out, no wire)
//! is counted right here.

mod direct;
mod wire;

use direct::Direct;
use linchpin_bench::counting::{Counting, Counts};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use wire::{Client, Era, Http, Pipe};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls made before counting begins: tables have grown, lazy things exist.
const WARM_UP: u32 = 200;
/// Calls counted.
const CALLS: u32 = 1000;
const ECHO: (&str, &str) = ("echo", r#"{"message":"Quick brown fox 0123456789"}"#);
/// Frames of a stack that say nothing about whose allocation it is.
const DULL: &[&str] = &[
    "linchpin_bench::counting",
    "std::",
    "core::",
    "alloc::",
    "<alloc::",
    "<core::",
    "__rust",
    "__rdl",
];
const FRAMES_SHOWN: usize = 6;

type Res<T> = Result<T, Box<dyn Error>>;

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => table(&measure()?),
        ["--json"] => lines(&measure()?),
        ["sites"] => sites(),
        ["stdio"] => Ok(linchpin_bench::run_stdio(linchpin_bench::counted())?),
        ["http", port] => Ok(linchpin_bench::run_http(linchpin_bench::counted(), port.parse()?)?),
        _ => Err("usage: bench-allocs [--json | sites]".into()),
    }
}

/// Mean cost of one call on one path.
struct Cost {
    case: String,
    allocs: f64,
    reallocs: f64,
    bytes: f64,
}

fn measure() -> Res<Vec<Cost>> {
    let mut costs = Vec::new();
    for era in [Era::Modern, Era::Legacy] {
        let label = era.label();
        costs.push(mean(format!("in process, {label}"), Direct::open(era)?.cost(WARM_UP, CALLS, ECHO)?));
        costs.push(mean(format!("stdio, {label}"), remote(&mut Pipe::open(era)?)?));
        costs.push(mean(format!("HTTP, {label}"), remote(&mut Http::open(era)?)?));
    }
    Ok(costs)
}

fn mean(case: String, sum: Counts) -> Cost {
    let per_call = |n: u64| n as f64 / f64::from(CALLS);
    Cost {
        case,
        allocs: per_call(sum.allocs),
        reallocs: per_call(sum.reallocs),
        bytes: per_call(sum.bytes),
    }
}

/// The counters of the server behind `client`, as its own tool reports them.
fn counters(client: &mut dyn Client) -> Res<Counts> {
    let answer: serde_json::Value = serde_json::from_str(&client.call("allocations", "{}")?)?;
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.ok_or_else(|| format!("no counters in {answer}"))?;
    let numbers: Vec<u64> = text.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [allocs, reallocs, bytes] => Ok(Counts { allocs, reallocs, bytes }),
        _ => Err(format!("not three counters: {text}").into()),
    }
}

fn remote(client: &mut dyn Client) -> Res<Counts> {
    let mut echo = |n: u32, client: &mut dyn Client| -> Res<()> {
        for _ in 0..n {
            let answer = client.call(ECHO.0, ECHO.1)?;
            if !answer.contains("Quick brown fox") {
                return Err(format!("wrong answer: {answer}").into());
            }
        }
        Ok(())
    };
    echo(WARM_UP, client)?;
    counters(client)?;
    // Two readings with nothing between them tell what a reading costs.
    let first = counters(client)?;
    let own = counters(client)?.since(first);
    let before = counters(client)?;
    echo(CALLS, client)?;
    Ok(counters(client)?.since(before).since(own))
}

fn table(costs: &[Cost]) -> Res<()> {
    let mut out = String::from("| path | allocations | reallocations | bytes |\n|---|--:|--:|--:|\n");
    for c in costs {
        writeln!(out, "| {} | {:.2} | {:.2} | {:.0} |", c.case, c.allocs, c.reallocs, c.bytes)?;
    }
    print(&out)
}

fn lines(costs: &[Cost]) -> Res<()> {
    let mut out = String::new();
    for c in costs {
        let row = serde_json::json!({"case": c.case, "count": c.allocs, "reallocs": c.reallocs, "bytes": c.bytes, "calls": CALLS});
        writeln!(out, "{row}")?;
    }
    print(&out)
}

/// The allocations of one call after warm-up, each with the stack it came from.
fn sites() -> Res<()> {
    let mut out = String::new();
    for era in [Era::Modern, Era::Legacy] {
        show(&mut out, "in process", era, Direct::open(era)?.sites(WARM_UP, ECHO)?)?;
        show(&mut out, "stdio", era, remote_sites(&mut Pipe::open(era)?)?)?;
        show(&mut out, "HTTP", era, remote_sites(&mut Http::open(era)?)?)?;
    }
    print(&out)
}

fn remote_sites(client: &mut dyn Client) -> Res<Vec<(usize, String)>> {
    for _ in 0..WARM_UP {
        client.call(ECHO.0, ECHO.1)?;
    }
    client.call("record", "{}")?;
    client.call(ECHO.0, ECHO.1)?;
    let answer: serde_json::Value = serde_json::from_str(&client.call("sites", "{}")?)?;
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.ok_or_else(|| format!("no sites in {answer}"))?;
    Ok(serde_json::from_str(text)?)
}

fn show(out: &mut String, path: &str, era: Era, sites: Vec<(usize, String)>) -> Res<()> {
    writeln!(out, "\n== {path}, {}: {} allocations ==", era.label(), sites.len())?;
    for (bytes, trace) in sites {
        writeln!(out, "{bytes} bytes")?;
        let frames = trace.lines().filter(|l| {
            let name = l.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
            name.strip_prefix(": ").is_some_and(|n| !DULL.iter().any(|d| n.starts_with(d)))
        });
        for frame in frames.take(FRAMES_SHOWN) {
            writeln!(out, "    {}", frame.trim_start())?;
        }
    }
    Ok(())
}

fn print(text: &str) -> Res<()> {
    Ok(io::stdout().write_all(text.as_bytes())?)
}
