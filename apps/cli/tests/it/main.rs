//! The integration tests of `linchpin-cli`: one program, a module for each subject.

#[path = "../../../../servers/postgres/tests/it/common/mod.rs"]
mod cluster;
#[path = "common/rows.rs"]
mod rows;
mod arguments;
mod cli;
mod common;
mod ends;
mod keyring;
mod listed;
mod login;
mod memory;
mod names;
mod servers;
mod several;
mod shown;
mod silence;
