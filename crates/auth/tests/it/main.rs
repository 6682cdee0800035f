//! The integration tests of `linchpin-auth`: one program, a module for each subject.

mod flow;
mod keyring;
mod known_server;
mod life;
mod login;
mod secrets;
mod store;
mod support;
mod wire;
