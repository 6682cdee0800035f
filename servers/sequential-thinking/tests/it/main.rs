//! The integration tests of `linchpin-sequential-thinking`: one program, a module for each subject.

mod behaviour;
mod common;
mod published;
