//! Setting up, and what to call afterwards.

use crate::client::ClientDurations;
use crate::export::{Renamed, Sender};
use crate::observer::OtelObserver;
use linchpin_core::TraceContext;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::fmt;
use tokio::runtime::Handle;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, registry};

/// The instrumentation scope.
const SCOPE: &str = "linchpin";

/// An exporter that sends traces and metrics to a collector, by OTLP over HTTP.
///
/// Call [`Otel::shutdown`] at the end of the program; otherwise the last of them are lost.
///
/// ```no_run
/// use linchpin::otel::Otel;
/// use linchpin::prelude::*;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let otel = Otel::install("notes")?;
/// Server::new("notes", "1.0").observe(otel.observer()).serve(stdio()).await?;
/// otel.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[doc(alias = "OpenTelemetry")]
#[doc(alias = "otlp")]
pub struct Otel {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

/// A builder for an [`Otel`], created by [`Otel::builder`].
///
/// ```no_run
/// # use linchpin::otel::{Otel, OtelError};
/// # fn example() -> Result<(), OtelError> {
/// let otel = Otel::builder("notes").endpoint("http://collector:4318").install()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct OtelBuilder {
    service: String,
    endpoint: Option<String>,
}

impl Otel {
    /// Sets up traces and metrics for a program with this name (`service.name`), and installs the process's `tracing`
    /// subscriber, for spans at level `info`. The variable `OTEL_SERVICE_NAME` takes precedence over the name.
    ///
    /// # Errors
    /// If a subscriber is already installed (then use [`OtelBuilder::build`] and [`Otel::layer`]), the endpoint is invalid, or
    /// no tokio runtime is running.
    pub fn install(service: impl Into<String>) -> Result<Otel, OtelError> {
        Otel::builder(service).install()
    }

    /// Returns a builder with the default settings for a program with this name. The variable `OTEL_SERVICE_NAME` takes
    /// precedence over it.
    pub fn builder(service: impl Into<String>) -> OtelBuilder {
        OtelBuilder { service: service.into(), endpoint: None }
    }

    /// Returns the observer for `Server::observe`: it records metrics, and continues the traces of clients.
    pub fn observer(&self) -> OtelObserver {
        OtelObserver::new(&self.metrics.meter(SCOPE))
    }

    /// Returns the layer that records spans at level `info`, for a `tracing` subscriber of your own. It also measures the
    /// requests of clients: `mcp.client.operation.duration`.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + 'static
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.traces.tracer(SCOPE))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .and_then(ClientDurations::new(&self.metrics.meter(SCOPE)))
            .with_filter(LevelFilter::INFO)
    }

    /// Sends the remaining traces and metrics, within five seconds each, and shuts down.
    pub async fn shutdown(self) {
        // The exporters wait on their thread for requests that run on this runtime.
        let ended = tokio::task::spawn_blocking(move || (self.traces.shutdown(), self.metrics.shutdown())).await;
        if let Ok((traces, metrics)) = ended {
            for error in [traces.err(), metrics.err()].into_iter().flatten() {
                tracing::warn!(%error, "the last traces or metrics may be lost");
            }
        }
    }
}

impl OtelBuilder {
    /// Sets the collector's address, for example `http://collector:4318`. Default: the value of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, or `http://localhost:4318`.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> OtelBuilder {
        self.endpoint = Some(url.into());
        self
    }

    /// Sets up traces and metrics, and installs the process's `tracing` subscriber.
    ///
    /// # Errors
    /// See [`Otel::install`].
    pub fn install(self) -> Result<Otel, OtelError> {
        let otel = self.build()?;
        let taken = "another `tracing` subscriber is set already; add `Otel::layer` to it";
        registry().with(otel.layer()).try_init().map_err(|_| OtelError(taken.to_owned()))?;
        Ok(otel)
    }

    /// Sets up traces and metrics without installing a `tracing` subscriber.
    ///
    /// # Errors
    /// If the endpoint is invalid, or no tokio runtime is running.
    pub fn build(self) -> Result<Otel, OtelError> {
        let runtime = Handle::try_current().map_err(|e| OtelError(format!("cannot send telemetry: {e}")))?;
        let sender = Sender::new(runtime);
        let failed = |e: opentelemetry_otlp::ExporterBuildError| OtelError(format!("cannot send telemetry: {e}"));
        let variable = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
        let resource = Resource::builder().with_service_name(variable.unwrap_or(self.service)).build();
        let place =
            |signal: &str| self.endpoint.as_deref().map(|url| format!("{}/v1/{signal}", url.trim_end_matches('/')));
        let mut traces = SpanExporter::builder().with_http().with_http_client(sender.clone());
        if let Some(url) = place("traces") {
            traces = traces.with_endpoint(url);
        }
        let mut metrics = MetricExporter::builder().with_http().with_http_client(sender);
        if let Some(url) = place("metrics") {
            metrics = metrics.with_endpoint(url);
        }
        let traces = SdkTracerProvider::builder()
            .with_batch_exporter(Renamed(traces.build().map_err(failed)?))
            .with_resource(resource.clone())
            .build();
        let metrics = SdkMeterProvider::builder()
            .with_periodic_exporter(metrics.build().map_err(failed)?)
            .with_resource(resource)
            .build();
        Ok(Otel { traces, metrics })
    }
}

/// Returns the trace context of the current span, for `Client::trace_context`. `None` outside of recorded spans.
///
/// ```
/// use linchpin::otel::trace_context;
/// use linchpin::prelude::*;
///
/// let client = Client::new("host", "1.0").trace_context(trace_context);
/// ```
pub fn trace_context() -> Option<TraceContext> {
    let context = Span::current().context();
    let span = context.span().span_context().clone();
    let flags = span.trace_flags().to_u8();
    let parent = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
    let state = span.trace_state().header();
    span.is_valid().then(|| TraceContext::new(&parent, Some(&state), None)).flatten()
}

/// The error of setting up telemetry.
///
/// ```
/// use linchpin::otel::{Otel, OtelError};
///
/// // It must be called within a tokio runtime.
/// let error: OtelError = Otel::builder("notes").build().err().unwrap();
/// assert!(error.to_string().starts_with("cannot send telemetry"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtelError(String);

impl fmt::Display for OtelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OtelError {}
