//! The words of the Model Context Protocol: the wire types of every revision, from 2024-11-05 to 2026-07-28.
//!
//! **What this crate owns.** One Rust type for each object that the protocol puts on the wire, under the name that the
//! specification's schema gives it, letter for letter. A type is the *superset* of all five revisions: a field that a
//! revision lacks is optional and its documentation names the revisions that have it. What a schema leaves anonymous
//! (a nested object, the value of a form field) gets the shortest name that describes it.
//!
//! **What it must never know.** Sockets, clocks, tasks, sessions, handlers, and which revision a conversation speaks:
//! nothing here decides, waits or compares protocol versions. Leaving out a field that an older peer would not
//! understand is the work of `linchpin-proto`. The only dependencies are `serde` and `serde_json`.
//!
//! **Reading is lenient, writing is exact.** Unknown fields are ignored, absent and `null` optional fields become
//! `None` or empty. A missing required field or a `type` that no revision has is an error that names it. When writing,
//! what is `None` or empty is left out.
//!
//! **Arbitrary JSON is [`RawValue`]**, so its bytes pass through unchanged and nobody
//! pays for a tree that is never looked at. `RawValue` only works with `serde_json`, and therefore so do these types.
//! It also cannot cross serde's buffering (`untagged`, internally tagged, `flatten`), which is why every union here
//! reads itself by hand: first the member that tells the kinds apart, then the kind. Types that hold raw JSON compare
//! by the JSON they would write, so two spellings of the same value are not equal.

pub mod capability;
pub mod complete;
pub mod content;
pub mod elicit;
pub mod error;
pub mod jsonrpc;
pub mod lifecycle;
pub mod logging;
pub mod meta;
pub mod mrtr;
pub mod page;
pub mod progress;
pub mod prompt;
pub mod resource;
pub mod root;
pub mod sample;
pub mod subscribe;
pub mod tool;
pub mod version;

mod read;

pub use serde_json::value::RawValue;
