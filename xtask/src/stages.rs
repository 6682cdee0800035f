//! `cargo xtask test`: every check of the project in order, one line each.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::context::{Context, Flags};
use crate::report::{Counts, Report};
use crate::{conformance, deps, fuzz, interop, keyring, msrv, postgres, process, published, tidy, tools};

/// One stage: a name for `--only` and `--skip`, and what it does.
struct Stage {
    name: &'static str,
    what: &'static str,
    run: fn(&Context) -> Result<Report>,
}

/// The stages, cheap and telling ones first.
const STAGES: &[Stage] = &[
    Stage {
        name: "fmt",
        what: "cargo fmt --check",
        run: |context| cargo(context, "fmt", &["fmt", "--all", "--check"], 120),
    },
    Stage { name: "tidy", what: "the house rules", run: tidy::check },
    Stage { name: "deps", what: "crates per build, against their budgets", run: deps::check },
    Stage { name: "clippy", what: "cargo clippy, warnings refused", run: clippy },
    Stage { name: "tests", what: "unit and integration tests", run: tests },
    Stage {
        name: "doctests",
        what: "examples in the documentation",
        run: |context| {
            cargo_tests(context, "doctests", &["test", "--doc", "--workspace", "--locked", "--no-fail-fast"], &[])
        },
    },
    Stage { name: "docs", what: "cargo doc, warnings refused", run: docs },
    Stage { name: "msrv", what: "the stated Rust version", run: msrv::check },
    Stage { name: "build", what: "release binaries of the program and of the conformance fixtures", run: build },
    Stage {
        name: "conformance",
        what: "the official suite",
        run: |context| conformance::check(context, &conformance::Wanted::default()),
    },
    Stage { name: "interop", what: "clients of others, every message checked against its schema", run: interop::check },
    Stage { name: "interop-client", what: "our client against servers of others", run: interop::servers::check },
    Stage { name: "published", what: "our servers beside the published ones: the same texts", run: published::check },
    Stage { name: "postgres", what: "the PostgreSQL server against a real PostgreSQL", run: postgres::check },
    Stage { name: "keyring", what: "tokens and secrets in a real keyring", run: keyring::check },
    Stage {
        name: "fuzz-smoke",
        what: "every fuzz target for a few seconds",
        run: |context| fuzz::check(context, fuzz::SMOKE_S),
    },
];

/// `cargo xtask test`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &["--only", "--skip"], &["--list"])?;
    if flags.has("--list") {
        for stage in STAGES {
            println!("{:12} {}", stage.name, stage.what);
        }
        return Ok(true);
    }
    let (only, skip) = (flags.all("--only"), flags.all("--skip"));
    for name in only.iter().chain(&skip) {
        if !STAGES.iter().any(|stage| stage.name == *name) {
            bail!("there is no stage `{name}`; --list names them");
        }
    }
    if only.is_empty() {
        room(context);
    }
    let started = Instant::now();
    let mut total = Counts::default();
    let mut skips: Vec<(&str, String)> = Vec::new();
    for stage in STAGES {
        if !only.is_empty() && !only.contains(&stage.name) {
            continue;
        }
        let report = if skip.contains(&stage.name) {
            Report::skipped("--skip was given".to_string())
        } else {
            announce(stage.name);
            run(context, stage)
        };
        total.add(report.counts);
        skips.extend(report.skips.into_iter().map(|why| (stage.name, why)));
    }
    println!();
    for (stage, why) in &skips {
        println!("skipped: {stage}: {why}");
    }
    println!("in {} s", started.elapsed().as_secs());
    println!("{total}");
    Ok(total.failed == 0)
}

/// What a run from nothing writes under `target/`, in GiB: what `du` said (12.2), and some more.
const NEEDED_GIB: u64 = 14;

