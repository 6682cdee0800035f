//! How long the requests of clients take, from their spans.

use crate::conventions::{self, ERROR_TYPE, METHOD, OPERATION, OTHER, SECONDS};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};
use std::fmt;
use std::time::Instant;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The `tracing` target of the spans of requests.
pub(crate) const CLIENT_TARGET: &str = "linchpin::client";

/// Measures spans of requests: `mcp.client.operation.duration`.
pub(crate) struct ClientDurations(Histogram<f64>);

impl ClientDurations {
    pub(crate) fn new(meter: &Meter) -> ClientDurations {
        let histogram = meter.f64_histogram("mcp.client.operation.duration").with_unit("s");
        let about = "From the sending of a request to its response.";
        ClientDurations(histogram.with_description(about).with_boundaries(SECONDS.to_vec()).build())
    }
}

/// A request that runs.
struct Running {
    started: Instant,
    method: String,
    name: Option<String>,
    /// `None` until it has ended by itself.
    outcome: Option<String>,
}

impl Visit for Running {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "method" => self.method = value.to_owned(),
            "name" => self.name = Some(value.to_owned()),
            "outcome" => self.outcome = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ClientDurations {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() == CLIENT_TARGET
            && let Some(span) = context.span(id)
        {
            let mut running = Running { started: Instant::now(), method: String::new(), name: None, outcome: None };
            attributes.record(&mut running);
            span.extensions_mut().insert(running);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(running) = span.extensions_mut().get_mut::<Running>()
        {
            values.record(running);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(running) = context.span(&id).and_then(|span| span.extensions_mut().remove::<Running>()) else {
            return;
        };
        let error = match running.outcome.as_deref() {
            Some("ok") => None,
            Some(_) => Some(OTHER),
            // It was dropped.
            None => Some("cancelled"),
        };
        let mut labels = Vec::with_capacity(4);
        if let (Some(label), Some(name)) = (conventions::target(&running.method), running.name) {
            labels.push(KeyValue::new(label, name));
        }
        if running.method == "tools/call" {
            labels.push(KeyValue::new(OPERATION, "execute_tool"));
        }
        labels.push(KeyValue::new(METHOD, running.method));
        labels.extend(error.map(|error| KeyValue::new(ERROR_TYPE, error)));
        self.0.record(running.started.elapsed().as_secs_f64(), &labels);
    }
}
