//! OAuth authorization for clients of the Model Context Protocol, from a server's 401 to a token on every request.
//!
//! A program configures [`OAuth`] and passes it to a client. `OAuth` implements the trait
//! [`Authorizer`](linchpin_core::Authorizer): it adds tokens to requests and reacts when they are rejected. `flow` has
//! the steps of the specification; `token_source` decides when they run. [`KnownServer`] provides only logins and
//! tokens, for APIs that are not MCP servers.
//!
//! ```text
//!                     known_server
//!                           ▼
//! oauth ─► token_source ─► flow ─► metadata, register, token, grants ─► fetch ─► linchpin_web
//!             │              └───► login (the user)
//!             └──────────────────► store
//! ```
//!
//! The types for scopes, challenges, keys, proofs and documents are those of `linchpin_oauth`.
//!
//! Specification: "Authorization" with its pages, revisions 2025-03-26 to 2026-07-28, and the extensions for client
//! credentials, enterprise-managed authorization, workload identity and DPoP.

// This crate must not depend on protocol revisions, the message format, or methods, except for the `ping` that it
// sends to get a server's challenge.
//
// Files import downwards, in this order:
//
// ```text
// oauth
// exchange  known_server  token_source
// flow
// register  token
// config
// grants
// client
// metadata
// fetch  login  login/browser  login/manual
// address  login/callback  store  store/file  store/keyring  store/memory  store/private
// error  login/page  scope
// ```

mod address;
mod client;
mod config;
mod error;
mod exchange;
mod fetch;
mod flow;
mod grants;
mod known_server;
mod metadata;
mod oauth;
mod register;
mod scope;
mod token;
mod token_source;

pub mod login;
pub mod store;

pub use client::Credential;
pub use error::Error;
pub use fetch::Fetch;
pub use grants::{Assertion, AssertionFor, Enterprise, Workload};
pub use known_server::KnownServer;
pub use linchpin_oauth::{Challenge, Scopes, Secret};
pub use oauth::{OAuth, Status};

/// Private keys of clients.
pub mod jwt {
    pub use linchpin_oauth::{Alg, KeyError, Signer};
}
