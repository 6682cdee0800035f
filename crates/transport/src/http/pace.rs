//! Detection of stalled readers of HTTP/2 streams.
//!
//! On HTTP/1.1 a stalled reader stalls the socket, which the connection detects. On HTTP/2 each stream has its own
//! flow-control window, and one that stays closed says nothing about the socket. So bodies are written in pieces, and a
//! stream whose next piece is not requested for too long is reset. The connection and its other streams continue.

use hyper::rt::Executor;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::futures::TaskLocalFuture;
use tokio::time::{Instant, Sleep, sleep};

/// The largest piece: what fits into one frame of the default size.
pub(crate) const PIECE_BYTES_MAX: usize = 16 << 10;

tokio::task_local! {
    static PACE: Arc<Pace>;
}

/// The reader's progress on a stream's body.
#[derive(Default)]
pub(crate) struct Pace {
    /// Pieces given out, modulo 2³².
    pieces: AtomicU32,
    /// Whether the last piece may still be waiting for the reader.
    waiting: AtomicBool,
}

impl Pace {
    /// That of the stream whose task this is; `None` outside of HTTP/2.
    pub(crate) fn current() -> Option<Arc<Pace>> {
        PACE.try_with(Arc::clone).ok()
    }

    /// A piece was given out.
    pub(crate) fn gave(&self) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(true, Ordering::Relaxed);
    }

    /// The reader has everything there is for now.
    pub(crate) fn caught_up(&self) {
        self.waiting.store(false, Ordering::Relaxed);
    }
}

/// Runs the streams of a connection, each with its own deadline for its reader.
#[derive(Clone)]
pub(crate) struct Streams {
    pub(crate) write_ms_max: u64,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let pace = Arc::new(Pace::default());
        let stream = PACE.scope(pace.clone(), stream);
        tokio::spawn(Paced { stream, pace, patience: Duration::from_millis(self.write_ms_max), stalled: None });
    }
}

pin_project_lite::pin_project! {
    /// One stream. Ending it before the whole answer was taken resets it, which frees what it holds.
    struct Paced<F> {
        #[pin]
        stream: TaskLocalFuture<Arc<Pace>, F>,
        pace: Arc<Pace>,
        patience: Duration,
        // Pieces given out when the wait began, and its end.
        stalled: Option<(u32, Pin<Box<Sleep>>)>,
    }
}

impl<F: Future<Output = ()>> Future for Paced<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !this.pace.waiting.load(Ordering::Relaxed) {
            *this.stalled = None;
            return Poll::Pending;
        }
        let pieces = this.pace.pieces.load(Ordering::Relaxed);
        let (before, end) = this.stalled.get_or_insert_with(|| (pieces, Box::pin(sleep(*this.patience))));
        if std::mem::replace(before, pieces) != pieces {
            end.as_mut().reset(Instant::now() + *this.patience);
        }
        ready!(end.as_mut().poll(cx));
        tracing::debug!("reset a stream whose reader was stalled for too long");
        Poll::Ready(())
    }
}
