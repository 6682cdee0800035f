//! Exit codes. They are stable: scripts may rely on them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked for.
    Ok = 0,
    /// It worked, and the answer is no: a tool said that it failed, two servers differ, a server cannot be started.
    Failed = 1,
    /// The command line or a file it names is wrong. Nothing was sent, or the server knows no such thing.
    Usage = 2,
    /// The server cannot be reached, or there was no agreement on a protocol version.
    Unreachable = 3,
    /// The server answered with an error, or with something that is not the protocol, or went away.
    Protocol = 4,
    /// No answer in time.
    Timeout = 5,
    /// The server wants a login.
    Unauthorized = 6,
    /// Stopped with Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// For the end of help texts.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    done
  1    the tool said that it failed; the two sides of a diff differ; the server cannot be started
  2    the command line is wrong, or names a tool, prompt or file that is not there
  3    the server cannot be reached, or speaks no common protocol version
  4    the server answered with an error, or went away
  5    no answer in time
  6    the server wants a login
  130  stopped with Ctrl-C
";
