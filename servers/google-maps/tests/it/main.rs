//! The integration tests of `linchpin-google-maps`: one program, a module for each subject.

mod published;
mod rows;
mod texts;
