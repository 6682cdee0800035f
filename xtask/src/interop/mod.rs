//! `cargo xtask interop`: clients of others against our everything server, each in every revision
//! and over every transport it speaks, with every message recorded and judged by the schema.

mod lane;
pub(crate) mod servers;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};

use crate::context::{Context, Flags};
use crate::report::{Report, table};
use crate::world;
use lane::{Client, Lane, Offer, Outcome, RMCP_CLIENT, Server, Status, Tools};

/// How many lanes run at once. Most of a lane is waiting, and another stage runs beside them.
const LANES_AT_ONCE: usize = 2;

/// Every revision a client may speak.
const REVISIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The revisions with tasks and skills.
const EXTENDED: &[&str] = &["2025-11-25", "2026-07-28"];

/// The clients, and what each speaks.
const CLIENTS: &[Client] = &[
    // First, because it waits most.
    Client {
        name: "ts-tasks",
        package: "@modelcontextprotocol/ext-tasks 0.2",
        script: "ts-tasks.mjs",
        tools: "clients",
        revisions: EXTENDED,
        transports: &["stdio", "http"],
        offer: Offer::Tasks,
    },
    Client {
        name: "ts-2",
        package: "@modelcontextprotocol/client 2.4",
        script: "ts-2.mjs",
        tools: "clients",
        revisions: REVISIONS,
        transports: &["stdio", "http", "sse"],
        offer: Offer::Core,
    },
    Client {
        name: "ts-1",
        package: "@modelcontextprotocol/sdk 1.32",
        script: "ts-1.mjs",
        tools: "clients",
        revisions: REVISIONS.split_at(4).0,
        transports: &["stdio", "http", "sse"],
        offer: Offer::Core,
    },
    Client {
        name: "py-2",
        package: "mcp 2.3 (Python)",
        script: "py_2.py",
        tools: "py-2",
        revisions: REVISIONS,
        transports: &["stdio", "http", "sse"],
        offer: Offer::Core,
    },
    Client {
        name: "py-1",
        package: "mcp 1.30 (Python)",
        script: "py_1.py",
        tools: "py-1",
        revisions: REVISIONS.split_at(4).0,
        transports: &["stdio", "http", "sse"],
        offer: Offer::Core,
    },
    Client {
        name: "inspector",
        package: "@modelcontextprotocol/inspector 2.12",
        script: "inspector.mjs",
        tools: "inspector",
        // Its command line asks for the latest revision of an era and cannot be told otherwise.
        revisions: &["2025-11-25", "2026-07-28"],
        transports: &["stdio", "http"],
        offer: Offer::Core,
    },
    Client {
        name: "ts-skills",
        package: "@modelcontextprotocol/client 2.4",
        script: "ts-skills.mjs",
        tools: "clients",
        revisions: EXTENDED,
        transports: &["stdio", "http"],
        offer: Offer::Skills,
    },
    Client {
        name: "rmcp-tasks",
        package: "rmcp 3.9",
        script: "",
        tools: RMCP_CLIENT,
        // Of the two generations it has the extension.
        revisions: EXTENDED.split_at(1).1,
        transports: &["stdio", "http"],
        offer: Offer::Tasks,
    },
    Client {
        name: "rmcp-skills",
        package: "rmcp 3.9",
        script: "",
        tools: RMCP_CLIENT,
        revisions: EXTENDED,
        transports: &["stdio", "http"],
        offer: Offer::Skills,
    },
];

/// `cargo xtask interop`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let values = ["--client", "--transport", "--revision", "--through"];
    let flags = Flags::parse(words, &values, &["--reference", "--no-build"])?;
    let reference = flags.has("--reference");
    if !reference && !flags.has("--no-build") {
        world::programs(context)?;
    }
    let wanted = |given: Vec<&str>, name: &str| given.is_empty() || given.contains(&name);
    let through = flags.last("--through");
    if through.is_some_and(|era| !ERAS.contains(&era)) {
        bail!("--through is the era that a bridge speaks with our server: {}", ERAS.join(", "));
    }
    let mut lanes = lanes(reference, ERAS.iter().copied().find(|era| Some(*era) == through));
    lanes.retain(|lane| {
        wanted(flags.all("--client"), lane.client.name)
            && wanted(flags.all("--transport"), lane.transport)
            && wanted(flags.all("--revision"), lane.revision)
    });
    if lanes.is_empty() {
        bail!("no client speaks that revision over that transport");
    }
    let server = if reference { Server::Reference } else { Server::Ours };
    Ok(run(context, server, &lanes)?.print())
}

/// What the gate runs of the matrix: the newest SDKs, in the oldest revision, the one that most hosts speak, and the newest.
const GATE: (&[&str], &[&str]) = (&["ts-2", "py-2"], &["2024-11-05", "2025-11-25", "2026-07-28"]);

/// The lanes of extensions that the gate runs.
const GATE_EXTENSIONS: &[(&str, &str, &str)] =
    &[("ts-tasks", "http", "2026-07-28"), ("ts-skills", "stdio", "2026-07-28")];

