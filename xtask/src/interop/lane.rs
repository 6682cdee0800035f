//! One lane: one client in one revision over one transport.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::context::Context;
use crate::process;
use crate::report::Counts;
use crate::server::{Running, free_port};
use crate::tools;

/// The revision without sessions.
const STATELESS: &str = "2026-07-28";

/// How long all checks of a lane may take.
const LANE_S_MAX: u64 = 240;

/// A program by others that speaks MCP as a client.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// Its package and version, for a user; the exact version is pinned by the tool set.
    pub(super) package: &'static str,
    /// The driver in `conformance/interop`; none if the tool set is a program.
    pub(super) script: &'static str,
    /// The tool set that has its package.
    pub(super) tools: &'static str,
    pub(super) revisions: &'static [&'static str],
    pub(super) transports: &'static [&'static str],
    pub(super) offer: Offer,
}

/// What of our program a client is tried with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// The everything server: the core of the protocol.
    Core,
    /// The same server: its task.
    Tasks,
    /// The skills in `conformance/interop/skills`.
    Skills,
}

impl Offer {
    /// The name of the catalogue of its checks.
    fn catalog(self) -> &'static str {
        match self {
            Offer::Core => "checks",
            Offer::Tasks => "tasks",
            Offer::Skills => "skills",
        }
    }

    /// The words after `linchpin serve`.
    fn words(self, scripts: &Path) -> Vec<String> {
        match self {
            Offer::Core | Offer::Tasks => vec!["everything".to_string()],
            Offer::Skills => vec!["skills".to_string(), text(&scripts.join("skills"))],
        }
    }
}

/// The folder of what is written with rmcp, and its server.
pub(super) const RMCP: (&str, &str) = ("conformance/interop/servers/rmcp", "interop-rmcp");
/// Its client, which is a tool set by itself.
pub(super) const RMCP_CLIENT: &str = "interop-rmcp-client";

/// Which server is talked to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// `linchpin serve everything`.
    Ours,
    /// npm's server-everything: proves the drivers.
    Reference,
}

/// Installed tools, by set.
pub(super) struct Tools {
    node: PathBuf,
    suite: PathBuf,
    sets: BTreeMap<&'static str, PathBuf>,
    reference: Option<PathBuf>,
}

impl Tools {
    /// Installs what these lanes need.
    pub(super) fn install(context: &Context, server: Server, lanes: &[Lane]) -> Result<Tools> {
        let mut sets = BTreeMap::new();
        for lane in lanes {
            let set = lane.client.tools;
            if !sets.contains_key(set) {
                let home = match set {
                    RMCP_CLIENT => tools::apart(context, RMCP).map(|server| server.with_file_name(RMCP_CLIENT)),
                    python if python.starts_with("py-") => tools::python(context, python),
                    npm => tools::npm(context, npm),
                };
                let what = || format!("the tools of {}", lane.client.package);
                sets.insert(set, home.with_context(what)?);
            }
        }
        let reference = match server {
            Server::Ours => None,
            Server::Reference => Some(
                tools::npm(context, "reference")?
                    .join("node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
            ),
        };
        Ok(Tools { node: tools::node(context)?, suite: tools::npm(context, "suite")?, sets, reference })
    }
}

impl Tools {
    /// Runs the tests of the schema judge itself: a judge that accepts anything proves nothing.
    pub(super) fn judge_tests(&self, context: &Context) -> Result<(Counts, String)> {
        let mut node = Command::new(&self.node);
        node.args(["--test", "--test-reporter=tap", "judge.test.mjs"])
            .env("INTEROP_SUITE", &self.suite)
            .current_dir(context.root.join("conformance/interop"));
        let log = context.results("interop")?.join("judge.test.log");
        let finished = process::run(&mut node, &log, Duration::from_secs(60))?;
        let said = |what: &str| {
            let line = finished.output.lines().find_map(|line| line.strip_prefix(what));
            line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        let mut counts = Counts { passed: said("# pass "), failed: said("# fail "), skipped: 0 };
        if !finished.ok || counts.passed == 0 {
            counts.failed = counts.failed.max(1);
            return Ok((counts, format!("\ntests of the judge\n{}", finished.output)));
        }
        Ok((counts, format!("\ntests of the judge: {counts}\n")))
    }
}

/// One client in one revision over one transport.
pub(super) struct Lane {
    pub(super) client: &'static Client,
    pub(super) transport: &'static str,
    pub(super) revision: &'static str,
    /// The era that a bridge in between speaks with the server.
    pub(super) through: Option<&'static str>,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.client.name, self.transport, self.revision)?;
        self.through.map_or(Ok(()), |era| write!(f, " to {era}"))
    }
}

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Pass,
    Fail,
    /// The client or the revision cannot do it.
    LeftOut,
}

