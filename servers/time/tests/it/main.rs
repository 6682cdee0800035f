//! The integration tests of `linchpin-time`: one program, a module for each subject.

mod behaviour;
mod common;
mod oracle;
mod published;
mod table;
mod zones;
