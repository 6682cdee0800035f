//! `cargo xtask interop-client`: our client against servers and bridges by others, as `conformance/interop/targets.json`
//! lists them. What our client sends is judged by the schema of its revision; what the servers send is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::lane::{Outcome, RMCP, Status, checks};
use crate::context::{Context, Flags};
use crate::process;
use crate::report::{Counts, Report, table};
use crate::server::{Running, free_port};
use crate::{tools, world};

/// How many lanes run at once. Most of a lane is waiting, and another stage runs beside them.
const LANES_AT_ONCE: usize = 2;
/// How long all checks of a lane may take.
const LANE_S_MAX: u64 = 240;

/// The table in the repository, and what stands above it.
const TRIED: &str = "conformance/interop/TRIED.md";
const TRIED_HEAD: &str = "\
# Tried with

Linchpin's client against servers and bridges by others, in each run of `cargo xtask test`. The revision in bold is what the
client finds out by itself; for the others it speaks only that one. `@modelcontextprotocol/server`, `mcp` and `rmcp` are SDKs:
the servers written with them are in `servers/`. Written by `cargo xtask interop-client --write`.
";

/// One server or bridge in one revision.
struct Lane {
    target: Value,
    /// The revision that must be agreed on.
    revision: String,
    /// Whether the client finds that out by itself, or speaks only this one.
    alone: bool,
}

/// What a lane came to.
struct Finding {
    outcome: Outcome,
    /// Messages of ours that were judged, and of the server's.
    sent: u64,
    heard: u64,
    /// What the schema says of the server's messages; it does not fail the lane.
    noted: Vec<String>,
}

/// Installed tools, by the names that commands use for them.
struct Places {
    of: BTreeMap<String, String>,
    suite: PathBuf,
    node: PathBuf,
}

impl Lane {
    fn text(&self, member: &str) -> &str {
        self.target[member].as_str().unwrap_or_default()
    }

    fn is_http(&self) -> bool {
        self.text("transport") != "stdio"
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.text("name"), self.revision, if self.alone { " (only)" } else { "" })
    }
}

/// `cargo xtask interop-client`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &["--target", "--revision"], &["--no-build", "--write"])?;
    if !flags.has("--no-build") {
        world::programs(context)?;
    }
    let (targets, revisions) = (flags.all("--target"), flags.all("--revision"));
    let data = read(context)?;
    let mut lanes = lanes(&data)?;
    lanes.retain(|lane| {
        (targets.is_empty() || targets.contains(&lane.text("name")))
            && (revisions.is_empty() || revisions.contains(&lane.revision.as_str()))
    });
    if lanes.is_empty() {
        bail!("there is no such lane; conformance/interop/targets.json lists the targets");
    }
    let mut report = run(context, &data, &lanes)?;
    let all = targets.is_empty() && revisions.is_empty();
    match (all, flags.has("--write")) {
        (true, true) => std::fs::write(context.root.join(TRIED), tried(context)?).context("cannot write the table")?,
        (true, false) => compare(context, &mut report)?,
        (false, true) => bail!("only a run of all lanes can write {TRIED}"),
        (false, false) => {}
    }
    Ok(report.print())
}

/// Every lane; or, for the gate, each target in the revision that it is found to speak, but for those that take a compiler.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let data = read(context)?;
    let mut lanes = lanes(&data)?;
    let every = lanes.len();
    lanes.retain(|lane| context.all || !lane.alone && lane.text("set") != "rmcp");
    let mut report = run(context, &data, &lanes)?;
    if lanes.len() < every {
        report
            .skips
            .push(format!("{} of {every} lanes, those of rmcp among them: only with --all", every - lanes.len()));
    } else {
        compare(context, &mut report)?;
    }
    Ok(report)
}

