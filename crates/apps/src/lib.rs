//! MCP Apps (the extension `io.modelcontextprotocol/ui`): pages that show the results of a server's tools, and the
//! checks that a host needs to show them safely.
//!
//! Use it through the crate `linchpin`, feature `apps`. A server adds an `App` and refers to it in a tool:
//!
//! ```
//! use linchpin::apps::App;
//! use linchpin::prelude::*;
//!
//! struct Clock;
//!
//! #[register]
//! impl Clock {
//!     /// Returns the time.
//!     #[tool(read_only, ui = "ui://clock/face")]
//!     fn now(&self) -> String {
//!         "12:00".to_owned()
//!     }
//!
//!     /// Returns the time for the face; no model sees this tool.
//!     #[tool(read_only, ui = "ui://clock/face", visible = "app")]
//!     fn tick(&self) -> String {
//!         "12:00".to_owned()
//!     }
//! }
//!
//! let server = Server::new("clock", "1.0")
//!     .with(App::new("ui://clock/face", "<!doctype html><title>Clock</title>").border(true))
//!     .with(Clock);
//! ```
//!
//! A host reads the page, shows it in a sandboxed frame with the policy of [`View::csp`], and passes messages between the frame and a
//! [`View`], which does no I/O itself.

// This crate owns what a page may do: its definition, policy, and messages. It must never know a browser, a window, sockets, eras, or
// JavaScript.
//
// Files import downwards, in this order:
//
// ```text
// app
// view
// message
// policy
// grant
// definition
// ```

#[cfg(feature = "serve")]
mod app;
mod definition;
mod grant;
mod message;
mod policy;
mod view;

#[cfg(feature = "serve")]
pub use app::App;
pub use definition::{Csp, PAGE_BYTES_MAX, PAGE_TYPE, PageMeta, Permissions, is_page};
pub use grant::Grant;
pub use view::{Act, View};
