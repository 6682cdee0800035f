//! The grammar of the Model Context Protocol, without I/O.
//!
//! This crate owns: what a frame is ([`json`], [`frame`]), which revision is spoken and what that revision has
//! ([`era`]), the [`limits`] of all crates and how much memory peers may hold ([`budget`]), who may say what when
//! ([`engine`]), how an answer is written ([`reply`]), how change notifications are coalesced ([`feed`]), the header and
//! SSE rules of the HTTP transports ([`http`]), cursors, URI templates and sealed state, the door between a wire and a
//! server ([`service`]), and the door between a client and a wire ([`link`], [`opening`], [`outgoing`]).
//!
//! It must never know: sockets, tasks, clocks, random numbers (each is passed in), or a user's handlers. Everything here
//! is deterministic, so it is tested and fuzzed without a runtime.

pub mod budget;
pub mod caller;
pub mod cursor;
pub mod engine;
pub mod era;
pub mod feed;
pub mod fit;
pub mod frame;
pub mod http;
pub mod id;
pub mod json;
mod legacy;
pub mod limits;
pub mod link;
pub mod method;
mod modern;
pub mod opening;
pub mod outgoing;
pub mod render;
pub mod reply;
pub mod seal;
pub mod service;
pub mod uri_template;

pub use budget::{Budget, Reservation};
pub use caller::{Caller, ClientCaps, Session};
pub use engine::{Engine, Event};
pub use era::Wire;
pub use feed::{Change, Feed, FeedHandle, Hub};
pub use frame::{Message, Request};
pub use id::Id;
pub use json::Span;
pub use limits::{ClientLimits, Limits};
pub use link::{Answer, Authorizer, Dial, Dialing, Inbox, Link, LinkError, Outgoing, Tap, Traffic};
pub use method::Method;
pub use reply::{Reply, ReplyKind, ResultWriter, Stamps};
pub use service::{Ask, AskError, Cancel, Door, Exchange, Service, Started, Step};
