//! A collector that decodes what it is sent.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// What was sent, in short.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) spans: Vec<Span>,
    /// Name and attributes of each point of a metric, and its value: a count or a sum.
    pub(crate) points: BTreeMap<String, f64>,
    pub(crate) services: Vec<String>,
}

pub(crate) struct Collector {
    pub(crate) url: String,
    pub(crate) received: Arc<Mutex<Received>>,
}

pub(crate) async fn collector() -> Collector {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Received::default()));
    let all = received.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let all = all.clone();
            let serve = service_fn(move |request: http::Request<Incoming>| take(request, all.clone()));
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve));
        }
    });
    Collector { url, received }
}

async fn take(
    request: http::Request<Incoming>,
    received: Arc<Mutex<Received>>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut received = received.lock().unwrap();
    match path.as_str() {
        "/v1/traces" => {
            for resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
                received.services.push(attributes(&resource.resource.unwrap().attributes)["service.name"].clone());
                received.spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        }
        "/v1/metrics" => {
            for resource in ExportMetricsServiceRequest::decode(body).unwrap().resource_metrics {
                for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
                    for (attributes, value) in points(metric.data.unwrap()) {
                        received.points.insert(format!("{} {attributes:?}", metric.name), value);
                    }
                }
            }
        }
        other => panic!("{other}"),
    }
    Ok(http::Response::new(Full::default()))
}

fn points(data: Data) -> Vec<(BTreeMap<String, String>, f64)> {
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
    match data {
        Data::Histogram(histogram) => {
            let points = histogram.data_points.into_iter();
            points
                .map(|point| {
                    assert_eq!(point.explicit_bounds.first(), Some(&0.01));
                    (attributes(&point.attributes), point.count as f64)
                })
                .collect()
        }
        Data::Sum(sum) => {
            let points = sum.data_points.into_iter();
            points
                .map(|point| match point.value.unwrap() {
                    Value::AsDouble(value) => (attributes(&point.attributes), value),
                    Value::AsInt(value) => (attributes(&point.attributes), value as f64),
                })
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => format!("{other:?}"),
    };
    all.iter().map(|attribute| (attribute.key.clone(), text(&attribute.value))).collect()
}