/// What the table in the repository must be after this run.
fn tried(context: &Context) -> Result<String> {
    let table = context.results("interop-client")?.join("table.md");
    let table = std::fs::read_to_string(&table).with_context(|| format!("cannot read {}", table.display()))?;
    Ok(format!("{TRIED_HEAD}\n{table}"))
}

/// One check more: the table in the repository says what this run found.
fn compare(context: &Context, report: &mut Report) -> Result<()> {
    let same =
        std::fs::read_to_string(context.root.join(TRIED)).is_ok_and(|text| text == tried(context).unwrap_or_default());
    report.counts.add(Counts::one(same));
    if !same {
        report.text.push_str(&format!("\n{TRIED} is not what this run found: cargo xtask interop-client --write\n"));
    }
    Ok(())
}

fn read(context: &Context) -> Result<Value> {
    let path = context.root.join("conformance/interop/targets.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).context("targets.json is not JSON")
}

/// Every target in the revision it is found to speak, and in those it is asked for.
fn lanes(data: &Value) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    for target in data["targets"].as_array().context("no targets")? {
        let found = target["found"].as_str().with_context(|| format!("{} finds nothing", target["name"]))?;
        lanes.push(Lane { target: target.clone(), revision: found.to_string(), alone: false });
        for asked in target["asked"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            lanes.push(Lane { target: target.clone(), revision: asked.to_string(), alone: true });
        }
    }
    Ok(lanes)
}

impl Places {
    fn install(context: &Context, lanes: &[Lane]) -> Result<Places> {
        let (node, suite) = (tools::node(context)?, tools::npm(context, "suite")?);
        let mut of = BTreeMap::from([
            ("node".to_string(), node.to_string_lossy().into_owned()),
            ("scripts".to_string(), context.root.join("conformance/interop").to_string_lossy().into_owned()),
            ("linchpin".to_string(), context.binary("linchpin").to_string_lossy().into_owned()),
        ]);
        for lane in lanes {
            let also = lane.target["also"].as_array().into_iter().flatten();
            for set in also.chain([&lane.target["set"]]).filter_map(Value::as_str) {
                if of.contains_key(set) {
                    continue;
                }
                let home = match set {
                    "rmcp" => tools::apart(context, RMCP)?,
                    python if python.starts_with("py-") => tools::python(context, python)?,
                    npm => tools::npm(context, npm)?,
                };
                of.insert(set.to_string(), home.to_string_lossy().into_owned());
            }
        }
        Ok(Places { of, suite, node })
    }
}

