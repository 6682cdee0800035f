//! The integration tests of `linchpin-kit`: one program, a module for each subject.

mod aliases;
mod errors;
mod listed;
mod options;
mod roots;
