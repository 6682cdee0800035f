//! The suite against our client: a process of the suite for each scenario, which starts `conformance-client` itself.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::judge::{Excused, Row, judge};
use super::{Revision, Suite, Wanted, expected, results};
use crate::context::Context;
use crate::process;

/// With the extensions where the suite has them.
pub(super) const REVISIONS: &[Revision] = &[
    Revision { name: "2025-03-26", scenarios: 2, successes_min: 23 },
    Revision { name: "2025-06-18", scenarios: 5, successes_min: 66 },
    Revision { name: "2025-11-25", scenarios: 25, successes_min: 342 },
    Revision { name: "2026-07-28", scenarios: 43, successes_min: 521 },
];

/// Scenarios in which a client that does right ends with an error.
const MAY_FAIL: &[&str] = &[
    "http-invalid-tool-headers",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "auth/scope-retry-limit",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

const EXCUSED: &[Excused] = &[
    Excused {
        scenario: "http-standard-headers",
        about: "header on initialize request",
        why: "this revision has no `initialize`",
    },
    Excused {
        scenario: "http-standard-headers",
        about: "header on notifications/initialized request",
        why: "this revision has no `notifications/initialized`",
    },
];

/// A scenario that measures time, and is therefore run alone.
const ALONE: &str = "sse-retry";

/// How long the client may take for one scenario, and with it the suite.
const CLIENT_S_MAX: u64 = 30;
const SCENARIO_S_MAX: u64 = 90;

/// Scenarios that run at the same time, at most; the mocks choose free ports by themselves.
const PARALLEL_MAX: usize = 4;

/// Runs the scenarios of a revision.
pub(super) fn run(context: &Context, suite: &Suite, revision: &Revision, wanted: &Wanted<'_>) -> Result<Vec<Row>> {
    let role = match wanted.through {
        Some(_) => format!("client-bridge-{}", wanted.era.unwrap_or("auto")),
        None => "client".to_owned(),
    };
    let folder = results(context, &role, revision.name)?;
    let client = context.binary("conformance-client");
    if client.to_string_lossy().contains(char::is_whitespace) {
        bail!("the suite cannot start {}: it splits commands at spaces", client.display());
    }
    if !client.is_file() {
        bail!("{} is not there; build it first", client.display());
    }
    let client = match wanted.through {
        None => client.display().to_string(),
        Some(_) => bridged(context, &client, revision, wanted.era),
    };
    let listed = suite.listed("--client", Some(revision.name), &folder)?;
    let mut names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
    let mut counted = *revision;
    if wanted.through.is_some() {
        // A bridge logs in like any of our programs, and is not told secrets as the scenarios tell them.
        names.retain(|name| !name.starts_with("auth/"));
    }
    let own = names.len();
    // A bridge between the eras does not offer extensions.
    let spoken = wanted.era.filter(|era| *era != "auto").unwrap_or(era_of(revision));
    let is_crossed = wanted.through.is_some() && spoken != era_of(revision);
    // The extensions were written against the revisions that have their negotiation.
    if !is_crossed && matches!(revision.name, "2025-11-25" | "2026-07-28") {
        let all = suite.listed("--client", None, &folder)?;
        // Skills are an extension of the newest.
        let here = |name: &str| match name.starts_with("sep-2640-") {
            true => revision.name == "2026-07-28",
            false => wanted.through.is_none(),
        };
        let extensions = all.into_iter().filter(|(name, about)| about == "[extension]" && here(name));
        names.extend(extensions.map(|(name, _)| name));
    }
    if wanted.through.is_some() {
        counted.scenarios = names.len();
    }
    let extensions = names.split_off(own);
    let jobs = expected([names, extensions.clone()].concat(), &counted, wanted.scenario)?;
    let run = |name: &str| {
        let home = folder.join(name.replace('/', "_"));
        let extension = extensions.iter().any(|other| other == name);
        run_one(suite, &client, revision.name, name, extension, &home)
            .unwrap_or_else(|error| Row::broken(name, &format!("{error:#}")))
    };
    let alone = jobs.iter().find(|name| *name == ALONE).map(|name| run(name));
    let others: Vec<&String> = jobs.iter().filter(|name| *name != ALONE).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(others.len())));
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, PARALLEL_MAX));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(name) = others.get(index) else { break };
                    let row = run(name);
                    rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    rows.sort_by_key(|(index, _)| *index);
    Ok(alone.into_iter().chain(rows.into_iter().map(|(_, row)| row)).collect())
}

