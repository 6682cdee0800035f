//! Metrics of a server in the text format of Prometheus, under the names of the OpenTelemetry conventions for MCP.

use linchpin_core::Session;
use linchpin_server::{CallEnd, CallInfo, Observer, Outcome};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The bounds of buckets, in seconds, as the conventions advise.
const BOUNDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// Distinct combinations of labels, of which names are a part.
const SERIES_MAX: usize = 1_000;
/// What stands for a method or name that has no series of its own.
const OTHER: &str = "_OTHER";

/// Metrics of a server, for Prometheus.
///
/// | metric | labels |
/// |---|---|
/// | `mcp_server_operation_duration_seconds`, a histogram; its `_count` is the number of calls | `mcp_method_name`, `gen_ai_tool_name` or `gen_ai_prompt_name`, `error_type` |
/// | `mcp_server_session_duration_seconds`, a histogram of sessions that have ended | `mcp_protocol_version` |
/// | `mcp_server_active_operations`, `mcp_server_active_sessions`, `mcp_server_active_streams` | |
/// | `mcp_server_request_bytes_total`, `mcp_server_response_bytes_total`: the messages of calls | |
/// | `mcp_server_dropped_notifications_total` | |
///
/// `error_type` is absent on success; otherwise it is `tool_error` for a result with `isError`, the code of a JSON-RPC
/// error, or `cancelled`. Principals, arguments and URIs are not used as labels.
///
/// The number of distinct labels is bounded, whatever clients send:
///
/// - The method is `_OTHER` in calls that end with -32601 (no such method).
/// - The tool or prompt is `_OTHER` in calls that end with -32602 (no such name, invalid parameters), unless an earlier
///   call of it ended otherwise.
/// - After 1,000 combinations of labels, calls with a new one have the method `_OTHER` and no tool or prompt; their
///   `error_type` is `_OTHER` if it would otherwise be a code.
///
/// Clones share their counters.
///
/// ```
/// use linchpin_middleware::Metrics;
/// use linchpin_server::Server;
///
/// let metrics = Metrics::new();
/// let server = Server::new("notes", "1.0").observe(metrics.clone());
/// // With the transport http(…): .metrics(move || metrics.render())
/// assert!(metrics.render().contains("mcp_server_active_sessions 0"));
/// ```
#[derive(Clone, Default)]
#[doc(alias = "prometheus")]
pub struct Metrics(Arc<Counters>);

#[derive(Default)]
struct Counters {
    running: AtomicI64,
    streams: AtomicI64,
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
    dropped: AtomicU64,
    calls: Mutex<Series>,
    sessions: Mutex<Sessions>,
}

/// Histograms by method, then by tool or prompt, then by type of error.
#[derive(Default)]
struct Series {
    methods: HashMap<Box<str>, HashMap<Box<str>, ByError>>,
    len: usize,
}

type ByError = Vec<(ErrorType, Histogram)>;

#[derive(Default)]
struct Sessions {
    /// By public id.
    opened: HashMap<u64, Instant>,
    ended: BTreeMap<&'static str, Histogram>,
}

