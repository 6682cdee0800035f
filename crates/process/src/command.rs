//! What to start.

use crate::environment::Environment;
use crate::mask::{self, Secrets};
use crate::process::{self, Running};
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

/// A program with its arguments and environment, to be started any number of times.
///
/// ```
/// let mut command = linchpin_process::Command::new("weather");
/// command.args.extend(["--token".into(), "hidden-token".into()]);
/// assert_eq!(command.shown().0, "weather --token ***");
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Command {
    /// A file, or a name that is looked for in the child's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment variables. Default: those of this program that are in [`PASSED`](crate::PASSED).
    pub environment: Environment,
    /// Its working directory. Default: the current one.
    pub cwd: Option<PathBuf>,
    /// Values that are masked wherever the command line or the child's output is shown, beside those that look like
    /// secrets.
    pub secrets: Vec<String>,
}

/// What happens to a child, beside what it writes to its standard output.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Nothing watches over this process: the child may outlive it when it is killed.
    Unkept,
    /// A line of standard error, with secrets masked.
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

    /// Returns the command line as it may be shown, and the secrets to mask elsewhere.
    pub fn shown(&self) -> (String, Secrets) {
        let known = self.environment.secrets().chain(self.secrets.iter().cloned());
        mask::command(&self.program, &self.args, known.collect())
    }

    /// Starts the program, and keeps the last `stderr_bytes_max` bytes of its standard error. Must be called in a tokio
    /// runtime.
    ///
    /// # Errors
    /// Says which program could not be started, why, and what to do.
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
