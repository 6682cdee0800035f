//! Traces and metrics for an OpenTelemetry collector, in two lines: `Otel::install` and `.observe(otel.observer())`.
//!
//! `cargo run -p linchpin-examples --example observed` sends them to http://localhost:4318, or where
//! `OTEL_EXPORTER_OTLP_ENDPOINT` says. A host calls a tool of a server in the same process; both appear in one trace, with what
//! the tool does in between.

use linchpin::BoxError;
use linchpin::otel::{Otel, trace_context};
use linchpin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Forecast {
    /// City name.
    city: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let otel = Otel::install("weather")?;
    let server = Server::new("weather", "1.0")
        .tool(("forecast", "Tomorrow's weather."), |q: Forecast| async move { format!("Sunny in {}.", q.city) })
        .observe(otel.observer());

    let host = Client::new("host", "1.0").trace_context(trace_context).connect(in_process(server)).await?;
    eprintln!("{}", host.call("forecast", serde_json::json!({ "city": "Oslo" })).await?.text());
    host.close().await;

    // Sends the last of them.
    otel.shutdown().await;
    Ok(())
}