/// Says so beforehand when the disk may become full: the compiler's and the linker's own words for it are a crash.
fn room(context: &Context) {
    let kib = |command: &mut Command, column: usize| -> Option<u64> {
        let said = command.stderr(Stdio::null()).output().ok()?.stdout;
        String::from_utf8_lossy(&said).lines().last()?.split_whitespace().nth(column)?.parse().ok()
    };
    let free = kib(Command::new("df").arg("-Pk").arg(&context.root), 3);
    let there = kib(Command::new("du").arg("-sk").arg(&context.target), 0).unwrap_or(0);
    let Some(free) = free.filter(|free| free + there < NEEDED_GIB << 20) else { return };
    println!(
        "note: {} MiB of disk are free; everything under {} takes about {NEEDED_GIB} GiB, so this may fail for want of room",
        free >> 10,
        context.short(&context.target)
    );
}

fn announce(name: &str) {
    use std::io::Write as _;
    print!("{name:12} ");
    let _ = std::io::stdout().flush();
}

/// Runs one stage and finishes its line; everything it said follows if it failed.
fn run(context: &Context, stage: &Stage) -> Report {
    let started = Instant::now();
    let mut report = (stage.run)(context).unwrap_or_else(|error| Report::one(false, format!("error: {error:#}\n")));
    if report.counts == Counts::default() {
        report.counts.failed = 1;
        report.text.push_str("\nnothing was checked, and nothing says why\n");
    }
    let verdict = match report.counts {
        Counts { failed: 1.., .. } => "FAILED",
        Counts { passed: 0, .. } => "skipped",
        _ => "ok",
    };
    println!("{verdict:8} {:7.1} s  {}", started.elapsed().as_secs_f64(), report.counts);
    if report.counts.failed > 0 {
        println!("{}\n", report.text.trim_end());
    }
    report
}

fn log(context: &Context, stage: &str) -> Result<PathBuf> {
    Ok(context.results("test")?.join(format!("{stage}.log")))
}

/// Runs cargo and reports one check: whether it exited with 0.
fn cargo(context: &Context, stage: &str, arguments: &[&str], seconds: u64) -> Result<Report> {
    let mut command = process::cargo();
    command.args(arguments).current_dir(&context.root);
    one(context, stage, &mut command, seconds)
}

fn one(context: &Context, stage: &str, command: &mut Command, seconds: u64) -> Result<Report> {
    let log = log(context, stage)?;
    let finished = process::run(command, &log, Duration::from_secs(seconds))?;
    Ok(Report::one(finished.ok, finished.output))
}

fn clippy(context: &Context) -> Result<Report> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--"];
    let arguments = [&arguments[..], &["-D", "warnings"]].concat();
    cargo(context, "clippy", &arguments, 1800)
}

fn docs(context: &Context) -> Result<Report> {
    let mut command = process::cargo();
    command
        .args(["doc", "--workspace", "--lib", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(&context.root);
    one(context, "docs", &mut command, 1200)
}

fn build(context: &Context) -> Result<Report> {
    let arguments = ["build", "--release", "--locked"];
    let packages = ["-p", "linchpin-cli", "-p", "linchpin-conformance"];
    cargo(context, "build", &[&arguments[..], &packages].concat(), 2400)
}

fn tests(context: &Context) -> Result<Report> {
    // Some tests of the program serve a database.
    let (programs, without) = match postgres::programs(context)? {
        Ok(programs) => (programs, None),
        Err(why) => (postgres::NONE.into(), Some(format!("the rows of PostgreSQL in apps/cli/tests: {why}"))),
    };
    let mut variables = vec![(postgres::VARIABLE, programs)];
    // Others hold their rows against those of the `sqlite3` shell.
    let shell = process::exists("sqlite3", "--version") || tools::debian(&["sqlite3"], &context.results("sqlite")?);
    if !shell {
        variables.push(("LINCHPIN_WITHOUT_SQLITE3", "1".into()));
    }
    let mut report = if process::exists("cargo-nextest", "--version") {
        let arguments = ["nextest", "run", "--workspace", "--locked"];
        let manner = ["--no-fail-fast", "--no-tests=pass", "--color=never"];
        cargo_tests(context, "tests", &[&arguments[..], &manner].concat(), &variables)?
    } else {
        let arguments = ["test", "--workspace", "--locked", "--no-fail-fast"];
        let targets = ["--lib", "--bins", "--tests", "--examples"];
        cargo_tests(context, "tests", &[&arguments[..], &targets].concat(), &variables)?
    };
    report.skips.extend(without);
    report.skips.extend((!shell).then(|| "rows of the sqlite3 shell: it cannot be installed".to_string()));
    Ok(report)
}

/// Runs a test command, with these variables, and counts the tests by what its summary lines say.
fn cargo_tests(context: &Context, stage: &str, arguments: &[&str], variables: &[(&str, PathBuf)]) -> Result<Report> {
    let mut command = process::cargo();
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value))).current_dir(&context.root);
    let mut report = one(context, stage, &mut command, 2400)?;
    let ok = report.counts.failed == 0;
    let mut counts = test_counts(&report.text);
    if !ok && counts.failed == 0 {
        // It failed without a failing test: it does not compile, or it was stopped.
        counts.failed = 1;
    }
    if counts.skipped > 0 {
        report.skips.push(format!(
            "{} tests marked as ignored (see {})",
            counts.skipped,
            context.short(&log(context, stage)?)
        ));
    }
    report.counts = counts;
    Ok(report)
}

