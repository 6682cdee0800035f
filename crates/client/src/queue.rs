//! A bounded queue that never blocks the sender: when it is full, the oldest item is dropped and counted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    dropped: u64,
    closed: bool,
    waker: Option<Waker>,
}

impl<T> Queue<T> {
    pub(crate) fn new(limit: usize) -> Queue<T> {
        let state = State { items: VecDeque::new(), dropped: 0, closed: false, waker: None };
        Queue { state: Mutex::new(state), limit: limit.max(1) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, item: T) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        if state.items.len() == self.limit {
            state.items.pop_front();
            state.dropped += 1;
            if state.dropped.is_power_of_two() {
                tracing::warn!(
                    dropped = state.dropped,
                    "notifications come faster than they are taken; dropping the oldest"
                );
            }
        }
        state.items.push_back(item);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Closes the queue. Queued items can still be received.
    pub(crate) fn close(&self) {
        let waker = {
            let mut state = self.state();
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the next item; `None` after the last, once closed. For one receiver.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.state();
        match state.items.pop_front() {
            Some(item) => Poll::Ready(Some(item)),
            None if state.closed => Poll::Ready(None),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) async fn next(&self) -> Option<T> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;

    #[test]
    fn the_oldest_goes_when_it_is_full_and_is_counted() {
        let queue = Queue::new(3);
        (0..5).for_each(|n| queue.push(n));
        queue.close();
        queue.push(9);
        let left: Vec<_> = queue.state().items.drain(..).collect();
        assert_eq!((left, queue.state().dropped), (vec![2, 3, 4], 2));
    }
}
