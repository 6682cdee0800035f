//! Parsers for git's formats.

pub(crate) mod index;
pub(crate) mod log;
pub(crate) mod patch;
pub(crate) mod porcelain;
