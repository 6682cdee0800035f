//! One file per subcommand.

#[cfg(feature = "client")]
mod plain;

#[cfg(feature = "client")]
pub(crate) mod auth;
#[cfg(feature = "client")]
pub(crate) mod call;
#[cfg(feature = "client")]
pub(crate) mod complete;
#[cfg(feature = "client")]
pub(crate) mod diff;
#[cfg(feature = "client")]
pub(crate) mod inspect;
pub(crate) mod install_names;
#[cfg(feature = "client")]
pub(crate) mod load;
#[cfg(feature = "client")]
pub(crate) mod ping;
#[cfg(feature = "client")]
pub(crate) mod prompt;
#[cfg(feature = "client")]
pub(crate) mod prompts;
#[cfg(feature = "client")]
pub(crate) mod read;
#[cfg(feature = "client")]
pub(crate) mod replay;
#[cfg(feature = "client")]
pub(crate) mod resources;
pub(crate) mod serve;
#[cfg(feature = "client")]
pub(crate) mod tools;
#[cfg(feature = "client")]
pub(crate) mod watch;

#[cfg(feature = "client")]
pub(crate) use plain::Plain;
