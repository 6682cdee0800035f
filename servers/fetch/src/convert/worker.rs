//! Converts pages in a separate process, or in a thread of this one.
//!
//! HTML, feeds and PDF documents come from strangers, and the cost of parsing one cannot be estimated from its length.
//! So a child process converts one page and exits. It has limits on memory, CPU time, wall-clock time and output
//! (`linchpin_process::Confined`), and the server survives whatever it does. Text and JSON are converted in the server.
//!
//! In both directions a line of JSON comes first, then bytes to the end: the job and the body, the result and its text.

use super::job::{Caps, Failure, FailureKind, Job, Rendered};
use bytes::Bytes;
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_process::{Confined, Limits, Stopped};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// The process that converts HTML, feeds and PDF documents.
///
/// ```no_run
/// use linchpin_fetch::{Config, Converter};
///
/// // At the beginning of `main`, before anything else:
/// if std::env::args().nth(1).as_deref() == Some("__convert") {
///     std::process::exit(i32::from(linchpin_fetch::convert_stdin().is_err()));
/// }
/// let config = Config::default().with(|config| {
///     config.converter = Converter::this_program(["__convert"]).unwrap_or_default();
/// });
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Converter {
    /// A thread of this process, without memory and time limits: pages of more than 2 MiB and PDF documents are
    /// refused, and pages with more than 50,000 nodes are reduced to their text. A thread that takes too long keeps
    /// running, and while four do, other pages wait. The default.
    #[default]
    InProcess,
    /// A child process that calls [`convert_stdin`], a new one for each page.
    Program(Confined),
}

impl Converter {
    /// This executable with these arguments, which make it call [`convert_stdin`] and exit.
    ///
    /// # Errors
    /// When the path of the executable is unknown.
    pub fn this_program<const N: usize>(args: [&str; N]) -> io::Result<Converter> {
        Confined::this_program(args.map(Into::into)).map(Converter::Program)
    }

    /// The executable at this path, which calls [`convert_stdin`].
    pub fn program(file: impl Into<std::path::PathBuf>) -> Converter {
        Converter::Program(Confined::new(file))
    }
}

/// Converts the page on standard input and writes the result to standard output: the whole job of an executable named
/// by [`Converter`].
///
/// # Errors
/// When standard input is not such a page, or standard output is closed.
pub fn convert_stdin() -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    let (head, body) = split(&input)?;
    let job: Job = serde_json::from_slice(head)?;
    let caps = if Limits::is_memory_limited() { Caps::CONFINED } else { Caps::TIMED };
    let done = std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK_BYTES);
        let worker = worker.spawn_scoped(scope, || job.render(body, caps))?;
        worker.join().map_err(|_| io::Error::other("a parser panicked"))
    })?;
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &done)?;
    out.write_all(b"\n")?;
    if let Ok(rendered) = &done {
        out.write_all(rendered.text.as_bytes())?;
    }
    out.flush()
}

/// The first line and the rest.
fn split(bytes: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == b'\n').ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

/// Stack size, for trees of the maximum depth.
const STACK_BYTES: usize = 16 << 20;
/// Pages converted at the same time.
const CONCURRENT_MAX: usize = 4;
/// Memory limit of a child process: this, or a multiple of the maximum page size.
const MEMORY_BYTES: u64 = 256 << 20;
const MEMORY_EACH: u64 = 24;
/// Maximum result: this, or a multiple of the maximum page size.
const OUTPUT_BYTES: usize = 16 << 20;
const OUTPUT_EACH: usize = 4;

/// Converts pages.
pub(crate) struct Worker {
    converter: Converter,
    limits: Limits,
    /// A thread that takes too long is abandoned, but counts until it ends.
    at_once: Arc<Semaphore>,
}

