//! Dependency budgets: how many unique crates a build pulls in.

use std::collections::BTreeSet;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::context::{Context, Flags};
use crate::process;
use crate::report::{Counts, Report, table};

/// One build and the most crates it may consist of, itself included.
struct Budget {
    what: &'static str,
    package: &'static str,
    /// `None`: the package as it is; `Some`: without its default features, with these.
    features: Option<&'static [&'static str]>,
    crates_max: usize,
}

/// The budgets, in one place.
const BUDGETS: &[Budget] = &[
    Budget { what: "the words", package: "linchpin-types", features: None, crates_max: 15 },
    Budget { what: "the defaults", package: "linchpin", features: None, crates_max: 55 },
    Budget {
        what: "a stdio server",
        package: "linchpin",
        features: Some(&["server", "stdio", "macros"]),
        crates_max: 50,
    },
    Budget {
        what: "an HTTP server",
        package: "linchpin",
        features: Some(&["server", "http", "macros"]),
        crates_max: 75,
    },
    Budget {
        what: "an HTTPS server",
        package: "linchpin",
        features: Some(&["server", "http", "tls", "macros"]),
        crates_max: 75,
    },
    Budget {
        what: "an HTTP server with keys",
        package: "linchpin",
        features: Some(&["server", "http", "macros", "keys"]),
        crates_max: 82,
    },
    Budget {
        what: "an HTTP server with an issuer",
        package: "linchpin",
        features: Some(&["server", "http", "macros", "guard"]),
        crates_max: 145,
    },
    Budget {
        what: "an HTTP server with an authorization server of its own",
        package: "linchpin",
        features: Some(&["server", "http", "macros", "issuer"]),
        crates_max: 175,
    },
    Budget {
        what: "the same with its store in Redis",
        package: "linchpin",
        features: Some(&["server", "http", "macros", "redis"]),
        crates_max: 187,
    },
    Budget { what: "a client of programs", package: "linchpin", features: Some(&["client", "child"]), crates_max: 55 },
    Budget {
        what: "an HTTP client with OAuth",
        package: "linchpin",
        features: Some(&["client", "child", "remote", "auth"]),
        crates_max: 140,
    },
    Budget {
        what: "a stdio server with skills",
        package: "linchpin",
        features: Some(&["server", "stdio", "macros", "skills"]),
        crates_max: 55,
    },
    Budget {
        what: "a client of programs with skills",
        package: "linchpin",
        features: Some(&["client", "child", "skills"]),
        crates_max: 60,
    },
    Budget {
        what: "a stdio server with apps",
        package: "linchpin",
        features: Some(&["server", "stdio", "macros", "apps"]),
        crates_max: 51,
    },
    Budget { what: "a bridge", package: "linchpin-gateway", features: None, crates_max: 90 },
    Budget { what: "OpenTelemetry", package: "linchpin-otel", features: None, crates_max: 135 },
    // The native servers, each alone as a library: 86 of them are the SDK with its validator.
    Budget { what: "what servers share", package: "linchpin-kit", features: None, crates_max: 50 },
    Budget { what: "sequential thinking", package: "linchpin-sequential-thinking", features: None, crates_max: 95 },
    Budget { what: "time", package: "linchpin-time", features: None, crates_max: 95 },
    Budget { what: "memory", package: "linchpin-memory", features: None, crates_max: 100 },
    Budget { what: "git", package: "linchpin-git", features: None, crates_max: 105 },
    Budget { what: "SQLite", package: "linchpin-sqlite", features: None, crates_max: 105 },
    Budget { what: "files", package: "linchpin-filesystem", features: None, crates_max: 115 },
    Budget { what: "PostgreSQL", package: "linchpin-postgres", features: None, crates_max: 140 },
    Budget { what: "the reference server", package: "linchpin-everything", features: None, crates_max: 165 },
    Budget { what: "the engine for APIs", package: "linchpin-rest", features: None, crates_max: 180 },
    Budget { what: "GitLab", package: "linchpin-gitlab", features: None, crates_max: 180 },
    Budget { what: "Slack", package: "linchpin-slack", features: None, crates_max: 180 },
    Budget { what: "Brave Search", package: "linchpin-brave-search", features: None, crates_max: 180 },
    Budget { what: "Google Drive", package: "linchpin-google-drive", features: None, crates_max: 195 },
    Budget { what: "Google Maps", package: "linchpin-google-maps", features: None, crates_max: 185 },
    Budget { what: "GitHub", package: "linchpin-github", features: None, crates_max: 180 },
    Budget { what: "Sentry", package: "linchpin-sentry", features: None, crates_max: 185 },
    Budget { what: "AWS knowledge bases", package: "linchpin-aws-kb", features: None, crates_max: 240 },
    Budget { what: "EverArt", package: "linchpin-everart", features: None, crates_max: 180 },
    Budget { what: "a browser", package: "linchpin-browser", features: None, crates_max: 180 },
    Budget { what: "pages", package: "linchpin-fetch", features: None, crates_max: 220 },
    Budget { what: "a program of one server", package: "linchpin-cli", features: Some(&["memory"]), crates_max: 160 },
    Budget { what: "the program by default", package: "linchpin-cli", features: None, crates_max: 350 },
    Budget {
        what: "the program of packages",
        package: "linchpin-cli",
        features: Some(&["default", "keyring", "redis"]),
        crates_max: 375,
    },
];