/// One check's result.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) detail: String,
}

/// All results of a lane.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) checks: Vec<Check>,
    /// How many server messages were judged.
    pub(super) messages: u64,
    /// What the judge found, one line each.
    pub(super) violations: Vec<String>,
}

impl Outcome {
    /// A lane that could not be run.
    pub(super) fn broken(why: &str) -> Outcome {
        Outcome {
            checks: vec![Check { name: "(lane)".to_string(), status: Status::Fail, detail: why.to_string() }],
            ..Outcome::default()
        }
    }

    /// Each check counts, and the judge's verdict as one more; what was left out does not.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::one(self.violations.is_empty());
        for check in &self.checks {
            match check.status {
                Status::Pass => counts.passed += 1,
                Status::Fail => counts.failed += 1,
                Status::LeftOut => {}
            }
        }
        counts
    }
}

impl Lane {
    /// Starts server and recorder, runs the client's driver, and has the recording judged.
    pub(super) fn run(&self, context: &Context, tools: &Tools, server: Server) -> Result<Outcome> {
        let name = self.to_string().replace(' ', "-");
        let folder = context.results("interop")?.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).context("cannot remove an earlier run")?;
        }
        std::fs::create_dir_all(&folder).context("cannot create the lane's folder")?;
        let scripts = context.root.join("conformance/interop");
        let recording = folder.join("recording.jsonl");
        let mut what = json!({
            "client": self.client.name,
            "transport": self.transport,
            "revision": self.revision,
            "reference": server == Server::Reference,
            "through": self.through,
            "catalog": self.client.offer.catalog(),
        });
        // Held until the driver is done.
        let mut running = Vec::new();
        if self.transport == "stdio" {
            let mut command = vec![text(&tools.node), text(&scripts.join("record.mjs"))];
            command.extend(["stdio".to_string(), text(&recording), "--".to_string()]);
            command.extend(self.stdio_server(context, tools, &scripts));
            what["command"] = json!(command);
        } else {
            let (port, path) = (free_port()?, self.path());
            let mut command = self.http_server(context, tools, &scripts, port);
            let mut token = String::new();
            if self.through.is_some() && self.revision == STATELESS {
                // What this server remembers of a session is its user's, where requests come without one.
                token = key(context, &folder)?;
                command.args(["--isolation", "user", "--auth", "keys:keys.toml"]).current_dir(&folder);
            }
            if self.through.is_some() {
                command.arg("--").arg(context.binary("linchpin")).args(["serve", "everything"]);
            }
            running.push(Running::start(&mut command, port, &folder.join("server.log"))?);
            let proxy = free_port()?;
            let mut command = Command::new(&tools.node);
            command
                .arg(scripts.join("record.mjs"))
                .arg("http")
                .arg(&recording)
                .args([proxy.to_string(), format!("http://127.0.0.1:{port}")])
                .env("RECORD_TOKEN", token);
            running.push(Running::start(&mut command, proxy, &folder.join("proxy.log"))?);
            what["url"] = json!(format!("http://127.0.0.1:{proxy}{path}"));
        }
        let home = tools.sets.get(self.client.tools).context("no such tool set")?;
        let mut driver = match self.client.tools {
            set if set == RMCP_CLIENT || set.starts_with("py-") => Command::new(home),
            _ => Command::new(&tools.node),
        };
        if !self.client.script.is_empty() {
            driver.arg(scripts.join(self.client.script));
        }
        driver
            .arg(what.to_string())
            .env("INTEROP_TOOLS", home)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // The Inspector keeps its settings at home; this run has its own.
            .env("MCP_CATALOG_PATH", folder.join("catalog.json"))
            .env("MCP_CLIENT_CONFIG_PATH", folder.join("client.json"))
            .current_dir(&folder);
        let deadline = Duration::from_secs(LANE_S_MAX);
        let finished = process::run(&mut driver, &folder.join("driver.log"), deadline)?;
        drop(running);
        let catalog = scripts.join(self.client.offer.catalog()).with_extension("json");
        let catalog = std::fs::read_to_string(catalog).context("cannot read the catalogue of checks")?;
        let mut outcome = Outcome { checks: checks(&catalog, &finished.output)?, ..Outcome::default() };
        self.judge(tools, &scripts, &folder, &mut outcome)?;
        Ok(outcome)
    }

    fn path(&self) -> &'static str {
        match self.transport {
            "sse" => "/sse",
            _ => "/mcp",
        }
    }

    fn stdio_server(&self, context: &Context, tools: &Tools, scripts: &Path) -> Vec<String> {
        match &tools.reference {
            Some(script) => vec![text(&tools.node), text(script), "stdio".to_string()],
            None => {
                let program = text(&context.binary("linchpin"));
                let server = [&program, "serve"].map(String::from).into_iter().chain(self.client.offer.words(scripts));
                let bridge = self.through.map(|era| [&program, "bridge", "--era", era, "--"].map(String::from));
                bridge.into_iter().flatten().chain(server).collect()
            }
        }
    }

    fn http_server(&self, context: &Context, tools: &Tools, scripts: &Path, port: u16) -> Command {
        match &tools.reference {
            Some(script) => {
                let kind = match self.transport {
                    "sse" => "sse",
                    _ => "streamableHttp",
                };
                let mut command = Command::new(&tools.node);
                command.arg(script).arg(kind).env("PORT", port.to_string());
                command
            }
            None => {
                let mut command = Command::new(context.binary("linchpin"));
                let address = format!("127.0.0.1:{port}");
                match self.through {
                    None => command.arg("serve").args(self.client.offer.words(scripts)).args(["--http", &address]),
                    Some(era) => command.args(["bridge", "--era", era, "--http", &address]),
                };
                if self.transport == "sse" {
                    command.arg("--sse");
                }
                command
            }
        }
    }

    /// Has every recorded server message validated.
    fn judge(&self, tools: &Tools, scripts: &Path, folder: &Path, outcome: &mut Outcome) -> Result<()> {
        let recording = folder.join("recording.jsonl");
        if !recording.exists() {
            outcome.violations.push("nothing was recorded".to_string());
            return Ok(());
        }
        let mut judge = Command::new(&tools.node);
        judge.arg(scripts.join("judge.mjs")).arg(&tools.suite).arg(self.revision).arg(&recording);
        let finished = process::run(&mut judge, &folder.join("judge.log"), Duration::from_secs(60))?;
        let verdict: Value = match serde_json::from_str(&finished.output) {
            Ok(verdict) => verdict,
            Err(_) => bail!("the judge fails:\n{}", finished.output),
        };
        outcome.messages = verdict["messages"].as_u64().unwrap_or(0);
        if outcome.messages == 0 {
            outcome.violations.push("the server said nothing".to_string());
        }
        let found = verdict["violations"].as_array().context("no verdict")?;
        outcome.violations.extend(found.iter().filter_map(Value::as_str).map(String::from));
        Ok(())
    }
}