fn run(context: &Context, data: &Value, lanes: &[Lane]) -> Result<Report> {
    let places = Places::install(context, lanes)?;
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES_AT_ONCE.min(lanes.len()) {
            scope.spawn(|| {
                while let Some((index, lane)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    lanes.get(index).map(|lane| (index, lane))
                } {
                    let result = one(context, &places, data, lane).unwrap_or_else(|error| Finding {
                        outcome: Outcome::broken(&format!("{error:#}")),
                        sent: 0,
                        heard: 0,
                        noted: Vec::new(),
                    });
                    results.lock().unwrap_or_else(|poison| poison.into_inner()).insert(index, result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(|poison| poison.into_inner());
    let report = summarise(context, lanes, &results)?;
    let folder = context.results("interop-client")?;
    std::fs::write(folder.join("report.txt"), &report.text).context("cannot write the report")?;
    std::fs::write(folder.join("table.md"), markdown(context, lanes, &results)?).context("cannot write the table")?;
    Ok(report)
}

/// Runs one lane: a folder of its own, a server where one must run, the client, the judge.
fn one(context: &Context, places: &Places, data: &Value, lane: &Lane) -> Result<Finding> {
    let name = lane.to_string().replace([' ', '(', ')'], "-");
    let folder = context.results("interop-client")?.join(name.trim_end_matches('-'));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove an earlier run")?;
    }
    let (dir, repo) = (folder.join("dir"), folder.join("repo"));
    std::fs::create_dir_all(&dir).context("cannot create the lane's folder")?;
    let mut vars = BTreeMap::from([("dir", dir), ("repo", repo.clone())]);
    if lane.text("profile") == "git" {
        repository(&repo, &folder)?;
    }
    let port = free_port()?;
    vars.insert("port", PathBuf::from(port.to_string()));
    let fill = |text: &str| {
        let text =
            places.of.iter().fold(text.to_string(), |text, (name, place)| text.replace(&format!("{{{name}}}"), place));
        vars.iter().fold(text, |text, (name, value)| text.replace(&format!("{{{name}}}"), &value.to_string_lossy()))
    };
    let words = lane.target["run"].as_array().context("nothing to run")?;
    let words: Vec<String> = words.iter().filter_map(Value::as_str).map(&fill).collect();
    let env = lane.target["env"].as_object().into_iter().flatten();
    let env: BTreeMap<String, String> =
        env.filter_map(|(name, value)| Some((name.clone(), fill(value.as_str()?)))).collect();
    let (checks_of_lane, catalog) = checks_for(data, lane)?;
    let mut what = json!({
        "revision": lane.revision,
        "revisions": if lane.alone { vec![&lane.revision] } else { Vec::new() },
        "server": lane.target["server"],
        "recording": folder.join("recording.jsonl"),
        "vars": vars.iter().map(|(name, value)| (name.to_string(), value.to_string_lossy().into_owned()))
            .collect::<BTreeMap<_, _>>(),
        "checks": checks_of_lane,
    });
    // Held until the client is done.
    let mut _running = None;
    if lane.is_http() {
        let (program, args) = words.split_first().context("nothing to run")?;
        let mut server = Command::new(program);
        server.args(args).envs(&env).current_dir(&folder);
        _running = Some(Running::start(&mut server, port, &folder.join("server.log"))?);
        what["url"] = json!(format!("http://127.0.0.1:{port}{}", lane.text("path")));
        // Otherwise the client finds out by itself what is spoken there.
        what["sse"] = json!(lane.target["told"] == true);
    } else {
        what["command"] = json!(words);
        what["env"] = json!(env);
    }
    let mut client = Command::new(context.binary("interop-client"));
    client.arg(what.to_string()).current_dir(&folder);
    let finished = process::run(&mut client, &folder.join("client.log"), Duration::from_secs(LANE_S_MAX))?;
    let mut outcome = Outcome { checks: checks(&catalog, &finished.output)?, ..Outcome::default() };
    let verdict = judge(places, context, &folder, &lane.revision)?;
    let texts = |member: &str| -> Vec<String> {
        verdict[member].as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from).collect()
    };
    let number = |member: &str| verdict[member].as_u64().unwrap_or(0);
    outcome.messages = number("sent");
    outcome.violations = texts("violations");
    if outcome.messages == 0 {
        outcome.violations.push("our client said nothing".to_string());
    }
    Ok(Finding { outcome, sent: number("sent"), heard: number("heard"), noted: texts("noted") })
}

/// The checks of a lane, with the reasons why some are left out, and their names as a catalogue.
fn checks_for(data: &Value, lane: &Lane) -> Result<(Vec<Value>, String)> {
    let profile = data["profiles"][lane.text("profile")].as_array().context("no such profile")?;
    let mut checks = profile.clone();
    for check in &mut checks {
        let name = check["name"].as_str().context("a check without a name")?.to_string();
        // For every revision, or for one: `name` or `name revision`.
        let skips = &lane.target["skip"];
        let why =
            [&skips[format!("{name} {}", lane.revision)], &skips[name.as_str()]].into_iter().find_map(Value::as_str);
        if let Some(why) = why {
            check["skip"] = json!(why);
        }
        // What must come of it, where a bridge is known to lose something.
        for (member, value) in lane.target["differs"][name.as_str()].as_object().into_iter().flatten() {
            check[member] = value.clone();
        }
    }
    for name in lane.target["skip"].as_object().into_iter().flatten().map(|(name, _)| name) {
        let bare = name.split(' ').next().unwrap_or_default();
        if !profile.iter().any(|check| check["name"] == bare) {
            bail!("{} leaves out `{name}`, which is no check", lane.text("name"));
        }
    }
    Ok((checks, Value::from(profile.clone()).to_string()))
}

/// A small repository with one commit.
fn repository(repo: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(repo).context("cannot create the repository")?;
    std::fs::write(repo.join("birds.txt"), "seventeen herons\n").context("cannot write into the repository")?;
    let who = ["-c", "user.name=Interop", "-c", "user.email=interop@example.com", "-c", "commit.gpgsign=false"];
    for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "--message", "The first herons"]] {
        let mut git = Command::new("git");
        git.args(who).args(words).current_dir(repo);
        let finished = process::run(&mut git, &folder.join("git.log"), Duration::from_secs(30))?;
        if !finished.ok {
            bail!("git {}: {}", words.join(" "), finished.output);
        }
    }
    Ok(())
}

fn judge(places: &Places, context: &Context, folder: &Path, revision: &str) -> Result<Value> {
    let mut judge = Command::new(&places.node);
    judge
        .arg(context.root.join("conformance/interop/judge-client.mjs"))
        .arg(&places.suite)
        .arg(revision)
        .arg(folder.join("recording.jsonl"));
    let finished = process::run(&mut judge, &folder.join("judge.log"), Duration::from_secs(60))?;
    serde_json::from_str(&finished.output).map_err(|_| anyhow::anyhow!("the judge fails:\n{}", finished.output))
}

/// The tables: lanes, what failed, what was left out, what the servers do wrong.
fn summarise(context: &Context, lanes: &[Lane], results: &BTreeMap<usize, Finding>) -> Result<Report> {
    let mut report = Report::default();
    let heading = ["target", "package", "revision", "pass", "fail", "left out", "sent", "violations", "heard", "noted"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    let (mut left_out, mut noted) = (BTreeMap::<String, Vec<String>>::new(), String::new());
    let mut problems = String::new();
    for (index, result) in results {
        let (lane, outcome) = (&lanes[*index], &result.outcome);
        let count = |status: Status| outcome.checks.iter().filter(|c| c.status == status).count().to_string();
        let package = format!("{} {}", lane.text("package"), pinned(context, lane)?);
        let mut row = vec![lane.text("name").to_string(), package, lane.revision.clone()];
        row.extend([count(Status::Pass), count(Status::Fail), count(Status::LeftOut)]);
        row.extend([result.sent.to_string(), outcome.violations.len().to_string()]);
        row.extend([result.heard.to_string(), result.noted.len().to_string()]);
        rows.push(row);
        report.counts.add(outcome.counts());
        for check in &outcome.checks {
            match check.status {
                Status::Pass => {}
                Status::Fail => problems.push_str(&format!("  {lane}: {}: {}\n", check.name, check.detail)),
                Status::LeftOut => {
                    left_out.entry(format!("{}: {}", check.name, check.detail)).or_default().push(lane.to_string());
                }
            }
        }
        for violation in &outcome.violations {
            problems.push_str(&format!("  {lane}: schema: {violation}\n"));
        }
        for note in &result.noted {
            noted.push_str(&format!("  {lane}: {note}\n"));
        }
    }
    report.text.push_str(&table(&rows));
    if !left_out.is_empty() {
        report.text.push_str("\nleft out\n");
        for (what, lanes) in &left_out {
            report.text.push_str(&format!("  {what} ({})\n", lanes.join(", ")));
        }
    }
    if !noted.is_empty() {
        report.text.push_str(&format!("\nwhat the servers send against their schema (does not count)\n{noted}"));
    }
    if !problems.is_empty() {
        report.text.push_str(&format!("\nfailed\n{problems}"));
    }
    Ok(report)
}

/// The version of a package as its set pins it.
fn pinned(context: &Context, lane: &Lane) -> Result<String> {
    let (set, package) = (lane.text("set"), lane.text("package"));
    let pins = context.root.join("conformance/interop/tools").join(set);
    let text =
        |path: PathBuf| std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()));
    let version = if set == "rmcp" {
        let manifest: toml::Table =
            text(context.root.join(RMCP.0).join("Cargo.toml"))?.parse().context("no manifest")?;
        let version = manifest["dependencies"][package]["version"].as_str();
        version.map(|version| version.trim_start_matches('=').to_string())
    } else if set.starts_with("py-") {
        let start = format!("{package}==");
        text(pins.join("requirements.txt"))?.lines().find_map(|line| line.strip_prefix(&start).map(String::from))
    } else {
        let manifest: Value = serde_json::from_str(&text(pins.join("package.json"))?).context("no manifest")?;
        manifest["dependencies"][package].as_str().map(String::from)
    };
    version.with_context(|| format!("{package} is not pinned in {set}"))
}

