//! Child processes that end with their parent, descendants included, and get no more of its environment than they need.
//!
//! A [`Command`] says what to start. [`Command::start`] finds the program, starts it in a process group of its own, and
//! returns its streams and a [`Process`]: dropping that kills the child and what it has started. The last lines of standard
//! error are kept for errors, and secrets are masked in everything that is shown.
//!
//! [`Confined`] runs a program once, within [`Limits`] on memory, time and output.
//!
//! [`Graceful`] is a process group that is asked to end before it is killed.
//!
//! This crate must not know what the processes say to each other: `linchpin-transport` has the protocol.

// Files import downwards, in this order:
//
// ```text
// confined
// command  graceful  process  stderr
// environment  group
// find  mask  memory
// ```

mod command;
mod confined;
mod environment;
mod find;
mod graceful;
mod group;
mod mask;
#[cfg(unix)]
mod memory;
mod process;
mod stderr;

pub use command::{Command, Event};
pub use confined::{Confined, Limits, Stopped};
pub use environment::{Environment, PASSED};
pub use graceful::Graceful;
pub use mask::{Secrets, is_secret_name};
pub use process::{Exit, Process, Running, exit_text};

use std::ffi::OsStr;

/// A name as text, for comparisons and messages.
fn text(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
