//! Runs a program once, within limits, for processing untrusted input that may need too many resources.

use crate::process::exit_text;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::time::timeout;

/// Bytes of standard error that are kept, and characters of it in an error.
const STDERR_BYTES: u64 = 4 << 10;
const STDERR_CHARS: usize = 200;

/// A program that transforms one input into one output within [`Limits`].
///
/// It receives its input on standard input, with an empty environment, and runs in a process group of its own, which is
/// killed at the end of every run, also when the future is dropped.
///
/// ```
/// # #[cfg(target_os = "linux")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::{Confined, Limits, Stopped};
///
/// let cat = Confined::new("/bin/cat");
/// assert_eq!(cat.run(&[b"some ", b"bytes"], &Limits::default()).await.unwrap(), b"some bytes");
/// let few = Limits::default().with(|limits| limits.output = 4);
/// assert!(matches!(cat.run(&[b"some bytes"], &few).await, Err(Stopped::Output)));
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Confined {
    /// The path of the program.
    pub program: PathBuf,
    /// The arguments.
    pub args: Vec<OsString>,
    /// The program's own name (`argv[0]`), on Unix. Default: the path of the program.
    pub arg0: Option<OsString>,
}

/// The resource limits of a [`Confined`] program.
///
/// # Example
///
/// ```
/// use linchpin_process::Limits;
/// use std::time::Duration;
///
/// let limits = Limits::default().with(|limits| {
///     limits.memory = 64 << 20;
///     limits.wall_clock = Duration::from_secs(5);
/// });
/// assert_eq!(limits.output, 16 << 20); // the default
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum memory in bytes: heap and stacks, but not mapped files. Linux only, see [`Limits::MEMORY_ENFORCED`].
    /// Default: 256 MiB.
    pub memory: u64,
    /// The maximum processor time: its whole seconds, and one more. It also ends a program whose parent was
    /// killed. Linux only. Default: 30 s, so that a program ends after 31 s.
    pub cpu: Duration,
    /// The maximum time from start to end. Default: 30 s.
    pub wall_clock: Duration,
    /// The maximum size of the standard output in bytes. Default: 16 MiB.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let long = Duration::from_secs(30);
        Limits { memory: 256 << 20, cpu: long, wall_clock: long, output: 16 << 20 }
    }
}

impl Limits {
    /// Whether the limits on memory and processor time are enforced on this system.
    ///
    /// This is the case on Linux, where a process can set the limits of its child (`prlimit`). On other systems, only
    /// the wall-clock time and the output are limited, so pass only small inputs. macOS does not apply limits on
    /// memory, and Windows has job objects instead, which cannot be used from safe code.
    pub const MEMORY_ENFORCED: bool = cfg!(target_os = "linux");

    /// Returns these limits with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns whether the memory of this process is limited. This is the case in a child of [`Confined`] once it
    /// receives input, unless the system does not allow or support it.
    pub fn is_memory_limited() -> bool {
        #[cfg(target_os = "linux")]
        return rustix::process::getrlimit(rustix::process::Resource::Data).current.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Limits the memory and processor time of a child that was just started, and of each process that it will start,
    /// and disables core dumps. Existing lower limits are kept. Does nothing on systems where the limits are not
    /// enforced.
    pub fn apply_to(&self, child: &Child) {
        #[cfg(target_os = "linux")]
        if let Some(id) = crate::group::pid(child) {
            use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
            let seconds = self.cpu.as_secs() + 1;
            for (what, most, more) in [
                (Resource::Data, self.memory, 0),
                // SIGXCPU first, which says why, and SIGKILL if that is ignored.
                (Resource::Cpu, seconds, 1),
                (Resource::Core, 0, 0),
            ] {
                let inherited = getrlimit(what);
                let lower = |limit: Option<u64>, most: u64| limit.map_or(most, |limit| limit.min(most));
                let maximum = lower(inherited.maximum, most.saturating_add(more));
                let current = lower(inherited.current, most).min(maximum);
                // It fails when the child has ended, which is not reaped yet, and where it is forbidden: the child can ask
                // `is_memory_limited`.
                let _ = prlimit(Some(id), what, Rlimit { current: Some(current), maximum: Some(maximum) });
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = child;
    }
}

/// Why a [`Confined`] program has no result.
///
/// # Example
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::{Confined, Limits, Stopped};
///
/// let mut shell = Confined::new("/bin/sh");
/// shell.args = vec!["-c".into(), "echo 'no such file' >&2; exit 3".into()];
/// match shell.run(&[], &Limits::default()).await {
///     Err(Stopped::Failed(how)) => assert_eq!(how, "exited with status 3: no such file"),
///     other => panic!("{other:?}"),
/// }
/// # });
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Stopped {
    /// The program could not be started.
    Start(std::io::Error),
    /// The program ran out of memory.
    Memory,
    /// The program exceeded the processor time or the wall-clock time.
    Time,
    /// The program wrote too much output.
    Output,
    /// The program failed for another reason: how it ended, and the last line of its standard error.
    Failed(String),
}

/// Formats the error so that it can end a sentence: `the converter ran out of memory`.
impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Start(e) => write!(f, "could not be started: {e}"),
            Stopped::Memory => f.write_str("ran out of memory"),
            Stopped::Time => f.write_str("took too long"),
            Stopped::Output => f.write_str("wrote too much"),
            Stopped::Failed(how) => f.write_str(how),
        }
    }
}

