//! What a server does, as metrics, and as attributes of its spans.

use crate::conventions::{self, ERROR_TYPE, METHOD, OPERATION, OTHER, REVISION, SECONDS, STATUS_CODE};
use linchpin_core::{CallEnd, CallInfo, Observer, Outcome, Session, TraceContext};
use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::Status;
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// An observer of a server for OpenTelemetry, created by [`Otel::observer`](crate::Otel::observer).
///
/// | metric | |
/// |---|---|
/// | `mcp.server.operation.duration` | a histogram, by method, tool or prompt, error and revision |
/// | `mcp.server.session.duration` | a histogram of sessions that have ended |
/// | `mcp.server.active_operations`, `mcp.server.active_sessions`, `mcp.server.active_streams` | |
/// | `mcp.server.request.size`, `mcp.server.response.size` | bytes of the messages of calls |
/// | `mcp.server.dropped_notifications` | |
///
/// ```no_run
/// # use linchpin::otel::Otel;
/// # use linchpin::prelude::*;
/// # fn example(otel: &Otel) {
/// let server = Server::new("notes", "1.0").observe(otel.observer());
/// # }
/// ```
pub struct OtelObserver {
    durations: Histogram<f64>,
    running: UpDownCounter<i64>,
    request_bytes: Counter<u64>,
    response_bytes: Counter<u64>,
    session_durations: Histogram<f64>,
    sessions: UpDownCounter<i64>,
    streams: UpDownCounter<i64>,
    dropped: Counter<u64>,
    /// When sessions were opened, by public id.
    opened: Mutex<HashMap<u64, Instant>>,
}

impl OtelObserver {
    pub(crate) fn new(meter: &Meter) -> OtelObserver {
        let seconds = |name: &'static str, about: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(about);
            histogram.with_boundaries(SECONDS.to_vec()).build()
        };
        let bytes = |name: &'static str| meter.u64_counter(name).with_unit("By").build();
        let active = |name: &'static str| meter.i64_up_down_counter(name).build();
        OtelObserver {
            durations: seconds("mcp.server.operation.duration", "From the start of a request to its response."),
            running: active("mcp.server.active_operations"),
            request_bytes: bytes("mcp.server.request.size"),
            response_bytes: bytes("mcp.server.response.size"),
            session_durations: seconds("mcp.server.session.duration", "Sessions that have ended."),
            sessions: active("mcp.server.active_sessions"),
            streams: active("mcp.server.active_streams"),
            dropped: meter.u64_counter("mcp.server.dropped_notifications").build(),
            opened: Mutex::default(),
        }
    }
}

impl fmt::Debug for OtelObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtelObserver").finish_non_exhaustive()
    }
}

/// The place in a trace that a request names, as the parent of its span.
fn parent(trace: &TraceContext) -> Context {
    let mut carrier = HashMap::from([("traceparent".to_owned(), trace.traceparent.to_string())]);
    for (name, value) in [("tracestate", &trace.tracestate), ("baggage", &trace.baggage)] {
        if let Some(value) = value {
            carrier.insert(name.to_owned(), value.to_string());
        }
    }
    let context = TraceContextPropagator::new().extract(&carrier);
    BaggagePropagator::new().extract_with_context(&context, &carrier)
}

impl Observer for OtelObserver {
    fn call_started(&self, call: &CallInfo) {
        self.running.add(1, &[]);
        self.request_bytes.add(call.request_bytes as u64, &[]);
        if let Some(trace) = &call.trace {
            // Fails only if nobody traces.
            let _ = call.span.set_parent(parent(trace));
        }
    }

    fn call_ended(&self, call: &CallInfo, end: &CallEnd) {
        self.running.add(-1, &[]);
        self.response_bytes.add(end.response_bytes as u64, &[]);
        let error = conventions::error_type(end.outcome);
        if let Some(error) = &error {
            call.span.set_attribute(ERROR_TYPE, error.clone());
            call.span.set_status(Status::error(""));
        }
        if let Outcome::Error(code) = end.outcome {
            call.span.set_attribute(STATUS_CODE, code.to_string());
        }
        self.durations.record(end.duration.as_secs_f64(), &labels(call, end.outcome, error));
    }

    fn session_opened(&self, session: &Session) {
        self.sessions.add(1, &[]);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(session.public_id(), Instant::now());
    }

    fn session_closed(&self, session: &Session) {
        self.sessions.add(-1, &[]);
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(&session.public_id());
        if let Some(opened) = opened {
            let revision = KeyValue::new(REVISION, session.features().revision.as_str());
            self.session_durations.record(opened.elapsed().as_secs_f64(), &[revision]);
        }
    }

    fn stream_opened(&self) {
        self.streams.add(1, &[]);
    }

    fn stream_closed(&self) {
        self.streams.add(-1, &[]);
    }

    fn notification_dropped(&self) {
        self.dropped.add(1, &[]);
    }
}

/// JSON-RPC's codes of a method that does not exist, and of a tool or prompt that does not.
const NO_METHOD: Outcome = Outcome::Error(-32601);
const NO_NAME: Outcome = Outcome::Error(-32602);

/// The attributes of a metric. Names that a client made up are not among them.
fn labels(call: &CallInfo, outcome: Outcome, error: Option<String>) -> Vec<KeyValue> {
    let method = if outcome == NO_METHOD { OTHER.to_owned() } else { call.method.to_string() };
    let mut labels = Vec::with_capacity(5);
    if let (Some(label), Some(name)) = (conventions::target(&method), &call.target) {
        let name = if outcome == NO_NAME { OTHER.to_owned() } else { name.to_string() };
        labels.push(KeyValue::new(label, name));
    }
    if method == "tools/call" {
        labels.push(KeyValue::new(OPERATION, "execute_tool"));
    }
    labels.push(KeyValue::new(METHOD, method));
    labels.push(KeyValue::new(REVISION, call.revision.as_str()));
    labels.extend(error.map(|error| KeyValue::new(ERROR_TYPE, error)));
    labels
}
