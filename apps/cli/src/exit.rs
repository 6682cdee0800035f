//! Exit codes. They are stable: scripts may rely on them.

use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok = 0,
    /// The command ran with a negative result: a tool returned an error, two servers differ, a server cannot be started.
    Failed = 1,
    /// The command line or a file it names is invalid: nothing was sent, or the server does not have what was named.
    Usage = 2,
    /// The server cannot be reached, or there is no common protocol version.
    Unreachable = 3,
    /// The server returned an error or an invalid message, or closed the connection.
    Protocol = 4,
    /// The request timed out.
    Timeout = 5,
    /// The server requires login.
    Unauthorized = 6,
    /// Interrupted with Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// The table at the end of help texts.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    success
  1    tool error, differences found, or failure to start
  2    invalid command line or argument, or unknown name
  3    no connection, or no common protocol version
  4    error from the server, or it closed the connection
  5    timeout
  6    login required
  130  interrupted with Ctrl-C
";
