//! Response bodies, read in chunks and never beyond their limit.

use super::{Address, WebError};
use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// The body of a response. Dropping it before its end closes the stream or connection.
///
/// ```
/// # use linchpin_web::{WebBody, WebError};
/// async fn count(mut body: WebBody) -> Result<usize, WebError> {
///     let mut bytes = 0;
///     while let Some(chunk) = body.chunk().await? {
///         bytes += chunk.len();
///     }
///     Ok(bytes)
/// }
/// ```
pub struct WebBody {
    body: Source,
    address: Address,
    /// Bytes that may still come.
    left: Option<usize>,
    deadline: Option<Instant>,
}

/// Whose body it is.
pub(super) enum Source {
    Reqwest(reqwest::Body),
    Direct(Incoming),
}

impl Source {
    fn poll_frame(&mut self, cx: &mut Context<'_>, host: &str) -> Poll<Option<Result<Frame<Bytes>, WebError>>> {
        match self {
            Source::Reqwest(body) => Pin::new(body).poll_frame(cx).map_err(|e| WebError::broken(&e, host)),
            Source::Direct(body) => Pin::new(body).poll_frame(cx).map_err(|e| WebError::broken(&e, host)),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Source::Reqwest(body) => body.size_hint(),
            Source::Direct(body) => body.size_hint(),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Source::Reqwest(body) => body.is_end_stream(),
            Source::Direct(body) => body.is_end_stream(),
        }
    }
}

impl WebBody {
    pub(super) fn new(body: Source, address: Address, left: Option<usize>, deadline: Option<Instant>) -> WebBody {
        WebBody { body, address, left, deadline }
    }

    /// Returns the next chunk; `None` at the end.
    ///
    /// Cancel-safe: a chunk that was not returned is returned by the next call.
    ///
    /// # Errors
    /// If the connection breaks, the body exceeds the client's limit, or its timeout expires.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, WebError> {
        let Some(at) = self.deadline else { return poll_fn(|cx| self.poll_chunk(cx)).await };
        match tokio::time::timeout_at(at.into(), poll_fn(|cx| self.poll_chunk(cx))).await {
            Ok(chunk) => chunk,
            Err(_) => Err(WebError::timeout(self.address.host())),
        }
    }

    /// The same without a deadline.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, WebError>> {
        loop {
            let frame = match std::task::ready!(self.body.poll_frame(cx, self.address.host())) {
                None => return Poll::Ready(Ok(None)),
                Some(frame) => frame?,
            };
            // Trailers are ignored.
            let Ok(data) = frame.into_data() else { continue };
            if data.is_empty() {
                continue;
            }
            if let Some(left) = &mut self.left {
                if data.len() > *left {
                    let why = format!("the response of {} exceeds the limit", self.address.host());
                    return Poll::Ready(Err(WebError::too_long(why)));
                }
                *left -= data.len();
            }
            return Poll::Ready(Ok(Some(data)));
        }
    }

    /// Returns whether the body is known to have ended, so that nothing is left to read.
    pub fn is_over(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Reads the rest of the body, at most `bytes_max` bytes. A body of one chunk is not copied.
    ///
    /// The length that the server declares is used to reserve memory, at most 2 MiB ahead. If the future is dropped,
    /// what was already read is lost.
    ///
    /// # Errors
    /// Those of [`WebBody::chunk`]; also if the body is longer than `bytes_max`, which is checked while reading.
    pub async fn read_all(&mut self, bytes_max: usize) -> Result<Bytes, WebError> {
        let too_long =
            |host: &str| WebError::too_long(format!("the response of {host} exceeds the limit of {bytes_max} bytes"));
        if self.body.size_hint().lower() > bytes_max as u64 {
            return Err(too_long(self.address.host()));
        }
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        if first.len() > bytes_max {
            return Err(too_long(self.address.host()));
        }
        // What a server says of the length reserves memory, but not much.
        let hint = usize::try_from(self.body.size_hint().lower()).unwrap_or_default();
        let mut whole = BytesMut::new();
        while let Some(more) = self.chunk().await? {
            if whole.is_empty() {
                whole.reserve(hint.saturating_add(first.len()).min(bytes_max).min(RESERVED));
                whole.extend_from_slice(&first);
            }
            if whole.len() + more.len() > bytes_max {
                return Err(too_long(self.address.host()));
            }
            whole.extend_from_slice(&more);
        }
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }
}

/// The most memory that is reserved for a body whose length was said.
const RESERVED: usize = 2 << 20;

impl fmt::Debug for WebBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebBody").field("host", &self.address.host()).finish_non_exhaustive()
    }
}
