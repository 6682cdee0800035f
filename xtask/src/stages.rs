//! `cargo xtask test`: every check of the project in order, one line each.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::context::{Context, Flags};
use crate::report::{Counts, Report};
use crate::schedule::{self, Done};
use crate::world::WORLD;
use crate::{
    browser, collector, conformance, deps, dist, fuzz, guide, interop, keyring, login, longer, msrv, postgres, process,
    published, redis, release, tidy, times, tools,
};

/// One stage: a name for `--only` and `--skip`, what it does, and when.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    what: &'static str,
    run: fn(&Context) -> Result<Report>,
    /// Stages that must have ended before; where one of them failed, this one is not run.
    pub(crate) after: &'static [&'static str],
    /// Whether only `--all` runs it.
    long: bool,
}

pub(crate) const fn stage(
    name: &'static str,
    after: &'static [&'static str],
    what: &'static str,
    run: fn(&Context) -> Result<Report>,
) -> Stage {
    Stage { name, what, run, after, long: false }
}

const fn long(
    name: &'static str,
    after: &'static [&'static str],
    what: &'static str,
    run: fn(&Context) -> Result<Report>,
) -> Stage {
    Stage { long: true, ..stage(name, after, what, run) }
}

/// The stages, cheap and telling ones first. Two run at the same time where `after` allows it: what waits for a network or
/// for other programs beside what computes.
const STAGES: &[Stage] = &[
    stage("fmt", &[], "cargo fmt --check", |context| cargo(context, "fmt", &["fmt", "--all", "--check"], 120)),
    stage("tools", &[], "the pinned npm and PyPI packages that later stages use", tools::check),
    stage("tidy", &[], "the house rules", tidy::check),
    stage("deps", &[], "crates per build, against their budgets", deps::check),
    stage("msrv", &[], "the stated Rust version is the same everywhere", msrv::stated),
    stage("clippy", &[], "cargo clippy, warnings refused", clippy),
    stage("build", &[], "debug binaries of everything, for all stages below", build),
    // It has a build of its own, and is too long to be the last.
    stage("fuzz", &[], "every fuzz target for a few seconds, with --all for a minute", |context| {
        fuzz::check(context, if context.all { fuzz::LONG_S } else { fuzz::SMOKE_S })
    }),
    stage("tests", &["build", "tools"], "unit and integration tests", tests),
    stage("conformance", &["build", "tools"], "the official suite", |context| {
        conformance::check(context, &conformance::Wanted::default())
    }),
    stage("bridge", &["build", "tools"], "the official suite through a bridge between the eras", conformance::bridged),
    stage(
        "interop",
        &["build", "tools"],
        "clients of others, every message checked against its schema",
        interop::check,
    ),
    stage("interop-client", &["build", "tools"], "our client against servers of others", interop::servers::check),
    stage("login", &["build", "tools"], "clients of others log in", login::check),
    stage("published", &["build", "tools"], "our servers beside the published ones: the same texts", published::check),
    stage("postgres", &["build", "tools"], "the PostgreSQL server against a real PostgreSQL", postgres::check),
    stage("redis", &["build", "tools"], "stores in a real Redis, also through bad networks", redis::check),
    stage("browser", &["build", "tools"], "the browser server with a real Chromium", browser::check),
    stage("keyring", &["build", "tools"], "tokens and secrets in a real keyring", keyring::check),
    stage("packages", &["build"], "each package, installed from its file, answers a call", dist::check),
    stage("guide", &["build"], "what README and the guide show is what happens; the examples", guide::check),
    stage("doctests", &["build"], "examples in the documentation", doctests),
    stage("docs", &["build"], "cargo doc, warnings refused", docs),
    long("task-kills", &["build"], "a thousand tasks whose process is killed forty times", longer::task_kills),
    long("collector", &["build"], "traces and metrics in a real OpenTelemetry collector", collector::check),
    long("release", &["docs"], "the release build and the distributed one", longer::release),
    long("msrv-build", &["release"], "cargo check with the stated Rust version", msrv::compile),
    long("features", &["release"], "cargo hack: each feature of the library alone", longer::features),
    long("outside", &["release"], "a program outside of the workspace extends the SDK", longer::outside),
    long("publish", &["release"], "cargo publish --dry-run of every crate, in order", release::check),
    long("deny", &[], "cargo deny: licences, sources, duplicates", longer::deny),
    long("advisories", &[], "cargo deny: advisories of RustSec", longer::advisories),
    long("semver", &["features"], "cargo semver-checks against what is published", longer::semver),
    long("external-types", &["features"], "types of other crates in the public API", longer::external_types),
    long("windows", &["release"], "the workspace compiles for Windows", longer::windows),
];

