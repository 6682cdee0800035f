//! Authorization for servers of the Model Context Protocol over HTTP.
//!
//! A [`Guard`] is a [`Gate`](linchpin_core::gate::Gate): it admits requests with an access token of a trusted issuer,
//! or with one of its keys, and responds to all others with the challenge that makes a client log in. It also serves
//! the metadata (RFC 9728) with which clients find the issuer.
//!
//! Verified tokens are cached for a few minutes, so that most requests need neither a signature check nor the network.
//! While an issuer is unavailable, requests with tokens that are not cached get the status 503; cached tokens are not
//! affected.
//!
//! Specification: "Authorization", revisions 2025-03-26 to 2026-07-28, and the extension for DPoP.

// This crate must not depend on methods of the protocol, its revisions, or the server crate; it knows bodies only by
// their hash.
//
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
