//! The integration tests of `linchpin-github`: one program, a module for each subject.

mod commit;
mod guard;
mod published;
mod read;
mod rows;
mod scope;
mod tools;
