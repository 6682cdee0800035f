//! The lifecycle of a child process: start, exit status, shutdown.

use crate::command::{Command, Event};
use crate::find;
use crate::group::{Group, Watchdog};
use crate::mask::Secrets;
use crate::stderr::Stderr;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long descendants may outlive the child, so that its output is read.
const LEFTOVERS_WAIT: Duration = Duration::from_millis(500);

/// A started child process. Returned by [`Command::start`].
///
/// # Example
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::Command;
/// use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
///
/// let mut running = Command::new("cat").start(4096, |_| {}).unwrap();
/// running.stdin.write_all(b"hello").await.unwrap();
/// drop(running.stdin);
/// let mut output = String::new();
/// running.stdout.read_to_string(&mut output).await.unwrap();
/// assert_eq!(output, "hello");
/// # });
/// ```
#[non_exhaustive]
pub struct Running {
    /// The process.
    pub process: Process,
    /// The standard input of the process.
    pub stdin: ChildStdin,
    /// The standard output of the process.
    pub stdout: ChildStdout,
}

/// A running child process and its descendants. They are killed when this is dropped.
///
/// # Example
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::Command;
/// use std::time::Duration;
///
/// let mut command = Command::new("sh");
/// command.args.extend(["-c".into(), "echo 'the port is in use' >&2; exit 1".into()]);
/// let process = command.start(4096, |_| {}).unwrap().process;
/// let exit = process.exited(Duration::from_secs(10)).await.expect("the process has exited");
/// process.stderr_ended().await;
/// assert!(!exit.unwrap().success());
/// assert!(process.last_lines().contains("the port is in use"));
/// # });
/// ```
pub struct Process {
    group: Arc<Group>,
    /// Its exit status, once it has exited; the sender is dropped when everything is reaped.
    exit: watch::Receiver<Option<Exit>>,
    stderr: Arc<Stderr>,
    secrets: Arc<Secrets>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once it has ended, what it left behind is seen to.
        if self.exit.borrow().is_none() {
            self.group.kill();
        }
    }
}

/// The exit status of a child process, or the error if it cannot be determined.
///
/// # Example
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::{Command, Exit, exit_text};
/// use std::time::Duration;
///
/// fn report(exit: Exit) -> String {
///     match exit {
///         Ok(status) => exit_text(status),
///         Err(error) => format!("has an unknown status: {error}"),
///     }
/// }
///
/// let running = Command::new("false").start(4096, |_| {}).unwrap();
/// let exit = running.process.exited(Duration::from_secs(10)).await.unwrap();
/// assert_eq!(report(exit), "exited with status 1");
/// # });
/// ```
pub type Exit = Result<ExitStatus, Arc<io::Error>>;

/// The file of the program. The error is that of [`start`].
pub(crate) fn file(child: &Command, environment: &BTreeMap<OsString, OsString>) -> Result<PathBuf, String> {
    find::program(&child.program, find::path(environment).as_deref()).map_err(|why| {
        let (name, secrets) = child.shown();
        secrets.hide(format!("`{name}` could not be started: {why}"))
    })
}