/// How many stages run at the same time.
const SLOTS: usize = 2;

/// `cargo xtask test`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &["--only", "--skip"], &["--list", "--all"])?;
    if flags.has("--list") {
        for stage in STAGES {
            println!("{:15} {}{}", stage.name, stage.what, if stage.long { " (--all)" } else { "" });
        }
        return Ok(true);
    }
    let (only, skip) = (flags.all("--only"), flags.all("--skip"));
    for name in only.iter().chain(&skip) {
        if !STAGES.iter().any(|stage| stage.name == *name) {
            bail!("there is no stage `{name}`; --list names them");
        }
    }
    let context = &Context { all: flags.has("--all"), ..context.clone() };
    if only.is_empty() {
        room(context);
    }
    // A stage that uses the programs checks those of now, not what an earlier run has built.
    let builds = STAGES.iter().any(|stage| only.contains(&stage.name) && stage.after.contains(&"build"));
    let wanted = |stage: &&Stage| match only.is_empty() {
        true => context.all || !stage.long,
        false => only.contains(&stage.name) || (builds && stage.name == "build"),
    };
    let started = Instant::now();
    let stages: Vec<&Stage> = STAGES.iter().filter(wanted).collect();
    let done = schedule::run(&stages, SLOTS, |stage, waited_for| {
        let began = started.elapsed();
        let report = if skip.contains(&stage.name) {
            Report::skipped("--skip was given".to_string())
        } else if let Some(failed) = waited_for {
            Report::skipped(format!("the stage `{failed}` failed"))
        } else {
            run(context, stage)
        };
        Done { stage: stage.name, began, took: started.elapsed().saturating_sub(began), report }
    });
    println!();
    let mut total = Counts::default();
    for done in &done {
        total.add(done.report.counts);
        for why in &done.report.skips {
            println!("skipped: {}: {why}", done.stage);
        }
        for what in &done.report.flaky {
            println!("flaky: {}: {what}", done.stage);
        }
    }
    let times = times::table(&done, started.elapsed());
    std::fs::write(context.results("test")?.join("times.md"), times).context("cannot write the times")?;
    println!("in {} s; times by stage: target/xtask/test/times.md", started.elapsed().as_secs());
    println!("{total}");
    let unmade = unmade(&done, &skip);
    if context.all && !unmade.is_empty() {
        println!("not all of it ran: {}; `--skip STAGE` says that this is meant", unmade.join(", "));
    }
    Ok(total.failed == 0 && (!context.all || unmade.is_empty()))
}

/// Stages that made no check, though nobody said `--skip`.
fn unmade(done: &[Done], skip: &[&str]) -> Vec<&'static str> {
    let none = |done: &&Done| matches!(done.report.counts, Counts { passed: 0, failed: 0, .. });
    done.iter().filter(none).map(|done| done.stage).filter(|stage| !skip.contains(stage)).collect()
}

/// What a run from nothing writes under `target/`, in GiB: `du` of a fresh clone says 7.7.
const NEEDED_GIB: u64 = 8;

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

/// Runs one stage and prints its line; everything it said follows if it failed.
fn run(context: &Context, stage: &Stage) -> Report {
    let started = Instant::now();
    let mut report = (stage.run)(context).unwrap_or_else(|error| Report::one(false, format!("error: {error:#}\n")));
    if report.counts == Counts::default() {
        report.counts.failed = 1;
        report.text.push_str("\nthe stage ran no check and gave no reason\n");
    }
    let verdict = match report.counts {
        Counts { failed: 1.., .. } => "FAILED",
        Counts { passed: 0, .. } => "skipped",
        _ => "ok",
    };
    let mut line =
        format!("{:15} {verdict:8} {:7.1} s  {}\n", stage.name, started.elapsed().as_secs_f64(), report.counts);
    if report.counts.failed > 0 {
        line.push_str(&format!("{}\n\n", report.text.trim_end()));
    }
    print!("{line}");
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
    let arguments = [&["clippy"], WORLD, &["--all-targets", "--", "-D", "warnings"]].concat();
    cargo(context, "clippy", &arguments, 1800)
}

