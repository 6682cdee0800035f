//! The PostgreSQL server against a real PostgreSQL, which its tests start for themselves on a private socket.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::context::Context;
use crate::report::Report;
use crate::{process, stages, tools};

/// The server's folder below `servers`.
pub(crate) const SERVER: &str = "postgres";
/// The variable that tells its tests where `initdb` and `postgres` are.
pub(crate) const VARIABLE: &str = "LINCHPIN_POSTGRES_BIN";
/// What it says where there is none and none can be installed: tests of more than the database go on without it.
pub(crate) const NONE: &str = "none";

/// The variable that tells them that the extension hypopg is not there.
const WITHOUT_HYPOPG: &str = "LINCHPIN_WITHOUT_HYPOPG";

const PACKAGES: &[&str] = &["postgresql"];
/// Where Debian puts the programs: a folder per major version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// How long building and running the tests may take.
const TESTS_S_MAX: u64 = 1800;

/// Runs the tests of `linchpin-postgres` that need a database.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let programs = match programs(context)? {
        Ok(programs) => programs,
        Err(why) => return Ok(Report::skipped(why)),
    };
    let mut variables = vec![(VARIABLE, programs.clone())];
    let hypopg = has_hypopg(context, &programs)?;
    if !hypopg {
        variables.push((WITHOUT_HYPOPG, PathBuf::from("1")));
    }
    let tests = format!("package(linchpin-{SERVER}) - test(/^published::/)");
    let mut report = stages::ignored_tests(context, SERVER, &tests, &variables, TESTS_S_MAX)?;
    report
        .skips
        .extend((!hypopg).then(|| "hypothetical indexes: the extension hypopg cannot be installed".to_string()));
    Ok(report)
}

/// The folder of PostgreSQL's programs, installed where possible; or why there is none.
pub(crate) fn programs(context: &Context) -> Result<Result<PathBuf, String>> {
    if let Some(said) = std::env::var_os(VARIABLE) {
        return Ok(Ok(said.into()));
    }
    if let Some(found) = newest(Path::new(DEBIAN)).or_else(on_path) {
        return Ok(Ok(found));
    }
    let home = context.results(SERVER)?;
    let installed = tools::debian(PACKAGES, &home).then(|| newest(Path::new(DEBIAN))).flatten();
    let why = || {
        format!(
            "no PostgreSQL here and it cannot be installed (`apt-get install {}` as root, or set {VARIABLE}; see {})",
            PACKAGES.join(" "),
            context.short(&home)
        )
    };
    Ok(installed.ok_or_else(why))
}

/// Whether the extension hypopg, with which indexes are imagined, is there; installed where possible.
pub(crate) fn has_hypopg(context: &Context, programs: &Path) -> Result<bool> {
    let Some(version) = debian_version(programs) else {
        return Ok(false);
    };
    let control = format!("/usr/share/postgresql/{version}/extension/hypopg.control");
    if Path::new(&control).is_file() {
        return Ok(true);
    }
    Ok(tools::debian(&[&format!("postgresql-{version}-hypopg")], &context.results(SERVER)?))
}

/// The major version of programs that Debian installed.
fn debian_version(programs: &Path) -> Option<u32> {
    let version = programs.strip_prefix(DEBIAN).ok()?.components().next()?;
    version.as_os_str().to_str()?.parse().ok()
}

/// The programs of the newest version below a folder of versions.
fn newest(versions: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(versions).ok()?.flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let found = entries.map(|entry| entry.path()).filter(|path| path.join("bin/initdb").is_file());
    found.filter_map(|path| Some((version(&path)?, path.join("bin")))).max().map(|(_, bin)| bin)
}

/// The folder on the path that has `initdb`.
fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let has = |folder: &PathBuf| {
        folder.join("initdb").is_file() && process::exists(&folder.join("initdb").to_string_lossy(), "--version")
    };
    std::env::split_paths(&path).find(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_has_its_programs_is_taken() {
        let root = std::env::temp_dir().join(format!("xtask-postgres-{}", std::process::id()));
        for version in ["9", "15", "17", "common"] {
            std::fs::create_dir_all(root.join(version).join("bin")).unwrap();
            if version != "17" {
                std::fs::write(root.join(version).join("bin/initdb"), "").unwrap();
            }
        }
        assert_eq!(newest(&root), Some(root.join("15/bin")));
        assert_eq!(newest(&root.join("none")), None);
        assert_eq!(debian_version(Path::new("/usr/lib/postgresql/15/bin")), Some(15));
        assert_eq!(debian_version(Path::new("/opt/postgresql/15/bin")), None);
        std::fs::remove_dir_all(root).unwrap();
    }
}
