//! The integration tests of `linchpin-aws-kb`: one program, a module for each subject.

mod credentials;
mod published;
mod rows;
mod texts;
