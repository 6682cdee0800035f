//! stdio: one message per line on standard input and output, or on two streams that are already open.
//!
//! Tokio's standard input goes through a pool of blocking threads, which costs three times as much per round trip and
//! twenty times as much when pipelined. Pipes and sockets are read without blocking instead; files and terminals are
//! read on a thread.

use crate::link::{PipeTransport, Stream};
use crate::pipe;
use linchpin_core::service::{Bind, BoxFuture, Service};
use linchpin_core::{ClientTransport, ConnectOptions, Connector, TransportError};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};

/// Serves one client on standard input and output, until the input ends.
///
/// Nothing else may write to standard output; log to standard error. No signals are handled: SIGTERM and SIGINT end the
/// process immediately, unless a [shutdown signal](Stdio::with_graceful_shutdown) is set:
///
/// ```no_run
/// use linchpin_transport::{shutdown_signal, stdio::stdio};
///
/// let transport = stdio().with_graceful_shutdown(shutdown_signal());
/// ```
#[doc(alias = "StdioServerTransport")]
pub fn stdio() -> Stdio {
    Stdio { shutdown: None }
}

/// The stdio transport of a server, created by [`stdio`].
///
/// ```no_run
/// # use linchpin_core::service::{Bind, IntoService};
/// use linchpin_transport::stdio::stdio;
///
/// async fn run(server: impl IntoService) -> std::io::Result<()> {
///     stdio().serve(server.into_shared()?).await
/// }
/// ```
pub struct Stdio {
    shutdown: Option<BoxFuture<'static, ()>>,
}

impl Stdio {
    /// Also stops serving when `signal` completes: reading stops, and running calls may finish within
    /// `calls.drain_ms_max`.
    pub fn with_graceful_shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Stdio {
        self.shutdown = Some(Box::pin(signal));
        self
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").finish_non_exhaustive()
    }
}

impl Bind for Stdio {
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let input = sys::input()?;
            let output = sys::output()?;
            let shutdown = self.shutdown.unwrap_or_else(|| Box::pin(std::future::pending()));
            let served = pipe::serve(service.clone(), None, input, output, shutdown).await;
            service.close();
            served
        })
    }
}

/// Connects to or serves the peer at the other end of two open streams, with one message per line.
///
/// The peer's messages are read from `read`, and messages to it are written to `write`: TCP, named pipes, TLS, or
/// anything else that is `AsyncRead` and `AsyncWrite`. A client can connect once. `server.serve(pipes(read, write))`
/// serves until `read` ends. To serve many connections, spawn a task for each; the end of one does not end the others:
///
/// ```
/// # use linchpin_core::service::{Bind, IntoService};
/// # use linchpin_transport::stdio::pipes;
/// async fn listen(server: impl IntoService) -> std::io::Result<()> {
///     let service = server.into_shared()?;
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:9000").await?;
///     loop {
///         let (read, write) = listener.accept().await?.0.into_split();
///         tokio::spawn(pipes(read, write).serve(service.clone()));
///     }
/// }
/// ```
///
/// The peer is not authenticated and nothing is encrypted: that is up to the code that opened the streams. Closing the
/// connection closes them.
///
/// Both streams must let other tasks run, as tokio's own do: a stream of your own that is always ready and never yields
/// holds up running calls. Where that is possible, ask `tokio::task::coop::poll_proceed` first.
pub fn pipes(read: impl AsyncRead + Send + Unpin + 'static, write: impl AsyncWrite + Send + Unpin + 'static) -> Pipes {
    Pipes { streams: Mutex::new(Some((Box::new(read), Box::new(write)))) }
}

/// A pair of open streams as a transport, created by [`pipes`].
///
/// ```
/// use linchpin_transport::stdio::{Pipes, pipes};
///
/// async fn connect(address: &str) -> std::io::Result<Pipes> {
///     let (read, write) = tokio::net::TcpStream::connect(address).await?.into_split();
///     Ok(pipes(read, write))
/// }
/// ```
pub struct Pipes {
    streams: Mutex<Option<Streams>>,
}

type Streams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

impl Connector for Pipes {
    fn name(&self) -> String {
        "a pair of pipes".to_owned()
    }

    fn key(&self) -> Option<String> {
        None
    }

    fn connect(&self, options: ConnectOptions) -> BoxFuture<'_, Result<Arc<dyn ClientTransport>, TransportError>> {
        Box::pin(async move {
            let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some((read, write)) = streams else {
                let why = "these pipes were already connected; they can be connected only once";
                return Err(TransportError::Unreachable(why.into()));
            };
            Ok(Arc::new(PipeTransport::open(options, read, write, Arc::new(Stream))) as Arc<dyn ClientTransport>)
        })
    }
}

