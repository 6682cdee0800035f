//! The integration tests of `linchpin`: one program, a module for each subject.

mod advisories;
mod client;
mod common;
mod eras;
mod handlers;
mod http;
mod offer;
mod refreshed;
mod restart;
mod rounds;
mod runtime;
mod safety;
mod stdio;