/// Makes a key of a user in `keys.toml` and returns it.
fn key(context: &Context, folder: &Path) -> Result<String> {
    let mut command = Command::new(context.binary("linchpin"));
    command.args(["auth", "key", "new", "interop", "--file", "keys.toml"]).current_dir(folder);
    let said = command.output().context("cannot start the program")?;
    if !said.status.success() {
        bail!("no key is made: {}", String::from_utf8_lossy(&said.stderr));
    }
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_string())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The results a driver printed, one for every check of the catalogue: silence is a failure.
pub(super) fn checks(catalog: &str, output: &str) -> Result<Vec<Check>> {
    let catalog: Value = serde_json::from_str(catalog).context("the catalogue is not JSON")?;
    let names = catalog.as_array().context("the catalogue is no array")?;
    let mut said: BTreeMap<String, (Status, String)> = BTreeMap::new();
    for line in output.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let (Some(name), Some(status)) = (line["check"].as_str(), line["status"].as_str()) else {
            continue;
        };
        let status = match status {
            "pass" => Status::Pass,
            "skip" => Status::LeftOut,
            _ => Status::Fail,
        };
        let detail = line["detail"].as_str().unwrap_or_default().to_string();
        said.insert(name.to_string(), (status, detail));
    }
    let mut checks = Vec::new();
    for name in names.iter().filter_map(|entry| entry["name"].as_str()) {
        let (status, detail) = said.remove(name).unwrap_or((Status::Fail, "the driver did not report it".to_string()));
        checks.push(Check { name: name.to_string(), status, detail });
    }
    if let Some(name) = said.keys().next() {
        bail!("a driver reports `{name}`, which is not in the catalogue");
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = r#"[{ "name": "a" }, { "name": "b" }, { "name": "c" }]"#;

    #[test]
    fn a_check_that_is_not_reported_failed() {
        let output =
            "noise\n{\"check\":\"a\",\"status\":\"pass\"}\n{\"check\":\"c\",\"status\":\"skip\",\"detail\":\"why\"}\n";
        let checks = checks(CATALOG, output).unwrap();
        let statuses: Vec<Status> = checks.iter().map(|check| check.status).collect();
        assert_eq!(statuses, [Status::Pass, Status::Fail, Status::LeftOut]);
        let outcome = Outcome { checks, messages: 1, violations: Vec::new() };
        // The judge's verdict is one more check.
        assert_eq!(outcome.counts().to_string(), "2 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_check_that_is_not_in_the_catalogue_is_refused() {
        assert!(checks(CATALOG, "{\"check\":\"d\",\"status\":\"pass\"}").is_err());
    }
}
