//! `cargo xtask conformance`: the official suite in both roles, judged by the `checks.json` it writes. Its exit code and
//! summary are not trusted: they overlook warnings, timeouts and clients that fail.

mod authorization;
mod bridge;
mod client;
mod judge;
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::context::{Context, Flags};
use crate::process;
use crate::report::{Counts, Report, table};
use crate::{tools, world};
use judge::{Row, heading};

pub(crate) use bridge::check as bridged;

/// What the pinned suite has for a revision in one role.
///
/// The numbers are guards: a suite that quietly lists or checks less proves less than we say it does. What a scenario
/// really checked is in its `checks.json`.
#[derive(Clone, Copy)]
struct Revision {
    name: &'static str,
    scenarios: usize,
    successes_min: u64,
}

/// What to run; everything by default.
#[derive(Default)]
pub(crate) struct Wanted<'a> {
    /// `server`, `client` or `authorization`.
    role: Option<&'a str>,
    /// None is all.
    revisions: Vec<&'a str>,
    scenario: Option<&'a str>,
    /// Test whatever server answers here in place of ours.
    url: Option<&'a str>,
    /// Our server behind a guard, with a token added to each request.
    guarded: bool,
    /// Only the scenarios of tasks, of a server that keeps them in a file.
    tasks_in_file: bool,
    /// Test a bridge to our server, which it reaches in this way: `stdio`, `http` or `sse`; or one in front of which our client
    /// is, on standard input and output.
    through: Option<&'a str>,
    /// The era that the bridge speaks with our side: `auto`, `legacy` or `modern`.
    era: Option<&'a str>,
}

const ROLES: [&str; 3] = ["server", "client", "authorization"];

/// `cargo xtask conformance`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(
        words,
        &["--role", "--revision", "--scenario", "--url", "--through", "--era"],
        &["--guarded", "--tasks-in-file", "--no-build"],
    )?;
    let (guarded, tasks_in_file) = (flags.has("--guarded"), flags.has("--tasks-in-file"));
    let wanted = Wanted {
        guarded,
        tasks_in_file,
        // A server that is running already says nothing about our client; a bridge is before a server unless it is said.
        role: flags
            .last("--role")
            .or(flags.last("--url").or(flags.last("--through")).and(Some("server")))
            .or((guarded || tasks_in_file).then_some("server")),
        revisions: flags.all("--revision"),
        scenario: flags.last("--scenario"),
        url: flags.last("--url"),
        through: flags.last("--through"),
        era: flags.last("--era"),
    };
    if wanted.through.is_some_and(|way| !["stdio", "http", "sse"].contains(&way)) {
        bail!("--through is `stdio`, `http` or `sse`");
    }
    if wanted.role.is_some_and(|role| !ROLES.contains(&role)) {
        bail!("--role is one of {}", ROLES.join(", "));
    }
    if wanted.url.is_some() && wanted.role != Some("server") {
        bail!("--url is for the role `server`");
    }
    if wanted.url.is_none() && !flags.has("--no-build") {
        world::programs(context)?;
    }
    Ok(check(context, &wanted)?.print())
}

/// Runs the suite.
pub(crate) fn check(context: &Context, wanted: &Wanted<'_>) -> Result<Report> {
    let all = || server::REVISIONS.iter().chain(client::REVISIONS).chain(authorization::WAYS);
    let known = || all().map(|revision| revision.name);
    for name in &wanted.revisions {
        if !known().any(|known| known == *name) {
            bail!("{name} is not a revision of the suite: {}", known().collect::<Vec<_>>().join(", "));
        }
    }
    let suite = Suite::find(context)?;
    let mut report = Report::default();
    let mut totals = vec![heading("revision")];
    let roles = ROLES.into_iter().filter(|role| wanted.role.is_none_or(|only| only == *role));
    for role in roles {
        let revisions = match role {
            "server" => server::REVISIONS,
            "client" => client::REVISIONS,
            _ => authorization::WAYS,
        };
        for revision in revisions {
            let is_wanted = wanted.revisions.is_empty() || wanted.revisions.contains(&revision.name);
            if !is_wanted || wanted.tasks_in_file && revision.name != server::TASKS.name {
                continue;
            }
            let revision = if wanted.tasks_in_file { &server::TASKS } else { revision };
            let rows = match role {
                "server" => server::run(context, &suite, revision, wanted)?,
                "client" => client::run(context, &suite, revision, wanted)?,
                _ => authorization::run(context, &suite, revision, wanted.scenario)?,
            };
            totals.push(add(&mut report, &format!("{role} {}", revision.name), revision, rows, wanted));
        }
    }
    if wanted.role.is_none() && wanted.scenario.is_none() && wanted.revisions.is_empty() {
        // Once more through a guard: the newest session and the newest stateless revision, or all.
        let guarded = Wanted { guarded: true, ..Wanted::default() };
        let few = ["2025-11-25", "2026-07-28"];
        for revision in server::REVISIONS.iter().filter(|revision| context.all || few.contains(&revision.name)) {
            let rows = server::run(context, &suite, revision, &guarded)?;
            let title = format!("server behind a guard {}", revision.name);
            totals.push(add(&mut report, &title, revision, rows, &guarded));
        }
        let in_file = Wanted { tasks_in_file: true, ..Wanted::default() };
        let rows = server::run(context, &suite, &server::TASKS, &in_file)?;
        totals.push(add(&mut report, "server with tasks in a file", &server::TASKS, rows, &in_file));
    }
    if let Some(scenario) = wanted.scenario.filter(|_| report.counts == Counts::default()) {
        bail!("the suite has no scenario `{scenario}` for this; `list` of the suite names them");
    }
    report.text.push_str(&table(&totals));
    Ok(report)
}