#[derive(Clone, Default)]
struct Histogram {
    /// How many are within each bound and in none of the former; the rest is in `count` only.
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Creates metrics in which no calls have been counted yet.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// Returns all metrics in the text format of Prometheus 0.0.4.
    pub fn render(&self) -> String {
        let counters = &*self.0;
        let mut out = String::new();
        const CALLS: &str = "mcp_server_operation_duration_seconds";
        head(&mut out, CALLS, "histogram", "Time from the start of a request to its response.");
        lock(&counters.calls).render(&mut out, CALLS);
        const SESSIONS: &str = "mcp_server_session_duration_seconds";
        head(&mut out, SESSIONS, "histogram", "Duration of sessions that have ended.");
        let sessions = lock(&counters.sessions);
        for (revision, histogram) in &sessions.ended {
            histogram.render(&mut out, SESSIONS, &format!("mcp_protocol_version=\"{revision}\""));
        }
        let open = sessions.opened.len();
        drop(sessions);
        let mut single = |name: &str, kind: &str, help: &str, value: &dyn fmt::Display| {
            head(&mut out, name, kind, help);
            let _ = writeln!(out, "{name} {value}");
        };
        let read = |counter: &AtomicI64| counter.load(Ordering::Relaxed);
        single("mcp_server_active_operations", "gauge", "Requests that are running.", &read(&counters.running));
        single("mcp_server_active_sessions", "gauge", "Sessions that are open.", &open);
        single("mcp_server_active_streams", "gauge", "Event streams that are open.", &read(&counters.streams));
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = "Bytes of the messages of requests.";
        single("mcp_server_request_bytes_total", "counter", bytes, &read(&counters.request_bytes));
        let bytes = "Bytes of the messages of responses.";
        single("mcp_server_response_bytes_total", "counter", bytes, &read(&counters.response_bytes));
        let dropped = "Notifications that were dropped because their reader was too slow.";
        single("mcp_server_dropped_notifications_total", "counter", dropped, &read(&counters.dropped));
        out
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Observer for Metrics {
    fn call_started(&self, call: &CallInfo) {
        self.0.running.fetch_add(1, Ordering::Relaxed);
        self.0.request_bytes.fetch_add(call.request_bytes as u64, Ordering::Relaxed);
    }

    fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        self.0.response_bytes.fetch_add(end.response_bytes as u64, Ordering::Relaxed);
        lock(&self.0.calls).add(call, end);
    }

    fn session_opened(&self, session: &Session) {
        lock(&self.0.sessions).opened.insert(session.public_id(), Instant::now());
    }

    fn session_closed(&self, session: &Session) {
        let mut sessions = lock(&self.0.sessions);
        if let Some(opened) = sessions.opened.remove(&session.public_id()) {
            sessions.ended.entry(session.features().revision.as_str()).or_default().add(opened.elapsed());
        }
    }

    fn stream_opened(&self) {
        self.0.streams.fetch_add(1, Ordering::Relaxed);
    }

    fn stream_closed(&self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }

    fn notification_dropped(&self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The label of a call's target: a tool or prompt. URIs are too many.
fn label(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" => Some("gen_ai_tool_name"),
        "prompts/get" => Some("gen_ai_prompt_name"),
        _ => None,
    }
}

/// JSON-RPC's codes of a method, and of a tool or prompt, that does not exist.
const NO_METHOD: Outcome = Outcome::Error(-32601);
const NO_NAME: Outcome = Outcome::Error(-32602);

impl Series {
    fn add(&mut self, call: &CallInfo, end: &CallEnd) {
        self.count(&call.method, call.target.as_deref().unwrap_or_default(), end.outcome, end.duration);
    }

    fn count(&mut self, method: &str, name: &str, outcome: Outcome, took: Duration) {
        let method = if outcome == NO_METHOD { OTHER } else { method };
        let name = if label(method).is_some() { name } else { "" };
        let is_known = |name| self.methods.get(method).is_some_and(|names| names.contains_key(name));
        let name = if outcome == NO_NAME && label(method).is_some() && !is_known(name) { OTHER } else { name };
        let error = ErrorType::from(outcome);
        if let Some(histogram) = self.find(method, name, error) {
            return histogram.add(took);
        }
        let (method, name, error) = match (self.len < SERIES_MAX, error) {
            (true, _) => (method, name, error),
            // Handlers choose the codes of their errors.
            (false, ErrorType::Code(_)) => (OTHER, "", ErrorType::Other),
            (false, _) => (OTHER, "", error),
        };
        self.find_or_insert(method, name, error).add(took);
    }

    fn find(&mut self, method: &str, name: &str, error: ErrorType) -> Option<&mut Histogram> {
        let histograms = self.methods.get_mut(method)?.get_mut(name)?;
        histograms.iter_mut().find(|(of, _)| *of == error).map(|(_, histogram)| histogram)
    }

    fn find_or_insert(&mut self, method: &str, name: &str, error: ErrorType) -> &mut Histogram {
        let histograms = self.methods.entry(method.into()).or_default().entry(name.into()).or_default();
        let at = histograms.iter().position(|(of, _)| *of == error).unwrap_or_else(|| {
            self.len += 1;
            histograms.push((error, Histogram::default()));
            histograms.len() - 1
        });
        &mut histograms[at].1
    }

    fn render(&self, out: &mut String, metric: &str) {
        let sorted: BTreeMap<_, BTreeMap<_, _>> =
            self.methods.iter().map(|(method, names)| (method, names.iter().collect())).collect();
        for (method, names) in sorted {
            for (name, histograms) in names {
                for (error, histogram) in histograms {
                    let mut labels = format!("mcp_method_name=\"{}\"", Escaped(method));
                    if let Some(label) = label(method).filter(|_| !name.is_empty()) {
                        let _ = write!(labels, ",{label}=\"{}\"", Escaped(name));
                    }
                    if *error != ErrorType::None {
                        let _ = write!(labels, ",error_type=\"{error}\"");
                    }
                    histogram.render(out, metric, &labels);
                }
            }
        }
    }
}

/// The label `error_type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorType {
    None,
    Tool,
    Cancelled,
    Code(i32),
    Other,
}

impl From<Outcome> for ErrorType {
    fn from(outcome: Outcome) -> ErrorType {
        match outcome {
            Outcome::Ok | Outcome::InputRequired | Outcome::Task => ErrorType::None,
            Outcome::ToolError => ErrorType::Tool,
            Outcome::Cancelled => ErrorType::Cancelled,
            Outcome::Error(code) => ErrorType::Code(code),
            _ => ErrorType::Other,
        }
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorType::None => Ok(()),
            ErrorType::Tool => f.write_str("tool_error"),
            ErrorType::Cancelled => f.write_str("cancelled"),
            ErrorType::Code(code) => code.fmt(f),
            ErrorType::Other => f.write_str(OTHER),
        }
    }
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket] += 1;
        }
        self.count += 1;
        self.sum += seconds;
    }

    fn render(&self, out: &mut String, metric: &str, labels: &str) {
        let mut within = 0;
        for (bound, count) in BOUNDS.iter().zip(self.buckets) {
            within += count;
            let _ = writeln!(out, "{metric}_bucket{{{labels},le=\"{bound}\"}} {within}");
        }
        let _ = writeln!(out, "{metric}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{metric}_sum{{{labels}}} {}", self.sum);
        let _ = writeln!(out, "{metric}_count{{{labels}}} {}", self.count);
    }
}

