//! One TCP connection: its HTTP version and its statistics.
//!
//! Deadlines for headers, idle connections and stalled readers are not timers of each connection: activity is recorded
//! in its [`ConnectionStats`], and one task checks all of them periodically.

use super::body::HttpBody;
use super::layered::{LayeredService, RequestBody};
use super::pace::{Pace, Streams};
use super::service::{HttpFuture, HttpService};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use linchpin_core::Limits;
use linchpin_core::service::BoxFuture;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
#[cfg(feature = "tls")]
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tower_service::Service as _;

/// Maximum concurrent streams of an HTTP/2 connection.
const STREAMS_PER_CONNECTION_MAX: u32 = 256;

/// Serves one connection to its end.
pub(crate) async fn serve(tcp: TcpStream, app: App, limits: Arc<Limits>, all: Arc<Connections>) {
    let deadline = Duration::from_millis(limits.connections.header_read_ms_max);
    let stats = Arc::new(ConnectionStats::default());
    let peer = tcp.peer_addr().ok();
    let opened = tokio::select! {
        biased;
        // Nothing was asked yet, so nothing is lost.
        () = all.draining() => return,
        opened = tokio::time::timeout(deadline, open(tcp, &stats, &all)) => opened,
    };
    let Ok(Ok((socket, speaks_h2))) = opened else { return };
    stats.h2.store(speaks_h2, Ordering::Relaxed);
    let io = TokioIo::new(socket);
    let service = Counted { app, stats: stats.clone(), peer };
    let ended = if speaks_h2 {
        let mut builder =
            hyper::server::conn::http2::Builder::new(Streams { write_ms_max: all.deadlines.write_ms_max });
        builder.max_concurrent_streams(STREAMS_PER_CONNECTION_MAX);
        builder.max_header_list_size(u32::try_from(limits.connections.header_bytes_max).unwrap_or(u32::MAX));
        drop(limits);
        // Boxed, so that the many HTTP/1.1 connections need no space for it.
        Box::pin(ConnectionTask::new(builder.serve_connection(io, service), stats, all)).await
    } else {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.header_read_timeout(None);
        builder.max_header_size(limits.connections.header_bytes_max);
        drop(limits);
        ConnectionTask::new(builder.serve_connection(io, service), stats, all).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Finds out what a connection speaks, after the handshake if it is secure. `true` for HTTP/2.
async fn open(tcp: TcpStream, stats: &Arc<ConnectionStats>, all: &Connections) -> io::Result<(Socket, bool)> {
    #[cfg(feature = "tls")]
    if let Some(tls) = &all.tls {
        // Boxed: it is large, and over soon.
        return Box::pin(handshake(tls.acceptor(), tcp, stats)).await;
    }
    let _ = all;
    let speaks_h2 = is_h2(&tcp).await?;
    Ok((Socket::Plain(Watched { tcp, stats: stats.clone() }), speaks_h2))
}

#[cfg(feature = "tls")]
async fn handshake(tls: &TlsAcceptor, tcp: TcpStream, stats: &Arc<ConnectionStats>) -> io::Result<(Socket, bool)> {
    let stream = tls.accept(Watched { tcp, stats: stats.clone() }).await.inspect_err(|error| {
        tracing::debug!(%error, "a TLS handshake failed");
    })?;
    // What was read is not part of a request.
    stats.partial.store(false, Ordering::Relaxed);
    let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Socket::Secure(Box::new(stream)), speaks_h2))
}

/// Whether a connection starts with the HTTP/2 preface. Nothing is consumed; the first bytes decide, because no HTTP/1.1
/// method starts like that.
async fn is_h2(tcp: &TcpStream) -> io::Result<bool> {
    const PREFACE: &[u8] = b"PRI ";
    let mut first = [0; 4];
    loop {
        let n = tcp.peek(&mut first).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if n == PREFACE.len() || !PREFACE.starts_with(&first[..n]) {
            return Ok(&first[..n] == PREFACE);
        }
        // Peeking again gives the same bytes at once, so waiting for more must be done by the clock. Real clients send
        // the preface in one piece.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pin_project_lite::pin_project! {
    /// Polls a connection until it ends, or is told to. Written by hand because an `async fn` would hold the connection
    /// twice, once as an argument and once pinned, and there are many of them.
    struct ConnectionTask<C> {
        #[pin]
        connection: C,
        stats: Arc<ConnectionStats>,
        all: Arc<Connections>,
        entered: Option<Entered>,
        draining: bool,
    }
}

impl<C> ConnectionTask<C> {
    fn new(connection: C, stats: Arc<ConnectionStats>, all: Arc<Connections>) -> ConnectionTask<C> {
        ConnectionTask { connection, stats, all, entered: None, draining: false }
    }
}

impl<C: Connection> Future for ConnectionTask<C> {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let mut this = self.project();
        this.entered.get_or_insert_with(|| this.all.enter(cx.waker().clone(), this.stats.clone()));
        let phase = this.all.phase();
        if this.stats.must_close.load(Ordering::Relaxed) || phase == Phase::Over {
            return Poll::Ready(Ok(()));
        }
        if phase == Phase::Draining && !std::mem::replace(this.draining, true) {
            this.connection.as_mut().graceful_shutdown();
        }
        this.connection.poll(cx)
    }
}

