//! `fs_append`: appends to a file.

use linchpin_kit::{ToolError, ToolSpec};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::Write;

use crate::answer::{Answer, NoMore};
use crate::config::check_new_name;
use crate::error::io_fault;
use crate::inner::Inner;
use crate::open::open_failed;
use crate::os;
use crate::resolve::Last;

pub(crate) const APPEND: ToolSpec = ToolSpec::writes(
    "fs_append",
    "Append to File",
    "write",
    "Appends text to a file. Creates the file if it does not exist.",
)
.extra();

/// Arguments of `fs_append`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct FsAppend {
    /// The file to append to; created if missing.
    pub path: String,
    /// The text to append, unchanged.
    pub content: String,
}

impl Inner {
    pub(crate) fn append(&self, args: &FsAppend) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        if place.missing().len() > 1 {
            return Err(io_fault(Errno::NOENT, "open", &place.shown()));
        }
        if let [name] = place.missing() {
            check_new_name(name, self.config.allow_odd_names)?;
        }
        let _turn = self.turns.take(&place.path());
        let (mut file, meta) =
            os::open_append(place.dir(), place.name(), true).map_err(|error| open_failed(&error, &place, "open"))?;
        if meta.links > 1 {
            return Err(ToolError::new(format!("The file has {} names (hard links): {}", meta.links, place.shown()))
                .hint("Appending would change the file under its other names too, which may be outside. Use write_file or edit_file, which replace only this name."));
        }
        let failed = |error: std::io::Error| {
            io_fault(Errno::from_io_error(&error).unwrap_or(Errno::IO), "write", &place.shown())
        };
        file.write_all(args.content.as_bytes()).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        Ok(Answer::new(format!("Successfully appended to {}", args.path), NoMore {}))
    }
}
