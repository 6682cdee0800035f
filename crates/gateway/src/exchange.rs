//! One request to the upstream and its answer.

use crate::call::Outlet;
use crate::instance::{Instance, Opened, Pending};
use crate::refusal::{Refusal, TIMEOUT};
use linchpin_core::message::{Kind, Request};
use linchpin_core::{Answer, Outgoing, Reply, TransportError};
use linchpin_proto::translate::error;
use linchpin_types::error::code;
use std::sync::Arc;
use std::time::Duration;

/// Why there is no answer.
pub(crate) enum Failure {
    Refused(Refusal),
    /// The upstream does not know the session any more: the request may be repeated on a new one.
    Forgotten,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

/// Begins a call, which is dropped with the result.
pub(crate) fn begin(instance: &Arc<Instance>, outlet: &Arc<Outlet>) -> Result<Pending, Failure> {
    // Closed at this very moment: like a session that was forgotten, the next one is opened.
    instance.begin(outlet.clone()).ok_or(Failure::Forgotten)
}

/// Sends a request and waits for its answer, as long as something comes from the upstream; 0 milliseconds mean no limit.
pub(crate) async fn exchange(
    limit_ms: u64,
    instance: &Arc<Instance>,
    outlet: &Outlet,
    pending: &mut Pending,
    out: Outgoing,
) -> Result<Answer, Failure> {
    let answer = async {
        if *instance.opened.borrow() == Opened::Telling {
            // Not before the upstream knows that its client is ready.
            let mut opened = instance.opened.subscribe();
            let _ = opened.wait_for(|opened| *opened == Opened::Told).await;
        }
        pending.exchange(out).await
    };
    let answer = if limit_ms == 0 || outlet.listens {
        answer.await
    } else {
        let mut answer = std::pin::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = answer.as_mut() => break answer,
                () = outlet.touched.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(limit_ms)) => {
                    let why = format!("no message arrived within {limit_ms} ms (call_ms_max)");
                    return Err(Refusal::new(TIMEOUT, why).into());
                }
            }
        }
    };
    if let Ok(Answer { message, .. }) = &answer
        && !instance.features().has_sessions
        && let Kind::Response { outcome: Err(span), .. } = &message.kind
        && error::Seen::read(message.text(*span)).code == code::UNSUPPORTED_PROTOCOL_VERSION
    {
        // Without a session each request names its revision. The upstream was replaced by one that speaks another revision, and did not run this.
        return Err(Failure::Forgotten);
    }
    answer.map_err(|why| match why {
        TransportError::Forgotten => Failure::Forgotten,
        why => Refusal::lost(&why).into(),
    })
}

/// The answer of an upstream of another era; `made` makes the result.
pub(crate) fn answered(request: &Request, answer: &Answer, made: impl FnOnce(linchpin_core::Span) -> Reply) -> Reply {
    match &answer.message.kind {
        Kind::Response { outcome: Ok(span), .. } => made(*span),
        Kind::Response { outcome: Err(span), .. } => error::translated(request, &answer.message, *span),
        _ => unanswered(request),
    }
}

pub(crate) fn unanswered(request: &Request) -> Reply {
    Reply::error(Some(&request.id), code::INTERNAL_ERROR, "the upstream's message is not a response", None)
}
