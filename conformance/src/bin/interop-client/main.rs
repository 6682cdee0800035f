//! Our client against servers by others: `interop-client LANE`, where `LANE` is one lane as JSON (see [`table::Lane`]).
//!
//! `cargo xtask interop-client` writes the lanes, from `conformance/interop/targets.json`. Written with Linchpin's public
//! API, as any host would be. For every check one line of JSON is printed; every message, both ways, goes to a recording
//! that is judged by the schema of its revision.

#![allow(clippy::print_stdout, reason = "its findings are lines on standard output")]

mod checks;
mod extensions;
mod host;
mod page;
mod recording;
mod table;

use host::Host;
use linchpin::client::Connection;
use linchpin::prelude::*;
use linchpin::transport::Child;
use linchpin::types::version::Revision;
use recording::Recording;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use table::{Action, Lane};

/// Why something is not as it should be, in words.
type Outcome<T = ()> = std::result::Result<T, String>;

/// How long one check may take.
const CHECK_S_MAX: u64 = 30;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(text) = std::env::args().nth(1) else {
        eprintln!("usage: interop-client LANE");
        return ExitCode::FAILURE;
    };
    let lane: Lane = match serde_json::from_str(&text) {
        Ok(lane) => lane,
        Err(why) => {
            eprintln!("the lane cannot be read: {why}");
            return ExitCode::FAILURE;
        }
    };
    match run(lane).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn run(mut lane: Lane) -> Outcome {
    if lane.wants_page() {
        lane.vars.insert("page".to_owned(), page::serve().map_err(|why| why.to_string())?);
    }
    let recording = Recording::create(&lane.recording).map_err(|why| format!("no recording: {why}"))?;
    let host = Arc::new(Host::default());
    let client = client(&host, &lane).tap(recording.clone());
    let limit = Duration::from_secs(CHECK_S_MAX);
    let connection = match tokio::time::timeout(limit, connect(&client, &lane)).await {
        Ok(connection) => connection,
        Err(_) => Err(format!("not connected after {CHECK_S_MAX} s")),
    };
    for check in &lane.checks {
        let verdict = match (&check.skip, &connection) {
            (Some(why), _) => Err(("skip", why.clone())),
            (None, Err(why)) if matches!(check.action, Action::Connect) => Err(("fail", why.clone())),
            (None, Err(_)) => Err(("fail", "no connection".to_owned())),
            (None, Ok(connection)) => {
                let work = async {
                    match &check.action {
                        Action::Again => again(&host, &lane).await,
                        action => checks::run(connection, &host, &recording, &lane, action).await,
                    }
                };
                match tokio::time::timeout(limit, work).await {
                    Ok(verdict) => verdict.map_err(|why| ("fail", why)),
                    Err(_) => Err(("fail", format!("not finished after {CHECK_S_MAX} s"))),
                }
            }
        };
        let (status, detail) = match verdict {
            Ok(()) => ("pass", String::new()),
            Err((status, why)) => (status, why),
        };
        println!("{}", json!({ "check": check.name, "status": status, "detail": detail }));
    }
    if let Ok(connection) = &connection {
        println!("{}", json!({ "revision": connection.revision().as_str(), "server": connection.server() }));
        if !lane.checks.iter().any(|check| matches!(check.action, Action::Close)) {
            connection.close().await;
        }
    }
    Ok(())
}

/// A client that may speak what the lane says.
fn client(host: &Arc<Host>, lane: &Lane) -> Client {
    let client = host.client().revisions(&lane.accepted());
    // The lane says that its server is modern: one that starts slowly is not asked in the old way meanwhile.
    let client = match lane.revision == Revision::V2026_07_28 {
        true => client.limits(|limits| limits.connections.probe_ms_max = CHECK_S_MAX * 1_000),
        false => client,
    };
    match lane.wants_skills() {
        true => client.extension("io.modelcontextprotocol/skills", &json!({})),
        false => client,
    }
}

/// Connects once more; what was found out about the place the first time is known now. Not recorded: ids begin anew.
async fn again(host: &Arc<Host>, lane: &Lane) -> Outcome {
    let connection = connect(&client(host, lane), lane).await?;
    connection.ping().await.map_err(|why| why.to_string())?;
    let revision = connection.revision();
    connection.close().await;
    if revision == lane.revision { Ok(()) } else { Err(format!("{revision} this time")) }
}

async fn connect(client: &Client, lane: &Lane) -> Outcome<Connection> {
    let connected = match &lane.url {
        Some(url) => {
            let place = remote(url).map_err(|why| why.to_string())?;
            client.connect(if lane.sse { place.sse() } else { place }).await
        }
        None => {
            let (program, args) = lane.command.split_first().ok_or("the lane has neither a command nor an address")?;
            client.connect(Child::new(program).args(args).envs(&lane.env)).await
        }
    };
    connected.map_err(|why| why.to_string())
}
