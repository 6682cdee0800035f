//! The minimum supported Rust version: stated once in the workspace, the same wherever it is
//! repeated, and compiled with.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::context::{Context, Flags};
use crate::process;
use crate::report::Report;

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
    Ok(stated(context)?.print() && compile(context)?.print())
}

/// The version that the workspace states.
fn version(workspace: &toml::Value) -> Result<String> {
    let version = workspace["workspace"]["package"]["rust-version"].as_str();
    Ok(version.context("Cargo.toml has no workspace.package.rust-version")?.to_string())
}

/// Compares every statement of the version.
pub(crate) fn stated(context: &Context) -> Result<Report> {
    let workspace = read_toml(context, "Cargo.toml")?;
    let stated = version(&workspace)?;
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
    let said = wrong.iter().map(|line| format!("{line}\n")).collect();
    Ok(Report::one(wrong.is_empty(), said))
}

/// `cargo check` of the library and the program with the stated toolchain, which is installed where that is possible.
pub(crate) fn compile(context: &Context) -> Result<Report> {
    let stated = version(&read_toml(context, "Cargo.toml")?)?;
    let folder = context.results("msrv")?;
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", &stated, "--profile", "minimal"]);
    if !process::run(&mut install, &folder.join("install.log"), Duration::from_secs(600)).is_ok_and(|done| done.ok) {
        return Ok(Report::skipped(format!("Rust {stated} cannot be installed (`rustup toolchain install {stated}`)")));
    }
    let mut check = Command::new("rustup");
    check
        .args(["run", &stated, "cargo", "check", "--workspace", "--exclude", "xtask", "--locked"])
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env("CARGO_TARGET_DIR", context.target.join("msrv"))
        .current_dir(&context.root);
    let finished = process::run(&mut check, &folder.join("check.log"), Duration::from_secs(1200))?;
    Ok(Report::one(finished.ok, finished.output))
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