impl std::error::Error for Stopped {}

impl Confined {
    /// Creates a program without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Confined {
        Confined { program: program.into(), args: Vec::new(), arg0: None }
    }

    /// Runs the current program with these arguments. On Linux this also works after its file has been replaced.
    ///
    /// # Errors
    /// If the path of the current program is not known.
    pub fn this_program(args: impl IntoIterator<Item = OsString>) -> std::io::Result<Confined> {
        let file = std::env::current_exe()?;
        let arg0 = std::env::args_os().next();
        // Still right when the file was replaced by a newer version.
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { file };
        Ok(Confined { program, args: args.into_iter().collect(), arg0 })
    }

    /// Runs the program on this input, and returns its output. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// If the program does not succeed within the limits.
    pub async fn run(&self, input: &[&[u8]], limits: &Limits) -> Result<Vec<u8>, Stopped> {
        match timeout(limits.wall_clock, self.run_to_end(input, limits)).await {
            Ok(done) => done,
            Err(_) => Err(Stopped::Time),
        }
    }

    async fn run_to_end(&self, input: &[&[u8]], limits: &Limits) -> Result<Vec<u8>, Stopped> {
        let mut group = Group(self.command().spawn().map_err(Stopped::Start)?);
        // Before it has any input.
        limits.apply_to(&group.0);
        let (Some(stdin), Some(stdout), Some(mut stderr)) =
            (group.0.stdin.take(), group.0.stdout.take(), group.0.stderr.take())
        else {
            return Err(Stopped::Failed("has no standard streams".to_owned()));
        };
        let mut words = Vec::new();
        let said = async {
            let _ = (&mut stderr).take(STDERR_BYTES).read_to_end(&mut words).await;
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            Ok(())
        };
        let (output, (), ()) = tokio::try_join!(read_output(stdout, limits.output), write_input(stdin, input), said)?;
        let status = group.end().await.map_err(Stopped::Start)?;
        if status.success() {
            return Ok(output);
        }
        Err(classify(status, &String::from_utf8_lossy(&words)))
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).env_clear().kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            command.process_group(0);
            if let Some(name) = &self.arg0 {
                command.arg0(name);
            }
        }
        // Programs for Windows do not start without it.
        #[cfg(windows)]
        command.envs(std::env::var_os("SystemRoot").map(|folder| ("SystemRoot", folder)));
        command
    }
}

/// Reads all output, if it is not too much.
async fn read_output(from: impl AsyncRead + Unpin, most: usize) -> Result<Vec<u8>, Stopped> {
    let mut output = Vec::new();
    let limit = (most as u64).saturating_add(1);
    from.take(limit).read_to_end(&mut output).await.map_err(Stopped::Start)?;
    if output.len() > most { Err(Stopped::Output) } else { Ok(output) }
}

/// Writes the input, as far as the program reads it.
async fn write_input(mut stdin: ChildStdin, input: &[&[u8]]) -> Result<(), Stopped> {
    for part in input {
        if stdin.write_all(part).await.is_err() {
            break;
        }
    }
    let _ = stdin.shutdown().await;
    Ok(())
}

/// Why a program ended without success.
fn classify(status: std::process::ExitStatus, words: &str) -> Stopped {
    #[cfg(unix)]
    {
        use rustix::process::Signal;
        use std::os::unix::process::ExitStatusExt;
        let signal = status.signal();
        if signal == Some(Signal::XCPU.as_raw()) {
            return Stopped::Time;
        }
        // What Rust's allocation error handler and the C++ one say.
        let starved =
            ["memory allocation of ", "std::bad_alloc", "out of memory"].iter().any(|what| words.contains(what));
        if starved {
            return Stopped::Memory;
        }
    }
    let last = words.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let last: String = last.chars().filter(|c| !c.is_control()).take(STDERR_CHARS).collect();
    let how = exit_text(status);
    Stopped::Failed(if last.is_empty() { how } else { format!("{how}: {last}") })
}

