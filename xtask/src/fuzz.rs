//! Fuzzing with the stable compiler: libFuzzer needs coverage counters, not a nightly toolchain.
//!
//! `cargo fuzz` is what to use when hunting; this runs the same targets where it is not installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::context::{Context, Flags};
use crate::process;
use crate::report::{Counts, Report, table};

/// How long `cargo xtask test` runs each target, in seconds; and with `--all`.
pub(crate) const SMOKE_S: u64 = 3;
pub(crate) const LONG_S: u64 = 60;

/// What the compiler must add for libFuzzer, without a sanitizer's own runtime.
const COVERAGE: &[&str] = &[
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "-Ccodegen-units=1",
];

/// `cargo xtask fuzz`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &["--seconds", "--target"], &[])?;
    let seconds = match flags.last("--seconds") {
        Some(number) => number.parse().context("--seconds wants a whole number")?,
        None => SMOKE_S,
    };
    Ok(check_some(context, seconds, &flags.all("--target"))?.print())
}

/// Runs every target for this many seconds, beginning with its kept cases.
pub(crate) fn check(context: &Context, seconds: u64) -> Result<Report> {
    check_some(context, seconds, &[])
}

fn check_some(context: &Context, seconds: u64, only: &[&str]) -> Result<Report> {
    let home = context.root.join("fuzz");
    let mut targets = targets(&home)?;
    targets.retain(|name| only.is_empty() || only.contains(&name.as_str()));
    if targets.is_empty() {
        return Ok(Report::skipped("there is no such target in fuzz/fuzz_targets".into()));
    }
    if !process::exists("c++", "--version") {
        let why = "libFuzzer is C++ and there is no `c++` here";
        return Ok(Report::skipped(why.into()));
    }
    let results = context.results("fuzz")?;
    let triple = host()?;
    let built = context.target.join("fuzz");
    let mut cargo = process::cargo();
    cargo
        .args(["build", "--release", "--target", &triple])
        .env("RUSTFLAGS", COVERAGE.join(" "))
        .env("CARGO_TARGET_DIR", &built)
        .current_dir(&home);
    let finished = process::run(&mut cargo, &results.join("build.log"), Duration::from_secs(1200))?;
    if !finished.ok {
        return Ok(Report::one(false, finished.output));
    }
    let mut report = Report::default();
    let mut rows = vec![["target", "executions", ""].map(String::from).to_vec()];
    let run = |name: &String| -> Result<process::Finished> {
        let folder = results.join(name);
        std::fs::create_dir_all(folder.join("corpus")).context("cannot create a corpus folder")?;
        let mut fuzzer = Command::new(built.join(&triple).join("release").join(name));
        fuzzer
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", folder.display()))
            .args(["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"])
            .arg(folder.join("corpus"))
            .args(kept_cases(&home, name))
            .current_dir(&home);
        process::run(&mut fuzzer, &folder.join("run.log"), Duration::from_secs(seconds + 60))
    };
    // Two at a time: CI has two cores.
    for pair in targets.chunks(2) {
        let finished = std::thread::scope(|scope| {
            let running: Vec<_> = pair.iter().map(|name| scope.spawn(|| run(name))).collect();
            running
                .into_iter()
                .map(|one| one.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
                .collect::<Vec<_>>()
        });
        for (name, finished) in pair.iter().zip(finished) {
            let finished = finished?;
            report.counts.add(Counts::one(finished.ok));
            let verdict = if finished.ok { "pass" } else { "FAIL" };
            rows.push(vec![name.clone(), executions(&finished.output), verdict.into()]);
            if !finished.ok {
                report.text.push_str(&tail(&finished.output));
            }
        }
    }
    report.text.insert_str(0, &table(&rows));
    Ok(report)
}

fn targets(home: &Path) -> Result<Vec<String>> {
    let Ok(entries) = std::fs::read_dir(home.join("fuzz_targets")) else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.context("cannot list the fuzz targets")?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Folders with cases for a target that are part of the repository.
fn kept_cases(home: &Path, target: &str) -> Vec<PathBuf> {
    ["corpus", "seeds", "regressions"]
        .iter()
        .map(|kind| home.join(kind).join(target))
        .filter(|folder| folder.is_dir())
        .collect()
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc cannot be started")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(String::from))
        .context("rustc does not name its host")
}

/// The number after `stat::number_of_executed_units:`.
fn executions(output: &str) -> String {
    output
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .map_or("?", str::trim)
        .to_string()
}

/// The end of a fuzzer's output, where the finding is.
fn tail(output: &str) -> String {
    const LINES_MAX: usize = 60;
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_come_from_the_final_statistics() {
        let output = "Done 12 runs\nstat::number_of_executed_units: 8882392\nstat::x: 1\n";
        assert_eq!(executions(output), "8882392");
        assert_eq!(executions("crashed"), "?");
    }
}
