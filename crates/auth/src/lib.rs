//! Authorization for clients of the Model Context Protocol: OAuth, from a server's refusal to a token on every request.
//!
//! [`OAuth`] is what a program sets up and hands to a client. It implements the protocol's
//! [`Authorizer`](linchpin_proto::link::Authorizer): it puts tokens on requests and reacts when they are refused. The flow
//! is in `flow`, step by step as the specification tells it; `keeper` decides when it runs.
//!
//! ```text
//! oauth ─► keeper ─► flow ─► metadata, register, token, grants ─► fetch ─► transport::web
//!             │        └───► login (a person)
//!             └────────────► store
//! ```
//!
//! This crate must never know a method of the protocol beyond the `ping` it asks a server for its challenge with, nor an
//! era, nor how messages look.
//!
//! Specification: "Authorization" with its pages, revisions 2025-03-26 to 2026-07-28, and the extensions for client
//! credentials, enterprise-managed authorization, workload identity and DPoP.

mod address;
mod challenge;
mod client;
mod config;
mod error;
mod fetch;
mod flow;
mod grants;
mod keeper;
mod metadata;
mod oauth;
mod pkce;
mod register;
mod scope;
mod token;

pub mod dpop;
pub mod jwt;
pub mod login;
pub mod secret;
pub mod store;

pub use challenge::Challenge;
pub use client::Credential;
pub use error::Error;
pub use fetch::Fetch;
pub use grants::{Assertion, AssertionFor, Enterprise, Workload};
pub use linchpin_transport::web::{Reach, WebOptions};
pub use oauth::{OAuth, Status};
pub use scope::Scopes;
pub use secret::Secret;
