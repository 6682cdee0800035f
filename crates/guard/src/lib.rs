//! Authorization for servers of the Model Context Protocol over HTTP.
//!
//! A [`Guard`] is a [`Gate`](linchpin_core::gate::Gate): it admits requests with an access token of an issuer that it
//! trusts, or with one of its keys, and answers all others with the challenge that makes a client log in. It also serves
//! the metadata (RFC 9728) by which clients find the issuer.
//!
//! Tokens that were seen are remembered for a few minutes, so that nothing is verified twice and nothing is asked of a
//! network on the usual path. An issuer that is away is status 503 for tokens that were not seen, and nothing for others.
//!
//! This crate must not know methods of the protocol, its revisions, or the server crate; it knows bodies by their hash only.
//!
//! Specification: "Authorization", revisions 2025-03-26 to 2026-07-28, and the extension for DPoP.

// Files import downwards, in this order:
//
// ```text
// guard
// checker  layer
// config
// introspect
// jwt  mirror
// issuer
// keys  proof
// refuse
// clock  credentials  fetch  limit  mode  proxies  remembered  replay
// ```

mod checker;
mod clock;
mod config;
mod credentials;
mod fetch;
mod guard;
mod introspect;
mod issuer;
mod jwt;
mod keys;
mod layer;
mod limit;
mod mirror;
mod mode;
mod proof;
mod proxies;
mod refuse;
mod remembered;
mod replay;

pub use clock::Clock;
pub use fetch::Fetch;
pub use guard::Guard;
pub use issuer::{Introspection, TrustedIssuer};
pub use keys::{Key, Keys, KeysError, NewKey};
pub use layer::{GuardLayer, Guarded};
pub use linchpin_oauth::{Claims, JwkSet, Scopes, Secret, Signer};
pub use mode::Dpop;
pub use proxies::TrustedProxies;