/// The lanes against our server: all, or those of the gate.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let mut lanes = lanes(false, None);
    ERAS.iter().for_each(|era| lanes.extend(self::lanes(false, Some(era))));
    let every = lanes.len();
    let (clients, revisions) = GATE;
    lanes.retain(|lane| {
        let this = (lane.client.name, lane.transport, lane.revision);
        let direct = clients.contains(&this.0) && revisions.contains(&this.2) || GATE_EXTENSIONS.contains(&this);
        let crosses = BRIDGED.contains(&this);
        context.all
            || match lane.through {
                None => direct,
                Some(era) => crosses && (era == "modern") == (lane.revision != REVISIONS[4]),
            }
    });
    let mut report = run(context, Server::Ours, &lanes)?;
    if lanes.len() < every {
        report.skips.push(format!("{} of {every} lanes: only with --all", every - lanes.len()));
    }
    Ok(report)
}

/// What a bridge speaks with our server.
const ERAS: &[&str] = &["legacy", "modern"];

/// The lanes through a bridge that the gate runs: to a server of the other era.
const BRIDGED: &[(&str, &str, &str)] = &[("py-2", "stdio", "2026-07-28"), ("ts-1", "http", "2025-11-25")];

/// Every client in every revision over every transport it speaks, directly or through a bridge.
fn lanes(reference: bool, through: Option<&'static str>) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for client in CLIENTS {
        for &transport in client.transports {
            for &revision in client.revisions {
                // HTTP+SSE is the transport of the first revision, and of no other.
                let is_spoken = transport != "sse" || revision == REVISIONS[0];
                // The reference server is of the legacy era only, and has no skills; extensions are tried without bridges.
                let is_there = !reference || revision != REVISIONS[4] && client.offer != Offer::Skills;
                if is_spoken && is_there && (client.offer == Offer::Core || through.is_none()) {
                    lanes.push(Lane { client, transport, revision, through });
                }
            }
        }
    }
    lanes
}

fn run(context: &Context, server: Server, lanes: &[Lane]) -> Result<Report> {
    let tools = Tools::install(context, server, lanes)?;
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES_AT_ONCE.min(lanes.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(lane) = lanes.get(index) else {
                        break;
                    };
                    let outcome = lane
                        .run(context, &tools, server)
                        .unwrap_or_else(|error| Outcome::broken(&format!("{error:#}")));
                    let mut all = outcomes.lock().unwrap_or_else(|poison| poison.into_inner());
                    all.insert(index, outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(|poison| poison.into_inner());
    let mut report = summarise(lanes, &outcomes);
    let (counts, said) = tools.judge_tests(context)?;
    report.counts.add(counts);
    report.text.push_str(&said);
    std::fs::write(context.results("interop")?.join("report.txt"), &report.text).context("cannot write the report")?;
    Ok(report)
}

/// The tables: lanes, messages by revision, what failed, what was left out.
fn summarise(lanes: &[Lane], outcomes: &BTreeMap<usize, Outcome>) -> Report {
    let mut report = Report::default();
    let heading = ["client", "transport", "revision", "pass", "fail", "left out", "messages", "violations"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    let mut judged: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    let mut left_out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut problems = String::new();
    for (index, outcome) in outcomes {
        let lane = &lanes[*index];
        let count = |status: Status| outcome.checks.iter().filter(|c| c.status == status).count();
        let numbers = [count(Status::Pass), count(Status::Fail), count(Status::LeftOut)];
        let transport = match lane.through {
            Some(era) => format!("{} to {era}", lane.transport),
            None => lane.transport.to_owned(),
        };
        let mut row = vec![lane.client.name.to_owned(), transport, lane.revision.to_owned()];
        row.extend(numbers.map(|number| number.to_string()));
        row.extend([outcome.messages.to_string(), outcome.violations.len().to_string()]);
        rows.push(row);
        let sum = judged.entry(lane.revision).or_default();
        sum.0 += outcome.messages;
        sum.1 += outcome.violations.len();
        report.counts.add(outcome.counts());
        for check in &outcome.checks {
            match check.status {
                Status::Pass => {}
                Status::Fail => {
                    let line = format!("  {lane}: {}: {}\n", check.name, check.detail);
                    problems.push_str(&line);
                }
                Status::LeftOut => {
                    let key = format!("{}: {}", check.name, check.detail);
                    left_out.entry(key).or_default().push(lane.to_string());
                }
            }
        }
        for violation in &outcome.violations {
            problems.push_str(&format!("  {lane}: schema: {violation}\n"));
        }
    }
    report.text.push_str(&table(&rows));
    report.text.push_str("\nserver messages judged by the schema of their revision\n");
    let mut rows = vec![["revision", "messages", "violations"].map(String::from).to_vec()];
    for (revision, (messages, violations)) in &judged {
        rows.push(vec![revision.to_string(), messages.to_string(), violations.to_string()]);
    }
    report.text.push_str(&table(&rows));
    if !left_out.is_empty() {
        report.text.push_str("\nleft out\n");
        for (what, lanes) in &left_out {
            report.text.push_str(&format!("  {what} ({} lanes)\n", lanes.len()));
        }
    }
    if !problems.is_empty() {
        report.text.push_str(&format!("\nfailed\n{problems}"));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_is_spoken_by_a_client_over_stdio_and_http() {
        let lanes = lanes(false, None);
        for revision in REVISIONS {
            for transport in ["stdio", "http"] {
                let found = lanes.iter().any(|lane| lane.revision == *revision && lane.transport == transport);
                assert!(found, "{revision} over {transport}");
            }
        }
        assert!(lanes.iter().any(|lane| lane.transport == "sse"));
    }
}
