//! A directory to play in, and calls by name as a client makes them.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use linchpin_filesystem::{Config, Filesystem};
use serde_json::{Value, json};

/// A temporary directory with an allowed `ws` and a forbidden `ws-evil` beside it.
pub(crate) struct World {
    base: tempfile::TempDir,
    pub(crate) fs: Filesystem,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let base = tempfile::tempdir().expect("a temporary directory");
        for name in ["ws", "ws-evil"] {
            std::fs::create_dir(base.path().join(name)).expect("a directory");
        }
        std::fs::write(base.path().join("ws-evil/s.txt"), "SECRET").expect("a file");
        let mut config = Config::default().with(|config| {
            config.directories = vec![text(&base.path().join("ws"))];
            // The rare tools, too.
            config.tools.toolsets = vec!["all".to_owned()];
        });
        change(&mut config);
        let (fs, warnings) = Filesystem::open(config).expect("the directory can be opened");
        assert_eq!(warnings, Vec::<String>::new());
        Self { base, fs }
    }

    /// A path inside the allowed directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.path().join("ws").join(name)
    }

    /// The same as text.
    pub(crate) fn at(&self, name: &str) -> String {
        if name.is_empty() { text(&self.base.path().join("ws")) } else { text(&self.path(name)) }
    }

    /// A path beside the allowed directory.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, content).expect("a file");
    }

    pub(crate) fn get(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("text")
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file")
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(name)).expect("a link");
    }

    /// Calls a tool; `Ok` is the structured content, `Err` the error text.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Value, String> {
        call(&self.fs, tool, args).await
    }

    /// Calls a tool that must succeed; answers its text.
    pub(crate) async fn text(&self, tool: &str, args: Value) -> String {
        let answer = self.call(tool, args.clone()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{tool} {args} failed: {error}"));
        answer["content"].as_str().expect("text").to_owned()
    }

    /// Calls a tool that must fail; answers the error text.
    pub(crate) async fn error(&self, tool: &str, args: Value) -> String {
        match self.call(tool, args.clone()).await {
            Err(error) => error,
            Ok(answer) => panic!("{tool} {args} succeeded: {answer}"),
        }
    }

    /// `text` with the base directory written as `BASE`.
    pub(crate) fn shown(&self, text: &str) -> String {
        text.replace(&self.base.path().to_string_lossy().into_owned(), "BASE")
    }

    /// A JSON value with `BASE` written as the base directory.
    pub(crate) fn real(&self, args: &str) -> Value {
        let base = self.base.path().to_string_lossy().into_owned();
        serde_json::from_str(&args.replace("BASE", &base)).expect("JSON")
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// Calls a tool by name with JSON arguments.
pub(crate) async fn call(fs: &Filesystem, tool: &str, args: Value) -> Result<Value, String> {
    macro_rules! dispatch {
        ($($name:literal => $method:ident,)*) => {
            match tool {
                $($name => {
                    let args = serde_json::from_value(args).map_err(|error| format!("arguments: {error}"))?;
                    let answer = fs.$method(args).await.map_err(|error| error.to_string())?;
                    Ok(serde_json::to_value(answer).expect("JSON"))
                })*
                other => panic!("no tool {other}"),
            }
        };
    }
    dispatch! {
        "read_file" => read_file,
        "read_text_file" => read_text_file,
        "read_media_file" => read_media_file,
        "read_multiple_files" => read_multiple_files,
        "write_file" => write_file,
        "edit_file" => edit_file,
        "create_directory" => create_directory,
        "list_directory" => list_directory,
        "list_directory_with_sizes" => list_directory_with_sizes,
        "directory_tree" => directory_tree,
        "move_file" => move_file,
        "search_files" => search_files,
        "get_file_info" => get_file_info,
        "list_allowed_directories" => list_allowed_directories,
        "fs_read_range" => fs_read_range,
        "fs_search_content" => fs_search_content,
        "fs_glob" => fs_glob,
        "fs_append" => fs_append,
        "fs_copy" => fs_copy,
        "fs_delete" => fs_delete,
    }
}

/// The usual arguments of tools that take one path.
pub(crate) fn at(path: impl AsRef<Path>) -> Value {
    json!({ "path": path.as_ref() })
}
