//! Failures, told to a person: what happened, and what to do next.

use crate::exit::Exit;
use crate::shown::note;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a command did not work.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hints: Vec<String>,
    exit: Exit,
}

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Failure {
        Failure { message: message.to_string(), hints: Vec::new(), exit: Exit::Failed }
    }

    /// A mistake in what was typed or in a file.
    pub(crate) fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(message).exit(Exit::Usage)
    }

    /// Nothing to say: the exit code says it all.
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

    /// Whether its message has these words.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.message.contains(words)
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints it and gives the exit code. Readable without colour.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            note(format!("error: {}", self.message));
        }
        for hint in &self.hints {
            note(format!("hint: {hint}"));
        }
        self.exit.code()
    }
}

/// Writing to standard output failed. A reader that has had enough, like `head`, is no failure.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::silent(Exit::Ok),
            _ => Failure::new(format!("cannot write to standard output: {e}")),
        }
    }
}
