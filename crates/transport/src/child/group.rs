//! The process group of a child, which ends as a whole and cannot outlive this process.
//!
//! The group is led by a *keeper*: a `sh` whose input is a pipe that only this process can write to. It waits for the end
//! of that pipe, which comes when this process is gone in whatever way, and then kills its own group, descendants of the
//! child included. Nobody but the owner of the group reaps the keeper, so the group's number cannot come to mean other
//! processes before the group is over.
//!
//! Rejected: a parent-death signal. It reaches the child and not what the child has started; it comes when the *thread*
//! that started the child ends, which runtimes let happen at any time; it exists on Linux only; and setting it takes code
//! between fork and exec. A child subreaper dies with this process, when it would be needed. Control groups and namespaces
//! need rights that a library does not have.

#[cfg(unix)]
pub(super) use unix::{Group, Keeper};

#[cfg(not(unix))]
pub(super) use elsewhere::{Group, Keeper};

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::io;
    use std::process::Stdio;
    use std::sync::{Mutex, PoisonError};
    use tokio::process::{Child, Command};
    use tokio::sync::Notify;

    /// Kills its group once its input ends. Polite signals to the group are not for it.
    const KEEP: &str = "trap '' HUP INT TERM; read -r _; kill -KILL 0";

    /// The leader of a group that has no other members yet.
    pub(crate) struct Keeper {
        process: Child,
        /// The other end of its input.
        life: io::PipeWriter,
    }

    impl Keeper {
        /// Starts one; an error where there is no `sh`.
        pub(crate) fn start() -> io::Result<Keeper> {
            let (input, life) = io::pipe()?;
            let process = Command::new("/bin/sh")
                .args(["-c", KEEP, "linchpin-keeper"])
                .env_clear()
                .current_dir("/")
                .stdin(input)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()?;
            Ok(Keeper { process, life })
        }

        /// Its group, or a new one where there is no keeper.
        pub(crate) fn admit(keeper: Option<&Keeper>, command: &mut Command) {
            let group = keeper.and_then(|keeper| keeper.process.id()).and_then(|id| id.try_into().ok());
            command.process_group(group.unwrap_or(0));
        }

        /// The group with its first member in it, or without any if that could not be started. The second part is to be
        /// reaped once the group is over.
        pub(crate) fn group(keeper: Option<Keeper>, member: Option<&Child>) -> (Group, Option<Child>) {
            let leader = keeper.as_ref().map(|keeper| &keeper.process).or(member);
            let id = leader.and_then(Child::id).and_then(|id| Pid::from_raw(id.try_into().ok()?));
            let (process, life) = keeper.map(|keeper| (keeper.process, keeper.life)).unzip();
            (Group { state: Mutex::new(State { id, _life: life }), over: Notify::new() }, process)
        }
    }

    /// Dropping it kills all its members.
    pub(crate) struct Group {
        state: Mutex<State>,
        over: Notify,
    }

    struct State {
        /// The group's number, until it is over.
        id: Option<Pid>,
        _life: Option<io::PipeWriter>,
    }

    impl Group {
        /// Asks all members to end.
        pub(crate) fn terminate(&self) {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(id) = state.id {
                let _ = kill_process_group(id, Signal::TERM);
            }
        }

        /// Kills all members, the first time it is called.
        pub(crate) fn kill(&self) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(id) = state.id.take() {
                let _ = kill_process_group(id, Signal::KILL);
                self.over.notify_one();
            }
        }

        /// Resolves, for one who asks, when the group was killed.
        pub(crate) async fn over(&self) {
            self.over.notified().await;
        }

        /// Waits for the end of a member.
        pub(crate) async fn reap(&self, child: &mut Child) -> io::Result<std::process::ExitStatus> {
            child.wait().await
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            self.kill();
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::io;
    use tokio::process::{Child, Command};
    use tokio::sync::Notify;

    /// There are no groups, so nothing keeps them.
    pub(crate) struct Keeper;

    impl Keeper {
        pub(crate) fn start() -> io::Result<Keeper> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn admit(_: Option<&Keeper>, _: &mut Command) {}

        pub(crate) fn group(_: Option<Keeper>, _: Option<&Child>) -> (Group, Option<Child>) {
            (Group { killed: Notify::new() }, None)
        }
    }

    /// Stands for the child alone.
    pub(crate) struct Group {
        killed: Notify,
    }

    impl Group {
        /// There is no polite way.
        pub(crate) fn terminate(&self) {}

        pub(crate) fn kill(&self) {
            self.killed.notify_one();
        }

        pub(crate) async fn over(&self) {}

        pub(crate) async fn reap(&self, child: &mut Child) -> io::Result<std::process::ExitStatus> {
            tokio::select! {
                status = child.wait() => return status,
                () = self.killed.notified() => {}
            }
            child.kill().await?;
            child.wait().await
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            self.kill();
        }
    }
}
