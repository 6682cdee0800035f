//! The integration tests of `linchpin-conformance`: one program, a module for each subject.

mod client;
mod fixtures;
