//! The lifecycle of a child process: start, exit status, shutdown.

use super::group::{Group, Keeper};
use super::mask::Secrets;
use super::stderr::Stderr;
use super::{Child, find};
use crate::link::Peer;
use linchpin_core::service::BoxFuture;
use linchpin_core::{ClientLimits, ConnectOptions, Traffic};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the exit status is waited for when the output has ended.
const STATUS_WAIT: Duration = Duration::from_millis(500);
/// How long the rest of standard error is waited for when the child has ended.
const STDERR_WAIT: Duration = Duration::from_millis(300);
/// How long descendants may outlive the child, so that its output is read.
const LEFTOVERS_WAIT: Duration = Duration::from_millis(500);
/// How long a killed child is waited for.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// A child that was started.
pub(super) struct Running {
    pub(super) process: Process,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
}

/// The process behind the streams.
pub(super) struct Process {
    group: Arc<Group>,
    /// Its exit status, once it has exited; the sender is dropped when everything is reaped.
    exit: watch::Receiver<Option<Exit>>,
    stderr: Arc<Stderr>,
    secrets: Arc<Secrets>,
    limits: Arc<ClientLimits>,
}

type Exit = Result<ExitStatus, Arc<io::Error>>;

/// Starts a child; an error says which program failed to start, why, and what to do.
pub(super) fn start(child: &Child, options: &ConnectOptions) -> Result<Running, String> {
    let (name, secrets) = child.masked();
    let failed = |why: String| secrets.hide(format!("`{name}` could not be started: {why}"));
    let environment = child.environment.of(std::env::vars_os());
    let file = find::program(&child.program, find::path(&environment).as_deref()).map_err(failed)?;
    let mut command = std::process::Command::new(&file);
    command.args(&child.args).env_clear().envs(environment);
    // A relative path is one from the folder the child starts in.
    if let Some(folder) = &child.cwd {
        command.current_dir(folder);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut command, &child.program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = Command::from(command);
    command.kill_on_drop(true);

    let keeper = Keeper::start(&mut command);
    if let Err(e) = &keeper
        && cfg!(unix)
    {
        options.show(|| {
            Traffic::Note("no keeper could be started: the server may outlive this program when it is killed")
        });
        tracing::warn!(error = %e, "no keeper could be started");
    }
    let mut process = match command.spawn() {
        Ok(process) => process,
        Err(e) => {
            if let Ok(keeper) = keeper {
                tokio::spawn(keeper.dismiss());
            }
            return Err(failed(find::explain(&file, child.cwd.as_deref(), &e)));
        }
    };
    let (group, keeper) = Group::of(&process, keeper.ok());
    let group = Arc::new(group);
    let streams = (process.stdin.take(), process.stdout.take(), process.stderr.take());
    let (Some(stdin), Some(stdout), Some(errors)) = streams else {
        return Err(failed("it has no standard streams".to_owned()));
    };
    let secrets = Arc::new(secrets);
    let stderr = Arc::new(Stderr::new(secrets.clone()));
    let (drained, seen) = (stderr.clone(), options.clone());
    tokio::spawn(async move { drained.drain(errors, &seen).await });
    let (sender, exit) = watch::channel(None);
    tokio::spawn(reap(process, keeper, group.clone(), sender));
    Ok(Running { process: Process { group, exit, stderr, secrets, limits: options.limits.clone() }, stdin, stdout })
}

/// Waits for the child to exit, kills its descendants, and reaps all.
async fn reap(
    mut child: tokio::process::Child,
    keeper: Option<Keeper>,
    group: Arc<Group>,
    exit: watch::Sender<Option<Exit>>,
) {
    let status = group.ended(&mut child, keeper.as_ref()).await;
    exit.send_replace(Some(status.map_err(Arc::new)));
    if keeper.is_some() {
        let _ = timeout(LEFTOVERS_WAIT, group.over()).await;
    }
    // Without a keeper at once: the group id may be reused when its last member has ended.
    group.kill();
    if let Some(keeper) = keeper {
        keeper.finish().await;
    }
    let _ = child.wait().await;
}

impl Process {
    /// How it has ended, if it does within `limit`.
    async fn exited(&self, limit: Duration) -> Option<Exit> {
        let mut exit = self.exit.clone();
        let exited = timeout(limit, exit.wait_for(Option::is_some)).await;
        exited.ok()?.ok()?.clone()
    }

    async fn describe(&self, error: Option<io::Error>, asked: bool) -> String {
        let when = if asked { " before answering" } else { "" };
        let mut why = match (self.exited(STATUS_WAIT).await, error) {
            (Some(exit), _) => {
                // Descendants may keep standard error open.
                self.group.kill();
                let _ = timeout(STDERR_WAIT, self.stderr.ended()).await;
                match exit {
                    Ok(status) => format!("the server {}{when}", manner(status)),
                    Err(e) => format!("the server has ended{when}, its status is unknown ({e})"),
                }
            }
            (None, None) => format!("the server closed its output{when} without exiting"),
            (None, Some(e)) if e.kind() == io::ErrorKind::BrokenPipe => {
                format!("the server closed its input{when} without exiting")
            }
            (None, Some(e)) => format!("reading from the server failed{when}: {e}"),
        };
        why.push_str(&self.stderr.last_lines());
        why
    }
}

impl Peer for Process {
    fn ended(&self, error: Option<io::Error>, asked: bool) -> BoxFuture<'_, String> {
        Box::pin(self.describe(error, asked))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let limit = Duration::from_millis;
            if self.exited(limit(self.limits.connections.close_ms_max)).await.is_none() {
                self.group.terminate();
                self.exited(limit(self.limits.child.term_ms_max)).await;
            }
            self.group.kill();
            // Until nothing is left, not even a zombie.
            let mut exit = self.exit.clone();
            let reaped = async { while exit.changed().await.is_ok() {} };
            let _ = timeout(KILL_WAIT, reaped).await;
        })
    }

    fn abandon(&self) {
        self.group.kill();
    }

    fn hide(&self, text: String) -> String {
        self.secrets.hide(text)
    }
}

/// `exited with status 1`
#[cfg(unix)]
fn manner(status: ExitStatus) -> String {
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

#[cfg(not(unix))]
fn manner(status: ExitStatus) -> String {
    status.code().map_or("has ended".to_owned(), |code| format!("exited with status {code}"))
}
