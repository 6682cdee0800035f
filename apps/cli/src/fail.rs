//! Failures for the user: what happened, and what to do next.

use crate::exit::Exit;
use crate::show::out::{Style, note};
use linchpin_kit::redact_urls;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hints: Vec<String>,
    exit: Exit,
    /// The program that could not be started.
    program: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Failure {
        Failure { message: message.to_string(), hints: Vec::new(), exit: Exit::Failed, program: None }
    }

    /// An error in the command line or in a file.
    pub(crate) fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(message).exit(Exit::Usage)
    }

    /// A file cannot be used. If it is missing, what makes it is said.
    pub(crate) fn of_file(why: impl fmt::Display, file: &Path, hint: impl FnOnce() -> String) -> Failure {
        let failure = Failure::usage(why);
        if file.exists() { failure } else { failure.hint(hint()) }
    }

    /// A failure without a message, only an exit code.
    pub(crate) fn silent(exit: Exit) -> Failure {
        Failure::new("").exit(exit)
    }

    pub(crate) fn exit(mut self, exit: Exit) -> Failure {
        self.exit = exit;
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// This program could not be started: above the client somebody may know what was meant.
    pub(crate) fn program(mut self, name: &str) -> Failure {
        self.program = Some(name.to_owned());
        self
    }

    pub(crate) fn missing_program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints it, without passwords of URLs, and gives the exit code. Readable without colour.
    pub(crate) fn report(&self) -> ExitCode {
        let style = Style::of_stderr();
        if !self.message.is_empty() {
            note(format!("{} {}", style.bad("error:"), redact_urls(&self.message)));
        }
        for hint in &self.hints {
            note(format!("{} {hint}", style.bold("hint:")));
        }
        self.exit.code()
    }
}

/// Writing to standard output failed. A reader that has had enough, like `head`, is not a failure.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::silent(Exit::Ok),
            _ => Failure::new(format!("cannot write to standard output: {e}")),
        }
    }
}