/// `cargo xtask deps`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    Flags::parse(words, &[], &[])?;
    Ok(check(context)?.print())
}

/// Measures every budget.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let mut rows = vec![["build", "features", "crates", "budget", ""].map(String::from).to_vec()];
    for budget in BUDGETS {
        let known = features_of(context, budget.package)?;
        let wanted = budget.features.unwrap_or_default();
        if let Some(missing) = wanted.iter().find(|name| !known.contains(**name)) {
            report.counts.add(Counts::one(false));
            report.text.push_str(&format!("{}: {} has no feature `{missing}`\n", budget.what, budget.package));
            continue;
        }
        let crates = unique_crates(&tree(context, budget)?);
        let within = crates.len() <= budget.crates_max;
        report.counts.add(Counts::one(within));
        rows.push(vec![
            format!("{} ({})", budget.what, budget.package),
            wanted.join(","),
            crates.len().to_string(),
            budget.crates_max.to_string(),
            if within { "" } else { "OVER" }.to_string(),
        ]);
        if !within {
            let names: Vec<&str> = crates.iter().map(String::as_str).collect();
            report.text.push_str(&format!("{}: {}\n", budget.what, names.join(", ")));
        }
    }
    report.text.insert_str(0, &table(&rows));
    Ok(report)
}

fn tree(context: &Context, budget: &Budget) -> Result<String> {
    let mut cargo = process::cargo();
    cargo
        .args(["tree", "--package", budget.package])
        .args(["--edges", "normal", "--prefix", "none"])
        .current_dir(&context.root)
        .stdin(Stdio::null());
    if let Some(features) = budget.features {
        cargo.arg("--no-default-features").args(["--features", &features.join(",")]);
    }
    let output = cargo.output().context("cargo tree cannot be started")?;
    if !output.status.success() {
        bail!("cargo tree fails for {}:\n{}", budget.package, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `name version` of each line, without paths and repeats.
fn unique_crates(tree: &str) -> BTreeSet<String> {
    tree.lines()
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

fn features_of(context: &Context, package: &str) -> Result<BTreeSet<String>> {
    let output = process::cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(&context.root)
        .stdin(Stdio::null())
        .output()
        .context("cargo metadata cannot be started")?;
    if !output.status.success() {
        bail!("cargo metadata fails:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let found = packages
        .iter()
        .find(|candidate| candidate["name"] == package)
        .with_context(|| format!("the workspace has no package {package}"))?;
    Ok(found["features"].as_object().map(|features| features.keys().cloned().collect()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once_however_often_the_tree_shows_it() {
        let tree = "app v0.1.0 (/x)\nserde v1.0.1\nserde v1.0.1 (*)\nsyn v2.0.0 (proc-macro)\nsyn v1.0.0\n\n";
        let crates = unique_crates(tree);
        let expected = ["app v0.1.0", "serde v1.0.1", "syn v1.0.0", "syn v2.0.0"];
        assert!(crates.iter().eq(expected.iter()), "{crates:?}");
    }
}
