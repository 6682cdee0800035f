//! The wire types of the Model Context Protocol, in every revision from 2024-11-05 to 2026-07-28.
//!
//! **Contents.** There is one Rust type for each object in the messages of the protocol, with the exact name that it
//! has in the schema of the specification. A type is the *superset* of all five revisions: a field that some revisions
//! lack is optional, and its documentation names the revisions that have it. Objects that are anonymous in the schema
//! (a nested object, the value of a form field) have the shortest descriptive name.
//!
//! **Scope.** This crate has no I/O, no clock, no threads, no sessions and no handlers, and it does not know the
//! revision of a connection. `linchpin-server` and `linchpin-client` leave out fields that an older peer would not
//! understand. The only dependencies are `serde`, `serde_json` and `base64`.
//!
//! **Deserialization is lenient, serialization is exact.** When a type is deserialized, unknown fields are ignored, and
//! optional fields that are absent or `null` become `None` or empty. With few exceptions, a missing required
//! field or an unknown `type` is an error that names it. When a type is serialized, optional fields that are `None` or
//! empty are omitted.
//!
//! **Constructing values.** The specification grows, and these types grow with it. Most of them are therefore
//! `#[non_exhaustive]` and created with `new` (the required members) and `with_…` (the optional ones), or with
//! `Default`. All members are public and can be read and changed.
//!
//! ```
//! use linchpin_types::content::Icon;
//! use linchpin_types::prompt::{Prompt, PromptArgument};
//!
//! let prompt = Prompt::new("greet")
//!     .with_title("Greet somebody")
//!     .with_arguments([PromptArgument::new("name").with_required(true)])
//!     .with_icons([Icon::new("https://example.com/wave.png").with_sizes(["48x48"])]);
//! assert_eq!(
//!     serde_json::to_string(&prompt).unwrap(),
//!     r#"{"name":"greet","title":"Greet somebody","arguments":[{"name":"name","required":true}],"#.to_owned()
//!         + r#""icons":[{"src":"https://example.com/wave.png","sizes":["48x48"]}]}"#,
//! );
//! ```
//!
//! **Arbitrary JSON is a [`RawValue`]**, so that its bytes are passed on unchanged, without the cost of parsing it into
//! a tree that is never used. A `RawValue` only works with `serde_json`, and therefore these types do too. It does not
//! work inside types that serde buffers (`untagged`, internally tagged, `flatten`), which is why unions that
//! contain raw JSON have handwritten deserializers: they read the member that identifies the variant before the variant
//! itself. Types that contain raw JSON are equal if they serialize to the same JSON text, so two spellings of the same
//! JSON value are not equal.

// Files import downwards, in this order:
//
// ```text
// prompt  resource  task
// mrtr  sample  tool
// progress  request_meta  root
// jsonrpc
// complete  error  lifecycle  subscribe
// content  elicit  logging  page
// capability  meta
// read  setters  skill  version
// ```

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
pub mod request_meta;
pub mod resource;
pub mod root;
pub mod sample;
pub mod skill;
pub mod subscribe;
pub mod task;
pub mod tool;
pub mod version;

mod read;
mod setters;

pub use serde_json::value::RawValue;
