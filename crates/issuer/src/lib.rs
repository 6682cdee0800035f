#![doc = include_str!("../README.md")]

// This crate must not depend on MCP methods, the server crate, or the transport that serves its pages. It issues
// tokens; the gate and the server decide what they give access to.
//
// Files import downwards, in this order:
//
// ```text
// issuer  admin
// gate
// consent  endpoints  device
// token
// jwt_bearer
// login
// callback
// code
// authorize  authenticate
// dpop
// session  attempts
// transaction
// device_grant
// tokens
// shared
// documents  revoked  keys
// trusted
// key_source
// records  request
// upstream  users
// pages
// answer
// client  person
// redirect  params  audit
// limits
// ```

mod admin;
mod answer;
mod attempts;
mod audit;
mod authenticate;
mod authorize;
mod callback;
mod client;
mod code;
mod consent;
mod device;
mod device_grant;
mod documents;
mod dpop;
mod endpoints;
mod gate;
mod issuer;
mod jwt_bearer;
mod key_source;
mod keys;
mod limits;
mod login;
mod pages;
mod params;
mod person;
mod records;
mod redirect;
mod request;
mod revoked;
mod session;
mod shared;
mod token;
mod tokens;
mod transaction;
mod trusted;
mod upstream;
mod users;

pub use admin::{Admin, AdminError, Grant};
pub use client::Client;
pub use issuer::Issuer;
pub use linchpin_oauth::{Secret, random_text};
#[cfg(feature = "redis")]
pub use linchpin_store::RedisOptions;
pub use linchpin_store::{Secrets, Store};
pub use person::{Allow, Person, SetupError};
pub use trusted::{IdentityProvider, Workload};
pub use upstream::{Endpoints, Upstream, UpstreamError};
pub use users::{User, UserTable, Users};
