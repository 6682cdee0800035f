//! For people who write hosts of the Model Context Protocol: programs that use servers.
//!
//! A [`Client`] says who the host is and how it answers what servers ask. [`Client::connect`] opens a [`Connection`] to
//! one server, whatever revision that speaks; calls, lists, reads and subscriptions look the same in all of them.
//!
//! **What this crate owns.** Which methods are called, finding out the revision, keeping a connection alive, the rounds of
//! a call that asks for input, timeouts, progress, lists and their pages, the cache of answers, subscriptions.
//!
//! **What it must never know.** Frames: those are written by [`linchpin_proto::outgoing::Writer`]. Sockets, processes,
//! HTTP: those are behind [`linchpin_proto::Link`]. It also does not know the server crate, and names no protocol version:
//! it asks the [`linchpin_proto::Wire`] what a revision has.

mod ask;
mod cache;
mod call;
mod client;
mod connection;
mod core;
mod error;
mod form;
mod inbox;
mod list;
mod listen;
mod open;
mod queue;
mod result;
mod rounds;
mod supervise;
mod tools;

pub use ask::{AskUrl, Sample};
pub use call::{Call, Progress, Received, Step, Steps};
pub use client::{Client, Restart};
pub use connection::Connection;
pub use error::{Error, Refused};
pub use form::Form;
pub use linchpin_proto::{ClientLimits, Dial, LinkError, Tap, Traffic};
pub use list::{Listed, Listing, Page, Pages, Refusal};
pub use listen::{Changes, Interests};
pub use result::{CallResult, Decoded};

/// The result of what a client does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What changed at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and templates.
    Resources,
    /// The resource of this URI.
    Updated(String),
}
