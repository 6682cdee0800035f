//! Code shared by the ready-made servers.
//!
//! - [`ToolSpec`], [`Alias`], [`ToolChoice`], [`ToolSet`]: which tools are registered and under which names, former
//!   ones included, by one set of flags; [`as_listed`]: replaces tool names in texts by their listed names;
//! - [`ToolError`], [`ErrorKind`]: tool errors for the model, and their kinds for programs; [`visible`]: text of third
//!   parties with its hidden characters shown, [`without_hidden`]: without them; [`redact_urls`]: without credentials;
//!   [`io_text`]: the words of an I/O error;
//! - [`ToolOutput`]: text for old clients and structured content for others, with the provenance of the text;
//! - [`clip`], [`Budget`], [`page`], [`Paging`], [`Cursor`], [`unknown_cursor`]: truncation and pagination;
//! - [`RootsPolicy`], [`root_path`], [`resolve_symlinks`]: the effect of a client's roots, their paths, and symlink
//!   resolution;
//! - [`json`]: the layout of JSON text, with its digits as they are;
//! - [`blocking`]: work that blocks, beside the threads of the runtime;
//! - [`near`]: the nearest name to an unknown one; [`new_file`]: a new file under a name of others;
//! - [`Vars`]: environment variables, with errors that name them; [`Secret`]: a string that is never printed;
//! - [`options!`], [`flag`], [`Options`]: the options of a configuration, each declared once for its variable, its flag
//!   and its help text; [`cli`] (feature `cli`): the same as arguments of clap,
//!   [`settings`]: its plain arguments.
//!
//! The shared HTTP client is `linchpin::transport::web`. This crate must not depend on transports, protocol revisions,
//! command lines or any single server.

// Files import downwards, in this order:
//
// ```text
// cli  tool_options
// flag  setting
// budget  options  output  toolset
// choice  paging  roots  vars
// error  new_file
// visible
// blocking  cut  json  names  near  output_schema  provenance  redact
// ```

mod blocking;
mod budget;
mod choice;
#[cfg(feature = "cli")]
pub mod cli;
mod cut;
mod error;
pub mod flag;
pub mod json;
mod names;
mod near;
mod new_file;
mod options;
mod output;
mod output_schema;
mod paging;
mod provenance;
mod redact;
mod roots;
#[cfg(feature = "cli")]
mod setting;
mod tool_options;
mod toolset;
mod vars;
mod visible;

#[cfg(feature = "cli")]
pub use clap;

pub use blocking::blocking;
pub use budget::{Budget, Cursor, Page, json_len, page};
pub use choice::{Alias, NAME_CHARS_GOOD, NAME_CHARS_MAX, Service, ToolChoice, ToolPrefix, ToolSpec};
pub use cut::{Cut, TEXT_BYTES_MAX, chars_from, clip};
pub use error::{DETAIL_BYTES_MAX, ERROR_META, ErrorKind, ToolError, io_text};
pub use names::as_listed;
pub use near::near;
pub use new_file::new_file;
pub use options::{ConfigOption, Given, Options};
pub use output::ToolOutput;
pub use paging::{PAGE_ITEMS_MAX, Paging, unknown_cursor};
pub use provenance::{Provenance, from_outside};
pub use redact::redact_urls;
pub use roots::{ROOTS_WAIT, RootsPolicy, percent_decoded, resolve_symlinks, root_path};
#[cfg(feature = "cli")]
pub use setting::{Setting, settings};
pub use toolset::ToolSet;
pub use vars::{Keyring, Secret, Vars};
pub use visible::{visible, without_hidden};
