//! A server as a child process: one message a line on its standard input and output.
//!
//! **Children cannot leak.** A child dies with the link: in good order by [`Link::close`], at once when the link is dropped,
//! also by a panic, and when this whole process ends in whatever way, for which a `sh` waits that does nothing else. Its
//! descendants die with it, and when it ends by itself:
//!
//! | system | the child | descendants in its process group | those that have left it: `setsid`, daemons |
//! |---|---|---|---|
//! | Linux | yes | yes | yes |
//! | macOS and other Unix systems | yes | yes | no |
//! | others | by close and drop only | no | no |
//!
//! Those that have left the group are known by a mark that they have inherited, in their environment (`LINCHPIN_CHILD`) and
//! as their limit on file locks (see the module `group`). What escapes everywhere: what runs
//! elsewhere on a child's behalf, such as a container or a service, and processes of other users. Where there is no
//! `/bin/sh`, and for those that have left the group no `grep`, they may outlive this process when that is killed.
//!
//! **Environment.** A server does not get this program's whole environment, which may hold credentials for everything else:
//! only the variables that programs need in order to start ([`PASSED`]), and those named in [`Child::env`] and
//! [`Child::pass_env`]. [`Child::inherit_env`] passes everything, [`Child::clear_env`] nothing but the mark.
//!
//! **Secrets.** Environment variables are never shown. The command line is shown in errors, but what looks like a secret or
//! was called one ([`Child::secret`]) is masked there; and in lines of standard error, and in those of standard output that
//! are no messages.

mod environment;
mod find;
mod group;
mod mask;
mod process;
mod stderr;

pub use environment::PASSED;
pub use mask::is_secret_name;

use crate::link::PipeLink;
use environment::Environment;
use linchpin_proto::service::BoxFuture;
use linchpin_proto::{Dial, Dialing, Link, LinkError};
use mask::Secrets;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A server that is started by this command line, split into words as a POSIX shell does. No shell is run: variables,
/// pipes and the like mean nothing.
///
/// ```
/// let server = linchpin_transport::child::child("npx -y @scope/some-server '/a path with blanks'")?;
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// When the line is empty or a quote is not closed.
pub fn child(line: &str) -> io::Result<Child> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    let words = shell_words::split(line)
        .map_err(|_| wrong("a quote in the command line is not closed; close it, or put a backslash before it"))?;
    let mut words = words.into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    let program = program.ok_or_else(|| wrong("the command line is empty; it names the program to start first"))?;
    Ok(Child::new(program).args(words))
}

/// A server that is started as a child process. Each dial starts it anew.
#[derive(Clone)]
pub struct Child {
    program: OsString,
    args: Vec<OsString>,
    environment: Environment,
    cwd: Option<PathBuf>,
    secrets: Vec<String>,
}

impl Child {
    /// The program to start: a path, or a name that is looked for on `PATH`. See [`child`] for a whole command line.
    pub fn new(program: impl Into<OsString>) -> Child {
        Child {
            program: program.into(),
            args: Vec::new(),
            environment: Environment::default(),
            cwd: None,
            secrets: Vec::new(),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Child {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Child {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Child {
        self.environment.set(name.into(), value.into());
        self
    }

    /// Sets environment variables.
    pub fn envs(self, all: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>) -> Child {
        all.into_iter().fold(self, |child, (name, value)| child.env(name, value))
    }

    /// Passes on a variable of this program's environment that is not among [`PASSED`], if it is set.
    pub fn pass_env(mut self, name: impl Into<OsString>) -> Child {
        self.environment.pass(name.into());
        self
    }

    /// Passes on this program's whole environment, credentials included.
    pub fn inherit_env(mut self) -> Child {
        self.environment.inherit();
        self
    }

    /// Passes on nothing of this program's environment, and forgets what was set before.
    pub fn clear_env(mut self) -> Child {
        self.environment.clear();
        self
    }

    /// Starts it in this folder. Default: the current one.
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Child {
        self.cwd = Some(folder.into());
        self
    }

    /// Masks this value wherever the command or what the child writes is shown, as is done without being told with what
    /// looks like a secret. Values of less than six bytes are not masked: they would be found everywhere.
    pub fn secret(mut self, value: impl Into<String>) -> Child {
        self.secrets.push(value.into());
        self
    }

    /// The command line as it is shown, and what is shown nowhere.
    fn masked(&self) -> (String, Secrets) {
        let known = self.environment.secrets().chain(self.secrets.iter().cloned());
        mask::command(&self.program, &self.args, known.collect())
    }
}

impl Dial for Child {
    /// The command line, with what looks like a secret masked.
    fn name(&self) -> String {
        self.masked().0
    }

    fn key(&self) -> Option<String> {
        let mut all = DefaultHasher::new();
        (&self.program, &self.args, &self.cwd).hash(&mut all);
        self.environment.hash(&mut all);
        Some(format!("child:{}#{:016x}", self.masked().1.hide(text(&self.program)), all.finish()))
    }

    /// Starts the program.
    fn dial(&self, dialing: Dialing) -> BoxFuture<'_, Result<Arc<dyn Link>, LinkError>> {
        Box::pin(async move {
            let started = process::start(self, &dialing).map_err(|why| LinkError::Unreachable(why.into()))?;
            let process::Running { process, stdin, stdout } = started;
            Ok(Arc::new(PipeLink::open(dialing, stdout, stdin, Arc::new(process))) as Arc<dyn Link>)
        })
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, secrets) = self.masked();
        let cwd = self.cwd.as_ref().map(|folder| secrets.hide(folder.display().to_string()));
        f.debug_struct("Child").field("command", &name).field("cwd", &cwd).finish_non_exhaustive()
    }
}

/// A name as text, for comparisons and messages.
fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