trait Connection: Future<Output = hyper::Result<()>> {
    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl Connection for hyper::server::conn::http1::Connection<TokioIo<Socket>, Counted> {
    fn graceful_shutdown(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl Connection for hyper::server::conn::http2::Connection<TokioIo<Socket>, Counted, Streams> {
    fn graceful_shutdown(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Statistics of a connection.
#[derive(Default)]
pub(crate) struct ConnectionStats {
    h2: AtomicBool,
    /// Requests whose response is not complete.
    busy: AtomicU32,
    requests: AtomicU32,
    writes: AtomicU32,
    /// Something was read since the last request ended.
    partial: AtomicBool,
    /// The socket does not accept more bytes.
    stalled: AtomicBool,
    /// It must end at its next poll.
    must_close: AtomicBool,
}

/// Counts a request until its response is complete.
struct Busy(Arc<ConnectionStats>);

impl Busy {
    fn new(stats: &Arc<ConnectionStats>) -> Busy {
        stats.busy.fetch_add(1, Ordering::Relaxed);
        stats.requests.fetch_add(1, Ordering::Relaxed);
        Busy(stats.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.partial.store(false, Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What answers requests.
#[derive(Clone)]
pub(crate) enum App {
    Bare(HttpService),
    Layered(LayeredService),
}

/// The service of one connection.
struct Counted {
    app: App,
    stats: Arc<ConnectionStats>,
    peer: Option<SocketAddr>,
}

impl hyper::service::Service<Request<Incoming>> for Counted {
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = CountedFuture;

    fn call(&self, request: Request<Incoming>) -> CountedFuture {
        let inner = match &self.app {
            App::Bare(service) => AppFuture::Bare { future: service.handle_from(request, self.peer) },
            App::Layered(service) => {
                let mut request = request.map(RequestBody::incoming);
                if let Some(peer) = self.peer {
                    request.extensions_mut().insert(peer);
                }
                AppFuture::Layered { future: service.clone().call(request) }
            }
        };
        CountedFuture { busy: Some(Busy::new(&self.stats)), inner }
    }
}

pin_project_lite::pin_project! {
    struct CountedFuture {
        busy: Option<Busy>,
        #[pin]
        inner: AppFuture,
    }
}

pin_project_lite::pin_project! {
    #[project = AppFutureProjection]
    enum AppFuture {
        Bare {
            #[pin]
            future: HttpFuture<Incoming>,
        },
        Layered { future: BoxFuture<'static, Result<Response<HttpBody>, Infallible>> },
    }
}

impl Future for AppFuture {
    type Output = Result<Response<HttpBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            AppFutureProjection::Bare { future } => future.poll(cx),
            AppFutureProjection::Layered { future } => future.as_mut().poll(cx),
        }
    }
}

impl Future for CountedFuture {
    type Output = Result<Response<HttpBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.inner.poll(cx).map_ok(|mut response| {
            if let Some(busy) = this.busy.take() {
                match Pace::current() {
                    Some(pace) => response.body_mut().pace(pace, Box::new(busy)),
                    None => response.body_mut().hold(|| Box::new(busy)),
                }
            }
            response
        })
    }
}

/// What HTTP is spoken over. Both leave their marks at the socket itself, below TLS, which may hold data back.
enum Socket {
    Plain(Watched),
    #[cfg(feature = "tls")]
    Secure(Box<TlsStream<Watched>>),
}

/// Calls a method of whichever stream it is.
macro_rules! on_socket {
    ($socket:expr, $method:ident($($arg:expr),*)) => {
        match $socket.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).$method($($arg),*),
            #[cfg(feature = "tls")]
            Socket::Secure(stream) => Pin::new(stream.as_mut()).$method($($arg),*),
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on_socket!(self, poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on_socket!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_socket!(self, poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Socket::Plain(stream) => stream.is_write_vectored(),
            #[cfg(feature = "tls")]
            Socket::Secure(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self, poll_shutdown(cx))
    }
}

/// A socket that leaves marks on a stats.
struct Watched {
    tcp: TcpStream,
    stats: Arc<ConnectionStats>,
}

impl Watched {
    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.stats.writes.fetch_add(1, Ordering::Relaxed);
        }
        self.stats.stalled.store(result.is_pending(), Ordering::Relaxed);
        result
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.tcp).poll_read(cx, buf);
        if result.is_ready() {
            self.stats.partial.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write_vectored(cx, bytes);
        self.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// Deadlines that are judged from outside, in milliseconds.
pub(crate) struct Deadlines {
    pub(crate) header_read_ms_max: u64,
    pub(crate) idle_ms_max: u64,
    pub(crate) write_ms_max: u64,
}

/// Where all connections of one address are.
pub(crate) struct Connections {
    deadlines: Deadlines,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<super::tls::Tls>,
    phase: AtomicU8,
    changed: Notify,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    all: HashMap<u64, Entry>,
    next: u64,
}

struct Entry {
    waker: Waker,
    stats: Arc<ConnectionStats>,
    requests: u32,
    writes: u32,
    /// How long it has been waiting for the end of a head, idle, and stalled.
    head_ms: u64,
    idle_ms: u64,
    stalled_ms: u64,
}

/// The lifecycle state of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    /// No new requests; those running may end.
    Draining,
    /// Everything ends now.
    Over,
}

/// The registration of a connection; dropping it unregisters.
struct Entered {
    all: Arc<Connections>,
    key: u64,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut entries = self.all.lock();
        entries.all.remove(&self.key);
        if entries.all.is_empty() {
            entries.all = HashMap::new();
        }
    }
}

impl Connections {
    pub(crate) fn new(deadlines: Deadlines) -> Connections {
        Connections {
            deadlines,
            #[cfg(feature = "tls")]
            tls: None,
            phase: AtomicU8::new(Phase::Open as u8),
            changed: Notify::new(),
            entries: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, waker: Waker, stats: Arc<ConnectionStats>) -> Entered {
        let mut entries = self.lock();
        let key = entries.next;
        entries.next += 1;
        let entry = Entry { waker, stats, requests: 0, writes: 0, head_ms: 0, idle_ms: 0, stalled_ms: 0 };
        entries.all.insert(key, entry);
        Entered { all: self.clone(), key }
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Open,
            1 => Phase::Draining,
            _ => Phase::Over,
        }
    }

    /// Waits until the server ends.
    async fn draining(&self) {
        let changed = self.changed.notified();
        if self.phase() == Phase::Open {
            changed.await;
        }
    }

    /// Notifies all connections.
    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
        self.changed.notify_waiters();
        for entry in self.lock().all.values() {
            entry.waker.wake_by_ref();
        }
    }

    /// Interval of checks of all connections.
    pub(crate) fn tick(&self) -> Duration {
        let Deadlines { header_read_ms_max, idle_ms_max, write_ms_max } = self.deadlines;
        let shortest = header_read_ms_max.min(idle_ms_max).min(write_ms_max);
        Duration::from_millis((shortest / 4).clamp(5, 5_000))
    }

    /// Closes connections past their deadline, a tick after the last check.
    pub(crate) fn look(&self) {
        let tick = self.tick().as_millis() as u64;
        for entry in self.lock().all.values_mut() {
            if let Some(why) = entry.look(&self.deadlines, tick) {
                tracing::debug!(why, "closed a connection");
                entry.stats.must_close.store(true, Ordering::Relaxed);
                entry.waker.wake_by_ref();
            }
        }
    }
}

impl Entry {
    fn look(&mut self, deadlines: &Deadlines, tick: u64) -> Option<&'static str> {
        let stats = &self.stats;
        let h2 = stats.h2.load(Ordering::Relaxed);
        let requests = stats.requests.load(Ordering::Relaxed);
        let writes = stats.writes.load(Ordering::Relaxed);
        let wrote = std::mem::replace(&mut self.writes, writes) != writes;
        let active =
            std::mem::replace(&mut self.requests, requests) != requests || stats.busy.load(Ordering::Relaxed) > 0;
        let partial = stats.partial.load(Ordering::Relaxed) && !h2;
        let more = |so_far: u64, counts: bool| if counts { so_far + tick } else { 0 };
        let stalled = stats.stalled.load(Ordering::Relaxed);
        // Responses to PING frames are writes too, but do not count as use of the connection.
        let draining = wrote && (stalled || !h2);
        self.stalled_ms = more(self.stalled_ms, !wrote && stalled);
        self.head_ms = more(self.head_ms, !active && partial);
        self.idle_ms = more(self.idle_ms, !active && !draining);
        match () {
            () if self.stalled_ms >= deadlines.write_ms_max => Some("its reader was stalled for too long"),
            () if self.head_ms >= deadlines.header_read_ms_max => Some("a request's head took too long"),
            () if self.idle_ms >= deadlines.idle_ms_max => Some("it was idle for too long"),
            () => None,
        }
    }
}
