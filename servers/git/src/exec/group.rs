//! The processes of one run.

use std::time::Duration;
use tokio::process::Child;

/// A running git and everything it started.
pub(crate) struct Group {
    pub(crate) child: Option<Child>,
}

impl Group {
    pub(crate) async fn wait(&mut self) -> Option<i32> {
        let code = match self.child.as_mut() {
            Some(child) => child.wait().await.ok().and_then(|status| status.code()),
            None => None,
        };
        // Reaped: there is nothing left to stop.
        self.child = None;
        code
    }

    /// Asks the group to end, and makes it.
    pub(crate) async fn end(&mut self) {
        if let Some(child) = self.child.take() {
            end(child).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        // Without a runtime (it is being shut down), `kill_on_drop` ends git itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            signal(&child, false);
            runtime.spawn(end(child));
        }
    }
}

pub(crate) async fn end(mut child: Child) {
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
    use rustix::process::{Pid, Signal, kill_process_group};
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process_group(id, if kill { Signal::KILL } else { Signal::TERM });
    }
}

#[cfg(not(unix))]
fn signal(_: &Child, _: bool) {}

/// Bounds the memory that git, and each process it will start, can take for itself: heap and stacks of threads. Files
/// that are only mapped to be read, as git does with its packs, do not count.
#[cfg(target_os = "linux")]
pub(crate) fn confine(child: &Child, most: u64) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
    // What is allowed already cannot be raised.
    let most = getrlimit(Resource::Data).maximum.map_or(most, |allowed| allowed.min(most));
    // It fails only when git is over already: what is reaped here is nobody else's yet.
    let _ = prlimit(Some(id), Resource::Data, Rlimit { current: Some(most), maximum: Some(most) });
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn confine(_: &Child, _: u64) {}

/// Whether it has exited, without reaping it.
#[cfg(unix)]
fn over(child: &Child) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return true };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(id), options), Ok(None))
}

#[cfg(not(unix))]
fn over(_: &Child) -> bool {
    true
}

const GRACE_STEP: Duration = Duration::from_millis(20);

const GRACE_STEPS: u32 = 100;
