//! The tools, one per file.

pub(crate) mod describe;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod memo;
pub(crate) mod read;
pub(crate) mod schema;
pub(crate) mod write;
