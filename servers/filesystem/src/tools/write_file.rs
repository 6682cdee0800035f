//! `write_file`: creates or replaces a file.

use linchpin_kit::{ToolError, ToolSpec};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{Answer, NoMore};
use crate::change::replace_with;
use crate::config::check_new_name;
use crate::error::io_fault;
use crate::inner::Inner;
use crate::os::Temp;
use crate::resolve::Last;

pub(crate) const WRITE_FILE: ToolSpec = ToolSpec::writes(
    "write_file",
    "Write File",
    "write",
    "Creates a file or overwrites its whole content. To change part of a file use edit_file.",
)
.destructive()
.idempotent();

/// Arguments of `write_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct WriteFile {
    /// The file to create or replace.
    pub path: String,
    /// The complete new content.
    pub content: String,
}

impl Inner {
    pub(crate) fn write_file(&self, args: &WriteFile) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let failed = |error| io_fault(error, "open", &place.shown());
        let _turn = self.turns.take(&place.path());
        if let Some(meta) = place.meta() {
            self.replaceable(&place, meta.kind)?;
            replace_with(&place, args.content.as_bytes())?;
        } else {
            let [name] = place.missing() else {
                return Err(failed(Errno::NOENT));
            };
            check_new_name(name, self.config.allow_odd_names)?;
            let mut temp = Temp::create(place.dir(), name, false).map_err(failed)?;
            temp.write(args.content.as_bytes()).map_err(failed)?;
            match temp.place_new() {
                // The file was created meanwhile: replace it.
                Err(Errno::EXIST) => replace_with(&place, args.content.as_bytes())?,
                result => result.map_err(failed)?,
            }
        }
        Ok(Answer::new(format!("Successfully wrote to {}", args.path), NoMore {}))
    }
}
