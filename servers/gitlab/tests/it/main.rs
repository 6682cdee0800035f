//! The integration tests of `linchpin-gitlab`: one program, a module for each subject.

mod files;
mod people;
mod published;
mod rows;
