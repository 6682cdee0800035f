//! The integration tests of `linchpin-brave-search`: one program, a module for each subject.

mod published;
mod rows;
mod texts;
mod turns;
