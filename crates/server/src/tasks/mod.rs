//! Tasks: calls that answer later, and outlive their connection.
//!
//! `options`, `link` and `kept_headers` are below the context of calls, the rest is above it.

pub(crate) mod call;
pub(crate) mod capacity;
pub(crate) mod join;
pub(crate) mod kept_headers;
pub(crate) mod link;
pub(crate) mod listen;
pub(crate) mod live;
pub(crate) mod methods;
pub(crate) mod node;
pub(crate) mod options;
pub(crate) mod owner;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod result;
pub(crate) mod runner;
pub(crate) mod start;
pub(crate) mod storage;