/// Runs the tests marked as ignored of some test binaries, with variables that tell them what they need.
pub(crate) fn ignored_tests(
    context: &Context,
    stage: &str,
    binaries: &[String],
    variables: &[(&str, PathBuf)],
    seconds: u64,
) -> Result<Report> {
    let mut command = process::cargo();
    if process::exists("cargo-nextest", "--version") {
        command.args(["nextest", "run", "--run-ignored", "only", "--no-fail-fast", "--color=never", "--locked"]);
        command.args(binaries);
    } else {
        command.args(["test", "--no-fail-fast", "--locked"]).args(binaries).args(["--", "--ignored"]);
    }
    command.envs(variables.iter().map(|(name, value)| (name, value))).current_dir(&context.root);
    let mut report = one(context, stage, &mut command, seconds)?;
    let counts = test_counts(&report.text);
    // The others in these binaries are no business of this run.
    let failed = counts.failed.max(report.counts.failed);
    report.counts = Counts { failed, skipped: 0, ..counts };
    Ok(report)
}

/// Adds up `test result:` lines of cargo and `Summary` lines of nextest, which also shows those of tests that failed.
fn test_counts(output: &str) -> Counts {
    let mut counts = Counts::default();
    let by_nextest = output.lines().any(|line| line.trim_start().starts_with("Summary ["));
    for line in output.lines().map(str::trim_start) {
        let said = match (line.strip_prefix("test result:"), line.strip_prefix("Summary")) {
            (Some(_), _) if by_nextest => None,
            (Some(said), _) => said.split_once(". ").map(|(_, said)| said),
            (None, Some(said)) => said.split_once("run: ").map(|(_, said)| said),
            (None, None) => None,
        };
        for part in said.unwrap_or_default().split([',', ';']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => counts.passed += number,
                "failed" | "timed" => counts.failed += number,
                "ignored" | "skipped" => counts.skipped += number,
                _ => {}
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_cargo_and_nextest_are_added_up() {
        let cargo = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s\n\
                     test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let expected = Counts { passed: 6, failed: 2, skipped: 1 };
        assert_eq!(test_counts(cargo), expected);
        let nextest = "    test result: FAILED. 0 passed; 1 failed; 0 ignored\n     Summary [   0.052s] 7 tests run: 5 passed (1 slow), 2 failed, 3 skipped\n";
        let expected = Counts { passed: 5, failed: 2, skipped: 3 };
        assert_eq!(test_counts(nextest), expected);
    }

    #[test]
    fn every_stage_has_its_own_name() {
        for (index, stage) in STAGES.iter().enumerate() {
            assert!(STAGES[..index].iter().all(|other| other.name != stage.name));
        }
    }
}
