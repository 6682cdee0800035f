//! The integration tests of `linchpin-postgres`: one program, a module for each subject.

mod away;
mod chosen;
mod commit;
mod common;
mod corpus;
mod given;
mod limits;
mod listing;
mod login;
mod named;
mod outside;
mod pooled;
mod published;
mod read_only;
mod readme;
mod serving;
mod shadowed;
mod signs;
mod type_names;
mod writing;
