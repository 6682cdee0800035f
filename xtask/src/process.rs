//! Running other programs: captured, without stdin, with a deadline that ends their children too.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// What a program that ran to its end (or to its deadline) left behind.
pub(crate) struct Finished {
    /// Whether it exited with 0 before the deadline.
    pub(crate) ok: bool,
    /// stdout and stderr, interleaved as written.
    pub(crate) output: String,
}

/// Runs `command` to its end and captures both output streams into `log`, which is kept.
///
/// At `deadline` the whole process group is killed and the run counts as failed.
pub(crate) fn run(command: &mut Command, log: &Path, deadline: Duration) -> Result<Finished> {
    let mut child = spawn_logged(command, log)?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().context("cannot wait for a child process")? {
            break Some(status);
        }
        if started.elapsed() >= deadline {
            kill_group(&mut child);
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut output =
        String::from_utf8_lossy(&std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?)
            .into_owned();
    if status.is_none() {
        output.push_str(&format!("\n[stopped: not finished after {} s]\n", deadline.as_secs()));
    }
    Ok(Finished { ok: status.is_some_and(|status| status.success()), output })
}

/// Starts `command` in its own process group, without stdin, with its output in `log`.
pub(crate) fn spawn_logged(command: &mut Command, log: &Path) -> Result<Child> {
    let file = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    let twin = file.try_clone().with_context(|| format!("cannot open {} twice", log.display()))?;
    command
        .stdin(Stdio::null())
        // Captured output is read as plain text.
        .env("TERM", "dumb")
        .env("NO_COLOR", "1")
        .env("CARGO_TERM_COLOR", "never")
        .stdout(file)
        .stderr(twin)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))
}

/// Ends a child started by [`spawn_logged`] and everything it started itself.
pub(crate) fn kill_group(child: &mut Child) {
    // The standard library can only signal the child itself; its group needs kill(1).
    let group = format!("-{}", child.id());
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let _ = child.kill();
    let _ = child.wait();
}

/// The cargo that started this program, or the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Whether `program` can be started at all.
pub(crate) fn exists(program: &str, argument: &str) -> bool {
    Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_never_ends_is_stopped_with_its_children() {
        let log = std::env::temp_dir().join(format!("xtask-process-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; sleep 600 & wait"]);
        let started = Instant::now();
        let finished = run(&mut command, &log, Duration::from_millis(300)).unwrap();
        assert!(!finished.ok);
        assert!(finished.output.starts_with("begun"), "{}", finished.output);
        assert!(started.elapsed() < Duration::from_secs(10));
        std::fs::remove_file(log).unwrap();
    }
}