/// The table for the README: one row for each target.
fn markdown(context: &Context, lanes: &[Lane], results: &BTreeMap<usize, Finding>) -> Result<String> {
    let mut text = String::from("| server | version | transport | revisions | checks |\n|---|---|---|---|---|\n");
    let mut rows: Vec<(String, Vec<String>, u64, u64)> = Vec::new();
    for (index, result) in results {
        let lane = &lanes[*index];
        let registry = if lane.text("set").starts_with("py-") {
            "PyPI"
        } else if lane.text("set") == "rmcp" {
            "crates.io"
        } else {
            "npm"
        };
        let transport = match lane.text("transport") {
            "http" => "Streamable HTTP",
            "sse" => "HTTP+SSE",
            other => other,
        };
        let manner = lane.target["manner"].as_str().map_or(String::new(), |manner| format!(" {manner}"));
        let behind = lane.target["behind"].as_str().map_or(String::new(), |server| format!(" in front of {server}"));
        let key = format!(
            "| `{}` ({registry}){behind} | {} | {transport}{manner} |",
            lane.text("package"),
            pinned(context, lane)?,
        );
        let revision = match lane.alone {
            true => lane.revision.clone(),
            false => format!("**{}**", lane.revision),
        };
        let count = |status: Status| result.outcome.checks.iter().filter(|c| c.status == status).count() as u64;
        match rows.iter_mut().find(|row| row.0 == key) {
            Some(row) => {
                row.1.push(revision);
                row.2 += count(Status::Pass);
                row.3 += count(Status::Fail);
            }
            None => rows.push((key, vec![revision], count(Status::Pass), count(Status::Fail))),
        }
    }
    for (key, revisions, passed, failed) in rows {
        let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        text.push_str(&format!("{key} {} | {passed}{failed} |\n", revisions.join(", ")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_left_out_for_one_revision_or_for_all() {
        let data = json!({ "profiles": { "p": [{ "name": "a" }, { "name": "b" }, { "name": "c" }] }, "targets": [
            { "name": "t", "profile": "p", "found": "2026-07-28", "asked": ["2025-11-25"], "skip": { "a": "never", "b 2025-11-25": "not there" } },
        ] });
        let lanes = lanes(&data).unwrap();
        let skipped = |lane: &Lane| -> Vec<bool> {
            checks_for(&data, lane).unwrap().0.iter().map(|check| check["skip"].is_string()).collect()
        };
        assert_eq!(lanes.iter().map(skipped).collect::<Vec<_>>(), [[true, false, false], [true, true, false]]);
        let wrong =
            json!({ "profiles": { "p": [] }, "targets": [{ "profile": "p", "found": "x", "skip": { "d": "" } }] });
        let wrong_lanes = super::lanes(&wrong).unwrap();
        assert!(checks_for(&wrong, &wrong_lanes[0]).is_err());
    }
}
