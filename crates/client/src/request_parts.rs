//! A request before it is sent.

use crate::queue::Queue;
use linchpin_core::TraceContext;
use linchpin_proto::message_writer::Members;
use linchpin_types::logging::LoggingLevel;
use linchpin_types::meta::{Meta, key};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// A call with progress.
pub(crate) struct Watched {
    pub(crate) queue: Queue<Progress>,
    /// Progress arrived: the deadline restarts.
    pub(crate) touched: Notify,
    /// The last status message of its task that was passed on.
    pub(crate) message: Mutex<Option<String>>,
}

impl Watched {
    pub(crate) fn new(queued_max: usize) -> Watched {
        Watched { queue: Queue::new(queued_max), touched: Notify::new(), message: Mutex::default() }
    }
}

/// A request before it has an id.
pub(crate) struct RequestParts {
    pub(crate) method: Cow<'static, str>,
    pub(crate) members: Members,
    pub(crate) about: Option<Box<str>>,
    /// The range of a tool's arguments in `members`.
    pub(crate) arguments: Option<Range<usize>>,
    pub(crate) meta: Option<Meta>,
}

/// The options of a request.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// `None` means no timeout.
    pub(crate) timeout: Option<Duration>,
    pub(crate) watched: Option<Arc<Watched>>,
    pub(crate) log: Option<LoggingLevel>,
}

impl RequestParts {
    /// Adds a trace to `_meta`. A `traceparent` that is there already stays.
    pub(crate) fn trace(&mut self, trace: &TraceContext) {
        let meta = self.meta.get_or_insert_with(Meta::new);
        if meta.get(key::TRACEPARENT).is_some() {
            return;
        }
        let rest = [("tracestate", &trace.tracestate), ("baggage", &trace.baggage)];
        let members = rest.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        for (name, value) in members.chain([(key::TRACEPARENT, &*trace.traceparent)]) {
            // Texts can always be JSON.
            let _ = meta.insert_as(name, value);
        }
    }

    pub(crate) fn new(method: impl Into<Cow<'static, str>>) -> RequestParts {
        RequestParts { method: method.into(), members: Members::loose(), about: None, arguments: None, meta: None }
    }
}

/// The additional members of the next attempt.
#[derive(Default)]
pub(crate) struct Round {
    /// `inputResponses`, as JSON text.
    pub(crate) responses: Option<String>,
    /// `requestState`, as the JSON text that the server sent.
    pub(crate) state: Option<String>,
}

impl Round {
    pub(crate) fn write(&self, members: &mut Members) {
        if let Some(responses) = &self.responses {
            members.raw("inputResponses", responses);
        }
        if let Some(state) = &self.state {
            members.raw("requestState", state);
        }
    }
}

/// The progress of a request.
///
/// ```
/// # async fn import(server: linchpin_client::Connection) -> linchpin_client::Result<()> {
/// let request = server.call("import", ()).on_progress(|at| match at.total {
///     Some(total) => println!("{:.0} %", 100.0 * at.progress / total),
///     None => println!("{} {}", at.progress, at.message.unwrap_or_default()),
/// });
/// request.await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The amount done so far, which increases.
    pub progress: f64,
    /// The total amount, if known.
    pub total: Option<f64>,
    /// A message for the user.
    pub message: Option<String>,
}
