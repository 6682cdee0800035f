//! What only `cargo xtask test --all` checks: before a release, and when dependencies or features change.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::report::{Counts, Report};
use crate::world::DIST_CONFIG;
use crate::{process, stages, tools};

/// How long any of these may take.
const STAGE_S_MAX: u64 = 3600;

/// The crates that others depend on, each of whose features must work alone.
const LIBRARIES: &[&str] = &[
    "linchpin",
    "linchpin-server",
    "linchpin-middleware",
    "linchpin-otel",
    "linchpin-client",
    "linchpin-transport",
    "linchpin-web",
    "linchpin-process",
    "linchpin-store",
    "linchpin-oauth",
    "linchpin-auth",
    "linchpin-guard",
    "linchpin-issuer",
    "linchpin-gateway",
    "linchpin-skills",
    "linchpin-apps",
];

/// The crates whose types are part of theirs.
const WORDS: &[&str] = &["linchpin-types", "linchpin-core", "linchpin-proto"];

fn one(context: &Context, stage: &str, command: &mut Command) -> Result<Report> {
    let log = context.results("test")?.join(format!("{stage}.log"));
    let finished = process::run(command.current_dir(&context.root), &log, Duration::from_secs(STAGE_S_MAX))?;
    Ok(Report::one(finished.ok, finished.output))
}

/// How large the program with its default features, every server and client among them, may be.
const PROGRAM_BYTES_MAX: u64 = 25_000_000;

/// Builds the program as README's first command does, and as it is distributed.
pub(crate) fn release(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    for profile in ["release", "dist"] {
        let mut cargo = process::cargo();
        cargo.args(["build", "--locked", "--package", "linchpin-cli", "--profile", profile]);
        if profile == "dist" {
            cargo.args(["--config", DIST_CONFIG]);
        }
        report.absorb(one(context, profile, &mut cargo)?);
    }
    let bytes = std::fs::metadata(context.target.join("dist/linchpin")).map_or(u64::MAX, |program| program.len());
    let small = format!("the program with its default features has {bytes} bytes; at most {PROGRAM_BYTES_MAX}\n");
    report.absorb(Report::one(bytes <= PROGRAM_BYTES_MAX, small));
    Ok(report)
}

/// The long form of a test that CI runs with twelve tasks and two kills. It takes less than a minute.
pub(crate) fn task_kills(context: &Context) -> Result<Report> {
    stages::ignored_tests(context, "task-kills", "test(a_thousand_tasks_survive_forty_kills)", &[], 900)
}

/// Checks every library with each of its features alone.
pub(crate) fn features(context: &Context) -> Result<Report> {
    let mut hack = Command::new(tools::cargo_subcommand(context, tools::HACK)?);
    hack.args(["hack", "check", "--locked", "--each-feature"]);
    hack.args(LIBRARIES.iter().flat_map(|library| ["--package", library]));
    one(context, "features", hack.env("RUSTFLAGS", "-D warnings").env("CARGO_TARGET_DIR", context.target.join("hack")))
}

/// Licences, sources and duplicates of dependencies, as `deny.toml` wants them.
pub(crate) fn deny(context: &Context) -> Result<Report> {
    let mut deny = Command::new(tools::cargo_subcommand(context, tools::DENY)?);
    deny.args(["--all-features", "check", "bans", "licenses", "sources"]);
    one(context, "deny", &mut deny)
}

/// What RustSec knows of dependencies.
pub(crate) fn advisories(context: &Context) -> Result<Report> {
    let mut deny = Command::new(tools::cargo_subcommand(context, tools::DENY)?);
    deny.args(["--all-features", "check", "advisories"]);
    let report = one(context, "advisories", &mut deny)?;
    Ok(match report.counts.failed > 0 && report.text.contains("failed to fetch advisory database") {
        true => Report::skipped("the database of RustSec on GitHub cannot be fetched".into()),
        false => report,
    })
}

/// Compares the public API with that of the last release, a tag `v*`.
pub(crate) fn semver(context: &Context) -> Result<Report> {
    let mut tags = Command::new("git");
    let tags = tags.args(["tag", "--list", "v*", "--sort=-version:refname"]).current_dir(&context.root).output();
    let tags = String::from_utf8(tags.context("git cannot be started")?.stdout).unwrap_or_default();
    let mut semver = Command::new(tools::cargo_subcommand(context, tools::SEMVER)?);
    let Some(last) = tags.lines().next() else {
        let starts = one(context, "semver", semver.args(["semver-checks", "--version"]))?;
        return Ok(nothing_to_compare(starts));
    };
    semver.args(["semver-checks", "--baseline-rev", last]);
    semver.args(LIBRARIES.iter().flat_map(|library| ["--package", library]));
    one(context, "semver", &mut semver)
}

/// Before the first release: the one check is that the tool starts, and the comparison counts as skipped.
fn nothing_to_compare(starts: Report) -> Report {
    let why =
        "the comparison: nothing has been released yet, there is no tag v*; only that the tool starts was checked";
    let mut report = Report::skipped(why.into());
    report.counts.add(starts.counts);
    report.text = starts.text;
    report
}

