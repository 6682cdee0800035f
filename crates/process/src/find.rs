//! Finds a program, and explains why it cannot be started.

use crate::text;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The file of a program that is named without a folder. `path` is the value of `PATH`.
///
/// Looked for here and not by the system: so the child's own `PATH` counts everywhere, errors can say what is there, and
/// on Windows scripts such as `npx.cmd` are found.
pub(crate) fn program(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, String> {
    if Path::new(name).components().count() != 1 || text(name).contains(['/', '\\']) {
        return Ok(name.into());
    }
    let mut barred = None;
    for folder in path.map(std::env::split_paths).into_iter().flatten() {
        for file in candidates(&folder, name) {
            match std::path::absolute(&file) {
                Ok(file) if is_executable(&file) => return Ok(file),
                Ok(file) if file.is_file() => barred = Some(file),
                _ => {}
            }
        }
    }
    if let Some(file) = barred {
        return Err(format!("{} is not executable; try `chmod +x`", file.display()));
    }
    let place = if path.is_some() { "it was not found in PATH" } else { "PATH is not set" };
    Err(format!("{place}; {}", advice(&text(name))))
}

/// Why a program that was found could not be started.
pub(crate) fn explain(file: &Path, cwd: Option<&Path>, e: &io::Error) -> String {
    match e.kind() {
        _ if cwd.is_some_and(|folder| !folder.is_dir()) => {
            format!("the working directory {} does not exist", cwd.unwrap_or(file).display())
        }
        io::ErrorKind::NotFound if file.exists() => {
            format!("the interpreter named in the first line of {} does not exist", file.display())
        }
        io::ErrorKind::NotFound => {
            let path = file.display().to_string();
            let hint = if path.contains(' ') { "; pass arguments separately, not with the program name" } else { "" };
            format!("{path} does not exist{hint}")
        }
        io::ErrorKind::PermissionDenied if file.is_dir() => format!("{} is a folder", file.display()),
        io::ErrorKind::PermissionDenied => format!("{} is not executable; try `chmod +x`", file.display()),
        _ if e.raw_os_error() == Some(NOT_A_PROGRAM) => {
            let what = "is neither an executable for this machine nor a script that starts with `#!`";
            format!("{} {what}", file.display())
        }
        _ => e.to_string(),
    }
}

/// `ENOEXEC`
const NOT_A_PROGRAM: i32 = 8;

fn advice(name: &str) -> &'static str {
    if name.contains(char::is_whitespace) {
        return "pass arguments separately, not with the program name; `child(\"…\")` parses a whole command line";
    }
    match name {
        "npx" | "npm" | "node" => "it is part of Node.js (https://nodejs.org)",
        "uvx" | "uv" => "it is part of uv (https://docs.astral.sh/uv)",
        "bunx" | "bun" => "it is part of Bun (https://bun.sh)",
        "python" => "many systems have it as `python3` only",
        "pipx" | "deno" | "docker" | "podman" => "install it, or add its folder to PATH",
        _ => "install it, add its folder to PATH, or give its full path",
    }
}

#[cfg(not(windows))]
fn candidates(folder: &Path, name: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::iter::once(folder.join(name))
}

#[cfg(windows)]
fn candidates(folder: &Path, name: &OsStr) -> impl Iterator<Item = PathBuf> {
    let extensions: &[&str] =
        if Path::new(name).extension().is_some() { &[""] } else { &[".com", ".exe", ".bat", ".cmd"] };
    extensions.iter().map(move |extension| {
        let mut file: OsString = name.into();
        file.push(extension);
        folder.join(file)
    })
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// `PATH` of these variables, else of this program.
pub(crate) fn path(all: &std::collections::BTreeMap<OsString, OsString>) -> Option<OsString> {
    let named =
        all.iter().find(|(name, _)| if cfg!(windows) { name.eq_ignore_ascii_case("PATH") } else { *name == "PATH" });
    named.map(|(_, value)| value.clone()).or_else(|| std::env::var_os("PATH"))
}
