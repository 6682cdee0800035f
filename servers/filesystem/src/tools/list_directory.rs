//! `list_directory`: names with their types.

use crate::walk::NAMES_MAX;
use linchpin_kit::{ToolError, ToolSpec, unknown_cursor};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::answer::Answer;
use crate::error::io_fault;
use crate::inner::Inner;
use crate::open::expect_dir;
use crate::os::{self, Kind};
use crate::page::{ListMore, Page, after, cursor_after};
use crate::resolve::{Last, Place};

pub(crate) const LIST_DIRECTORY: ToolSpec = ToolSpec::reads(
    "list_directory",
    "List Directory",
    "list",
    "Lists a directory; each name is marked [FILE] or [DIR].",
);

/// Arguments of `list_directory`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListDirectory {
    /// The directory to list.
    pub path: String,
    /// From next_cursor
    #[serde(default)]
    pub cursor: Option<String>,
}

impl Inner {
    /// The entries of a directory that are not denied.
    pub(super) fn visible(&self, place: &Place) -> Result<(OwnedFd, Vec<(OsString, Kind)>), ToolError> {
        expect_dir(place)?;
        let listed = os::entries(place.dir(), place.name(), NAMES_MAX);
        let (fd, mut entries, _) = listed.map_err(|error| io_fault(error, "scandir", &place.shown()))?;
        if !self.deny.is_empty() {
            let (base, belows) = (place.path(), self.belows(place));
            entries.retain(|(name, _)| !self.deny.covers(&base, &belows, Path::new(name)));
        }
        Ok((fd, entries))
    }

    pub(crate) fn list_directory(&self, args: &ListDirectory) -> Result<Answer<ListMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let (_, entries) = self.visible(&place)?;
        let after = after(args.cursor.as_deref())?;
        if after.as_deref().is_some_and(|after| after.components().count() > 1) {
            return Err(unknown_cursor(args.cursor.as_deref().unwrap_or_default()));
        }
        let mut page = Page::new(self);
        let mut last = None;
        for (name, kind) in &entries {
            if after.as_deref().is_some_and(|after| name.as_bytes() <= after.as_os_str().as_bytes()) {
                continue;
            }
            let tag = if *kind == Kind::Dir { "[DIR]" } else { "[FILE]" };
            if !page.push(&format!("{tag} {}", name.to_string_lossy())) {
                return Ok(ListMore::cut(last.map(cursor_after), 0).answer(page.text));
            }
            last = Some(Path::new(name));
        }
        Ok(ListMore::default().answer(page.text))
    }
}
