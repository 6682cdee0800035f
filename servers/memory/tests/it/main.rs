//! The integration tests of `linchpin-memory`: one program, a module for each subject.

mod common;
mod files;
mod limits;
mod published;
mod safety;
mod times;
mod tools;