fn docs(context: &Context) -> Result<Report> {
    let mut command = process::cargo();
    command
        .arg("doc")
        .args(WORLD)
        .args(["--lib", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(&context.root);
    one(context, "docs", &mut command, 1200)
}

fn doctests(context: &Context) -> Result<Report> {
    let mut command = process::cargo();
    command.args(["test", "--doc", "--no-fail-fast"]).args(WORLD).current_dir(&context.root);
    counted(context, "doctests", &mut command, 1200)
}

fn build(context: &Context) -> Result<Report> {
    let mut command = nextest(context)?;
    command.arg("--no-run").args(WORLD).current_dir(&context.root);
    one(context, "build", &mut command, 2400)
}

fn tests(context: &Context) -> Result<Report> {
    // Some tests of the program serve a database.
    let (programs, without) = match postgres::programs(context)? {
        Ok(programs) => (programs, None),
        Err(why) => (postgres::NONE.into(), Some(format!("the rows of PostgreSQL in apps/cli/tests: {why}"))),
    };
    let mut command = nextest(context)?;
    command.arg("--no-fail-fast").args(WORLD).env(postgres::VARIABLE, programs).current_dir(&context.root);
    // Others hold their rows against those of the `sqlite3` shell.
    let shell = tools::sqlite3(context)?;
    if !shell {
        command.env("LINCHPIN_WITHOUT_SQLITE3", "1");
    }
    let mut report = counted(context, "tests", &mut command, 2400)?;
    report.skips.extend(without);
    report.skips.extend((!shell).then(|| "rows of the sqlite3 shell: it cannot be installed".to_string()));
    Ok(report)
}

/// Runs a test command and counts the tests by what its summary lines say.
pub(crate) fn counted(context: &Context, stage: &str, command: &mut Command, seconds: u64) -> Result<Report> {
    let mut report = one(context, stage, command, seconds)?;
    let ok = report.counts.failed == 0;
    let mut counts = test_counts(&report.text);
    if !ok && counts.failed == 0 {
        // It failed without a failing test: it does not compile, or it was stopped.
        counts.failed = 1;
    }
    report.flaky = flaky(&report.text);
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

/// `cargo nextest run`: each test is a process of its own.
fn nextest(context: &Context) -> Result<Command> {
    let mut command = Command::new(tools::cargo_subcommand(context, tools::NEXTEST)?);
    command.args(["nextest", "run", "--color=never"]);
    if std::env::var_os("NEXTEST_TEST_THREADS").is_none() {
        // Many tests wait: for a timeout, for a program.
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        command.env("NEXTEST_TEST_THREADS", (cores + cores / 2).to_string());
    }
    Ok(command)
}

/// A command that runs the tests that a filter of nextest (`test(/^a::/) & package(b)`) selects.
pub(crate) fn test_command(context: &Context, filter: &str, manner: &[&str]) -> Result<Command> {
    let mut command = nextest(context)?;
    command.arg("--no-fail-fast").args(WORLD).args(["-E", filter]).args(manner);
    Ok(command)
}

/// Runs the tests marked as ignored that a filter of nextest selects, with variables that tell them what they need.
pub(crate) fn ignored_tests(
    context: &Context,
    stage: &str,
    filter: &str,
    variables: &[(&str, PathBuf)],
    seconds: u64,
) -> Result<Report> {
    let mut command = test_command(context, filter, &["--run-ignored", "only"])?;
    command.envs(variables.iter().map(|(name, value)| (name, value))).current_dir(&context.root);
    let mut report = counted(context, stage, &mut command, seconds)?;
    // The others in these programs are no business of this run.
    report.counts.skipped = 0;
    report.skips.clear();
    Ok(report)
}

/// The tests that failed first and passed when nextest ran them again, as its summary names them, each with what it said.
fn flaky(output: &str) -> Vec<String> {
    let summary = output.lines().skip_while(|line| !line.trim_start().starts_with("Summary ["));
    let rows = summary.filter_map(|line| line.trim_start().strip_prefix("FLAKY ")?.split_once(") "));
    rows.map(|(_, name)| {
        let is_first = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("TRY 1 ") && !line.starts_with("TRY 1 SLOW") && line.ends_with(&format!(" {name}"))
        };
        let mut run = output.lines().skip_while(|line| !is_first(line));
        let status = run.next().unwrap_or_default().trim().split(" [").next().unwrap_or_default();
        let said = run.take_while(|line| !is_status(line)).skip_while(|line| !line.contains(" panicked at "));
        let said = said.map(str::trim).take_while(|line| *line != "stack backtrace:" && !line.starts_with("note: "));
        let said: Vec<&str> = said.filter(|line| !line.is_empty()).take(FLAKY_LINES_MAX).collect();
        format!("{name} passed when it was run again; {status}: {}", said.join(" | "))
    })
    .collect()
}

/// Whether nextest says on this line what became of a test: `PASS [   0.014s] (1/2) crate test`.
fn is_status(line: &str) -> bool {
    let Some((status, rest)) = line.trim_start().split_once(" [") else { return false };
    let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' ' || c == '-';
    status.starts_with(|c: char| c.is_ascii_uppercase()) && status.chars().all(is_capital) && rest.contains("s] ")
}

/// How much of what a flaky test said is shown.
const FLAKY_LINES_MAX: usize = 8;

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
    fn a_test_that_passed_when_run_again_is_named_with_what_it_said() {
        let nextest = "        PASS [   0.014s] (1/4) fl fine\n  TRY 1 SLOW [> 60.000s] (───) fl once\n  \
                       TRY 1 TMT [  60.014s] (───) fl::it m::slow\n  stdout ───\n\n    running 1 test\n\n  \
                       TRY 1 FAIL [   0.082s] (───) fl once\n  stderr ───\n\n    \
                       thread 'once' (58) panicked at src/lib.rs:1:165:\n    not yet\n\n        \
                       PASS [   0.014s] (2/4) fl other\n  TRY 2 PASS [   0.013s] (3/4) fl::it m::slow\n  \
                       TRY 2 PASS [   0.013s] (4/4) fl once\n─────\n     \
                       Summary [   0.097s] 4 tests run: 4 passed (1 slow, 2 flaky), 0 skipped\n   \
                       FLAKY 2/2 [   0.013s] (3/4) fl::it m::slow\n   FLAKY 2/2 [   0.013s] (4/4) fl once\n";
        let expected = [
            "fl::it m::slow passed when it was run again; TRY 1 TMT: ",
            "fl once passed when it was run again; TRY 1 FAIL: thread 'once' (58) panicked at src/lib.rs:1:165: | not yet",
        ];
        assert_eq!(flaky(nextest), expected);
        assert_eq!(test_counts(nextest), Counts { passed: 4, failed: 0, skipped: 0 });
        assert!(flaky("     Summary [   0.052s] 7 tests run: 7 passed, 3 skipped\n").is_empty());
    }

    #[test]
    fn stages_that_made_no_check_are_named_but_those_skipped_on_purpose() {
        let done = |stage, report| Done { stage, began: Duration::ZERO, took: Duration::ZERO, report };
        let all = [
            done("fmt", Report::one(true, String::new())),
            done("windows", Report::skipped("no C compiler".into())),
            done("msrv-build", Report::skipped("--skip was given".into())),
            done("docs", Report::one(false, String::new())),
        ];
        assert_eq!(unmade(&all, &["msrv-build"]), ["windows"]);
    }

    #[test]
    fn every_stage_has_its_own_name_and_waits_for_earlier_ones() {
        for (index, stage) in STAGES.iter().enumerate() {
            assert!(STAGES[..index].iter().all(|other| other.name != stage.name));
            // A stage waits for those before it only, so that every run comes to its end.
            let known = |name: &&str| STAGES[..index].iter().any(|other| other.name == *name);
            assert!(stage.after.iter().all(known), "{}", stage.name);
        }
    }
}
