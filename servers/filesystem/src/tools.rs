//! The tools by name: the async face of [`Filesystem`] and the table that choosing works on.

use crate::config::ToolSpec;
use crate::read::ResourceBody;
use crate::{
    Answer, CopyMore, CreateDirectory, DirectoryTree, EditFile, EditMore, Filesystem, FsAppend,
    FsCopy, FsDelete, FsError, FsGlob, FsReadRange, FsSearchContent, GetFileInfo,
    ListAllowedDirectories, ListDirectory, ListDirectoryWithSizes, ListMore, MediaAnswer, MoveFile,
    NoMore, RangeMore, ReadFile, ReadMediaFile, ReadMore, ReadMultipleFiles, SearchFiles,
    WriteFile,
};

const fn spec(name: &'static str, toolset: &'static str, writes: bool) -> ToolSpec {
    ToolSpec {
        name,
        toolset,
        writes,
    }
}

/// Every tool, in the order they are listed: the published fourteen first.
pub const TOOLS: &[ToolSpec] = &[
    spec("read_file", "read", false),
    spec("read_text_file", "read", false),
    spec("read_media_file", "read", false),
    spec("read_multiple_files", "read", false),
    spec("write_file", "write", true),
    spec("edit_file", "write", true),
    spec("create_directory", "write", true),
    spec("list_directory", "list", false),
    spec("list_directory_with_sizes", "list", false),
    spec("directory_tree", "list", false),
    spec("move_file", "write", true),
    spec("search_files", "search", false),
    spec("get_file_info", "read", false),
    spec("list_allowed_directories", "list", false),
    spec("fs_read_range", "read", false),
    spec("fs_search_content", "search", false),
    spec("fs_glob", "search", false),
    spec("fs_append", "write", true),
    spec("fs_copy", "write", true),
    spec("fs_delete", "delete", true),
];

/// Writes one async method per tool over its blocking half.
macro_rules! tools {
    ($($(#[$doc:meta])* $name:ident($args:ty) -> $answer:ty = $work:ident;)*) => {
        impl Filesystem {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// With words for the model: what was wrong and what to do next.
                pub async fn $name(&self, args: $args) -> Result<$answer, FsError> {
                    self.run(move |inner| inner.$work(&args)).await
                }
            )*
        }
    };
}

/// The same for tools that change something: refused in read-only mode even when called by a name that is not listed.
macro_rules! writing_tools {
    ($($(#[$doc:meta])* $name:ident($args:ty) -> $answer:ty = $work:ident;)*) => {
        impl Filesystem {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// With words for the model: what was wrong and what to do next.
                pub async fn $name(&self, args: $args) -> Result<$answer, FsError> {
                    if self.inner.config.read_only {
                        return Err(FsError::new("This server is read-only")
                            .hint("The person running it can allow changes by leaving out --read-only."));
                    }
                    self.run(move |inner| inner.$work(&args)).await
                }
            )*
        }
    };
}

tools! {
    /// `read_text_file` and `read_file`: a text file, or its first or last lines.
    read_text_file(ReadFile) -> Answer<ReadMore> = read_text;
    /// `read_media_file`: a file as a base64 content block.
    read_media_file(ReadMediaFile) -> MediaAnswer = read_media;
    /// `read_multiple_files`: several text files; one that fails does not stop the others.
    read_multiple_files(ReadMultipleFiles) -> Answer<NoMore> = read_multiple;
    /// `list_directory`: names with `[FILE]` or `[DIR]`.
    list_directory(ListDirectory) -> Answer<ListMore> = list_directory;
    /// `list_directory_with_sizes`: the same with sizes and totals.
    list_directory_with_sizes(ListDirectoryWithSizes) -> Answer<ListMore> = list_with_sizes;
    /// `directory_tree`: everything below a directory as JSON.
    directory_tree(DirectoryTree) -> Answer<ListMore> = directory_tree;
    /// `search_files`: paths that match a glob.
    search_files(SearchFiles) -> Answer<ListMore> = search_files;
    /// `get_file_info`: metadata.
    get_file_info(GetFileInfo) -> Answer<NoMore> = file_info;
    /// `fs_read_range`: a window of lines.
    fs_read_range(FsReadRange) -> Answer<RangeMore> = read_range;
    /// `fs_search_content`: lines that match a pattern.
    fs_search_content(FsSearchContent) -> Answer<ListMore> = search_content;
    /// `fs_glob`: paths that match a glob, in pages.
    fs_glob(FsGlob) -> Answer<ListMore> = glob;
}

writing_tools! {
    /// `write_file`: creates or replaces a file, all or nothing.
    write_file(WriteFile) -> Answer<NoMore> = write_file;
    /// `edit_file`: replaces text and shows the diff.
    edit_file(EditFile) -> Answer<EditMore> = edit_file;
    /// `create_directory`: with its parents; one that exists is fine.
    create_directory(CreateDirectory) -> Answer<NoMore> = create_directory;
    /// `move_file`: moves or renames; never replaces.
    move_file(MoveFile) -> Answer<NoMore> = move_file;
    /// `fs_append`: adds to the end of a file.
    fs_append(FsAppend) -> Answer<NoMore> = append;
    /// `fs_copy`: copies a file, or a directory with everything in it.
    fs_copy(FsCopy) -> Answer<CopyMore> = copy;
}

impl Filesystem {
    /// `list_allowed_directories`: what can be used at all.
    ///
    /// # Errors
    /// None; the signature is that of the other tools.
    pub async fn list_allowed_directories(
        &self,
        _: ListAllowedDirectories,
    ) -> Result<Answer<NoMore>, FsError> {
        Ok(self.inner.allowed_directories())
    }

    /// `fs_delete`: deletes a file, a link or a directory.
    ///
    /// # Errors
    /// With words for the model: what was wrong and what to do next; always without `allow_delete`.
    pub async fn fs_delete(&self, args: FsDelete) -> Result<Answer<NoMore>, FsError> {
        let config = &self.inner.config;
        if config.read_only || !config.allow_delete {
            return Err(FsError::new("Deleting is not allowed on this server").hint(
                "The person running it can allow it with --allow-delete (and without --read-only).",
            ));
        }
        self.run(move |inner| inner.delete(&args)).await
    }

    /// A file under its `file://` URI, for the opt-in resource template.
    ///
    /// # Errors
    /// When it cannot be read; [`FsError::is_missing`] tells what should be "resource not found".
    pub async fn read_resource(&self, uri: String) -> Result<ResourceBody, FsError> {
        self.run(move |inner| inner.read_resource(&uri)).await
    }
}
