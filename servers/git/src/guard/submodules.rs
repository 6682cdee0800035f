//! Populated submodules: git reads them with their own configuration.

use crate::exec::output::{Keep, lossy};
use crate::exec::program::{Job, args};
use crate::guard::config::CONFIG_MAX;
use crate::guard::{Guard, Mode, Reader};
use crate::place::Place;
use crate::place::bounds::Bounds;
use linchpin_kit::ToolError;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;

use std::path::Path;

impl Reader<'_> {
    /// The settings of populated submodules: git reads them on its own, with their configuration.
    pub(crate) async fn submodules(
        self,
        place: &Place,
        guard: &mut Guard,
        names: &mut BTreeSet<String>,
    ) -> Result<(), ToolError> {
        let mut queue = VecDeque::from([place.clone()]);
        let mut count = 0;
        while let Some(Place { top, .. }) = queue.front().cloned() {
            let mut vars = queue.pop_front().map(|place| place.pins()).unwrap_or_default();
            vars.push(("GIT_OPTIONAL_LOCKS", OsString::from("0")));
            let job = Job {
                dir: &top,
                args: args(&["ls-files", "--stage", "-z"]),
                settings: &guard.settings,
                vars,
                input: Vec::new(),
                keep: Keep::Records(b"160000 ", CONFIG_MAX),
                network: false,
                repo_runs: None,
                limit: self.limit,
            };
            let done = self.program.run(job).await?;
            for record in done.out.split(|byte| *byte == 0) {
                let text = lossy(record);
                let Some((_, path)) = text.split_once('\t') else { continue };
                if std::str::from_utf8(record).is_err() {
                    // Git would look for it under another name and not find it.
                    return Err(ToolError::new("The path of a submodule is not valid UTF-8").hint("Nothing was run."));
                }
                let sub = top.join(path);
                let bounds = self.bounds.clone();
                let looked = tokio::task::spawn_blocking(move || populated(&bounds, &sub)).await;
                let looked = looked.map_err(|_| ToolError::new("Checking a submodule failed unexpectedly"))?;
                let Some(sub_place) = looked? else { continue };
                count += 1;
                if count > SUBMODULES_MAX {
                    return Err(ToolError::new("The repository has too many populated submodules"));
                }
                for (name, _) in self.entries(&sub_place, sub_place.configs(), true).await? {
                    names.insert(name);
                }
                queue.push_back(sub_place);
            }
            // The results so far are cached for the next run.
            for name in names.iter() {
                guard.answer(name, Mode::Read);
            }
        }
        Ok(())
    }
}

/// The repository of a populated submodule.
fn populated(bounds: &Bounds, top: &Path) -> Result<Option<Place>, ToolError> {
    if top.join(".git").symlink_metadata().is_err() {
        return Ok(None);
    }
    let shown = top.display().to_string();
    match Place::find(bounds, &shown) {
        Ok(place) => Ok(Some(place)),
        Err(fault) if fault.is_not_found() => Ok(None),
        Err(fault) => Err(fault),
    }
}

const SUBMODULES_MAX: usize = 256;
