//! What all native servers share, so that no server has its own copy.
//!
//! - [`ToolSpec`], [`Alias`], [`ToolChoice`], [`ToolSet`]: which tools are offered and under which names, old ones included,
//!   by one set of flags; [`as_listed`]: our own words name them as they are listed;
//! - [`ToolError`]: why a tool could not do what was asked, in words for the model that asked;
//! - [`ToolOutput`]: a text for old clients and structured content for the others, marked as data where others wrote it;
//! - [`clip`], [`Paging`], [`unknown_cursor`]: one way of cutting what is too long and saying how to go on;
//! - [`RootsPolicy`], [`root_path`], [`resolve_symlinks`]: what a client's roots do and how it is asked for them, which paths they name, and
//!   where a path really leads;
//! - [`near`]: what was probably meant by a name that there is not;
//! - [`Vars`]: reading environment variables, with errors that name them; [`Secret`]: what is never shown.
//!
//! The HTTP client that servers share is `linchpin::transport::web`. This crate must never know: transports, protocol eras,
//! command lines, and any one server.

mod choice;
mod cut;
mod error;
mod names;
mod near;
mod output;
mod roots;
mod toolset;
mod vars;

pub use choice::{Alias, NAME_CHARS_GOOD, NAME_CHARS_MAX, Service, ToolChoice, ToolPrefix, ToolSpec};
pub use cut::{Cut, PAGE_ITEMS_MAX, Paging, TEXT_BYTES_MAX, chars_from, clip, unknown_cursor};
pub use error::ToolError;
pub use names::as_listed;
pub use near::near;
pub use output::{Provenance, ToolOutput, from_outside};
pub use roots::{ROOTS_WAIT, RootsPolicy, percent_decoded, resolve_symlinks, root_path};
pub use toolset::ToolSet;
pub use vars::{Keyring, Secret, Vars};
