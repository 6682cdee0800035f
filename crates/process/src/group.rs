//! A child process and its descendants, which are killed together and cannot outlive this process.
//!
//! Every child has a process group of its own, and a *watchdog*: a `sh` whose input is a pipe that only this process can
//! write to. It waits for the end of that pipe, which comes when this process is gone in whatever way, and then kills
//! the group.
//!
//! **On Linux** it also kills the descendants that have left the group. All of them have inherited the *mark* of the
//! child, a number, in two places: their environment, and their limit on file locks, of which the kernel has made no
//! use since 2.4.25. The first may be replaced. The second is placed a moment after the start, and not at all where
//! this program has inherited one itself. The watchdog kills whoever has the mark in either place, until nobody new is
//! found; where the group is over before this process is, that needs no watchdog. It is in a group of its own, where
//! signals that a server sends to its group do not reach it. The child leads the other one, and is not reaped before
//! that is over, so that its number cannot come to mean other processes.
//!
//! **On other systems** the watchdog leads the group itself, and is what is not reaped.
//!
//! Rejected: a child subreaper, to which orphans are given. It would have to be the parent of the child and to outlive
//! this process, and a library has no program for that: a `sh` as the parent passes on neither every variable nor the
//! errors of a start, and a fork of this process would hold on to all its memory. A parent-death signal: it does not
//! reach what the child has started; it comes when the *thread* that started the child ends, which runtimes let happen
//! at any time; and setting it takes code between fork and exec. Control groups and namespaces need rights that a
//! library does not have.

#[cfg(unix)]
pub(crate) use unix::{Group, Watchdog, pid};

