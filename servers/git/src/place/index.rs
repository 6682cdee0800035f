//! Names in a repository's index.

use crate::parse::index::index_stays_inside;
use crate::place::Place;
use crate::place::bounds::{Bounds, Stamp};
use linchpin_kit::ToolError;
use std::ffi::OsString;
use std::fs;
use std::io::{BufReader, Read};
use std::sync::PoisonError;

const INDEXES_MAX: usize = 64;
/// Maximum bytes read of index files; ten million files have about as many.
const INDEX_BYTES_MAX: u64 = 1 << 30;

impl Place {
    /// Refuses an index that names files elsewhere: git checks names when it adds them but not when it reads them, and
    /// then shows and compares whatever is there. `id` is the length of an object id in bytes.
    pub(crate) fn check_index(&self, bounds: &Bounds, id: usize) -> Result<(), ToolError> {
        let part = |name: &OsString| name.as_encoded_bytes().starts_with(b"sharedindex.");
        let names = fs::read_dir(&self.git_dir).ok().into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut left = INDEX_BYTES_MAX;
        for name in names.filter(part).chain([OsString::from("index")]) {
            let path = self.git_dir.join(name);
            let stamp = Stamp::of(&path);
            let known = || bounds.walks.0.lock().unwrap_or_else(PoisonError::into_inner);
            if stamp.is_some() && known().indexes.get(&path) == stamp.as_ref().map(|stamp| (*stamp, id)).as_ref() {
                continue;
            }
            let unclear =
                |_| ToolError::new("The index cannot be parsed").hint("Nothing was run. Inspect it with git.");
            let size = match fs::metadata(&path) {
                // A sparse file takes no disk space, but reading it would take minutes.
                Ok(meta) if meta.is_file() && meta.len() <= left => meta.len(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                _ => return Err(unclear(std::io::ErrorKind::Other.into())),
            };
            left -= size;
            let mut file = BufReader::new(fs::File::open(&path).map_err(unclear)?.take(size));
            if !index_stays_inside(&mut file, id).map_err(unclear)? {
                return Err(ToolError::denied("The index contains paths outside the work tree")
                    .hint("Nothing was run. git read-tree HEAD creates a new one."));
            }
            if let Some(stamp) = stamp {
                let indexes = &mut known().indexes;
                if indexes.len() >= INDEXES_MAX {
                    indexes.clear();
                }
                indexes.insert(path, (stamp, id));
            }
        }
        Ok(())
    }
}
