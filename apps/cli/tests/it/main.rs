//! The integration tests of `linchpin-cli`: one program, a module for each subject.

mod arguments;
mod auth_server;
mod bridge;
mod browser;
mod cli;
#[path = "../../../../servers/postgres/tests/it/common/mod.rs"]
mod cluster;
mod common;
mod ends;
mod foreign;
mod front;
mod guarded;
mod keyring;
mod listed;
mod login;
mod memory;
mod names;
#[path = "common/rows.rs"]
mod rows;
mod servers;
mod several;
mod shown;
mod silence;
mod skills;
mod terminal;
mod token_cost;
