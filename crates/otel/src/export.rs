//! How traces and metrics leave: over the HTTP client of Linchpin, with the names of the conventions.

use crate::client::CLIENT_TARGET;
use crate::conventions::{self, ERROR_TYPE, METHOD, OPERATION, OTHER, REVISION, SESSION};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use linchpin_web::{Web, WebOptions};
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::time::Duration;
use tokio::runtime::Handle;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

/// The longest response of a collector.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// The HTTP client for exporters, which call it from threads of their own.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    web: Web,
    runtime: Handle,
}

impl Sender {
    pub(crate) fn new(runtime: Handle) -> Sender {
        let web = Web::new(WebOptions::default().with(|options| {
            options.request_ms_max = Some(10_000);
            options.body_bytes_max = Some(RESPONSE_BYTES_MAX);
        }));
        Sender { web, runtime }
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let web = self.web.clone();
        let sent = async move {
            let mut response = web.send(request).await?;
            let body = response.body.read_all(RESPONSE_BYTES_MAX).await?;
            Ok(Response::from_parts(response.parts, body))
        };
        // What is sent must not be traced, or it would never end.
        self.runtime.spawn(sent.with_subscriber(NoSubscriber::default())).await?
    }
}

/// Gives the spans of Linchpin the names and attributes of the conventions.
#[derive(Debug)]
pub(crate) struct Renamed<E>(pub(crate) E);

impl<E: SpanExporter> SpanExporter for Renamed<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        batch.iter_mut().for_each(rename);
        self.0.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

fn rename(span: &mut SpanData) {
    let find = |name: &str| {
        let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
        found.map(|attribute| attribute.value.as_str().into_owned())
    };
    let kind = match find("target").as_deref() {
        Some(linchpin_core::observer::CALL_TARGET) => SpanKind::Server,
        Some(CLIENT_TARGET) => SpanKind::Client,
        _ => return,
    };
    span.span_kind = kind;
    let method = find("method").unwrap_or_default();
    let target = conventions::target(&method).zip(find("name"));
    let mut attributes: Vec<KeyValue> = Vec::new();
    for KeyValue { key, value, .. } in std::mem::take(&mut span.attributes) {
        match key.as_str() {
            "method" => attributes.push(KeyValue::new(METHOD, value)),
            "session" => attributes.push(KeyValue::new(SESSION, value)),
            "revision" => attributes.push(KeyValue::new(REVISION, value)),
            // Errors of clients; those of servers have their type.
            "outcome" if span.span_kind == SpanKind::Client && value == Value::from("error") => {
                attributes.push(KeyValue::new(ERROR_TYPE, OTHER));
                span.status = Status::error("");
            }
            "name" | "outcome" | "code" | "duration" | "traceparent" | "target" => {}
            _ => attributes.push(KeyValue::new(key, value)),
        }
    }
    span.name = match &target {
        Some((_, name)) => format!("{method} {name}").into(),
        None => method.clone().into(),
    };
    attributes.extend(target.map(|(label, name)| KeyValue::new(label, name)));
    if method == "tools/call" {
        attributes.push(KeyValue::new(OPERATION, "execute_tool"));
    }
    span.attributes = attributes;
}
