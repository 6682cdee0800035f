//! What reaches terminals and files: text of servers is sanitised in `out`, and nowhere else.

#[cfg(feature = "client")]
pub(crate) mod bar;
#[cfg(feature = "client")]
pub(crate) mod content;
#[cfg(feature = "client")]
pub(crate) mod describe;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
#[cfg(feature = "client")]
pub(crate) mod lint;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for the commands that are clients"))]
pub(crate) mod out;
#[cfg(feature = "client")]
pub(crate) mod schema;
pub(crate) mod wrap;
