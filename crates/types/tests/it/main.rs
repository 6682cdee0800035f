//! The integration tests of `linchpin-types`: one program, a module for each subject.

mod lenient;
mod round_trip;
mod task;
mod words;
