//! The integration tests of `linchpin-everything`: one program, a module for each subject.

mod behaviour;
#[cfg(feature = "web")]
mod gzip_fetch;
mod published;
mod revisions;
