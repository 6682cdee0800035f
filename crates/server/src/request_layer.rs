//! Middleware around requests of every method: what the server would answer is the end of the chain.
//!
//! The request is started inside of the chain as the transport would start it, and its messages go out through the context
//! of the chain.

use crate::chain::Chain;
use crate::cx::{CallState, Cx, Out};
use crate::invocation;
use crate::invocation::{Invocation, Run, Source};
use crate::layer::{Call, Next};
use crate::mrtr::{OfChain, RoundTrips};
use crate::running_call;
use crate::running_server::RunningServer;
use crate::shared::fail;
use crate::target;
use linchpin_core::message::Request;
use linchpin_core::service::{CallStart, RequestContext};
use linchpin_core::{CallEvent, Reply, RunningCall};
use linchpin_types::error::code;
use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

/// Starts a request through the layers of all requests.
pub(crate) fn start(
    core: &RunningServer,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    task: &mut Context<'_>,
) -> CallStart {
    let Some(core) = core.this.upgrade() else {
        return fail(&request, code::INTERNAL_ERROR, "the server is shutting down");
    };
    // State that does not verify is refused by what it was sent to.
    let round_trips = RoundTrips::of(&request, context.principal.as_ref(), &core).unwrap_or_default();
    let cx = Cx::new(request.clone(), context.clone(), core.shared.clone(), round_trips);
    let chain = Arc::new(Chain { call: cx.0.clone(), inner: OnceLock::new() });
    let args = invocation::json_args(&request, request.params.arguments);
    let invocation = Invocation { args, cx: Some(cx.clone()), out: core.writer(&request), explain: None, owner: None };
    let layers = core.request_layers.clone();
    let end = end_of_chain(&core, request.clone(), context, chain.clone());
    let future = Next::new(layers, end).start(Call::new(invocation, cx.clone(), None));
    running_call::launch_chain(&core.shared, &request, target::CallStart { future, cx: Some(cx) }, chain, task)
}

/// Starts the request itself. It can be run once.
fn end_of_chain(
    core: &Arc<RunningServer>,
    request: Arc<Request>,
    context: Arc<RequestContext>,
    chain: Arc<Chain>,
) -> Run {
    let (core, input) = (core.clone(), Mutex::new(Some((request, context))));
    Arc::new(move |call| {
        let (core, chain) = (core.clone(), chain.clone());
        let mut input = input.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            let arguments = match call.args.0 {
                Source::Owned(replaced) => Some(replaced),
                _ => None,
            };
            if let Some((_, context)) = &mut input {
                let memos = chain.call.round_trips.lock().unwrap_or_else(PoisonError::into_inner).memos.clone();
                if !memos.is_empty() {
                    let mut with = RequestContext::clone(context);
                    with.extensions.insert(OfChain(Arc::new(memos)));
                    *context = Arc::new(with);
                }
            }
            let started = poll_fn(|task| {
                let input = input.take();
                Poll::Ready(input.map(|(request, context)| core.begin(request, context, arguments.clone(), task)))
            });
            match started.await {
                Some(CallStart::Done(reply)) => reply,
                Some(CallStart::Running(running)) => {
                    let _ = chain.inner.set(running.canceller());
                    forward(running, &chain.call).await
                }
                None => pending().await,
            }
        })
    })
}

/// Polls a running call to its end. Its messages become those of the chain, one at a time: the transport polls for the next
/// when it has taken one.
async fn forward(mut running: Box<dyn RunningCall>, call: &CallState) -> Reply {
    let reply = poll_fn(|task| {
        let out = match std::task::ready!(running.poll_event(task)) {
            CallEvent::Notify(frame) => Out::Notify(frame),
            CallEvent::ServerRequest(request) => Out::ServerRequest(request),
            CallEvent::Pause(ms) => Out::Pause(ms),
            CallEvent::Done(reply) => return Poll::Ready(Some(reply)),
            CallEvent::Cancelled => return Poll::Ready(None),
        };
        call.push(out);
        task.waker().wake_by_ref();
        Poll::Pending
    });
    match reply.await {
        Some(reply) => reply,
        // The chain was cancelled with it.
        None => pending().await,
    }
}
