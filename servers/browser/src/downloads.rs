//! Files that pages download. The browser saves them under ids, so that no page can replace what is in the directory; once
//! they are complete they get the names that the pages gave them, or the like.

use linchpin_kit::new_file;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Most downloads at once that are given names.
const NAMES_MAX: usize = 1_000;

/// The downloads of a browser.
#[derive(Debug)]
pub(crate) struct Downloads {
    folder: Option<PathBuf>,
    /// By id: the names that pages gave those that go on.
    names: Mutex<HashMap<String, String>>,
}

impl Downloads {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, names: Mutex::default() }
    }

    /// Takes note of an event of the browser, and says in it where a complete file is.
    pub(crate) fn hear(&self, method: &str, params: &mut Value) {
        let Some(id) = params["guid"].as_str().filter(|id| is_id(id)) else { return };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if method == "Browser.downloadWillBegin" {
            if names.len() < NAMES_MAX {
                names.insert(id.to_owned(), params["suggestedFilename"].as_str().unwrap_or_default().to_owned());
            }
            return;
        }
        if params["state"] == "inProgress" {
            return;
        }
        let name = names.remove(id);
        drop(names);
        let (Some(name), Some(folder), true) = (name, &self.folder, params["state"] == "completed") else { return };
        let (saved, named) = (folder.join(id), new_file(folder, &name));
        // What cannot be renamed keeps its id.
        let file = match named {
            Ok((path, _)) if std::fs::rename(&saved, &path).is_ok() => path,
            Ok((path, _)) => {
                let _ = std::fs::remove_file(path);
                saved
            }
            Err(_) => saved,
        };
        params["filePath"] = json!(file);
    }
}

/// An id is not a path.
fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_downloads_get_names_and_replace_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "kept").unwrap();
        let downloads = Downloads::new(Some(dir.path().to_owned()));
        let saved = |id: &str, name: &str| {
            std::fs::write(dir.path().join(id), "new").unwrap();
            downloads.hear("Browser.downloadWillBegin", &mut json!({ "guid": id, "suggestedFilename": name }));
            downloads.hear("Browser.downloadProgress", &mut json!({ "guid": id, "state": "inProgress" }));
            let mut done = json!({ "guid": id, "state": "completed", "filePath": "x" });
            downloads.hear("Browser.downloadProgress", &mut done);
            done["filePath"].as_str().unwrap().to_owned()
        };
        for (id, name, want) in [("1-a", "a.txt", "a (1).txt"), ("1-b", "../../x", "_.._x"), ("1-c", "", "file")] {
            let path = dir.path().join(want);
            assert_eq!(saved(id, name), path.to_str().unwrap());
            assert_eq!(std::fs::read_to_string(path).unwrap(), "new");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4, "none is left under its id");
        let mut odd = json!({ "guid": "../a.txt", "state": "completed" });
        downloads.hear("Browser.downloadProgress", &mut odd);
        assert!(odd["filePath"].is_null() && downloads.names.lock().unwrap().is_empty());
    }
}
