//! Our servers beside the published ones: each `servers/*/tests/it/published.rs` makes the same calls on both.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::report::Report;
use crate::{browser, postgres, stages, tools};

/// What the published fetch server wants of npm.
const READABILITY: &str = "readability";

/// The npm set; the Python ones are linked into its folder under these names.
const SET: &str = "published";
const PYTHON: &[(&str, &str)] = &[("py", "py-servers"), ("py1", "py-sqlite")];

/// Sets of npm with a server's description, its vendor's client and the published server; linked there too.
const APIS: &[&str] = &["github"];

/// How long building and running the tests may take.
const TESTS_S_MAX: u64 = 1800;

/// Runs the differential tests of every server that has some.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let mut variables = vec![("LINCHPIN_PUBLISHED", install(context)?)];
    let mut tests = format!("test(/^{SET}::/)");
    let mut skips = Vec::new();
    match postgres::programs(context)? {
        Ok(programs) => variables.push((postgres::VARIABLE, programs)),
        Err(why) => {
            tests.push_str(&format!(" - package(linchpin-{})", postgres::SERVER));
            skips.push(format!("{}: {why}", postgres::SERVER));
        }
    }
    if !browser::installed(context)? {
        tests.push_str(" - package(linchpin-browser)");
        skips.push("browser: there is none, and none can be installed".to_owned());
    }
    let mut report = stages::ignored_tests(context, SET, &tests, &variables, TESTS_S_MAX)?;
    report.counts.skipped += u64::try_from(skips.len()).unwrap_or(u64::MAX);
    report.skips.extend(skips);
    Ok(report)
}

/// Installs the published servers where they are missing and returns the folder: `node_modules/.bin`, `py/bin`, `py1/bin`,
/// `github/node_modules`.
pub(crate) fn install(context: &Context) -> Result<PathBuf> {
    let home = tools::npm(context, SET)?;
    for (name, set) in PYTHON {
        let interpreter = tools::python(context, set)?;
        let environment = interpreter.ancestors().nth(2).context("the interpreter is in no environment")?;
        for folder in readability(environment) {
            link(&tools::npm(context, READABILITY)?.join("node_modules"), &folder.join("node_modules"))?;
        }
        link(environment, &home.join(name))?;
    }
    for set in APIS {
        link(&tools::npm(context, set)?, &home.join(set))?;
    }
    Ok(home)
}

/// Makes `at` lead to `target`, whatever was there.
fn link(target: &Path, at: &Path) -> Result<()> {
    let _ = std::fs::remove_file(at).or_else(|_| std::fs::remove_dir_all(at));
    std::os::unix::fs::symlink(target, at).with_context(|| format!("cannot link {}", at.display()))
}

/// Where the published fetch server keeps its JavaScript half in this environment, if it is there. It would install that at
/// its first call, several of it at once into the same folder, which breaks it; so it gets an npm set of ours.
fn readability(environment: &Path) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("site-packages/readabilipy/javascript"));
    folders.filter(|folder| folder.join("package.json").is_file()).collect()
}