/// Which crates of others are part of the public API: those that `.config/external-types.toml` names, and no more.
pub(crate) fn external_types(context: &Context) -> Result<Report> {
    let program = tools::cargo_subcommand(context, tools::EXTERNAL_TYPES)?;
    let mut report = Report::default();
    for library in LIBRARIES.iter().chain(WORDS) {
        let name = library.strip_prefix("linchpin-").unwrap_or(library);
        let mut check = Command::new(&program);
        check.args(["check-external-types", "--all-features", "--config"]);
        check.arg(context.root.join(".config/external-types.toml"));
        // It reads what only rustdoc of a nightly compiler writes.
        check.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", context.target.join("external-types"));
        check.current_dir(context.root.join("crates").join(name));
        let log = context.results("test")?.join(format!("external-types-{name}.log"));
        let finished = process::run(&mut check, &log, Duration::from_secs(STAGE_S_MAX))?;
        report.counts.add(Counts::one(finished.ok));
        if !finished.ok {
            report.text.push_str(&finished.output);
        }
    }
    Ok(report)
}

/// Runs a program outside of the workspace that extends the SDK with public names only.
pub(crate) fn outside(context: &Context) -> Result<Report> {
    let (from, to) = (context.root.join("crates/linchpin/tests/outside"), context.target.join("outside"));
    std::fs::create_dir_all(to.join("src"))?;
    for (from, name) in [(&from, "src/main.rs"), (&context.root, "Cargo.lock")] {
        std::fs::copy(from.join(name), to.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    // Where the library is, seen from its copy.
    let manifest = std::fs::read_to_string(from.join("Cargo.toml"))?;
    let library = format!("path = {:?}", context.root.join("crates/linchpin"));
    std::fs::write(to.join("Cargo.toml"), manifest.replace("path = \"../../crates/linchpin\"", &library))?;
    let mut run = process::cargo();
    run.args(["run", "--manifest-path"]).arg(to.join("Cargo.toml")).env("CARGO_TARGET_DIR", to.join("target"));
    let mut report = one(context, "outside", &mut run)?;
    report.absorb(first_server(context)?);
    Ok(report)
}

/// Checks README's first server with the dependencies that README names, and nothing else.
fn first_server(context: &Context) -> Result<Report> {
    let readme = std::fs::read_to_string(context.root.join("README.md"))?;
    let block = |kind: &str| {
        let (_, rest) = readme.split_once(&format!("```{kind}\n")).with_context(|| format!("README has no {kind}"))?;
        rest.split_once("```").map(|(block, _)| block).context("a block of README has no end")
    };
    let home = context.target.join("outside/first");
    std::fs::create_dir_all(home.join("src"))?;
    std::fs::write(home.join("src/main.rs"), block("rust,no_run")?)?;
    let library = format!("linchpin = {{ path = {:?} }}", context.root.join("crates/linchpin"));
    // README names a clone beside the project.
    let dependencies = block("toml")?;
    let named = dependencies.lines().find(|line| line.starts_with("linchpin = "));
    let dependencies = dependencies.replace(named.context("README's dependencies lack linchpin")?, &library);
    let manifest =
        "[package]\nname = \"first\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n";
    std::fs::write(home.join("Cargo.toml"), format!("{manifest}{dependencies}"))?;
    std::fs::copy(context.root.join("Cargo.lock"), home.join("Cargo.lock"))?;
    let mut check = process::cargo();
    check.args(["check", "--manifest-path"]).arg(home.join("Cargo.toml"));
    one(context, "first", check.env("CARGO_TARGET_DIR", context.target.join("outside/target")))
}

/// Checks the workspace for Windows.
pub(crate) fn windows(context: &Context) -> Result<Report> {
    const TARGET: &str = "x86_64-pc-windows-gnu";
    const C_COMPILER: (&str, &str) = ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64");
    let home = context.results("windows")?;
    let mut target = Command::new("rustup");
    target.args(["target", "add", TARGET]).current_dir(&context.root);
    if !process::run(&mut target, &home.join("target.log"), Duration::from_secs(600)).is_ok_and(|done| done.ok) {
        return Ok(Report::skipped(format!("no standard library for {TARGET} (`rustup target add {TARGET}`)")));
    }
    let (program, package) = C_COMPILER;
    if !(process::exists(program, "--version") || tools::debian(&[package], &home)) {
        return Ok(Report::skipped(format!("no C compiler for Windows (`apt-get install {package}` as root)")));
    }
    let mut check = process::cargo();
    check.args(["check", "--workspace", "--exclude", "xtask", "--locked", "--target", TARGET]);
    one(context, "windows", &mut check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_with_nothing_is_skipped_and_not_passed() {
        let report = nothing_to_compare(Report::one(true, "cargo-semver-checks 0".into()));
        assert_eq!(report.counts, Counts { passed: 1, failed: 0, skipped: 1 });
        assert!(report.skips[0].contains("nothing has been released yet"));
        let report = nothing_to_compare(Report::one(false, "no such command".into()));
        assert_eq!(report.counts, Counts { passed: 0, failed: 1, skipped: 1 });
        assert_eq!(report.text, "no such command");
    }

    #[test]
    fn of_the_engine_only_what_is_named_may_be_in_the_public_api() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let config = std::fs::read_to_string(root.join(".config/external-types.toml")).unwrap();
        let allowed: Vec<&str> =
            config.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")).collect();
        let matches = |pattern: &&&str, path: &str| match pattern.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => **pattern == path,
        };
        let allows = |path: &str| allowed.iter().any(|pattern| matches(&pattern, path));
        assert!(!allows("linchpin_proto::Engine") && !allows("linchpin_proto"), "{allowed:?}");
        // Each other library may be part of the others' API; the bridge builds on all of them.
        let libraries = LIBRARIES.iter().chain(WORDS).map(|library| library.replace('-', "_"));
        for library in
            libraries.filter(|library| !["linchpin", "linchpin_proto", "linchpin_gateway"].contains(&&**library))
        {
            assert!(allows(&library) && allows(&format!("{library}::Any")), "{library}");
        }
    }
}
