//! Built-in servers: one with its own command line, or several in one process.

pub(crate) mod auth;
#[cfg(feature = "web")]
pub(crate) mod auth_server;
#[cfg(feature = "fetch")]
pub(crate) mod convert;
mod entry;
#[cfg(feature = "web")]
mod issuer;
mod keyring;
mod login;
#[cfg_attr(not(feature = "servers"), allow(dead_code, reason = "a build with few servers uses only some of it"))]
mod native;
pub(crate) mod paste;
pub(crate) mod place;
mod published;
#[cfg_attr(not(feature = "servers"), allow(dead_code, reason = "a build with few servers uses only some of it"))]
mod reach;
mod report;
mod servers;
pub(crate) mod serving;
pub(crate) mod several;
#[cfg(feature = "web")]
pub(crate) mod store;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod trim;
mod url;
pub(crate) mod words;

pub(crate) use entry::{Alone, Tools};
pub(crate) use keyring::keyring;
pub(crate) use native::Entry;
pub(crate) use servers::ENTRIES;
pub(crate) use serving::ServingArgs;
#[cfg(feature = "web")]
pub(crate) use serving::audit;

use reach::Reach;
