//! A server as a child process: one message per line on its standard input and output. See [`Child`].

mod process;

pub use linchpin_process::is_secret_name;

use crate::link::PipeTransport;
use linchpin_core::service::BoxFuture;
use linchpin_core::{ClientTransport, ConnectOptions, Connector, Traffic, TransportError};
use linchpin_process::{Command, Event, PASSED, Running};
use process::ServerProcess;
use std::ffi::OsString;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Returns a connector that starts a server with this command line.
///
/// The line is split into words as a POSIX shell does. No shell is run: variables, pipes and the like have no effect.
///
/// ```
/// let server = linchpin_transport::child::child("npx -y @scope/some-server '/a path with blanks'")?;
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// If the line is empty or a quote is not closed.
#[doc(alias = "TokioChildProcess")]
#[doc(alias = "StdioClientTransport")]
pub fn child(line: &str) -> io::Result<Child> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    let words = shell_words::split(line)
        .map_err(|_| wrong("unterminated quote in the command line; close it, or escape it with a backslash"))?;
    let mut words = words.into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| wrong("the command line is empty; it names the program to start first"))?;
    Ok(Child::new(program).args(words))
}

/// A server that runs as a child process. Each connection starts a new process.
///
/// ```
/// use linchpin_transport::child::Child;
///
/// let server = Child::new("weather-server").arg("--metric").env("RUST_LOG", "info").pass_env("WEATHER_API_KEY").cwd("/srv");
/// ```
///
/// **Children cannot leak.** A child ends with its connection: gracefully on [`ClientTransport::close`], immediately
/// when the connection is dropped (even by a panic), and when this process ends, however that happens: a separate `sh`
/// process waits for that. Its descendants end with it, even if it exits by itself:
///
/// | system | the child | descendants in its process group | descendants outside it: `setsid`, daemons |
/// |---|---|---|---|
/// | Linux | yes | yes | yes |
/// | macOS and other Unix systems | yes | yes | no |
/// | others | by close and drop only | no | no |
///
/// Descendants outside the group are identified by an inherited mark, in their environment (`LINCHPIN_CHILD`) and as
/// their limit on file locks. Not covered on any system: processes that run elsewhere on a child's behalf, such as a
/// container or a service, and processes of other users. Without `/bin/sh` (and, for descendants outside the group,
/// `grep`) they may outlive this process if it is killed.
///
/// **Environment.** A server does not inherit this program's whole environment, which may contain unrelated credentials:
/// only the variables that programs need to start ([`Child::PASSED_ENV`]), and those set with [`Child::env`] and
/// [`Child::pass_env`]. [`Child::inherit_env`] passes everything, [`Child::clear_env`] nothing but the mark.
///
/// **Secrets.** Environment variables are never shown. Errors show the command line, with everything masked that looks
/// like a secret or was passed to [`Child::secret`]; the same applies to lines of standard error, and to lines of
/// standard output that are not messages.
#[derive(Clone)]
pub struct Child {
    command: Command,
}

impl Child {
    /// The environment variables of this program that every child inherits, unless [`Child::clear_env`] is called;
    /// those that begin with `LC_` are inherited, too. Programs need them to find their files, caches and the network.
    pub const PASSED_ENV: &'static [&'static str] = PASSED;

    /// Returns the file that would be started, without starting it.
    ///
    /// ```
    /// use linchpin_transport::child::Child;
    ///
    /// let why = Child::new("no-such-program").arg("--stdio").find().unwrap_err();
    /// assert!(why.contains("no-such-program"));
    /// ```
    ///
    /// # Errors
    /// If there is no such program; the message says what to do. A program given by its path is not searched for.
    pub fn find(&self) -> Result<PathBuf, String> {
        self.command.find()
    }

    /// Starts this program: a path, or a name that is looked up on `PATH`. For a whole command line use [`child`].
    pub fn new(program: impl Into<OsString>) -> Child {
        Child { command: Command::new(program) }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Child {
        self.command.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Child {
        self.command.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Child {
        self.command.environment.set(name.into(), value.into());
        self
    }

    /// Sets several environment variables.
    pub fn envs(self, all: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>) -> Child {
        all.into_iter().fold(self, |child, (name, value)| child.env(name, value))
    }

    /// Passes a variable of this program's environment that is not in [`Child::PASSED_ENV`], if it is set.
    pub fn pass_env(mut self, name: impl Into<OsString>) -> Child {
        self.command.environment.pass(name.into());
        self
    }

    /// Passes this program's whole environment, credentials included.
    pub fn inherit_env(mut self) -> Child {
        self.command.environment.inherit();
        self
    }

    /// Passes nothing of this program's environment, and clears the variables set so far.
    pub fn clear_env(mut self) -> Child {
        self.command.environment.clear();
        self
    }

    /// Sets the working directory. Default: the current one.
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Child {
        self.command.cwd = Some(folder.into());
        self
    }

    /// Masks this value wherever the command line or the child's output is shown.
    ///
    /// Values that look like secrets are always masked. Values of less than six bytes are not: they would match
    /// everywhere.
    pub fn secret(mut self, value: impl Into<String>) -> Child {
        self.command.secrets.push(value.into());
        self
    }
}

impl Connector for Child {
    /// The command line, with secrets masked.
    fn name(&self) -> String {
        self.command.shown().0
    }

    fn key(&self) -> Option<String> {
        let mut all = DefaultHasher::new();
        self.command.hash(&mut all);
        let program = self.command.program.to_string_lossy().into_owned();
        Some(format!("child:{}#{:016x}", self.command.shown().1.hide(program), all.finish()))
    }

    /// Starts the program.
    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        Box::pin(async move {
            let shown = options.clone();
            let seen = move |event: Event<'_>| match event {
                Event::Stderr(line) => shown.show(|| Traffic::Stderr(line)),
                Event::Unkept => shown.show(|| Traffic::Note(UNKEPT)),
                _ => {}
            };
            let limits = options.limits.clone();
            let started = self.command.start(limits.child.stderr_bytes_max, seen);
            let Running { process, stdin, stdout, .. } =
                started.map_err(|why| TransportError::Unreachable(why.into()))?;
            let server = Arc::new(ServerProcess { process, limits });
            Ok(Arc::new(PipeTransport::open(options, stdout, stdin, server)) as Arc<dyn ClientTransport>)
        })
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, secrets) = self.command.shown();
        let cwd = self.command.cwd.as_ref().map(|folder| secrets.hide(folder.display().to_string()));
        f.debug_struct("Child").field("command", &name).field("cwd", &cwd).finish_non_exhaustive()
    }
}

const UNKEPT: &str = "cannot start a watchdog: the server may go on running if this program is killed";
