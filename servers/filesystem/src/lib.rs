//! A file system MCP server confined to the directories it was given.
//!
//! Drop-in for the published `server-filesystem`: the same fourteen tools with the same arguments, texts, structured
//! content and annotations, plus additional tools that all start with `fs_`. The confinement is different: each allowed
//! directory is held open as a handle from the start, every path is walked from that handle one component at a time
//! without letting the kernel follow a symlink, and every operation then acts on a handle and a single name. There is no
//! time between check and use in which a replaced symlink could lead outside.
//!
//! This crate contains the path rules, the confinement and the tools. It must not depend on transports, protocol
//! revisions or command lines. [`Filesystem`] is the state; its methods are the tools. Blocking work runs on the
//! runtime's blocking pool, so a slow disk delays only one call.
//!
//! Unix only for now: on other systems the crate is empty, because the handle operations in `os` exist only
//! for Unix.
#![cfg(unix)]

// Files import downwards, in this order:
//
// ```text
// tools
// server
// change  scan
// open  page  walk
// resolve
// answer  inner
// config  roots
// diff  error  glob  os  paths  text  turns
// ```

mod answer;
mod change;
mod config;
mod diff;
mod error;
mod glob;
mod inner;
mod open;
mod os;
mod page;
mod paths;
mod resolve;
mod roots;
mod scan;
mod server;
mod text;
mod tools;
mod turns;
mod walk;

pub use answer::{Answer, NoMore};
pub use config::{Config, FollowSymlinks, ROOTS};
pub use linchpin_kit::RootsPolicy;
pub use page::ListMore;
pub use server::Filesystem;
pub use tools::SERVICE;
pub use tools::append::FsAppend;
pub use tools::copy::{CopyMore, FsCopy};
pub use tools::create_directory::CreateDirectory;
pub use tools::delete::FsDelete;
pub use tools::directory_tree::DirectoryTree;
pub use tools::edit_file::{Edit, EditFile, EditMore, EditReport};
pub use tools::get_file_info::GetFileInfo;
pub use tools::glob::FsGlob;
pub use tools::list_allowed_directories::ListAllowedDirectories;
pub use tools::list_directory::ListDirectory;
pub use tools::list_directory_with_sizes::{ListDirectoryWithSizes, SortBy};
pub use tools::move_file::MoveFile;
pub use tools::read_media_file::{MediaAnswer, MediaBlock, MediaResource, ReadMediaFile};
pub use tools::read_multiple_files::ReadMultipleFiles;
pub use tools::read_range::{FsReadRange, RangeMore};
pub use tools::read_text_file::{ReadFile, ReadMore};
pub use tools::resource::{ResourceBody, ResourceData};
pub use tools::search_content::FsSearchContent;
pub use tools::search_files::SearchFiles;
pub use tools::write_file::WriteFile;
