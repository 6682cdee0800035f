//! What passes between a bridge and its clients, for recordings.

use linchpin_core::service::{CallEvent, CallStart, Cancel, RunningCall, ServerRequest};
use linchpin_core::{Reply, Tap, Traffic};
use serde_json::json;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A call whose messages to the client are shown to a tap.
struct TappedCall {
    call: Box<dyn RunningCall>,
    tap: Arc<dyn Tap>,
}

/// Shows a tap what a call sends to its client.
pub(crate) fn tapped(started: CallStart, tap: &Arc<dyn Tap>) -> CallStart {
    match started {
        CallStart::Done(reply) => {
            sent(tap, &reply.frame());
            CallStart::Done(reply)
        }
        CallStart::Running(call) => CallStart::Running(Box::new(TappedCall { call, tap: tap.clone() })),
    }
}

fn sent(tap: &Arc<dyn Tap>, frame: &[u8]) {
    if let Ok(text) = std::str::from_utf8(frame) {
        tap.saw(Traffic::Sent(text));
    }
}

/// A question, and its answer when it comes. The ids are the transport's, so there are none.
fn asked(tap: &Arc<dyn Tap>, question: ServerRequest) -> ServerRequest {
    let ServerRequest { method, params, answer } = question;
    sent(tap, format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}", json!(&*method)).as_bytes());
    let tap = tap.clone();
    let answer = Box::new(move |outcome: Result<String, linchpin_core::ServerRequestError>| {
        if let Ok(result) = &outcome {
            tap.saw(Traffic::Heard(&format!("{{\"jsonrpc\":\"2.0\",\"result\":{result}}}")));
        }
        answer(outcome);
    });
    ServerRequest { method, params, answer }
}

impl RunningCall for TappedCall {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        let event = std::task::ready!(self.call.poll_event(cx));
        Poll::Ready(match event {
            CallEvent::ServerRequest(question) => CallEvent::ServerRequest(asked(&self.tap, question)),
            event => {
                match &event {
                    CallEvent::Notify(frame) => sent(&self.tap, frame),
                    CallEvent::Done(reply) => sent(&self.tap, &Reply::frame(reply)),
                    _ => {}
                }
                event
            }
        })
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.call.canceller()
    }
}
