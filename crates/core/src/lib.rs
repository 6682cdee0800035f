//! The interfaces between the protocol engine, transports, servers and clients of the Model Context Protocol.
//!
//! This crate defines the types for extending Linchpin: a server as a transport drives it ([`service`]), a server as a client
//! reaches it ([`connector`]), messages and requests ([`message`]), responses ([`reply`]), callers ([`caller`], [`principal`])
//! and their authorization ([`gate`]), the features of a revision ([`features`]), the [`limits`] of all crates and the memory
//! budget of peers ([`budget`]), subscriptions ([`subscription`]), observers ([`observer`]), and stores that several processes
//! share ([`store`]).
//!
//! It performs no I/O, and does not depend on the order of messages, headers, sockets, tasks, clocks, random numbers, or
//! handlers.

// Files import downwards, in this order:
//
// ```text
// connector  gate  store
// service
// observer
// message
// caller
// subscription  reply
// render
// budget  features  id  method  limits  principal  server_request  session_record
// exact  json
// ```

pub mod budget;
pub mod caller;
pub mod connector;
pub mod exact;
pub mod features;
pub mod gate;
pub mod id;
pub mod json;
pub mod limits;
pub mod message;
pub mod method;
pub mod observer;
pub mod principal;
pub mod render;
pub mod reply;
pub mod server_request;
pub mod service;
pub mod session_record;
pub mod store;
pub mod subscription;

pub use budget::{Budget, Reservation};
pub use caller::{Caller, ClientCaps, Session};
pub use connector::{
    Agreed, Answer, Authorizer, ClientTransport, ConnectOptions, Connector, Inbox, Outgoing, Tap, Traffic,
    TransportError,
};
pub use features::Features;
pub use id::Id;
pub use json::Span;
pub use limits::{ClientLimits, Limits};
pub use message::{Message, MethodName, Notification, Request};
pub use method::Method;
pub use observer::{CallEnd, CallInfo, Observer, Outcome, TraceContext};
pub use principal::Principal;
pub use reply::{Reply, ReplyKind, ResultWriter, Stamps};
pub use server_request::{ServerRequest, ServerRequestError};
pub use service::{CallEvent, CallStart, Cancel, RequestContext, RunningCall, Service};
pub use session_record::SessionRecord;
pub use store::{ChangeRelay, EventStore, SessionSeal, SessionStore, StoreError, StoredEvent};
pub use subscription::{ChangeBus, ServerChange, SubscribeError, Subscription, SubscriptionHandle};
