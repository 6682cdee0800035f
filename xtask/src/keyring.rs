//! The keyring of the operating system, for real: a Secret Service of its own, on a bus of its own, with nothing of the
//! user's in it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::report::Report;
use crate::{process, stages, tools};

/// The programs needed, and the Debian packages they are in.
const PROGRAMS: &[&str] = &["dbus-run-session", "gnome-keyring-daemon"];
const PACKAGES: &[&str] = &["dbus", "gnome-keyring", "libsecret-tools"];

/// The tests of the library and of the program.
const TESTS: &str = "test(/^keyring::/) & (package(linchpin-auth) + package(linchpin-cli))";

/// How long the tests may take.
const TESTS_S_MAX: u64 = 600;

/// Runs the keyring tests against a Secret Service that is started for them.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let home = context.target.join("tools/keyring");
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    if !installed(&home) {
        let why = format!("no Secret Service here (`apt-get install {}` as root)", PACKAGES.join(" "));
        return Ok(Report::skipped(why));
    }
    let script = "printf x | gnome-keyring-daemon --unlock --components=secrets && exec \"$@\"";
    let mut session = Command::new("dbus-run-session");
    session.args(["--", "sh", "-c", script, "sh"]);
    // One after the other: they share the keyring's lock and its attention.
    let tests = stages::test_command(context, TESTS, &["--run-ignored", "all", "--test-threads=1"])?;
    session.arg(tests.get_program()).args(tests.get_args()).current_dir(&context.root);
    for (name, folder) in [("XDG_RUNTIME_DIR", "run"), ("XDG_DATA_HOME", "data"), ("XDG_STATE_HOME", "state")] {
        let folder = home.join(folder);
        private(&folder)?;
        session.env(name, folder);
    }
    session.env_remove("DISPLAY").env_remove("DBUS_SESSION_BUS_ADDRESS");
    let mut report = stages::counted(context, "keyring", &mut session, TESTS_S_MAX)?;
    // The others in these programs are no business of this run.
    report.counts.skipped = 0;
    report.skips.clear();
    Ok(report)
}

/// Whether the programs are there, installed where possible.
pub(crate) fn installed(home: &Path) -> bool {
    ready() || tools::debian(PACKAGES, home) && ready()
}

fn ready() -> bool {
    // The third has no option that only tells about itself; it is there if it can be started.
    let secret_tool = Command::new("secret-tool").stdin(Stdio::null()).stderr(Stdio::null()).status();
    secret_tool.is_ok() && PROGRAMS.iter().all(|program| process::exists(program, "--version"))
}

fn private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("cannot close {}", folder.display()))
}