/// Whether a revision has sessions, in the words of a bridge.
fn era_of(revision: &Revision) -> &'static str {
    if REVISIONS.last().is_some_and(|newest| newest.name == revision.name) { "modern" } else { "legacy" }
}

/// The command of a client that speaks this era, or that of the revision, with a bridge which speaks the revision's.
fn bridged(context: &Context, client: &Path, revision: &Revision, era: Option<&str>) -> String {
    let newest = REVISIONS.last().map_or("", |newest| newest.name);
    let upstream = era_of(revision);
    let spoken = match era {
        Some("legacy") if upstream == "modern" => "2025-11-25",
        Some("modern") => newest,
        _ => revision.name,
    };
    format!("{} {} {upstream} {spoken}", client.display(), context.binary("linchpin").display())
}

/// Runs one scenario and judges what it left behind.
fn run_one(suite: &Suite, client: &str, revision: &str, name: &str, extension: bool, home: &Path) -> Result<Row> {
    std::fs::create_dir_all(home).context("cannot create the results folder")?;
    let mut command = suite.command();
    command
        .args(["client", "--scenario", name, "--spec-version", revision])
        .args(["--timeout", &(CLIENT_S_MAX * 1000).to_string()])
        .arg("--command")
        .arg(client)
        .arg("--output-dir")
        .arg(home)
        .current_dir(home);
    if extension {
        // Extensions belong to no revision; this one they shall be run at.
        command.arg("--force");
    }
    let finished = process::run(&mut command, &home.join("suite.log"), Duration::from_secs(SCENARIO_S_MAX))?;
    let Some(checks) = find(home, "checks.json") else {
        return Ok(Row::broken(name, &format!("the suite wrote no checks.json:\n{}", finished.output)));
    };
    let text = std::fs::read_to_string(&checks).context("cannot read checks.json")?;
    let stderr = std::fs::read(checks.with_file_name("stderr.txt")).context("the client's output is missing")?;
    let mut row = judge(name, &text, EXCUSED);
    if let Err(why) = ended(name, &finished.output, &String::from_utf8_lossy(&stderr)) {
        row.fail(&why);
    }
    Ok(row)
}

/// Whether the client ended as it should: the suite tells only a user, and overlooks signals.
fn ended(name: &str, log: &str, stderr: &str) -> Result<(), String> {
    if log.contains("Client timed out after") {
        return Err(format!("the client did not end within {CLIENT_S_MAX} s"));
    }
    let last = stderr.trim_end().lines().last().unwrap_or_default();
    match last.strip_prefix("conformance-client: ") {
        Some("done") if !log.contains("Client exited with code") => Ok(()),
        Some("done") => Err("the client was done and did not exit with 0".to_string()),
        Some(_) if MAY_FAIL.contains(&name) => Ok(()),
        Some(why) => Err(format!("the client failed: {why}")),
        None => Err(format!("the client did not end gracefully:\n{stderr}")),
    }
}

/// A file of this name in a folder or below it.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name() == name {
                return Some(path);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_ends_well_only_if_it_says_so() {
        let (fine, done) = ("Results saved", "tool x\nconformance-client: done\n");
        let rows = [
            ("tools_call", fine, done, true),
            ("tools_call", "Client exited with code 1", done, false),
            ("tools_call", "Client timed out after 30000ms", done, false),
            ("tools_call", fine, "", false),
            ("tools_call", fine, "conformance-client: done\nthread 'main' panicked", false),
            ("tools_call", "Client exited with code 1", "conformance-client: refused", false),
            ("auth/iss-unexpected", "Client exited with code 1", "conformance-client: refused", true),
            ("auth/iss-unexpected", "Client exited with code 101", "thread 'main' panicked", false),
            ("auth/iss-unexpected", fine, done, true),
        ];
        for (name, log, stderr, well) in rows {
            assert_eq!(ended(name, log, stderr).is_ok(), well, "{name} {log} {stderr}");
        }
    }

    #[test]
    fn what_the_suite_wrote_is_found_below_a_folder_of_its_choice() {
        let home = std::env::temp_dir().join(format!("xtask-conformance-{}", std::process::id()));
        let inner = home.join("auth/dpop-2026-11-21");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(find(&home, "checks.json"), None);
        std::fs::write(inner.join("checks.json"), "[]").unwrap();
        assert_eq!(find(&home, "checks.json"), Some(inner.join("checks.json")));
        std::fs::remove_dir_all(home).unwrap();
    }
}
