//! `cargo xtask release`: version numbers, release notes, and whether everything could be published.
//!
//! Nothing here publishes anything; `.ci/release` does, and prints what it would do unless it is told otherwise.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::context::Context;
use crate::process;
use crate::report::{Counts, Report};

/// Manifests that name versions of this workspace's crates, beside those of its members.
const ELSEWHERE: &[&str] = &["Cargo.toml", "fuzz/Cargo.toml"];

/// The heading under which changes are collected.
const UNRELEASED: &str = "## [Unreleased]";

/// How long packing all crates may take, without and with compiling them.
const PACK_S_MAX: u64 = 600;
const VERIFY_S_MAX: u64 = 3600;

const HELP: &str = "\
cargo xtask release version            the version that the workspace has
cargo xtask release order              the crates in the order in which they are published
cargo xtask release notes [VERSION]    what the changelog says of a version; of the next one without
cargo xtask release bump VERSION       writes a new version into all manifests, and its heading into the changelog
cargo xtask release check              packs every crate as it would be published; with --verify compiles each from its package";

/// `cargo xtask release`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["version"] => println!("{}", version(context)?),
        ["order"] => println!("{}", order(context)?.join("\n")),
        ["notes"] => println!("{}", notes(&changelog(context)?, None)?),
        ["notes", version] => println!("{}", notes(&changelog(context)?, Some(version))?),
        ["bump", version] => bump(context, version)?,
        ["check"] => return Ok(pack(context, false)?.print()),
        ["check", "--verify"] => return Ok(pack(context, true)?.print()),
        _ => {
            println!("{HELP}");
            return Ok(words.is_empty() || words == ["--help"]);
        }
    }
    Ok(true)
}

/// Stage `publish`: `cargo publish --dry-run` of all crates in their order.
pub(crate) fn check(context: &Context) -> Result<Report> {
    pack(context, true)
}

fn changelog(context: &Context) -> Result<String> {
    std::fs::read_to_string(context.root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")
}

fn version(context: &Context) -> Result<String> {
    let manifest: toml::Table = std::fs::read_to_string(context.root.join("Cargo.toml"))?.parse()?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    Ok(version.context("the workspace has no version")?.to_owned())
}

/// The section of a version, without its heading.
fn notes(changelog: &str, version: Option<&str>) -> Result<String> {
    let heading = version.map_or(UNRELEASED.to_owned(), |version| format!("## [{version}]"));
    let mut lines = changelog.lines().skip_while(|line| !line.starts_with(&heading));
    if lines.next().is_none() {
        bail!("CHANGELOG.md has no `{heading}`");
    }
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("## [")).collect();
    let text = section.join("\n").trim().to_owned();
    if text.is_empty() {
        bail!("CHANGELOG.md says nothing under `{heading}`");
    }
    Ok(text)
}

/// The changelog with the collected changes under a heading of their own.
fn with_heading(changelog: &str, version: &str, date: &str) -> Result<String> {
    let _ = notes(changelog, None)?;
    if changelog.contains(&format!("## [{version}]")) {
        bail!("CHANGELOG.md has {version} already");
    }
    Ok(changelog.replacen(UNRELEASED, &format!("{UNRELEASED}\n\n## [{version}] - {date}"), 1))
}

/// A manifest with another version for the workspace, and for the crates of it that it depends on.
fn with_version(manifest: &str, old: &str, new: &str) -> String {
    let (of_package, of_crate) = (format!("version = \"{old}\""), "path = \"");
    let mut inside_package = false;
    let mut out = String::with_capacity(manifest.len());
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside_package = line == "[workspace.package]";
        }
        let ours = line.contains(of_crate) || (inside_package && line.trim() == of_package);
        out.push_str(&if ours { line.replace(&of_package, &format!("version = \"{new}\"")) } else { line.to_owned() });
        out.push('\n');
    }
    out
}

fn bump(context: &Context, new: &str) -> Result<()> {
    let numbers: Vec<&str> = new.split(['-', '+']).next().unwrap_or_default().split('.').collect();
    if numbers.len() != 3 || numbers.iter().any(|number| number.parse::<u64>().is_err()) {
        bail!("`{new}` is not a version, for example 0.2.0 or 0.2.0-rc.1");
    }
    let old = version(context)?;
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().context("date cannot be started")?.stdout;
    let changes = with_heading(&changelog(context)?, new, String::from_utf8_lossy(&date).trim())?;
    let mut manifests: Vec<String> = ELSEWHERE.iter().map(|&path| path.to_owned()).collect();
    manifests.extend(members(context)?.into_values().map(|member| member.manifest));
    for path in manifests {
        let file = context.root.join(&path);
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
        let now = with_version(&text, &old, new);
        if now != text {
            std::fs::write(&file, now).with_context(|| format!("cannot write {path}"))?;
            println!("{path}");
        }
    }
    std::fs::write(context.root.join("CHANGELOG.md"), changes).context("cannot write CHANGELOG.md")?;
    println!("CHANGELOG.md");
    for lock in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let mut update = process::cargo();
        update.args(["update", "--workspace", "--quiet", "--manifest-path"]).arg(context.root.join(lock));
        if !update.status().context("cargo cannot be started")?.success() {
            bail!("the lock file beside {lock} cannot be updated");
        }
    }
    println!("from {old} to {new}; look at the difference, run the tests, and tag it v{new}");
    Ok(())
}

