//! Messages for the other side of a bridge: what a client sent, for its upstream, and the answers back, whatever revision
//! each of the two has.
//!
//! Pure functions from a message that was read and two [`Features`](linchpin_core::Features) to the bytes for the other
//! side. Ids and progress tokens are replaced; members that only one era has are removed or added; everything else stays,
//! byte for byte. What cannot be translated is in `docs/TRANSLATION.md`.
//!
//! | client | upstream | requests | results |
//! |---|---|---|---|
//! | any | of the same era | [`request`] with [`Claims::Keep`] | [`result::same`] |
//! | has a session | stateless | [`request`] with [`Claims::Say`] | [`result::to_session`]; questions: [`ask`] |
//! | stateless | has sessions | [`request`] with [`Claims::Drop`] | [`result::to_stateless`] |

pub mod ask;
mod downgrade;
pub mod error;
pub mod notice;
pub mod open;
mod request;
pub mod result;

pub use request::{Claims, claims, notification, request};
