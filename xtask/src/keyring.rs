//! The keyring of the operating system, for real: a Secret Service of its own, on a bus of its own, with nothing of the
//! person's in it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::report::{Counts, Report};
use crate::{process, tools};

/// The programs needed, and the Debian packages they are in.
const PROGRAMS: &[&str] = &["dbus-run-session", "gnome-keyring-daemon"];
const PACKAGES: &[&str] = &["dbus", "gnome-keyring", "libsecret-tools"];

/// The tests: of the library, and of the program with one server.
const TESTS: [&[&str]; 2] = [
    &["test", "--locked", "-p", "linchpin-auth", "--features", "keyring", "--test", "keyring"],
    &[
        "test",
        "--locked",
        "-p",
        "linchpin-cli",
        "--no-default-features",
        "--features",
        "fetch,keyring",
        "--test",
        "keyring",
    ],
];

/// How long building and running a test may take.
const TEST_S_MAX: u64 = 600;

/// Runs the keyring tests against a Secret Service that is started for each.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let home = context.target.join("tools/keyring");
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    if !(ready() || tools::debian(PACKAGES, &home) && ready()) {
        let why = format!("no Secret Service here (`apt-get install {}` as root)", PACKAGES.join(" "));
        return Ok(Report::skipped(why));
    }
    let mut report = Report { counts: Counts::default(), text: String::new(), skips: Vec::new() };
    for test in TESTS {
        let (ok, output) = run(context, &home, test)?;
        report.counts.add(Counts::one(ok));
        report.text.push_str(&output);
    }
    Ok(report)
}

/// Whether the test passed, and what it said.
fn run(context: &Context, home: &Path, test: &[&str]) -> Result<(bool, String)> {
    // Built outside of the session, so that only the test itself runs in it.
    let mut build = process::cargo();
    build.args(test).arg("--no-run").current_dir(&context.root);
    let built =
        process::run(&mut build, &home.join(format!("{}-build.log", test[3])), Duration::from_secs(TEST_S_MAX))?;
    if !built.ok {
        return Ok((false, built.output));
    }
    let script = "printf x | gnome-keyring-daemon --unlock --components=secrets && exec \"$@\"";
    let cargo = process::cargo();
    let mut session = Command::new("dbus-run-session");
    session.args(["--", "sh", "-c", script, "sh"]).arg(cargo.get_program()).args(test);
    // One after the other: they share the keyring's lock and its attention.
    session.args(["--", "--nocapture", "--test-threads=1"]).current_dir(&context.root);
    for (name, folder) in [("XDG_RUNTIME_DIR", "run"), ("XDG_DATA_HOME", "data"), ("XDG_STATE_HOME", "state")] {
        let folder = home.join(folder);
        private(&folder)?;
        session.env(name, folder);
    }
    session.env_remove("DISPLAY").env_remove("DBUS_SESSION_BUS_ADDRESS").env("LINCHPIN_TEST_KEYRING", "1");
    let ran = process::run(&mut session, &home.join(format!("{}-test.log", test[3])), Duration::from_secs(TEST_S_MAX))?;
    // A test that skipped itself has proved nothing.
    let ok = ran.ok && ran.output.contains("test result: ok") && !ran.output.contains("skipped:");
    Ok((ok, ran.output))
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
