//! The integration tests of `linchpin-sentry`: one program, a module for each subject.

mod issues;
mod published;
mod rows;