/// A crate of the workspace.
struct Member {
    /// Relative to the root.
    manifest: String,
    published: bool,
    /// Those that must be published before, without development dependencies.
    needs: Vec<String>,
}

fn members(context: &Context) -> Result<BTreeMap<String, Member>> {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(&context.root);
    let metadata: Value = serde_json::from_slice(&cargo.output().context("cargo cannot be started")?.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let root = context.root.display().to_string();
    let mut members = BTreeMap::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let needs = dependencies
            .filter(|dependency| dependency["kind"] != "dev")
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|needed| names.contains(needed) && *needed != name)
            .map(str::to_owned)
            .collect();
        let manifest = manifest.trim_start_matches(&root).trim_start_matches('/').to_owned();
        members.insert(name.to_owned(), Member { manifest, published: package["publish"].is_null(), needs });
    }
    Ok(members)
}

/// The published crates, each after those that it needs.
fn order(context: &Context) -> Result<Vec<String>> {
    sorted(&members(context)?)
}

fn sorted(members: &BTreeMap<String, Member>) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    let published = || members.iter().filter(|(_, member)| member.published);
    for (name, member) in published() {
        if let Some(needed) = member.needs.iter().find(|needed| !members[*needed].published) {
            bail!("{name} needs {needed}, which is not published");
        }
    }
    while order.len() < published().count() {
        let ready = published()
            .find(|(name, member)| !order.contains(name) && member.needs.iter().all(|needed| order.contains(needed)));
        order.push(ready.context("crates need one another")?.0.clone());
    }
    Ok(order)
}

/// Packs every crate as `cargo publish` would, without sending it.
fn pack(context: &Context, verify: bool) -> Result<Report> {
    let order = order(context)?;
    let mut cargo = process::cargo();
    cargo.args(["publish", "--dry-run", "--locked", "--allow-dirty"]).current_dir(&context.root);
    if !verify {
        cargo.arg("--no-verify");
    }
    for name in &order {
        cargo.args(["--package", name]);
    }
    let log = context.results("release")?.join("publish.log");
    let seconds = if verify { VERIFY_S_MAX } else { PACK_S_MAX };
    let done = process::run(&mut cargo, &log, Duration::from_secs(seconds))?;
    let packed = done.output.lines().filter(|line| line.trim_start().starts_with("Packaged ")).count();
    let passed = if done.ok { packed as u64 } else { 0 };
    let counts = Counts { passed, failed: u64::from(!done.ok || packed != order.len()), skipped: 0 };
    let text = if counts.failed > 0 { done.output } else { String::new() };
    Ok(Report { counts, text, ..Report::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGES: &str = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- a\n\n## [0.1.0] - 2026-01-01\n\n- first\n";

    #[test]
    fn notes_are_one_section() {
        assert_eq!(notes(CHANGES, None).unwrap(), "### Added\n\n- a");
        assert_eq!(notes(CHANGES, Some("0.1.0")).unwrap(), "- first");
        assert!(notes(CHANGES, Some("0.2.0")).is_err());
    }

    #[test]
    fn a_new_version_takes_what_was_collected() {
        let now = with_heading(CHANGES, "0.2.0", "2026-02-02").unwrap();
        assert_eq!(notes(&now, Some("0.2.0")).unwrap(), "### Added\n\n- a");
        assert!(notes(&now, None).is_err() && with_heading(&now, "0.3.0", "").is_err(), "nothing is collected");
        assert!(with_heading(CHANGES, "0.1.0", "").is_err());
    }

    #[test]
    fn only_versions_of_our_own_crates_change() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\n[workspace.dependencies]\n\
                        a = { path = \"a\", version = \"0.1.0\" }\nb = { version = \"0.1.0\" }\nc = \"0.1.0\"\n";
        let now = with_version(manifest, "0.1.0", "0.2.0");
        assert_eq!(now.matches("0.2.0").count(), 2);
        assert!(now.contains("b = { version = \"0.1.0\" }") && now.contains("c = \"0.1.0\""));
    }

    #[test]
    fn crates_come_after_what_they_need() {
        let member = |published, needs: &[&str]| Member {
            manifest: String::new(),
            published,
            needs: needs.iter().map(|&name| name.to_owned()).collect(),
        };
        let mut members = BTreeMap::from([
            ("a".to_owned(), member(true, &["c"])),
            ("b".to_owned(), member(false, &["a"])),
            ("c".to_owned(), member(true, &[])),
        ]);
        assert_eq!(sorted(&members).unwrap(), ["c", "a"]);
        members.insert("d".to_owned(), member(true, &["b"]));
        assert!(sorted(&members).unwrap_err().to_string().contains("d needs b"));
    }
}
