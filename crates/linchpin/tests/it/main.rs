//! The integration tests of `linchpin`: one program, a module for each subject.

mod advisories;
mod callbacks;
mod client;
mod client_wire;
mod clock;
mod common;
mod eras;
mod errors;
mod handlers;
mod http;
mod refreshed;
mod register;
mod restart;
mod rounds;
mod runtime;
mod safety;
mod stdio;
