//! The integration tests of `linchpin-web`: one program, a module for each subject.

mod busy;
mod proxy;
mod reach;
mod redirects;
mod server;