/// See [`Command::start`].
pub(crate) fn start(
    child: &Command,
    stderr_bytes_max: usize,
    seen: impl Fn(Event<'_>) + Send + Sync + 'static,
) -> Result<Running, String> {
    let (name, secrets) = child.shown();
    let failed = |why: String| secrets.hide(format!("`{name}` could not be started: {why}"));
    let environment = child.environment.of(std::env::vars_os());
    let file = file(child, &environment)?;
    let mut command = std::process::Command::new(&file);
    command.args(&child.args).env_clear().envs(environment);
    // A relative path is one from the folder the child starts in.
    if let Some(folder) = &child.cwd {
        command.current_dir(folder);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut command, &child.program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);

    let watchdog = Watchdog::start(&mut command);
    if let Err(e) = &watchdog
        && cfg!(unix)
    {
        seen(Event::Unkept);
        tracing::warn!(error = %e, "no watchdog could be started");
    }
    let mut process = match command.spawn() {
        Ok(process) => process,
        Err(e) => {
            if let Ok(watchdog) = watchdog {
                tokio::spawn(watchdog.dismiss());
            }
            return Err(failed(find::explain(&file, child.cwd.as_deref(), &e)));
        }
    };
    let (group, watchdog) = Group::of(&process, watchdog.ok());
    let group = Arc::new(group);
    let streams = (process.stdin.take(), process.stdout.take(), process.stderr.take());
    let (Some(stdin), Some(stdout), Some(errors)) = streams else {
        return Err(failed("it has no standard streams".to_owned()));
    };
    let secrets = Arc::new(secrets);
    let stderr = Arc::new(Stderr::new(stderr_bytes_max, secrets.clone()));
    let drained = stderr.clone();
    tokio::spawn(async move { drained.drain(errors, seen).await });
    let (sender, exit) = watch::channel(None);
    tokio::spawn(reap(process, watchdog, group.clone(), sender));
    Ok(Running { process: Process { group, exit, stderr, secrets }, stdin, stdout })
}

/// Waits for the child to exit, kills its descendants, and reaps all.
async fn reap(
    mut child: tokio::process::Child,
    watchdog: Option<Watchdog>,
    group: Arc<Group>,
    exit: watch::Sender<Option<Exit>>,
) {
    let status = group.ended(&mut child, watchdog.as_ref()).await;
    exit.send_replace(Some(status.map_err(Arc::new)));
    if watchdog.is_some() {
        let _ = timeout(LEFTOVERS_WAIT, group.over()).await;
    }
    // Without a watchdog at once: the group id may be reused when its last member has ended.
    group.kill();
    if let Some(watchdog) = watchdog {
        watchdog.finish().await;
    }
    let _ = child.wait().await;
}

impl Process {
    /// Waits for the child to exit, at most this long. Returns `None` if it has not.
    pub async fn exited(&self, limit: Duration) -> Option<Exit> {
        let mut exit = self.exit.clone();
        let exited = timeout(limit, exit.wait_for(Option::is_some)).await;
        exited.ok()?.ok()?.clone()
    }

    /// Waits until the child and its descendants have ended and are reaped, at most this long.
    pub async fn reaped(&self, limit: Duration) {
        let mut exit = self.exit.clone();
        let reaped = async { while exit.changed().await.is_ok() {} };
        let _ = timeout(limit, reaped).await;
    }

    /// Sends SIGTERM to the child and its process group. Not supported on Windows.
    pub fn terminate(&self) {
        self.group.terminate();
    }

    /// Kills the child and its process group.
    pub fn kill(&self) {
        self.group.kill();
    }

    /// Returns the resident memory of the child and its process group in bytes. Memory that processes share is counted
    /// for each of them. Returns `None` if the child has ended, and on systems other than Linux.
    ///
    /// This reads `/proc`, which blocks for about a millisecond.
    pub fn memory(&self) -> Option<u64> {
        self.group.memory()
    }

    /// Returns how many bytes have been read from the standard error so far.
    pub fn stderr_bytes(&self) -> u64 {
        self.stderr.bytes()
    }

    /// Waits until the standard error has been read to its end. Descendants of the child may keep it open.
    pub async fn stderr_ended(&self) {
        self.stderr.ended().await;
    }

    /// Returns the last lines of the standard error, formatted so that they can end a sentence.
    pub fn last_lines(&self) -> String {
        self.stderr.last_lines()
    }

    /// Returns the secrets to mask wherever output of the child is shown.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}

/// Describes how a child has ended, so that it can end a sentence: `exited with status 1`.
#[cfg(unix)]
pub fn exit_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    const NAMES: &[(i32, &str)] = &[
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => match NAMES.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => format!("was killed by signal {signal} ({name})"),
            None => format!("was killed by signal {signal}"),
        },
        _ => "has ended".to_owned(),
    }
}

/// Describes how a child has ended, so that it can end a sentence: `exited with status 1`.
#[cfg(not(unix))]
pub fn exit_text(status: ExitStatus) -> String {
    status.code().map_or("has ended".to_owned(), |code| format!("exited with status {code}"))
}

#[cfg(all(test, unix))]
mod tests {
    use crate::Command;
    use std::time::Duration;

    #[tokio::test]
    async fn a_process_that_is_dropped_is_killed() {
        let mut command = Command::new("sleep");
        command.args.push("60".into());
        let running = command.start(4096, |_| {}).unwrap();
        let mut exit = running.process.exit.clone();
        drop(running.process);
        let ended = tokio::time::timeout(Duration::from_secs(20), exit.wait_for(Option::is_some)).await;
        assert!(ended.is_ok_and(|ended| ended.is_ok()));
    }
}
