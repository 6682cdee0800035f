//! `cargo xtask conformance`: the official suite in server mode, judged by the `checks.json` it
//! writes. Its exit code and summary are not trusted: they overlook warnings and timeouts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::context::{Context, Flags};
use crate::process;
use crate::report::{Counts, Report, table};
use crate::server::{Running, free_port};
use crate::tools;

/// What the pinned suite has for a revision, its extensions aside.
///
/// The numbers are guards: a suite that quietly lists or checks less proves less than we say it
/// does. What a scenario really checked is in its `checks.json`.
struct Revision {
    name: &'static str,
    scenarios: usize,
    successes_min: u64,
}

const REVISIONS: &[Revision] = &[
    Revision { name: "2025-03-26", scenarios: 1, successes_min: 3 },
    Revision { name: "2025-06-18", scenarios: 27, successes_min: 56 },
    Revision { name: "2025-11-25", scenarios: 33, successes_min: 84 },
    Revision { name: "2026-07-28", scenarios: 40, successes_min: 153 },
];

/// How long the suite may take for one revision.
const REVISION_S_MAX: u64 = 900;

/// `cargo xtask conformance`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &["--revision", "--scenario", "--url"], &["--no-build"])?;
    if flags.last("--url").is_none() && !flags.has("--no-build") {
        build(context)?;
    }
    let report = check(context, &flags.all("--revision"), flags.last("--scenario"), flags.last("--url"))?;
    Ok(report.print())
}

fn build(context: &Context) -> Result<()> {
    let status = process::cargo()
        .args(["build", "--release", "--locked"])
        .args(["--package", "linchpin-conformance"])
        .current_dir(&context.root)
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("conformance-server does not build");
    }
    Ok(())
}

/// Runs the suite for the chosen revisions (all when empty) against our fixture server, or
/// against whatever answers at `url`.
pub(crate) fn check(
    context: &Context,
    revisions: &[&str],
    scenario: Option<&str>,
    url: Option<&str>,
) -> Result<Report> {
    for wanted in revisions {
        if !REVISIONS.iter().any(|revision| revision.name == *wanted) {
            let known: Vec<&str> = REVISIONS.iter().map(|revision| revision.name).collect();
            bail!("{wanted} is not a revision of the suite: {}", known.join(", "));
        }
    }
    let mut report = Report { counts: Counts::default(), text: String::new(), skips: Vec::new() };
    let mut totals = vec![heading("revision")];
    for revision in REVISIONS {
        let name = revision.name;
        if !revisions.is_empty() && !revisions.contains(&name) {
            continue;
        }
        let mut rows = run_revision(context, revision, scenario, url)?;
        let succeeded: u64 = rows.iter().map(|row| row.success).sum();
        if scenario.is_none() && succeeded < revision.successes_min {
            let least = revision.successes_min;
            let why = format!("{succeeded} checks succeeded, {least} are known to be possible");
            rows.push(Row::broken("(all)", &why));
        }
        let mut sum = Row::named(name);
        let mut cells = vec![heading("scenario")];
        for row in &rows {
            sum.add(row);
            cells.push(row.cells());
        }
        report.text.push_str(&format!("{name}: {} scenarios\n{}", revision.scenarios, table(&cells)));
        for row in &rows {
            report.text.push_str(&row.problems);
        }
        report.text.push('\n');
        report.counts.add(sum.counts());
        totals.push(sum.cells());
    }
    report.text.push_str(&table(&totals));
    Ok(report)
}

/// One line of a table: a scenario's checks by the status the suite gave them.
#[derive(Default)]
struct Row {
    name: String,
    success: u64,
    failure: u64,
    warning: u64,
    skipped: u64,
    info: u64,
    /// What went wrong, for a person.
    problems: String,
}

impl Row {
    fn named(name: &str) -> Row {
        Row { name: name.to_string(), ..Row::default() }
    }

    fn broken(name: &str, why: &str) -> Row {
        Row { failure: 1, problems: format!("  {name}: {why}\n"), ..Row::named(name) }
    }

    fn add(&mut self, other: &Row) {
        self.success += other.success;
        self.failure += other.failure;
        self.warning += other.warning;
        self.skipped += other.skipped;
        self.info += other.info;
    }

    /// Warnings and skipped checks are failures: no extension's scenario is run, so nothing may
    /// be skipped for being one.
    fn counts(&self) -> Counts {
        Counts { passed: self.success, failed: self.failure + self.warning + self.skipped, skipped: 0 }
    }

    fn cells(&self) -> Vec<String> {
        let Row { name, success, failure, warning, skipped, info, .. } = self;
        let verdict = if self.counts().failed == 0 { "pass" } else { "FAIL" };
        let mut cells = vec![name.clone(), verdict.to_string()];
        cells.extend([success, failure, warning, skipped, info].map(u64::to_string));
        cells
    }
}

/// The heading of a table of rows.
fn heading(name: &str) -> Vec<String> {
    let words = [name, "", "success", "failure", "warning", "skipped", "info"];
    words.map(String::from).to_vec()
}

