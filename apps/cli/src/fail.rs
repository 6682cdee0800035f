//! Failures, told to a person: what happened, and what to do next.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not work.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hints: Vec<String>,
}

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Failure {
        Failure { message: message.to_string(), hints: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// Prints it and gives the exit status 1. Readable without colour.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        for hint in &self.hints {
            eprintln!("hint: {hint}");
        }
        ExitCode::FAILURE
    }
}
