//! Child processes that end with their parent, including their descendants, and receive no more of its environment than
//! they need.
//!
//! A [`Command`] describes the program to start. [`Command::start`] finds the program, starts it in a process group of
//! its own, and returns its streams and a [`Process`], which kills the child and its descendants when it is dropped.
//! The last lines of standard error are kept for error messages, and secrets are masked in everything that is shown.
//!
//! [`Confined`] runs a program once, within [`Limits`] on memory, time and output.
//!
//! [`Graceful`] is a process group that is terminated before it is killed.
//!
//! The messages that an MCP server and its parent exchange are in `linchpin-transport`.

// This crate must not depend on the messages that the processes exchange: the protocol is in `linchpin-transport`.
//
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
