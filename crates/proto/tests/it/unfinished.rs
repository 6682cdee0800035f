//! A running call whose engine is behind a lock: its id is in use until it has ended or is dropped, and not a moment longer.

use linchpin_core::service::{CallEvent, CallStart, Cancel, RunningCall, ServerRequest};
use linchpin_core::{Id, Limits, Reply};
use linchpin_proto::driver::{HasEngine, Out, Started, Unfinished};
use linchpin_proto::{Engine, Event, frame};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

struct Peer(Mutex<Engine>);

impl HasEngine for Peer {
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.0.lock().unwrap()
    }
}

impl Peer {
    fn new() -> Peer {
        Peer(Mutex::new(Engine::new(Arc::new(Limits::default()))))
    }

    /// Receives a request with the id 1. Returns whether it is accepted.
    fn receive(&self) -> bool {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let message = frame::message(body.into(), &Limits::default()).ok().unwrap();
        matches!(self.engine().receive(&message), Event::Call(_))
    }
}

/// A call with these events, the last first, and how often it was cancelled.
struct Call(Vec<CallEvent>, Arc<Cancelled>);

#[derive(Default)]
struct Cancelled(AtomicUsize);

impl Cancel for Cancelled {
    fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl RunningCall for Call {
    fn poll_event(&mut self, _: &mut Context<'_>) -> Poll<CallEvent> {
        self.0.pop().map_or(Poll::Pending, Poll::Ready)
    }

    fn canceller(&self) -> Arc<dyn Cancel> {
        self.1.clone()
    }
}

/// Polls once. Returns whether the call has ended, and how many messages it sent.
fn poll(unfinished: &mut Unfinished<&Peer>, call: &mut Call, is_heard: bool) -> (Poll<bool>, usize) {
    let mut sent: Vec<Out> = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    let polled = unfinished.poll(call, is_heard, |out| sent.push(out), &mut cx);
    (polled, sent.len())
}

#[test]
fn a_call_that_is_dropped_frees_its_id_and_one_that_has_ended_frees_it_once() {
    let peer = Peer::new();
    assert!(peer.receive() && !peer.receive(), "an id is used once at a time");
    drop(Unfinished::new(&peer, Id::number(1)));
    assert!(peer.receive());

    let mut unfinished = Unfinished::new(&peer, Id::number(1));
    let reply = Reply::with_result(&Id::number(1), "{}".into());
    let mut call = Call(vec![CallEvent::Done(reply), CallEvent::Notify("{}".into())], Arc::default());
    assert_eq!(poll(&mut unfinished, &mut call, true), (Poll::Ready(false), 1));
    assert_eq!(poll(&mut unfinished, &mut call, true), (Poll::Ready(true), 1));
    assert!(peer.receive(), "its id is free once it has ended");
    drop(unfinished);
    assert_eq!(peer.engine().running(), 1, "the new request with its id still runs");
}

#[test]
fn a_server_request_that_nobody_can_hear_is_refused() {
    let peer = Peer::new();
    assert!(peer.receive());
    let refused = Arc::new(AtomicUsize::new(0));
    let answers = refused.clone();
    let ask = ServerRequest {
        method: "elicitation/create".into(),
        params: "{}".into(),
        answer: Box::new(move |answer| _ = answers.fetch_add(usize::from(answer.is_err()), Ordering::Relaxed)),
    };
    let mut unfinished = Unfinished::new(&peer, Id::number(1));
    let polled = poll(&mut unfinished, &mut Call(vec![CallEvent::ServerRequest(ask)], Arc::default()), false);
    assert_eq!((polled, refused.load(Ordering::Relaxed)), ((Poll::Ready(false), 0), 1));
    assert_eq!(peer.engine().running(), 1, "the call goes on");
}

#[test]
fn a_call_that_is_cancelled_before_it_has_started_is_cancelled_once_it_runs() {
    for cancels in [false, true] {
        let peer = Peer::new();
        assert!(peer.receive());
        let body = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let message = frame::message(body.into(), &Limits::default()).ok().unwrap();
        if cancels {
            assert!(matches!(peer.engine().receive(&message), Event::Cancel(None, frames) if frames.is_empty()));
        }
        let cancelled = Arc::<Cancelled>::default();
        let call = Box::new(Call(Vec::new(), cancelled.clone()));
        let started = Unfinished::new(&peer, Id::number(1)).started(CallStart::Running(call));
        assert_eq!(cancelled.0.load(Ordering::Relaxed), usize::from(cancels));
        let Started::Running(unfinished, ..) = started else { panic!("it runs") };
        drop(unfinished);
        assert!(peer.receive(), "its id is free");
        let reply = Reply::with_result(&Id::number(1), "{}".into());
        let done = Unfinished::new(&peer, Id::number(1)).started(CallStart::Done(reply));
        assert!(matches!(done, Started::Ended(Some(_))) && peer.receive(), "so is that of one that is done at once");
    }
}
