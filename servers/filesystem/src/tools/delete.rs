//! `fs_delete`: deletes a file, a symlink or a directory.

use crate::config::ALLOW_DELETE;
use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{Answer, NoMore};
use crate::error::io_fault;
use crate::inner::Inner;
use crate::os::{self, Kind};
use crate::resolve::{Last, Place};
use crate::walk;

pub(crate) const DELETE: ToolSpec = ToolSpec::writes(
        "fs_delete",
        "Delete File",
        "delete",
        "Deletes a file, a symlink (not its target) or an empty directory; with recursive, a directory and everything in it. \
         This cannot be undone.",
    ).extra()
    .destructive()
    .needs(ALLOW_DELETE);

/// Arguments of `fs_delete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct FsDelete {
    /// The file, symlink or directory to delete; for a symlink, the link itself, not its target.
    pub path: String,
    /// Delete a directory and everything in it
    #[serde(default)]
    pub recursive: bool,
}

impl Inner {
    pub(crate) fn delete(&self, args: &FsDelete) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Keep)?;
        let kind = place.existing("unlink")?.kind;
        if place.is_root() {
            return Err(ToolError::new(format!("An allowed directory itself cannot be deleted: {}", args.path)));
        }
        if kind == Kind::Dir && args.recursive {
            self.refuse_hidden_content(&place, "delete")?;
            self.delete_content(&place)?;
        }
        let call = if kind == Kind::Dir { "rmdir" } else { "unlink" };
        os::remove(place.dir(), place.name(), kind).map_err(|error| io_fault(error, call, &place.shown()))?;
        Ok(Answer::new(format!("Successfully deleted {}", args.path), NoMore {}))
    }

    /// Deletes the content of a directory, deepest first.
    fn delete_content(&self, place: &Place) -> Result<(), ToolError> {
        let mut left = self.config.max_scan;
        let shown = place.shown();
        walk::empty(place.dir(), place.name(), 0, &mut left).map_err(|error| {
            io_fault(error, "unlink", &shown)
                .hint("Part of the directory may already be deleted; list it before trying again.")
        })
    }
}
