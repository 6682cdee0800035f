//! The suite against an authorization server of ours: with users of its own, and over a provider by others. A person without a
//! head logs in at the address that the suite prints.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::judge::{Row, judge};
use super::{Revision, Suite, expected, results, written};
use crate::context::Context;
use crate::process;
use crate::server::{Running, free_port};
use crate::tools;

/// Where users log in. The scenarios are the same in every revision.
pub(super) const WAYS: &[Revision] = &[
    Revision { name: "users", scenarios: 2, successes_min: 3 },
    Revision { name: "upstream", scenarios: 2, successes_min: 3 },
];

/// How long the suite may take: it waits for the user.
const SUITE_S_MAX: u64 = 120;

/// Starts the servers, runs the suite, and reads what it wrote.
pub(super) fn run(context: &Context, suite: &Suite, way: &Revision, scenario: Option<&str>) -> Result<Vec<Row>> {
    let folder = results(context, "authorization", way.name)?;
    let checks = folder.join("checks");
    std::fs::create_dir_all(&checks).context("cannot create the results folder")?;
    let listed = suite.listed("--authorization", None, &folder)?;
    let names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
    // The second scenario needs what the first has found, so both are run.
    let wanted = expected(names, way, scenario)?;
    let (port, callback) = (free_port()?, free_port()?);
    let url = format!("http://127.0.0.1:{port}");
    let scripts = context.root.join("conformance/interop/login");
    let mut running = Vec::new();
    let mut how = vec![port.to_string(), way.name.to_string()];
    if way.name == "upstream" {
        let at = free_port()?;
        let mut provider = Command::new(&suite.node);
        provider.arg(scripts.join("provider.mjs")).args([&at.to_string(), &format!("{url}/callback"), &url]);
        provider.env("INTEROP_TOOLS", tools::npm(context, "providers")?);
        running.push(Running::start(&mut provider, at, &folder.join("provider.log"))?);
        how.push(format!("http://127.0.0.1:{at}"));
    }
    let mut server = Command::new(context.binary("login-server"));
    running.push(Running::start(server.args(&how), port, &folder.join("login-server.log"))?);
    let mut command = Command::new(&suite.node);
    command
        .arg(scripts.join("suite.mjs"))
        .arg(&suite.script)
        .args(["--url", &url, "--client-id", "public"])
        .args(["--resource", &format!("{url}/mcp"), "--port", &callback.to_string(), "--output-dir"])
        .arg(&checks)
        .current_dir(&folder);
    let finished = process::run(&mut command, &folder.join("suite.log"), Duration::from_secs(SUITE_S_MAX))?;
    drop(running);
    let written = written(&checks, "authorization-server-")?;
    Ok(wanted
        .iter()
        .map(|name| match written.get(name.as_str()) {
            Some(text) => judge(name, text, &[]),
            None => Row::broken(name, &format!("the suite wrote no checks.json:\n{}", finished.output)),
        })
        .collect())
}
