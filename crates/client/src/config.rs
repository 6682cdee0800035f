//! The settings of a host.

use crate::Change;
use crate::book::Book;
use crate::lock::lock;
use crate::server_requests::Answers;
use linchpin_core::{ClientLimits, Features, Tap, TraceContext};
use linchpin_types::lifecycle::Implementation;
use linchpin_types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Where the current trace is.
type TraceContextOf = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;

/// Takes the server's name and the parameters of a notification as JSON text.
pub(crate) type NotificationHandler = Arc<dyn Fn(&str, &str) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct ClientConfig {
    pub(crate) info: Implementation,
    pub(crate) answers: Answers,
    pub(crate) extensions: Vec<(String, Box<RawValue>)>,
    pub(crate) on_log: Option<Arc<dyn Fn(LoggingMessageNotificationParams) + Send + Sync>>,
    pub(crate) log_level: Option<LoggingLevel>,
    /// By name.
    pub(crate) notifications: Arc<HashMap<Box<str>, NotificationHandler>>,
    pub(crate) on_change: Option<Arc<dyn Fn(Change) + Send + Sync>>,
    pub(crate) accepted: Vec<&'static Features>,
    pub(crate) limits: Arc<ClientLimits>,
    pub(crate) tap: Option<Arc<dyn Tap>>,
    pub(crate) restart: Option<ReconnectPolicy>,
    pub(crate) cache: bool,
    pub(crate) rounds: bool,
    pub(crate) trace_context: Option<TraceContextOf>,
    pub(crate) check_results: bool,
    /// Whether calls may become tasks.
    pub(crate) tasks: bool,
    pub(crate) book: Book,
    pub(crate) known: Arc<Known>,
}

/// When and how often a lost connection is reopened. A call does not wait for the delay: it reopens the connection at
/// once, which counts as an attempt. After the last attempt, the connection stays lost, and all calls fail.
///
/// ```
/// # use linchpin_client::{Client, ReconnectPolicy};
/// let policy = ReconnectPolicy::default().with(|policy| policy.attempts_max = 3);
/// let client = Client::new("my-host", "1.0").reconnect(policy);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconnectPolicy {
    /// The delay before the first attempt. It doubles with each failed attempt, with jitter. Default 200 ms.
    pub first_ms: u64,
    /// Maximum delay. Default 30,000 ms.
    pub longest_ms: u64,
    /// Maximum consecutive attempts. Default 8. A connection that lasted one minute resets the count.
    pub attempts_max: u32,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        ReconnectPolicy { first_ms: 200, longest_ms: 30_000, attempts_max: 8 }
    }
}

impl ReconnectPolicy {
    /// Changes some of these values.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// The last known revisions of servers, by the keys of their transports.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashMap<String, &'static Features>>);

/// The maximum number of remembered servers; beyond it the map is cleared.
const KNOWN_MAX: usize = 4_096;

impl Known {
    pub(crate) fn get(&self, key: &str) -> Option<&'static Features> {
        lock(&self.0).get(key).copied()
    }

    pub(crate) fn learn(&self, key: String, features: &'static Features) {
        let mut known = lock(&self.0);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, features);
    }
}

/// Returns 75 to 100 % of a delay before a reconnection, so that many clients do not reconnect at once.
///
/// ```
/// assert!((750..=1_000).contains(&linchpin_client::raw::jittered(1_000)));
/// ```
pub fn jittered(ms: u64) -> u64 {
    let noise = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.subsec_nanos());
    ms - (ms / 4) * u64::from(noise % 1_000) / 1_000
}
