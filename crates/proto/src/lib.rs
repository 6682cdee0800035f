//! The engine of the Model Context Protocol, without I/O.
//!
//! This crate owns: frames ([`json`], [`frame`]), the revisions and their features ([`era`]), the [`limits`] of all
//! crates and the memory budget of peers ([`budget`]), which message is allowed when ([`engine`]), how responses are
//! written ([`reply`]), how change notifications are coalesced ([`subscription`]), the header and SSE rules of the HTTP
//! transports ([`http`]), cursors, URI templates and sealed state, the interface between a transport and a server
//! ([`service`]), and the interface between a client and a transport ([`connector`], [`negotiation`],
//! [`message_writer`]).
//!
//! It must not depend on sockets, tasks, clocks, random numbers (each is passed in), or a user's handlers. Everything
//! here is deterministic, so it is tested and fuzzed without a runtime.

pub mod budget;
pub mod caller;
pub mod connector;
pub mod cursor;
pub mod downgrade;
pub mod engine;
pub mod era;
pub mod frame;
pub mod http;
pub mod id;
pub mod json;
mod legacy;
pub mod limits;
pub mod message_writer;
pub mod method;
mod modern;
pub mod negotiation;
pub mod render;
pub mod reply;
pub mod seal;
pub mod service;
pub mod subscription;
pub mod uri_template;

pub use budget::{Budget, Reservation};
pub use caller::{Caller, ClientCaps, Session};
pub use connector::{
    Answer, Authorizer, ClientTransport, ConnectOptions, Connector, Inbox, Outgoing, Tap, Traffic, TransportError,
};
pub use engine::{Engine, Event};
pub use era::Features;
pub use frame::{Message, Request};
pub use id::Id;
pub use json::Span;
pub use limits::{ClientLimits, Limits};
pub use method::Method;
pub use reply::{Reply, ReplyKind, ResultWriter, Stamps};
pub use service::{
    CallEvent, CallStart, Cancel, RequestContext, RunningCall, ServerRequest, ServerRequestError, Service,
};
pub use subscription::{ChangeBus, ServerChange, SubscribeError, Subscription, SubscriptionHandle};
