//! A process group that is terminated before it is killed.

use std::io;
use std::time::Duration;
use tokio::process::{Child, Command};

/// How long a group has to end once it was asked to, and how often is looked.
const GRACE_STEP: Duration = Duration::from_millis(20);
const GRACE_STEPS: u32 = 100;

/// A child process in a process group of its own, which is terminated gracefully.
///
/// When [`Graceful::end`] is called, or when this is dropped, the group receives SIGTERM, so that programs can remove
/// lock files and the like, and is killed two seconds later. Use it for short runs of trusted programs: to keep
/// starting cheap, there is no watchdog that ends the group when this process is killed.
///
/// # Example
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::Graceful;
/// use tokio::process::Command;
///
/// let mut group = Graceful::start(Command::new("/bin/sh").args(["-c", "exit 7"])).unwrap();
/// assert_eq!(group.wait().await, Some(7));
///
/// let mut group = Graceful::start(Command::new("sleep").arg("600")).unwrap();
/// group.end().await; // SIGTERM, and SIGKILL after two seconds
/// assert!(group.child().is_none());
/// # });
/// ```
#[derive(Debug)]
pub struct Graceful {
    child: Option<Child>,
}

impl Graceful {
    /// Starts the command in a process group of its own. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Graceful> {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        Ok(Graceful { child: Some(command.spawn()?) })
    }

    /// Returns the child, for access to its streams; `None` after [`Graceful::wait`] or [`Graceful::end`].
    pub fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// Waits for the child to exit, and returns its exit code; `None` if a signal ended it.
    pub async fn wait(&mut self) -> Option<i32> {
        let code = match self.child.as_mut() {
            Some(child) => child.wait().await.ok().and_then(|status| status.code()),
            None => None,
        };
        // Reaped: there is nothing left to stop.
        self.child = None;
        code
    }

    /// Terminates the group with SIGTERM, and kills it if it has not ended two seconds later.
    pub async fn end(&mut self) {
        if let Some(child) = self.child.take() {
            end(child).await;
        }
    }
}

impl Drop for Graceful {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        // Without a runtime (it is being shut down), `kill_on_drop` ends the child itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            signal(&child, false);
            runtime.spawn(end(child));
        }
    }
}

async fn end(mut child: Child) {
    signal(&child, false);
    for _ in 0..GRACE_STEPS {
        if over(&child) {
            break;
        }
        tokio::time::sleep(GRACE_STEP).await;
    }
    // The group first, then the wait: until its leader is reaped, its number cannot come to mean other processes.
    signal(&child, true);
    let _ = child.start_kill();
    let _ = child.wait().await;
}

#[cfg(unix)]
fn signal(child: &Child, kill: bool) {
    use rustix::process::{Signal, kill_process_group};
    if let Some(id) = crate::group::pid(child) {
        let _ = kill_process_group(id, if kill { Signal::KILL } else { Signal::TERM });
    }
}

#[cfg(not(unix))]
fn signal(_: &Child, _: bool) {}

/// Whether it has exited, without reaping it.
#[cfg(unix)]
fn over(child: &Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(id) = crate::group::pid(child) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(id), options), Ok(None))
}

#[cfg(not(unix))]
fn over(_: &Child) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_asked_first_and_its_children_end_with_it() {
        let dir = std::env::temp_dir().join(format!("linchpin-graceful-{}", std::process::id()));
        let mark = dir.display();
        let script = format!("trap 'rm -f {mark}; exit 3' TERM; : > {mark}; sleep 600 & wait");
        let mut command = Command::new("/bin/sh");
        let mut group = Graceful::start(command.args(["-c", &script])).unwrap();
        let id = group.child().and_then(|child| child.id()).unwrap();
        while !dir.exists() {
            tokio::time::sleep(GRACE_STEP).await;
        }
        group.end().await;
        assert!(!dir.exists(), "it cleaned up");
        let id = rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
        for _ in 0..200 {
            if rustix::process::test_kill_process_group(id).is_err() {
                return;
            }
            tokio::time::sleep(GRACE_STEP).await;
        }
        panic!("something of the group lives");
    }

    #[tokio::test]
    async fn an_exit_code_is_told_and_a_signal_is_none() {
        let run = |script: &'static str| async move {
            Graceful::start(Command::new("/bin/sh").args(["-c", script])).unwrap().wait().await
        };
        assert_eq!(run("exit 7").await, Some(7));
        assert_eq!(run("kill -KILL $$").await, None);
    }
}
