//! `create_directory`: a directory and its parents.

use linchpin_kit::{ToolError, ToolSpec};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use std::os::fd::{AsFd, OwnedFd};

use crate::answer::{Answer, NoMore};
use crate::config::check_new_name;
use crate::error::io_fault;
use crate::inner::Inner;
use crate::os::{self, Kind};
use crate::resolve::Last;

pub(crate) const CREATE_DIRECTORY: ToolSpec = ToolSpec::writes(
    "create_directory",
    "Create Directory",
    "write",
    "Creates a directory and its parents. Succeeds if it already exists.",
)
.idempotent();

/// Arguments of `create_directory`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CreateDirectory {
    /// The directory to create.
    pub path: String,
}

impl Inner {
    pub(crate) fn create_directory(&self, args: &CreateDirectory) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let failed = |error| io_fault(error, "mkdir", &place.shown());
        if place.meta().is_some_and(|meta| meta.kind != Kind::Dir) {
            return Err(failed(Errno::EXIST));
        }
        for name in place.missing() {
            check_new_name(name, self.config.allow_odd_names)?;
        }
        let mut made: Option<OwnedFd> = None;
        for name in place.missing() {
            let at = made.as_ref().map_or(place.dir(), |fd| fd.as_fd());
            match os::make_dir(at, name) {
                // Another process may create the same directories concurrently.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            made = Some(os::open_dir(at, name).map_err(|error| match error {
                Errno::NOTDIR | Errno::LOOP => failed(Errno::EXIST),
                other => failed(other),
            })?);
        }
        Ok(Answer::new(format!("Successfully created directory {}", args.path), NoMore {}))
    }
}
