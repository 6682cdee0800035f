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
use crate::process;

/// How long one installation may take.
const INSTALL_S_MAX: u64 = 600;

/// What was installed last; compared with the pinned files byte for byte.
const STAMP: &str = "installed.stamp";

/// The pinned files of a set, where they are kept.
fn pins(context: &Context, set: &str) -> PathBuf {
    context.root.join("conformance/interop/tools").join(set)
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
    stamp(&home, &wanted)?;
    Ok(home)
}

fn npm_ci(context: &Context, folder: &Path, what: &str, log: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"])
        .env("npm_config_cache", context.target.join("tools/npm-cache"))
        .env("npm_config_update_notifier", "false")
        .current_dir(folder);
    install(&mut npm, what, log)
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
