//! The integration tests of `linchpin-otel`: one program, a module for each subject.

mod collector;
mod exported;
