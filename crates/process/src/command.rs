//! Commands to start.

use crate::environment::Environment;
use crate::mask::{self, Secrets};
use crate::process::{self, Running};
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

/// A program with its arguments and environment, which can be started any number of times.
///
/// ```
/// let mut command = linchpin_process::Command::new("weather");
/// command.args.extend(["--token".into(), "hidden-token".into()]);
/// assert_eq!(command.shown().0, "weather --token ***");
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Command {
    /// The path of the program, or a name that is searched for in the child's `PATH`.
    pub program: OsString,
    /// The arguments.
    pub args: Vec<OsString>,
    /// The child's environment variables. Default: those of this program that are in [`PASSED`](crate::PASSED).
    pub environment: Environment,
    /// The child's working directory. Default: the current one.
    pub cwd: Option<PathBuf>,
    /// Values that are masked wherever the command line or the child's output is shown, in addition to those that look
    /// like secrets.
    pub secrets: Vec<String>,
}

/// An event of a child process, passed to the callback of [`Command::start`].
///
/// # Example
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use linchpin_process::{Command, Event};
///
/// let mut command = Command::new("sh");
/// command.args.extend(["-c".into(), "echo 'cannot open the database' >&2".into()]);
/// let running = command.start(4096, |event| match event {
///     Event::Stderr(line) => eprintln!("server: {line}"),
///     event => eprintln!("{event:?}"),
/// });
/// running.unwrap().process.stderr_ended().await;
/// # });
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// No watchdog could be started: the child may outlive this process if this process is killed.
    Unkept,
    /// The child wrote a line to standard error. Secrets are masked.
    Stderr(&'a str),
}

impl Command {
    /// Creates a command without arguments.
    pub fn new(program: impl Into<OsString>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            environment: Environment::default(),
            cwd: None,
            secrets: Vec::new(),
        }
    }

    /// Returns the command line with its secrets masked, and the secrets to mask elsewhere.
    pub fn shown(&self) -> (String, Secrets) {
        let known = self.environment.secrets().chain(self.secrets.iter().cloned());
        mask::command(&self.program, &self.args, known.collect())
    }

    /// Returns the file that would be started.
    ///
    /// ```
    /// let why = linchpin_process::Command::new("no-such-program").find().unwrap_err();
    /// assert!(why.contains("no-such-program"));
    /// ```
    ///
    /// # Errors
    /// If there is no such program. The message is that of [`Command::start`]. A program given by its path is not
    /// searched for.
    pub fn find(&self) -> Result<PathBuf, String> {
        process::file(self, &self.environment.of(std::env::vars_os()))
    }

    /// Starts the program, and keeps the last `stderr_bytes_max` bytes of its standard error. Must be called in a tokio
    /// runtime.
    ///
    /// # Errors
    /// If the program could not be started. The message says which program, why, and what to do.
    pub fn start(
        &self,
        stderr_bytes_max: usize,
        seen: impl Fn(Event<'_>) + Send + Sync + 'static,
    ) -> Result<Running, String> {
        process::start(self, stderr_bytes_max, seen)
    }
}

/// Without the secrets: they are among the arguments and variables.
impl Hash for Command {
    fn hash<H: Hasher>(&self, all: &mut H) {
        (&self.program, &self.args, &self.cwd).hash(all);
        self.environment.hash(all);
    }
}