/// Starts the server, runs the suite, and reads what it wrote.
fn run_revision(context: &Context, revision: &Revision, scenario: Option<&str>, url: Option<&str>) -> Result<Vec<Row>> {
    let Revision { name: revision, scenarios, .. } = revision;
    let folder = context.results("conformance")?.join(revision);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove earlier results")?;
    }
    let checks = folder.join("checks");
    std::fs::create_dir_all(&checks).context("cannot create the results folder")?;
    let mut expected = listed(context, revision, &folder)?;
    if expected.len() != *scenarios {
        bail!(
            "the suite lists {} scenarios for {revision}, {scenarios} were expected: {}",
            expected.len(),
            expected.join(" ")
        );
    }
    if let Some(scenario) = scenario {
        expected.retain(|name| name == scenario);
        if expected.is_empty() {
            return Ok(Vec::new());
        }
    }
    let (running, url) = match url {
        Some(url) => (None, url.to_string()),
        None => {
            let port = free_port()?;
            let mut command = Command::new(context.release_binary("conformance-server"));
            command.args(["--http", &port.to_string()]);
            let running = Running::start(&mut command, port, &folder.join("server.log"))?;
            (Some(running), format!("http://127.0.0.1:{port}/mcp"))
        }
    };
    let mut suite = suite(context)?;
    suite
        .args(["server", "--url", &url, "--spec-version", revision])
        .arg("--output-dir")
        .arg(&checks)
        .current_dir(&folder);
    match scenario {
        Some(scenario) => suite.args(["--scenario", scenario]),
        None => suite.args(["--suite", "all"]),
    };
    let deadline = Duration::from_secs(REVISION_S_MAX);
    process::run(&mut suite, &folder.join("suite.log"), deadline)?;
    drop(running);
    let written = written(&checks)?;
    Ok(expected
        .iter()
        .map(|name| match written.get(name.as_str()) {
            Some(text) => judge(name, text),
            None => Row::broken(name, "the suite wrote no checks.json"),
        })
        .collect())
}

/// The suite's command line on the pinned Node.
fn suite(context: &Context) -> Result<Command> {
    let node = tools::node(context)?;
    let home = tools::npm(context, "suite")?;
    let mut command = Command::new(node);
    command.arg(home.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    Ok(command)
}

/// The server scenarios the suite has for a revision; its extensions are on no revision's list.
fn listed(context: &Context, revision: &str, folder: &Path) -> Result<Vec<String>> {
    let mut command = suite(context)?;
    command.args(["list", "--server", "--spec-version", revision]);
    let finished = process::run(&mut command, &folder.join("list.log"), Duration::from_secs(60))?;
    if !finished.ok {
        bail!("the suite cannot list its scenarios:\n{}", finished.output);
    }
    Ok(finished
        .output
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- "))
        .filter_map(|line| line.split(' ').next())
        .map(String::from)
        .collect())
}

/// The text of every `checks.json` below `folder`, by scenario.
fn written(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).context("cannot list the suite's results")? {
        let path = entry.context("cannot list the suite's results")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(scenario) = scenario_of(&name) else {
            continue;
        };
        if let Ok(text) = std::fs::read_to_string(path.join("checks.json")) {
            found.insert(scenario.to_string(), text);
        }
    }
    Ok(found)
}

/// `server-<scenario>-2026-11-21T03-00-00-000Z` → the scenario.
fn scenario_of(folder: &str) -> Option<&str> {
    let time = folder.len().checked_sub("-2026-11-21T03-00-00-000Z".len())?;
    folder.get(..time)?.strip_prefix("server-")
}

/// Counts the checks of one scenario; a scenario that proved nothing failed.
fn judge(scenario: &str, text: &str) -> Row {
    let Ok(Value::Array(checks)) = serde_json::from_str::<Value>(text) else {
        return Row::broken(scenario, "its checks.json is not a JSON array");
    };
    let mut row = Row::named(scenario);
    for check in &checks {
        let status = check["status"].as_str().unwrap_or("(none)");
        match status {
            "SUCCESS" => row.success += 1,
            "WARNING" => row.warning += 1,
            "SKIPPED" => row.skipped += 1,
            "INFO" => row.info += 1,
            _ => row.failure += 1,
        }
        if status != "SUCCESS" {
            let word = |key: &str| check[key].as_str().unwrap_or_default().to_string();
            row.problems.push_str(&format!(
                "  {scenario}: {status} {}: {}\n    {}\n",
                word("id"),
                word("description"),
                word("errorMessage").replace('\n', "\n    ")
            ));
        }
    }
    if row.success == 0 && row.counts().failed == 0 {
        return Row::broken(scenario, "not one check succeeded");
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(statuses: &[&str]) -> Counts {
        let checks: Vec<Value> =
            statuses.iter().map(|status| serde_json::json!({ "id": "x", "status": status })).collect();
        judge("s", &Value::Array(checks).to_string()).counts()
    }

    #[test]
    fn warnings_skipped_checks_and_unknown_statuses_are_failures() {
        for status in ["FAILURE", "WARNING", "SKIPPED", "(new)"] {
            assert_eq!(counts(&["SUCCESS", status]).failed, 1, "{status}");
        }
        assert_eq!(counts(&["SUCCESS", "INFO"]).failed, 0);
    }

    #[test]
    fn a_scenario_that_proves_nothing_fails() {
        assert_eq!(counts(&[]).failed, 1);
        assert_eq!(counts(&["INFO"]).failed, 1);
        assert_eq!(judge("s", "not json").counts().failed, 1);
    }

    #[test]
    fn a_results_folder_names_its_scenario_even_if_that_starts_with_server() {
        let folder = "server-server-sse-polling-2026-11-21T03-00-00-000Z";
        assert_eq!(scenario_of(folder), Some("server-sse-polling"));
        assert_eq!(scenario_of("x"), None);
    }
}
