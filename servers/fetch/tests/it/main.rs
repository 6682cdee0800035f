//! The integration tests of `linchpin-fetch`: one program, a module for each subject.

mod common;
mod ours;
mod published;
mod rebinding;
mod safety;
mod semantics;
mod worker;
