//! Connecting to other servers and talking to them: which server, its credentials, requests and questions of the server.

pub(crate) mod args;
pub(crate) mod ask;
pub(crate) mod config;
mod flags;
pub(crate) mod login;
pub(crate) mod session;
pub(crate) mod target;

pub(crate) use flags::in_flags;
