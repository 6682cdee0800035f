//! The integration tests of `linchpin-slack`: one program, a module for each subject.

mod places;
mod posts;
mod published;
mod rows;
mod texts;
