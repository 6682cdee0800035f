//! What all native servers share, so that no server has its own copy.
//!
//! - [`ToolSpec`], [`Alias`], [`ToolChoice`], [`Toolbox`]: which tools are offered and under which names, old ones included,
//!   by one set of flags; [`as_listed`]: our own words name them as they are listed;
//! - [`Fault`]: why a tool could not do what was asked, in words for the model that asked;
//! - [`Shown`]: a text for old clients and structured content for the others, marked as data where others wrote it;
//! - [`clip`], [`Paging`], [`unknown_cursor`]: one way of cutting what is too long and saying how to go on;
//! - [`RootsPolicy`], [`root_path`], [`settled`]: what a client's roots do and how it is asked for them, which paths they name, and
//!   where a path really leads;
//! - [`near`]: what was probably meant by a name that there is not;
//! - [`Vars`]: reading environment variables, with errors that name them; [`Secret`]: what is never shown.
//!
//! The HTTP client that servers share is `linchpin::transport::web`. This crate must never know: transports, protocol eras,
//! command lines, and any one server.

mod choice;
mod cut;
mod fault;
mod names;
mod near;
mod roots;
mod shown;
mod toolbox;
mod vars;

pub use choice::{Alias, NAME_CHARS_GOOD, NAME_CHARS_MAX, Service, ToolChoice, ToolPrefix, ToolSpec};
pub use cut::{Cut, PAGE_ITEMS_MAX, Paging, TEXT_BYTES_MAX, chars_from, clip, unknown_cursor};
pub use fault::Fault;
pub use names::as_listed;
pub use near::near;
pub use roots::{ROOTS_WAIT, RootsPolicy, percent_decoded, root_path, settled};
pub use shown::{Shown, Told, from_outside};
pub use toolbox::Toolbox;
pub use vars::{Keyring, Secret, Vars};