fn head(out: &mut String, metric: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
}

/// The value of a label.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' => f.write_str("\\\""),
            '\\' => f.write_str("\\\\"),
            '\n' => f.write_str("\\n"),
            c if c.is_control() => Ok(()),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_label_for_its_name_has_one_series_for_each_error() {
        let mut series = Series::default();
        for outcome in [NO_NAME, Outcome::Ok, NO_NAME] {
            series.count("resources/read", "", outcome, Duration::ZERO);
        }
        let mut out = String::new();
        series.render(&mut out, "m");
        let counts: Vec<_> = out.lines().filter(|line| line.contains("_count{") && line.contains("-32602")).collect();
        assert_eq!(counts, ["m_count{mcp_method_name=\"resources/read\",error_type=\"-32602\"} 2"]);
    }

    #[test]
    fn a_call_that_became_a_task_is_no_error() {
        let mut series = Series::default();
        series.count("tools/call", "long", Outcome::Task, Duration::ZERO);
        let mut out = String::new();
        series.render(&mut out, "m");
        assert!(out.contains("m_count{") && !out.contains("error_type=\"_"), "{out}");
    }

    #[test]
    fn labels_cannot_break_out_of_their_quotes() {
        assert_eq!(Escaped("a\"b\\c\nd\re").to_string(), r#"a\"b\\c\nde"#);
    }
}
