//! `cargo xtask dist`: the packages of a release, from one profile, with checksums and a bill of materials.
//!
//! ```text
//! mod ─► installed ─► every kind of package ─► payload ─► archive, places
//! ```

mod archive;
mod bundle;
mod image;
mod installed;
mod linux;
mod npm;
mod page;
mod payload;
pub(crate) mod places;
mod sbom;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::context::{Context, Flags};
use crate::report::Report;
use crate::{process, tools};
use payload::{Payload, Target};

/// `cargo xtask dist`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &["--target", "--profile", "--out", "--add"], &["--check"])?;
    let targets = match flags.all("--target") {
        named if named.is_empty() => default_targets()?,
        named => named.into_iter().map(Target::new).collect::<Result<Vec<_>>>()?,
    };
    let here = payload::here()?;
    let is_foreign = |target: &&Target| (target.cpu(), target.os()) != (here.cpu(), here.os());
    if let (true, Some(target)) = (flags.has("--check"), targets.iter().find(is_foreign)) {
        bail!("--check installs every package on this machine: leave out --target {}", target.triple);
    }
    let out = flags.last("--out").map_or_else(|| context.target.join("packages"), PathBuf::from);
    // Other programs are started elsewhere and given its files.
    let out = std::path::absolute(out)?;
    let profile = flags.last("--profile").unwrap_or("dist");
    let mut payload = payload::collect(context, &targets, profile, 9)?;
    for file in flags.all("--add") {
        let added = payload::added(Path::new(file), &payload)?;
        payload.programs.push(added);
    }
    // This machine cannot install the programs of others: they are added after the check.
    let added = payload.programs.split_off(targets.len());
    let mut made = make(context, &payload, &out)?;
    let holds = !flags.has("--check") || installed::check(context, &payload, &out)?.print();
    if !added.is_empty() {
        payload.programs.extend(added);
        made = make(context, &payload, &out)?;
    }
    for (name, size) in &made {
        println!("{:>10}  {name}", size);
    }
    println!("{} files in {}", made.len(), context.short(&out));
    Ok(holds)
}

/// Stage `packages`: what people install, installed from its file. `--all` makes it of the distributed program.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let out = context.results("dist")?.join("packages");
    let (targets, profile, level) = match context.all {
        true => {
            with_static(context)?;
            (default_targets()?, "dist", 9)
        }
        false => (vec![payload::here()?], "dev", 1),
    };
    let payload = payload::collect(context, &targets, profile, level)?;
    make(context, &payload, &out)?;
    let mut report = installed::check(context, &payload, &out)?;
    if !context.all {
        report.skips.push("the container image and static programs: only with --all".into());
    }
    Ok(report)
}

/// This machine, and the static program for it where Rust's target is installed.
fn default_targets() -> Result<Vec<Target>> {
    let here = payload::here()?;
    let mut targets = vec![here.clone()];
    if let Some(target) = static_target(&here)? {
        let done = Command::new("rustc").args(["--print", "target-libdir", "--target", &target.triple]).output()?;
        if Path::new(String::from_utf8_lossy(&done.stdout).trim()).is_dir() && has_musl() {
            targets.push(target);
        } else {
            println!("{0}: not built; `rustup target add {0}` and musl-tools make it possible", target.triple);
        }
    }
    Ok(targets)
}

/// The target of a static program for this machine, if there is one beside its own.
fn static_target(here: &Target) -> Result<Option<Target>> {
    let has_one = here.os() == "linux" && !here.is_static();
    has_one.then(|| Target::new(&format!("{}-unknown-linux-musl", here.cpu()))).transpose()
}

/// Whether C can be compiled for a static program.
fn has_musl() -> bool {
    process::exists("musl-gcc", "--version")
}

/// Installs what a static program needs, where that is possible. Without it, its packages are skipped, and the report says so.
fn with_static(context: &Context) -> Result<()> {
    let Some(target) = static_target(&payload::here()?)? else { return Ok(()) };
    let home = context.results("dist")?;
    if has_musl() || tools::debian(&["musl-tools"], &home) && has_musl() {
        let mut install = Command::new("rustup");
        install.args(["target", "add", &target.triple]).current_dir(&context.root);
        let _ = process::run(&mut install, &home.join("target.log"), Duration::from_secs(600));
    }
    Ok(())
}

type Made = Vec<(String, Vec<u8>)>;

/// Makes every package in `out`, which is emptied before; the names and sizes of the files.
fn make(context: &Context, payload: &Payload, out: &Path) -> Result<Vec<(String, usize)>> {
    let mut made = packages(context, payload)?;
    let sums: String = made.iter().map(|(name, bytes)| format!("{}  {name}\n", hex(&Sha256::digest(bytes)))).collect();
    made.push(("SHA256SUMS".into(), sums.into_bytes()));
    if out.exists() {
        if !out.join("SHA256SUMS").is_file() && std::fs::read_dir(out)?.next().is_some() {
            bail!("{} is not empty and has no packages; name another --out", out.display());
        }
        std::fs::remove_dir_all(out)?;
    }
    for (name, bytes) in &made {
        let path = out.join(name);
        std::fs::create_dir_all(path.parent().context("a package without folder")?)?;
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(made.into_iter().map(|(name, bytes)| (name, bytes.len())).collect())
}

fn packages(context: &Context, payload: &Payload) -> Result<Made> {
    let mut made = Made::new();
    for program in &payload.programs {
        let target = &program.target;
        made.push(linux::tarball(payload, program)?);
        made.push(wheel::wheel(payload, program)?);
        made.push(sbom::sbom(context, payload, target)?);
        if target.os() == "linux" && !target.is_static() {
            made.push(linux::debian(payload, program)?);
        }
        if target.is_static() {
            made.push(image::archive(payload, program)?);
        }
        if is_bundled(target, payload.programs.iter().map(|program| &program.target)) {
            for server in payload.bundled().filter(|server| bundle::runs_on(server, target)) {
                made.push(bundle::bundle(payload, program, server)?);
            }
        }
    }
    made.extend(npm::packages(payload)?);
    made.push(("Containerfile".into(), image::definition(payload).into_bytes()));
    for server in payload.bundled() {
        made.push(bundle::registry(payload, server, &made)?);
    }
    made.push(bundle::registry_of_all(payload)?);
    Ok(made)
}

/// Whether bundles are made for a target: hosts that install them ask for one that runs everywhere, so that a static program goes
/// before another one for the same processor.
fn is_bundled<'a>(target: &Target, mut all: impl Iterator<Item = &'a Target>) -> bool {
    let is_linux = target.os() == "linux";
    !is_linux || target.is_static() || !all.any(|other| other.is_static() && other.cpu() == target.cpu())
}

/// Bytes in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_program_is_bundled_before_another_for_the_same_processor() {
        let all = [
            "x86_64-unknown-linux-gnu",
            "x86_64-unknown-linux-musl",
            "aarch64-unknown-linux-gnu",
            "aarch64-apple-darwin",
        ];
        let all = all.map(|triple| Target::new(triple).unwrap());
        assert_eq!(all.each_ref().map(|target| is_bundled(target, all.iter())), [false, true, true, true]);
    }
}