#[cfg(not(unix))]
pub(crate) use elsewhere::{Group, Watchdog};

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::io::{self, Write};
    #[cfg(target_os = "linux")]
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Stdio};
    use std::sync::{Mutex, PoisonError};
    use tokio::process::{Child, Command};
    #[cfg(target_os = "linux")]
    use tokio::signal::unix::{SignalKind, signal};
    use tokio::sync::Notify;
    #[cfg(target_os = "linux")]
    use tokio::time::{Duration, timeout};

    /// Kills the group that its first line names once its input ends, then whoever has the mark, if it is given one. A
    /// look at all processes may miss one that ends meanwhile and leaves a new one behind, so it ends with two looks at
    /// those not seen before that find nobody.
    const WATCH: &str = r#"
        trap '' HUP INT TERM
        read -r group && { read -r _; kill -KILL "-$group"; }
        [ -n "$1" ] || exit
        seen=' ' calm=0
        while [ "$calm" -lt 2 ]; do
            calm=$((calm + 1)) new=
            for process in /proc/[0-9]*; do
                case $seen in *" $process "*) continue ;; esac
                seen="$seen$process " new="$new $process/environ $process/limits"
            done
            for file in $(grep -ls -e "$1" /dev/null $new); do
                process=${file%/*}
                kill -KILL "${process#/proc/}" && calm=0
            done
        done"#;

    /// The watchdog of a group that has no members yet.
    pub(crate) struct Watchdog {
        process: Child,
        /// The other end of its input: dropping it has the work done.
        life: io::PipeWriter,
        mark: Option<u64>,
    }

    impl Watchdog {
        /// Starts a watchdog for the command; an error if there is no `sh`.
        pub(crate) fn start(command: &mut Command) -> io::Result<Watchdog> {
            command.process_group(0);
            let mark = mark::environment(command);
            let (input, life) = io::pipe()?;
            let process = Command::new("/bin/sh")
                .args(["-c", WATCH, "linchpin-watchdog"])
                .args(mark.map(|mark| mark.to_string()))
                .env_clear()
                .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
                .current_dir("/")
                .stdin(input)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()?;
            if !cfg!(target_os = "linux") {
                command.process_group(process.id().and_then(|id| id.try_into().ok()).unwrap_or(0));
            }
            Ok(Watchdog { process, life, mark })
        }

        /// Tells the watchdog its group.
        fn keep(mut self, child: &Child, group: Option<Pid>) -> Watchdog {
            if let Some((mark, child)) = self.mark.zip(pid(child)) {
                mark::limit(child, mark);
            }
            if let Some(group) = group {
                let _ = writeln!(self.life, "{group}");
            }
            self
        }

        /// Kills whoever has the mark, which takes no other program while this one lives, and ends the watchdog. It goes
        /// on by itself where this is cut short.
        pub(crate) async fn finish(self) {
            let swept = match self.mark {
                Some(mark) => tokio::task::spawn_blocking(move || mark::sweep(mark)).await.is_ok(),
                None => true,
            };
            if swept {
                self.dismiss().await;
            }
        }

        /// Ends it, because the group does not exist.
        pub(crate) async fn dismiss(mut self) {
            let _ = self.process.kill().await;
        }
    }

    /// Dropping it kills all its members.
    pub(crate) struct Group {
        /// Its process id, until it is reaped.
        id: Mutex<Option<Pid>>,
        over: Notify,
    }

    impl Group {
        /// The group of a started child, and its watchdog, which cleans up when the group ends.
        pub(crate) fn of(child: &Child, watchdog: Option<Watchdog>) -> (Group, Option<Watchdog>) {
            let leader = watchdog.as_ref().map(|watchdog| &watchdog.process).filter(|_| !cfg!(target_os = "linux"));
            let id = pid(leader.unwrap_or(child));
            let watchdog = watchdog.map(|watchdog| watchdog.keep(child, id));
            (Group { id: Mutex::new(id), over: Notify::new() }, watchdog)
        }

        /// Sends SIGTERM to all members.
        pub(crate) fn terminate(&self) {
            let id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(id) = *id {
                let _ = kill_process_group(id, Signal::TERM);
            }
        }

        /// Resident bytes of all members, where that can be known.
        pub(crate) fn memory(&self) -> Option<u64> {
            let id = *self.id.lock().unwrap_or_else(PoisonError::into_inner);
            crate::memory::resident(id?.as_raw_nonzero().get())
        }

        /// Kills all members, the first time it is called.
        pub(crate) fn kill(&self) {
            let mut id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(id) = id.take() {
                let _ = kill_process_group(id, Signal::KILL);
                self.over.notify_one();
            }
        }

        /// Resolves when the group has been killed.
        pub(crate) async fn over(&self) {
            self.over.notified().await;
        }

        /// Waits for the end of the child; where its number is that of the group, it is left to be reaped.
        #[cfg(target_os = "linux")]
        pub(crate) async fn ended(&self, child: &mut Child, watchdog: Option<&Watchdog>) -> io::Result<ExitStatus> {
            use rustix::process::{WaitId, WaitIdOptions, waitid};
            // A process that was just being forked when its parent was limited is not, and is found a little later.
            let mut looks = [1, 10, 100].map(Duration::from_millis).into_iter();
            let mut ends = signal(SignalKind::child())?;
            let id = pid(child).ok_or(io::ErrorKind::NotFound)?;
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            loop {
                if let Some(status) = waitid(WaitId::Pid(id), how)? {
                    let signal = status.terminating_signal().unwrap_or(0);
                    return Ok(ExitStatus::from_raw(status.exit_status().map_or(signal, |code| code << 8)));
                }
                let Some(look) = looks.next() else {
                    ends.recv().await;
                    continue;
                };
                let _ = timeout(look, ends.recv()).await;
                if let Some(mark) = watchdog.and_then(|watchdog| watchdog.mark) {
                    mark::limit(id, mark);
                }
            }
        }

        #[cfg(not(target_os = "linux"))]
        pub(crate) async fn ended(&self, child: &mut Child, _: Option<&Watchdog>) -> io::Result<ExitStatus> {
            child.wait().await
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            self.kill();
        }
    }

    pub(crate) fn pid(process: &Child) -> Option<Pid> {
        process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?))
    }

    #[cfg(target_os = "linux")]
    mod mark {
        use memchr::memmem;
        use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
        use std::collections::HashSet;
        use std::ffi::OsString;
        use std::hash::{BuildHasher, RandomState};
        use tokio::process::Command;

        /// The marks of a process, its own one last.
        const VARIABLE: &str = "LINCHPIN_CHILD";

        /// Sets a new mark in the environment of the command.
        pub(super) fn environment(command: &mut Command) -> Option<u64> {
            // Nineteen digits.
            let mark = 10_u64.pow(18) + RandomState::new().hash_one(()) % (8 * 10_u64.pow(18));
            let mut all = std::env::var_os(VARIABLE).map_or_else(OsString::new, |outer| {
                let mut all = outer;
                all.push(" ");
                all
            });
            all.push(mark.to_string());
            command.env(VARIABLE, all);
            Some(mark)
        }

        /// Sets it as the limit on file locks, unless there is one: that may be the mark of the parent of this program.
        pub(super) fn limit(child: Pid, mark: u64) {
            if getrlimit(Resource::Locks).maximum.is_none() {
                place(child, mark);
            }
        }

        /// Limits a process, and the children that it started before.
        fn place(process: Pid, mark: u64) {
            let _ = prlimit(Some(process), Resource::Locks, Rlimit { current: Some(mark), maximum: Some(mark) });
            let children =
                std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
            children.for_each(|child| place(child, mark));
        }

        /// Kills all processes with the mark, as [`WATCH`](super::WATCH) does.
        pub(super) fn sweep(mark: u64) {
            let mark = mark.to_string();
            let has = |id: Pid, file: &str| {
                let text = std::fs::read(format!("/proc/{id}/{file}"));
                text.is_ok_and(|text| memmem::find(&text, mark.as_bytes()).is_some())
            };
            let (mut seen, mut calm) = (HashSet::new(), 0);
            while calm < 2 {
                calm += 1;
                let all = std::fs::read_dir("/proc").into_iter().flatten();
                for id in all.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?)) {
                    if seen.insert(id)
                        && (has(id, "environ") || has(id, "limits"))
                        && kill_process(id, Signal::KILL).is_ok()
                    {
                        calm = 0;
                    }
                }
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod mark {
        pub(super) fn environment(_: &mut tokio::process::Command) -> Option<u64> {
            None
        }

        pub(super) fn limit(_: rustix::process::Pid, _: u64) {}

        pub(super) fn sweep(_: u64) {}
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::io;
    use tokio::process::{Child, Command};
    use tokio::sync::Notify;

    /// No process groups on this system, so no watchdog.
    pub(crate) struct Watchdog;

    impl Watchdog {
        pub(crate) fn start(_: &mut Command) -> io::Result<Watchdog> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) async fn finish(self) {}

        pub(crate) async fn dismiss(self) {}
    }

    /// Stands for the child alone.
    pub(crate) struct Group {
        killed: Notify,
    }

    impl Group {
        pub(crate) fn of(_: &Child, _: Option<Watchdog>) -> (Group, Option<Watchdog>) {
            (Group { killed: Notify::new() }, None)
        }

        /// Not supported.
        pub(crate) fn memory(&self) -> Option<u64> {
            None
        }

        /// Not supported.
        pub(crate) fn terminate(&self) {}

        pub(crate) fn kill(&self) {
            self.killed.notify_one();
        }

        pub(crate) async fn over(&self) {}

        pub(crate) async fn ended(
            &self,
            child: &mut Child,
            _: Option<&Watchdog>,
        ) -> io::Result<std::process::ExitStatus> {
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
