//! Data types of OAuth, read and written by clients, protected servers and authorization servers alike.
//!
//! Scopes, secrets, challenges, metadata documents, PKCE, JSON Web Keys, JWS and DPoP proofs. Everything except new
//! keys and random strings is deterministic: the crate performs no I/O and reads no clock (`now` is an argument, in
//! seconds since 1970).
//!
//! All algorithms are asymmetric ([`Alg`]), and a key determines which of them it verifies, so a public key can never
//! be mistaken for a shared secret.
//!
//! ```
//! use linchpin_oauth::{Alg, JwkSet, Jws, Signer};
//! use serde_json::json;
//!
//! let signer = Signer::generate(Alg::Es256).0.kid("key-1");
//! let token = signer.sign("at+jwt", &json!({ "sub": "ada" }));
//!
//! let keys = JwkSet::from_iter([signer.jwk()]);
//! let jws = Jws::read(&token)?;
//! let claims = keys.fitting(&jws).find_map(|key| jws.verify(key).ok()).expect("one of the keys signed it");
//! assert_eq!(claims.text("sub"), Some("ada"));
//! # Ok::<(), linchpin_oauth::Malformed>(())
//! ```

// This crate must not depend on sockets, tasks, clocks, storage, or the Model Context Protocol.
//
// Files import downwards, in this order:
//
// ```text
// dpop  jwk_set
// jws  signer  document
// jwk  strict  challenge  pkce
// alg  scope  random
// secret
// ```

mod alg;
mod challenge;
mod document;
mod jwk;
mod jwk_set;
mod jws;
mod pkce;
mod random;
mod scope;
mod secret;
mod signer;
mod strict;

pub mod dpop;

pub use alg::{Alg, KeyError};
pub use challenge::Challenge;
pub use document::{AuthorizationServerMetadata, ClientMetadata, ErrorDocument, ResourceMetadata};
pub use jwk::{Jwk, JwkError, Thumbprint};
pub use jwk_set::JwkSet;
pub use jws::{Claims, Jws, Malformed, Untimely};
pub use pkce::{CodeChallenge, Pkce};
pub use random::{random_id, random_text, sha256};
pub use scope::{OFFLINE_ACCESS, Scopes};
pub use secret::Secret;
pub use signer::Signer;
pub use strict::parse_object;