impl Worker {
    pub(crate) fn new(converter: Converter, bytes_max: usize) -> Self {
        let limits = Limits::default().with(|limits| {
            limits.memory = MEMORY_BYTES.max(MEMORY_EACH.saturating_mul(bytes_max as u64));
            limits.output = OUTPUT_BYTES.max(OUTPUT_EACH.saturating_mul(bytes_max));
        });
        Self { converter, limits, at_once: Arc::new(Semaphore::new(CONCURRENT_MAX)) }
    }

    /// Converts a page before the deadline `by`, if there is one.
    pub(crate) async fn convert(&self, job: Job, body: Bytes, by: Instant) -> Result<Rendered, ToolError> {
        let permit = self.at_once.clone().acquire_owned().await;
        let permit = permit.map_err(|_| ToolError::new("The server is shutting down"))?;
        match &self.converter {
            Converter::Program(program) if !job.is_plain(&body) => {
                let done = self.in_program(program, &job, &body, by).await;
                drop(permit);
                Ok(done.map_err(|stopped| self.stopped(&job, &body, &stopped))??)
            }
            _ => {
                let failure =
                    Failure::new(FailureKind::Unreadable, "The page could not be converted", job.advice(&body));
                let done = in_thread(move || (job.render(&body, Caps::IN_PROCESS), permit).0).await;
                Ok(done.unwrap_or(Err(failure))?)
            }
        }
    }

    async fn in_program(
        &self,
        program: &Confined,
        job: &Job,
        body: &[u8],
        by: Instant,
    ) -> Result<Result<Rendered, Failure>, Stopped> {
        let left = by.saturating_duration_since(Instant::now());
        // Slightly earlier than the deadline of the whole fetch, whose error is less clear.
        let left = left.saturating_sub((left / 20).min(Duration::from_millis(500)));
        let limits = self.limits.with(|limits| (limits.cpu, limits.wall_clock) = (left, left));
        let broken = |e: io::Error| Stopped::Failed(e.to_string());
        let head = serde_json::to_vec(job).map_err(|e| broken(e.into()))?;
        let mut out = program.run(&[&head, b"\n", body], &limits).await?;
        let (head, text) = split(&out).map_err(broken)?;
        let at = out.len() - text.len();
        let done: Result<Rendered, Failure> = serde_json::from_slice(head).map_err(|e| broken(e.into()))?;
        out.drain(..at);
        match done {
            Ok(rendered) => {
                let text = String::from_utf8(out).map_err(|e| broken(io::Error::other(e)))?;
                Ok(Ok(Rendered { text, ..rendered }))
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// The error of a child process without a result. Its stderr may quote the page and is omitted.
    fn stopped(&self, job: &Job, body: &[u8], stopped: &Stopped) -> ToolError {
        let asked = &job.asked;
        let memory = self.limits.memory >> 20;
        let message = match stopped {
            Stopped::Memory => format!("Failed to convert {asked}: it takes more than {memory} MiB of memory"),
            Stopped::Time => format!("Failed to convert {asked}: it took too long"),
            Stopped::Output => format!("Failed to convert {asked}: the result is too long"),
            Stopped::Start(e) => format!("Failed to convert {asked}: the converter could not be started ({e})"),
            _ => format!("Failed to convert {asked}: the converter crashed"),
        };
        let mut hint = job.advice(body).to_owned();
        if matches!(stopped, Stopped::Time) {
            hint += " The operator can raise the limit with --timeout.";
        }
        let kind = match stopped {
            Stopped::Memory | Stopped::Output => ErrorKind::Limited { retry_after: None },
            Stopped::Time => ErrorKind::Timeout,
            _ => ErrorKind::Upstream { status: None },
        };
        ToolError::new(message).kind(kind).hint(hint)
    }
}

/// Runs a conversion in a thread; `None` if it panicked.
async fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = oneshot::channel();
    let worker = std::thread::Builder::new().name("fetch".to_owned()).stack_size(STACK_BYTES);
    // If the parser panics, only the sender is dropped.
    let started = worker.spawn(move || {
        let _ = send.send(work());
    });
    started.ok()?;
    receive.await.ok()
}
