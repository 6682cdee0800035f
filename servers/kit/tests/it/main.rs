//! The integration tests of `linchpin-kit`: one program, a module for each subject.

mod aliases;
mod faults;
mod listed;
mod roots;
