//! The subcommands that talk to a server.

mod input;
mod inspector;
mod plain;
mod wanted;

pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod diff;
pub(crate) mod inspect;
pub(crate) mod load;
pub(crate) mod ping;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod replay;
pub(crate) mod resources;
pub(crate) mod tools;
pub(crate) mod watch;

pub(crate) use plain::Plain;
