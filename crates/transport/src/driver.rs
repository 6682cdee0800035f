//! What every transport does at the start of a connection and of a call: `linchpin_proto::driver` with a clock and random
//! numbers.

use linchpin_core::message::Request;
use linchpin_core::service::{CallStart, RequestContext, Service};
use linchpin_proto::Engine;
use std::task::Context;
use std::time::Instant;

/// The engine of a new peer.
pub(crate) fn engine(service: &dyn Service) -> Engine {
    let mut id = [0; 8];
    // Only for logs: without random numbers all sessions are 0.
    let _ = getrandom::fill(&mut id);
    Engine::for_service(service, u64::from_ne_bytes(id))
}

/// Starts a request and polls it once, observed.
pub(crate) fn start(
    service: &dyn Service,
    request: Request,
    context: RequestContext,
    cx: &mut Context<'_>,
) -> CallStart {
    linchpin_proto::driver::start(service, request, context, Instant::now, cx)
}
