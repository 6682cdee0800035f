//! The minimum supported Rust version: stated once in the workspace, the same wherever it is
//! repeated, and compiled with where that toolchain is installed.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::context::{Context, Flags};
use crate::process;
use crate::report::{Counts, Report};

/// Files that may repeat the version, with the text right before it.
const REPEATS: &[(&str, &str)] = &[
    ("README.md", "Rust "),
    ("CONTRIBUTING.md", "Rust "),
    ("ARCHITECTURE.md", "Rust "),
    ("clippy.toml", "msrv = \""),
    ("fuzz/Cargo.toml", "rust-version = \""),
];

/// `cargo xtask msrv`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    Flags::parse(words, &[], &[])?;
    Ok(check(context)?.print())
}

/// Compares every statement of the version, then compiles with it if that is possible here.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let workspace = read_toml(context, "Cargo.toml")?;
    let stated = workspace["workspace"]["package"]["rust-version"]
        .as_str()
        .context("Cargo.toml has no workspace.package.rust-version")?
        .to_string();
    let mut wrong = Vec::new();
    let members = workspace["workspace"]["members"].as_array().context("Cargo.toml has no workspace.members")?;
    for member in members.iter().filter_map(toml::Value::as_str) {
        let manifest = format!("{member}/Cargo.toml");
        let package = read_toml(context, &manifest)?;
        let inherits = package["package"]
            .get("rust-version")
            .and_then(|version| version.get("workspace"))
            .and_then(toml::Value::as_bool);
        if inherits != Some(true) {
            wrong.push(format!("{manifest}: wants `rust-version.workspace = true`"));
        }
    }
    for (file, before) in REPEATS {
        let text = std::fs::read_to_string(context.root.join(file)).unwrap_or_default();
        for version in versions_after(&text, before) {
            if version != stated {
                wrong.push(format!("{file}: says `{before}{version}`, Cargo.toml says {stated}"));
            }
        }
    }
    if !wrong.is_empty() {
        return Ok(Report::one(false, wrong.join("\n") + "\n"));
    }
    compile(context, &stated)
}

/// `cargo check` with the stated toolchain, or the reason why not.
fn compile(context: &Context, stated: &str) -> Result<Report> {
    let installed = Command::new("rustup")
        .args(["run", stated, "rustc", "--version"])
        .env("RUSTUP_AUTO_INSTALL", "0")
        .output()
        .is_ok_and(|output| output.status.success());
    let mut report = Report::one(true, format!("rust-version {stated} everywhere\n"));
    if !installed {
        report.counts.skipped += 1;
        report.skips.push(format!(
            "compiling with Rust {stated}: that toolchain is not installed (`rustup toolchain install {stated}`)"
        ));
        return Ok(report);
    }
    let log = context.results("msrv")?.join("check.log");
    let finished = process::run(
        Command::new("rustup")
            .args(["run", stated, "cargo", "check", "--workspace", "--locked"])
            .env_remove("CARGO")
            .env_remove("RUSTC")
            .env("CARGO_TARGET_DIR", context.target.join("msrv"))
            .current_dir(&context.root),
        &log,
        Duration::from_secs(1200),
    )?;
    report.counts.add(Counts::one(finished.ok));
    report.text.push_str(&finished.output);
    Ok(report)
}

fn read_toml(context: &Context, path: &str) -> Result<toml::Value> {
    let text = std::fs::read_to_string(context.root.join(path)).with_context(|| format!("cannot read {path}"))?;
    let table: toml::Table = text.parse().with_context(|| format!("{path} is not valid TOML"))?;
    Ok(toml::Value::Table(table))
}

/// The version numbers (`1.88`, `1.88.0` → `1.88`) that directly follow `before`.
fn versions_after(text: &str, before: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices(before) {
        let rest = &text[start + before.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let mut parts = rest[..end].split('.').filter(|part| !part.is_empty());
        if let (Some(major), Some(minor)) = (parts.next(), parts.next()) {
            found.push(format!("{major}.{minor}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_with_and_without_its_patch_and_edition_years_are_not_versions() {
        let text = "needs Rust 1.88.0 or later. Rust 2024 edition; Rust 1.90. Rust is fine";
        assert_eq!(versions_after(text, "Rust "), ["1.88", "1.90"]);
    }
}
