//! The integration tests of `linchpin-web`: one program, a module for each subject.

mod busy;
#[cfg(feature = "forward-proxy")]
mod forward;
mod proxy;
mod reach;
mod redirects;
mod server;