/// Adds a failure where fewer checks succeeded than are known to be possible.
fn at_least(rows: &mut Vec<Row>, least: u64) {
    let succeeded: u64 = rows.iter().map(|row| row.success).sum();
    if succeeded < least {
        rows.push(Row::broken("(all)", &format!("{succeeded} checks succeeded, {least} are known to be possible")));
    }
}

/// Adds a revision's rows to the report; returns the line that sums them up.
fn add(report: &mut Report, title: &str, revision: &Revision, mut rows: Vec<Row>, wanted: &Wanted<'_>) -> Vec<String> {
    if wanted.scenario.is_none() && wanted.through.is_none() {
        at_least(&mut rows, revision.successes_min);
    }
    let mut sum = Row::named(title);
    let mut cells = vec![heading("scenario")];
    for row in &rows {
        sum.add(row);
        cells.push(row.cells());
        report.skips.extend(row.excuses.iter().map(|why| format!("{title}: {}: {why}", row.name)));
    }
    report.text.push_str(&format!("{title}: {} scenarios\n{}", revision.scenarios, table(&cells)));
    for row in &rows {
        report.text.push_str(&row.problems);
    }
    report.text.push('\n');
    report.counts.add(sum.counts());
    sum.cells()
}

/// The suite's command line on the pinned Node.
struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    fn find(context: &Context) -> Result<Suite> {
        let script = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
        Ok(Suite { node: tools::node(context)?, script: tools::npm(context, "suite")?.join(script) })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script);
        command
    }

    /// The scenarios of a role with what the suite says of each; those of a revision when one is named. Its extensions
    /// are on no revision's list.
    fn listed(&self, role: &str, revision: Option<&str>, folder: &Path) -> Result<Vec<(String, String)>> {
        let mut command = self.command();
        command.args(["list", role]);
        if let Some(revision) = revision {
            command.args(["--spec-version", revision]);
        }
        let finished = process::run(&mut command, &folder.join("list.log"), Duration::from_secs(60))?;
        if !finished.ok {
            bail!("the suite cannot list its scenarios:\n{}", finished.output);
        }
        Ok(scenarios(&finished.output))
    }
}

/// The lines `  - name [revisions]` of a list.
fn scenarios(list: &str) -> Vec<(String, String)> {
    list.lines()
        .filter_map(|line| line.trim_start().strip_prefix("- ")?.split_once(' '))
        .map(|(name, about)| (name.to_string(), about.to_string()))
        .collect()
}

/// The text of every `checks.json` below `folder`, by scenario.
fn written(folder: &Path, role: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).context("cannot list the suite's results")? {
        let path = entry.context("cannot list the suite's results")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(scenario) = scenario_of(&name, role) else {
            continue;
        };
        if let Ok(text) = std::fs::read_to_string(path.join("checks.json")) {
            found.insert(scenario.to_string(), text);
        }
    }
    Ok(found)
}

/// `server-<scenario>-2026-11-21T03-00-00-000Z` → the scenario.
fn scenario_of<'a>(folder: &'a str, role: &str) -> Option<&'a str> {
    let time = folder.len().checked_sub("-2026-11-21T03-00-00-000Z".len())?;
    folder.get(..time)?.strip_prefix(role)
}

/// The results folder of a revision, empty.
fn results(context: &Context, role: &str, revision: &str) -> Result<PathBuf> {
    let folder = context.results("conformance")?.join(role).join(revision);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove earlier results")?;
    }
    std::fs::create_dir_all(&folder).context("cannot create the results folder")?;
    Ok(folder)
}

/// Whether the suite lists what it should; what is left of it when one scenario is wanted.
fn expected(names: Vec<String>, revision: &Revision, scenario: Option<&str>) -> Result<Vec<String>> {
    if names.len() != revision.scenarios {
        bail!(
            "the suite lists {} scenarios for {}, {} were expected: {}",
            names.len(),
            revision.name,
            revision.scenarios,
            names.join(" ")
        );
    }
    Ok(names.into_iter().filter(|name| scenario.is_none_or(|only| only == name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_what_it_says_of_each_scenario() {
        let list = "Client scenarios:\n  - auth/dpop [extension]\n  - tools_call [2025-06-18,2025-11-25]\n\n";
        let pair = |name: &str, about: &str| (name.to_string(), about.to_string());
        assert_eq!(scenarios(list), [pair("auth/dpop", "[extension]"), pair("tools_call", "[2025-06-18,2025-11-25]")]);
    }

    #[test]
    fn a_results_folder_names_its_scenario_even_if_that_starts_like_its_role() {
        let folder = "server-server-sse-polling-2026-11-21T03-00-00-000Z";
        assert_eq!(scenario_of(folder, "server-"), Some("server-sse-polling"));
        assert_eq!(scenario_of("x", "server-"), None);
    }

    #[test]
    fn a_shorter_list_is_an_error_and_one_scenario_can_be_picked() {
        let revision = Revision { name: "r", scenarios: 2, successes_min: 0 };
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert!(expected(names(&["a"]), &revision, None).is_err());
        assert_eq!(expected(names(&["a", "b"]), &revision, Some("b")).unwrap(), ["b"]);
    }
}
