//! Two writes to a store as one group.

use std::future::poll_fn;
use std::task::Poll;

/// Waits for two writes at the same time, so that they are one group. The first error counts.
pub(crate) async fn join_writes<T: Unpin, E>(
    mut one: linchpin_store::BoxFuture<'_, Result<(), E>>,
    mut other: linchpin_store::BoxFuture<'_, Result<T, E>>,
) -> Result<T, E> {
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none() {
            first = Some(one.as_mut().poll(context)).and_then(ready);
        }
        if second.is_none() {
            second = Some(other.as_mut().poll(context)).and_then(ready);
        }
        if first.is_some() && second.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    match (first, second) {
        (Some(Err(error)), _) => Err(error),
        (_, Some(second)) => second,
        // Both were ready.
        (_, None) => std::future::pending().await,
    }
}

fn ready<T>(polled: Poll<T>) -> Option<T> {
    match polled {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
