//! The integration tests of `linchpin-google-drive`: one program, a module for each subject.

mod credentials;
mod published;
mod resources;
mod rows;
mod texts;
