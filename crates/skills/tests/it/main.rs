//! The integration tests of `linchpin-skills`: one program, a module for each subject.

mod common;
mod hostile;
mod serve;
mod using;
