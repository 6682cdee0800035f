//! Every limit that the protocol engine and the transports enforce, with its default.
//!
//! [`Limits`] are those of a server and [`ClientLimits`] those of a client, in groups by what they bound. To make
//! either, change the defaults with `with`. `docs/LIMITS.md` lists them for users. Sizes are bytes, durations
//! milliseconds; the unit is in the name.

mod client;
mod server;

pub use client::{
    ClientCallLimits, ClientChildLimits, ClientConnectionLimits, ClientLimits, ClientListLimits, ClientMessageLimits,
    ClientRoundTripLimits, ClientServerRequestLimits,
};
pub use server::{
    CallLimits, ConnectionLimits, Limits, ListLimits, MessageLimits, RoundTripLimits, ServerRequestLimits,
    SessionLimits, SubscriptionLimits, TaskLimits,
};