impl Bind for Pipes {
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let streams = self.streams.into_inner().unwrap_or_else(PoisonError::into_inner);
            let Some((read, write)) = streams else {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "these pipes are already connected"));
            };
            pipe::serve(service, None, read, write, std::future::pending()).await
        })
    }
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipes").finish_non_exhaustive()
    }
}

#[cfg(unix)]
mod sys {
    use super::thread;
    use std::fs::{File, FileType};
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::FileTypeExt;
    use tokio::io::{AsyncRead, AsyncWrite};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    pub(super) fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        let fd = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(match kind(&fd)? {
            kind if kind.is_fifo() => match File::open(path(&fd)).and_then(pipe::Receiver::from_file) {
                Ok(pipe) => Box::new(pipe),
                Err(_) => Box::new(thread::input()?),
            },
            kind if kind.is_socket() => Box::new(socket(fd)?),
            _ => Box::new(thread::input()?),
        })
    }

    pub(super) fn output() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
        let fd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(match kind(&fd)? {
            kind if kind.is_fifo() => {
                match File::options().write(true).open(path(&fd)).and_then(pipe::Sender::from_file) {
                    Ok(pipe) => Box::new(pipe),
                    Err(_) => Box::new(thread::output()?),
                }
            }
            kind if kind.is_socket() => Box::new(socket(fd)?),
            _ => Box::new(thread::output()?),
        })
    }

    fn kind(fd: &OwnedFd) -> io::Result<FileType> {
        Ok(File::from(fd.try_clone()?).metadata()?.file_type())
    }

    /// Reopening the pipe gives this process its own file description, so that `O_NONBLOCK` stays private: other
    /// processes may share the inherited one.
    fn path(fd: &OwnedFd) -> String {
        use std::os::fd::AsRawFd;
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }

    /// A socket, which some parents (Node among them) use for their children. Each end of a socket pair has its own file
    /// description, so `O_NONBLOCK` affects only processes that inherited this end.
    fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
        let socket = std::os::unix::net::UnixStream::from(fd);
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    }
}

#[cfg(not(unix))]
mod sys {
    use super::thread;
    use std::io;
    use tokio::io::{AsyncRead, AsyncWrite};

    pub(super) fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        Ok(Box::new(thread::input()?))
    }

    pub(super) fn output() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
        Ok(Box::new(thread::output()?))
    }
}

/// Blocking standard input and output, each on its own thread, which does not keep the process alive.
mod thread {
    use std::io::{self, Read, Write};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::runtime::Handle;

    const BUFFER: usize = 64 << 10;

    pub(super) fn input() -> io::Result<DuplexStream> {
        let (ours, mut theirs) = tokio::io::duplex(BUFFER);
        let runtime = Handle::current();
        std::thread::Builder::new().name("stdin".into()).spawn(move || {
            let (mut stdin, mut chunk) = (io::stdin().lock(), vec![0; BUFFER]);
            while let Ok(n @ 1..) = stdin.read(&mut chunk) {
                if runtime.block_on(theirs.write_all(&chunk[..n])).is_err() {
                    return;
                }
            }
        })?;
        Ok(ours)
    }

    pub(super) fn output() -> io::Result<Blocking> {
        let (ours, mut theirs) = tokio::io::duplex(BUFFER);
        let runtime = Handle::current();
        let (done, finished) = std::sync::mpsc::channel::<()>();
        std::thread::Builder::new().name("stdout".into()).spawn(move || {
            let (mut stdout, mut chunk) = (io::stdout().lock(), vec![0; BUFFER]);
            while let Ok(n @ 1..) = runtime.block_on(theirs.read(&mut chunk)) {
                if stdout.write_all(&chunk[..n]).and_then(|()| stdout.flush()).is_err() {
                    return;
                }
            }
            drop(done);
        })?;
        Ok(Blocking { stream: Some(ours), finished })
    }

    /// The writing end; dropping it waits until everything written has been flushed.
    pub(super) struct Blocking {
        stream: Option<DuplexStream>,
        finished: std::sync::mpsc::Receiver<()>,
    }

    impl Drop for Blocking {
        fn drop(&mut self) {
            self.stream = None;
            // The thread drains the buffer; the timeout is for a terminal that does not read.
            let _ = self.finished.recv_timeout(std::time::Duration::from_secs(2));
        }
    }

    impl tokio::io::AsyncWrite for Blocking {
        fn poll_write(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
            bytes: &[u8],
        ) -> std::task::Poll<io::Result<usize>> {
            match &mut self.stream {
                Some(stream) => std::pin::Pin::new(stream).poll_write(cx, bytes),
                None => std::task::Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }

        fn poll_flush(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            match &mut self.stream {
                Some(stream) => std::pin::Pin::new(stream).poll_flush(cx),
                None => std::task::Poll::Ready(Ok(())),
            }
        }

        fn poll_shutdown(
            self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            self.poll_flush(cx)
        }
    }
}
