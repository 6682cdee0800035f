//! What every transport does at the start of a connection and of a call: `linchpin_proto::driver` with a clock and random
//! numbers.

use linchpin_core::message::Request;
use linchpin_core::service::{CallStart, RequestContext, Service};
use linchpin_proto::Engine;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The engine of a new peer.
pub(crate) fn engine(service: &dyn Service) -> Engine {
    // Only for logs.
    Engine::for_service(service, u64::from(nonce()) << 32 | u64::from(nonce()))
}

/// A random number, 0 if the operating system has none.
pub(crate) fn nonce() -> u32 {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    u32::from_ne_bytes(bytes)
}

/// Starts a request and polls it once, observed.
#[inline]
pub(crate) fn start(
    service: &dyn Service,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    cx: &mut Context<'_>,
) -> CallStart {
    linchpin_proto::driver::start(service, request, context, Instant::now, cx)
}

/// Does work that starts calls, in the context of this task.
pub(crate) async fn in_task<T>(work: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let mut work = Some(work);
    poll_fn(|cx| work.take().map_or(Poll::Pending, |work| Poll::Ready(work(cx)))).await
}
