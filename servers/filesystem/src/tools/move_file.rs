//! `move_file`: moves or renames.

use linchpin_kit::{ToolError, ToolSpec};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{Answer, NoMore};
use crate::change::{already_exists, copy_file};
use crate::error::io_fault;
use crate::inner::Inner;
use crate::open::open_failed;
use crate::os::{self, Kind};
use crate::resolve::Last;

pub(crate) const MOVE_FILE: ToolSpec = ToolSpec::writes(
    "move_file",
    "Move File",
    "write",
    "Moves or renames a file or directory. Fails if the destination exists.",
)
.destructive();

/// Arguments of `move_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct MoveFile {
    /// The file or directory to move.
    pub source: String,
    /// The new path; must not exist.
    pub destination: String,
}

impl Inner {
    pub(crate) fn move_file(&self, args: &MoveFile) -> Result<Answer<NoMore>, ToolError> {
        let source = self.resolve(&args.source, Last::Follow)?;
        let Some(meta) = source.meta().copied() else {
            let both = format!("{}' -> '{}", source.shown(), self.resolve(&args.destination, Last::Follow)?.shown());
            return Err(io_fault(Errno::NOENT, "rename", &both));
        };
        if source.is_root() {
            return Err(ToolError::new(format!("An allowed directory itself cannot be moved: {}", args.source)));
        }
        if meta.kind == Kind::Dir {
            self.refuse_hidden_content(&source, "move")?;
        }
        let target = self.new_place(&args.destination)?;
        let shown = (source.shown(), target.shown());
        let failed = |error| {
            let words = io_fault(error, "rename", &format!("{}' -> '{}", shown.0, shown.1));
            match error {
                Errno::EXIST => already_exists(&args.destination),
                Errno::XDEV => words.hint("Copy the directory with fs_copy, then delete the source with fs_delete."),
                _ => words,
            }
        };
        match os::rename_new(source.dir(), source.name(), target.dir(), target.name()) {
            Err(Errno::XDEV) if meta.kind == Kind::File => {
                copy_file(&source, target.dir(), target.name(), false)
                    .map_err(|error| open_failed(&error, &source, "rename"))?;
                os::remove(source.dir(), source.name(), Kind::File).map_err(failed)?;
            }
            result => result.map_err(failed)?,
        }
        Ok(Answer::new(format!("Successfully moved {} to {}", args.source, args.destination), NoMore {}))
    }
}
