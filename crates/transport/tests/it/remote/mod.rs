//! What the HTTP client side does with servers that answer in every possible way.
#![cfg(feature = "remote")]

mod answers;
mod hygiene;
mod old;
mod redirects;
pub(crate) mod script;
mod sessions;
mod streams;
pub(crate) mod tls;
