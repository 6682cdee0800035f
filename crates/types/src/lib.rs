//! The wire types of the Model Context Protocol, in every revision from 2024-11-05 to 2026-07-28.
//!
//! **What this crate owns.** One Rust type for each object of the protocol's messages, under its exact name in the
//! specification's schema. A type is the *superset* of all five revisions: a field that a
//! revision lacks is optional and its documentation names the revisions that have it. What is anonymous in a schema
//! (a nested object, the value of a form field) has the shortest descriptive name.
//!
//! **What it must never know.** Sockets, clocks, threads, sessions, handlers, and the revision of a connection:
//! nothing here decides, waits or compares protocol versions. `linchpin-proto` leaves out fields that an older peer would not
//! understand. The only dependencies are `serde`, `serde_json` and `base64`.
//!
//! **Reading is lenient, writing is exact.** Unknown fields are ignored, absent and `null` optional fields become
//! `None` or empty. A missing required field or a `type` that no revision has is an error that names it. When writing,
//! `None` and empty fields are omitted.
//!
//! **Constructing values.** The specification grows, and so do these types: they are `#[non_exhaustive]` and created with
//! `new` (the required members) and `with_…` (the optional ones), or from `Default`. All members can be read and changed.
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
//! **Arbitrary JSON is [`RawValue`]**, so its bytes pass through unchanged, without
//! the cost of a parsed tree that is never used. `RawValue` only works with `serde_json`, and therefore so do these types.
//! It also cannot cross serde's buffering (`untagged`, internally tagged, `flatten`), which is why every union here
//! has a handwritten deserializer: first the member that identifies the variant, then the variant. Types that contain raw JSON
//! are compared by the JSON they would write, so two spellings of the same value are not equal.

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
