//! The suite against our fixture server.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::judge::{Row, judge};
use super::{Revision, Suite, Wanted, expected, results, written};
use crate::context::Context;
use crate::process;
use crate::server::{Running, free_port};

/// Of extensions those in [`EXTENSIONS`].
pub(super) const REVISIONS: &[Revision] = &[
    Revision { name: "2025-03-26", scenarios: 1, successes_min: 3 },
    Revision { name: "2025-06-18", scenarios: 27, successes_min: 56 },
    Revision { name: "2025-11-25", scenarios: 33, successes_min: 84 },
    Revision { name: "2026-07-28", scenarios: 52, successes_min: 242 },
];

/// Those of tasks, at the revision that has them as an extension.
pub(super) const TASKS: Revision = Revision { name: EXTENDED, scenarios: 9, successes_min: 44 };

/// What the names of scenarios of extensions begin with that the fixtures have.
const EXTENSIONS: &[&str] = &["sep-2640-", "tasks-"];

/// The revision at which extensions are tested: they were written against it.
const EXTENDED: &str = "2026-07-28";

/// How many scenarios of it are not of extensions: those that a bridge between the eras is tested with.
const EXTENDED_CORE: usize = 40;

/// It checks nothing: it was written before tasks were told of on `subscriptions/listen`. Our own tests take its place.
const UNWRITTEN: &str = "tasks-status-notifications";

/// How long the suite may take for one revision.
const REVISION_S_MAX: u64 = 900;

/// Starts the server, runs the suite, and reads what it wrote.
pub(super) fn run(context: &Context, suite: &Suite, revision: &Revision, wanted: &Wanted<'_>) -> Result<Vec<Row>> {
    let role = match wanted.through {
        Some(way) => format!("bridge-{way}-{}", wanted.era.unwrap_or("auto")),
        None if wanted.tasks_in_file => "tasks-in-file".to_owned(),
        None => if wanted.guarded { "guarded" } else { "server" }.to_owned(),
    };
    let folder = results(context, &role, revision.name)?;
    let checks = folder.join("checks");
    std::fs::create_dir_all(&checks).context("cannot create the results folder")?;
    let listed = suite.listed("--server", Some(revision.name), &folder)?;
    let mut names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
    let own = names.len();
    // A bridge between the eras does not offer extensions.
    let is_crossed = wanted.through.is_some() && wanted.era == Some("legacy");
    if revision.name == EXTENDED && !is_crossed {
        let ours = |(name, about): &(String, String)| {
            about == "[extension]" && name != UNWRITTEN && EXTENSIONS.iter().any(|begin| name.starts_with(begin))
        };
        names.extend(suite.listed("--server", None, &folder)?.into_iter().filter(ours).map(|(name, _)| name));
    }
    let mut extensions = names.split_off(own);
    if wanted.tasks_in_file {
        names.clear();
        extensions.retain(|name| name.starts_with("tasks-"));
    }
    let scenarios = if revision.name == EXTENDED && is_crossed { EXTENDED_CORE } else { revision.scenarios };
    let counted = Revision { scenarios, ..*revision };
    let expected = expected([names, extensions.clone()].concat(), &counted, wanted.scenario)?;
    if expected.is_empty() {
        return Ok(Vec::new());
    }
    let (running, url) = match wanted.url {
        Some(url) => (Vec::new(), url.to_string()),
        None => started(context, &folder, wanted)?,
    };
    let run = |words: &[&str], log: &str| {
        let mut command = suite.command();
        command
            .args(["server", "--url", &url, "--spec-version", revision.name])
            .args(words)
            .arg("--output-dir")
            .arg(&checks)
            .current_dir(&folder);
        process::run(&mut command, &folder.join(log), Duration::from_secs(REVISION_S_MAX))
    };
    match wanted.scenario {
        Some(scenario) if extensions.iter().any(|name| name == scenario) => {}
        Some(scenario) => drop(run(&["--scenario", scenario], "suite.log")?),
        None if wanted.tasks_in_file => {}
        None => drop(run(&["--suite", "all"], "suite.log")?),
    }
    // They mostly wait, so that they wait together.
    std::thread::scope(|scope| {
        let wanted = extensions.iter().filter(|name| expected.contains(name));
        let run = &run;
        let started = |name| scope.spawn(move || run(&["--scenario", name, "--force"], &format!("{name}.log")));
        let running: Vec<_> = wanted.map(|name: &String| started(name.as_str())).collect();
        running.into_iter().try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?.map(drop))
    })?;
    drop(running);
    let written = written(&checks, "server-")?;
    Ok(expected
        .iter()
        .map(|name| match written.get(name.as_str()) {
            Some(text) => judge(name, text, &[]),
            None => Row::broken(name, "the suite wrote no checks.json"),
        })
        .collect())
}

/// Starts our server, or a bridge to it, and says where it is.
fn started(context: &Context, folder: &Path, wanted: &Wanted<'_>) -> Result<(Vec<Running>, String)> {
    let mut running = Vec::new();
    let serve = |program: &str, words: &[&str], port: u16| {
        let log = folder.join(format!("{program}.log"));
        Running::start(Command::new(context.binary(program)).args(words), port, &log)
    };
    let port = free_port()?;
    let text = port.to_string();
    let server = context.binary("conformance-server").display().to_string();
    let url = format!("http://127.0.0.1:{port}");
    let (sse, mcp) = (format!("{url}/sse"), format!("{url}/mcp"));
    let upstream: Vec<&str> = match wanted.through {
        None | Some("http") => {
            let place = if wanted.guarded { "--guarded" } else { "--http" };
            let file = folder.join("tasks.db").display().to_string();
            let words: &[&str] = if wanted.tasks_in_file { &["--tasks", &file] } else { &[] };
            running.push(serve("conformance-server", &[words, &[place, &text]].concat(), port)?);
            vec![&mcp]
        }
        Some("sse") => {
            running.push(serve("conformance-server", &["--sse", &text], port)?);
            vec!["--transport", "sse", &sse]
        }
        Some(_) => vec!["--", &server, "--stdio"],
    };
    if wanted.through.is_none() {
        return Ok((running, mcp));
    }
    let port = free_port()?;
    let place = format!("127.0.0.1:{port}");
    let mut words = vec!["bridge", "--http", &place, "--era", wanted.era.unwrap_or("auto")];
    words.extend(upstream);
    running.push(serve("linchpin", &words, port)?);
    Ok((running, format!("http://{place}/mcp")))
}
