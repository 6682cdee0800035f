//! A process group that is asked to end before it is killed.

use std::io;
use std::time::Duration;
use tokio::process::{Child, Command};

/// How long a group has to end once it was asked to, and how often is looked.
const GRACE_STEP: Duration = Duration::from_millis(20);
const GRACE_STEPS: u32 = 100;

/// A child that leads a process group of its own. To end it, and when this is dropped, the group is asked to end
/// (SIGTERM), so that programs remove lock files and the like, and killed two seconds later. For short runs of programs
/// that are trusted to that point; it has no watchdog, so that starting it costs nothing more.
#[derive(Debug)]
pub struct Graceful {
    child: Option<Child>,
}

impl Graceful {
    /// Starts the command in a group of its own. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Graceful> {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        Ok(Graceful { child: Some(command.spawn()?) })
    }

    /// The child, for its streams; `None` once it has ended.
    pub fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// Waits for its end; its exit code, unless a signal ended it.
    pub async fn wait(&mut self) -> Option<i32> {
        let code = match self.child.as_mut() {
            Some(child) => child.wait().await.ok().and_then(|status| status.code()),
            None => None,
        };
        // Reaped: there is nothing left to stop.
        self.child = None;
        code
    }

    /// Asks the group to end, and makes it.
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
