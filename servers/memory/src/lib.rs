//! A knowledge graph in one file as an MCP server, with durable writes.
//!
//! Drop-in for the published `server-memory`: the same nine tools, the same resource, the same file. File handling
//! differs: every change takes a lock shared with other processes, applies to the current content of the file, and
//! replaces the file atomically; unknown content of the file is kept.
//!
//! This crate contains the file format, its lock, history and backups, the graph, search and the tools. It must not
//! depend on transports, protocol revisions or command lines. [`Memory`] is the state; reading and writing run on the
//! runtime's blocking pool, so a slow disk delays only one call.

// Files import downwards, in this order:
//
// ```text
// tools
// answer
// server
// import  part  store
// changes  journal  search
// graph
// config  files  format
// ```

mod answer;
mod changes;
mod config;
mod files;
mod format;
mod graph;
mod import;
mod journal;
mod part;
mod search;
mod server;
mod store;
mod tools;

pub use config::Config;
pub use server::{GRAPH_URI, Memory};
pub use tools::SERVICE;
