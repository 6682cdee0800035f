//! One file per subcommand; those that talk to a server are in `client`.

#[cfg(feature = "web")]
pub(crate) mod admin;
#[cfg(feature = "client")]
pub(crate) mod client;
pub(crate) mod completions;
pub(crate) mod install_names;
pub(crate) mod man;
pub(crate) mod serve;
pub(crate) mod servers;
