//! Lists page by page.

use crate::Result;
use crate::connection::Connection;
use crate::connection_state::ConnectionState;
use crate::list::{Listed, Page, page};
use futures_core::Stream;
use linchpin_core::service::BoxFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The pages of a list, requested on demand. It implements [`Stream`].
///
/// ```
/// use linchpin_types::resource::Resource;
///
/// # async fn list(server: linchpin_client::Connection) -> linchpin_client::Result<()> {
/// let mut pages = server.pages::<Resource>();
/// while let Some(page) = pages.next().await {
///     for resource in page?.items {
///         println!("{}", resource.uri);
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Pages<T> {
    /// Keeps the connection open while pages remain.
    _connection: Connection,
    core: Arc<ConnectionState>,
    next: Next<T>,
}

enum Next<T> {
    Fetch(Option<String>),
    Fetching(BoxFuture<'static, Result<Page<T>>>),
    End,
}

impl<T: Listed> Pages<T> {
    pub(crate) fn new(connection: &Connection) -> Pages<T> {
        Pages { _connection: connection.clone(), core: connection.core().clone(), next: Next::Fetch(None) }
    }

    /// Returns the next page, or `None` after the last page or an error. Cancel-safe.
    ///
    /// # Errors
    /// Those of [`Connection::tools`], except that the limits for whole lists do not apply.
    pub async fn next(&mut self) -> Option<Result<Page<T>>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl<T: Listed> Stream for Pages<T> {
    type Item = Result<Page<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Page<T>>>> {
        loop {
            let this = &mut *self;
            match &mut this.next {
                Next::End => return Poll::Ready(None),
                Next::Fetch(cursor) => {
                    let (core, cursor) = (this.core.clone(), cursor.take());
                    this.next = Next::Fetching(Box::pin(async move { page::<T>(&core, cursor).await }));
                }
                Next::Fetching(work) => {
                    let Poll::Ready(page) = work.as_mut().poll(cx) else { return Poll::Pending };
                    this.next = match &page {
                        Ok(Page { next_cursor: Some(cursor), .. }) => Next::Fetch(Some(cursor.clone())),
                        _ => Next::End,
                    };
                    return Poll::Ready(Some(page));
                }
            }
        }
    }
}