/// A child whose group is killed when this is dropped, unless it was reaped.
struct Group(Child);

impl Group {
    /// Waits for the child, and ends what it has started.
    async fn end(&mut self) -> std::io::Result<std::process::ExitStatus> {
        #[cfg(unix)]
        if let Some(leader) = crate::group::pid(&self.0) {
            use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
            // Not reaped yet: its number, which is that of the group, still means this one.
            let exited = move || waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            while let Err(rustix::io::Errno::INTR) = tokio::task::spawn_blocking(exited).await? {}
            let _ = kill_process_group(leader, Signal::KILL);
        }
        self.0.wait().await
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        use rustix::process::{Signal, kill_process_group};
        // The child leads the group, and until it is reaped its number cannot come to mean other processes.
        if let Some(id) = crate::group::pid(&self.0) {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Confined {
        let mut shell = Confined::new("/bin/sh");
        shell.args = ["-c", script].map(OsString::from).into();
        shell
    }

    async fn run(script: &str, limits: &Limits) -> Result<String, Stopped> {
        let out = shell(script).run(&[b"the input"], limits).await?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[tokio::test]
    async fn it_gets_its_input_and_nothing_else() {
        let limits = Limits::default();
        assert_eq!(run("cat; echo; env | grep -v -e PWD -e SHLVL -e _= || :", &limits).await.unwrap(), "the input\n");
        assert_eq!(run("cat >&2; ulimit -d; ulimit -t; ulimit -c", &limits).await.unwrap(), "262144\n31\n0\n");
        // What it does not read is not an error.
        let long = vec![b'x'; 1 << 20];
        assert_eq!(shell("echo done").run(&[&long], &limits).await.unwrap(), b"done\n");
    }

    #[tokio::test]
    async fn too_much_memory_time_or_output_ends_it() {
        let little = Limits::default().with(|limits| limits.memory = 1 << 20);
        assert!(run("a=0123456789abcdef; while :; do a=$a$a; done", &little).await.is_err());
        let busy = Limits::default().with(|limits| limits.cpu = Duration::ZERO);
        assert!(matches!(run("while :; do :; done", &busy).await, Err(Stopped::Time)));
        let short = Limits::default().with(|limits| limits.wall_clock = Duration::from_millis(200));
        assert!(matches!(run("sleep 600", &short).await, Err(Stopped::Time)));
        let few = Limits::default().with(|limits| limits.output = 1 << 20);
        assert!(matches!(run("while :; do echo yes; done", &few).await, Err(Stopped::Output)));
    }

    #[tokio::test]
    async fn failures_say_how_it_ended() {
        let limits = Limits::default();
        let failed = |e: Stopped| e.to_string();
        assert_eq!(run("echo first >&2; echo no good >&2; exit 3", &limits).await.map_err(failed), {
            Err("exited with status 3: no good".to_owned())
        });
        let crashed = run("kill -SEGV $$", &limits).await.map_err(failed);
        assert_eq!(crashed, Err("was killed by signal 11 (SIGSEGV)".to_owned()));
        assert!(matches!(
            run("echo memory allocation of 9 bytes failed >&2; kill -ABRT $$", &limits).await,
            Err(Stopped::Memory)
        ));
        assert!(matches!(Confined::new("/nowhere").run(&[], &limits).await, Err(Stopped::Start(_))));
    }

    #[tokio::test]
    async fn what_it_started_ends_with_it() {
        let folder = std::env::temp_dir().join(format!("linchpin-confined-{}", std::process::id()));
        let starts = format!("sleep 600 >/dev/null 2>&1 & echo $! > {};", folder.display());
        let short = Limits::default().with(|limits| limits.wall_clock = Duration::from_millis(500));
        for (script, limits, ends_well) in
            [(format!("{starts} wait"), short, false), (format!("{starts} cat"), Limits::default(), true)]
        {
            match run(&script, &limits).await {
                Ok(out) => assert!(ends_well && out == "the input"),
                Err(stopped) => assert!(!ends_well && matches!(stopped, Stopped::Time), "{stopped}"),
            }
            let id = std::fs::read_to_string(&folder).unwrap();
            let _ = std::fs::remove_file(&folder);
            is_gone(id.trim()).await;
        }
    }

    /// Killed; whoever adopts it may not have reaped it.
    async fn is_gone(id: &str) {
        let state = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        for _ in 0..200 {
            if state().is_empty() || state().contains(") Z") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it lives: {}", state());
    }
}
